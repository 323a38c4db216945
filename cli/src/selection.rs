//! Selects rows by a filter, a partition and the beginning of their RowKeys.

use clap::Args;
use entable::{Filter, Keys};

use crate::failure::Failure;

/// The rows that a command takes; all rows of the table without any of these.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selection {
    /// Take the rows that match, such as "PartitionKey eq 'Sales' and Age ge 30"
    #[arg(long)]
    pub(crate) filter: Option<String>,
    /// Take the rows with this PartitionKey
    #[arg(long, value_name = "KEY")]
    pub(crate) partition: Option<String>,
    /// Take the rows of the partition whose RowKeys begin with this
    #[arg(long, value_name = "START", requires = "partition")]
    pub(crate) prefix: Option<String>,
}

impl Selection {
    /// Returns whether the command takes all rows.
    pub(crate) const fn is_all(&self) -> bool {
        self.filter.is_none() && self.partition.is_none()
    }

    /// Returns the condition of all options together.
    pub(crate) fn condition(&self) -> Result<Filter, Failure> {
        let keys = self.partition.as_ref().map(|key| {
            let keys = Keys::partition(key);
            self.prefix.as_ref().map_or(keys.clone(), |start| keys.prefix(start)).filter()
        });
        let condition = self.filter.as_deref().map(parse).transpose()?;
        Ok(match (keys, condition) {
            (Some(keys), Some(condition)) => keys.and_all(condition),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Filter::Constant(true),
        })
    }
}

fn parse(text: &str) -> Result<Filter, Failure> {
    Filter::parse(text).map_err(|error| {
        let hint = hint(text).map_or_else(String::new, |hint| format!("; {hint}"));
        Failure::usage(format!("--filter: {error}{hint}"))
    })
}

/// Operators of other languages, longer ones first, and what a filter has in their place.
const OPERATORS: [(&str, &str); 11] = [
    (">=", "ge"),
    ("<=", "le"),
    ("!=", "ne"),
    ("<>", "ne"),
    ("==", "eq"),
    ("&&", "and"),
    ("||", "or"),
    (">", "gt"),
    ("<", "lt"),
    ("=", "eq"),
    ("!", "not"),
];

/// Returns what a filter that does not parse probably has to say instead.
fn hint(text: &str) -> Option<String> {
    // Parts outside of quotes: every second one.
    let outside: String = text.split('\'').step_by(2).collect::<Vec<_>>().join("''");
    if outside.contains('"') {
        return Some("texts are in single quotes, such as 'Sales'".to_owned());
    }
    let found = OPERATORS.iter().find(|(theirs, _)| outside.contains(theirs));
    if let Some((theirs, ours)) = found {
        return Some(format!("`{theirs}` is `{ours}` in a filter"));
    }
    let long = outside.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').find(|word| {
        word.bytes().all(|byte| byte.is_ascii_digit())
            && word.parse::<i64>().is_ok_and(|number| i32::try_from(number).is_err())
    });
    long.map(|number| format!("a value of type Int64 ends with L: `{number}L`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_other_languages_are_translated() {
        for (text, expected) in [
            ("Age > 30", "`>` is `gt` in a filter"),
            ("Age >= 30", "`>=` is `ge` in a filter"),
            ("Age == 30", "`==` is `eq` in a filter"),
            ("Name = 'a>b'", "`=` is `eq` in a filter"),
            ("Name eq \"Jones\"", "texts are in single quotes, such as 'Sales'"),
            ("Sent eq 9999999999", "a value of type Int64 ends with L: `9999999999L`"),
        ] {
            assert_eq!(hint(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(hint("Name eq '>' and"), None);
    }

    #[test]
    fn options_are_one_condition() {
        let of = |filter: Option<&str>, partition: Option<&str>, prefix: Option<&str>| {
            let text = |text: Option<&str>| text.map(str::to_owned);
            let (filter, partition, prefix) = (text(filter), text(partition), text(prefix));
            Selection { filter, partition, prefix }.condition().unwrap().to_string()
        };
        assert_eq!(of(None, Some("O'Hara"), None), "PartitionKey eq 'O''Hara'");
        let both = of(Some("Age eq 7"), Some("Sales"), Some("emp"));
        assert!(both.contains("RowKey ge 'emp'") && both.contains("RowKey lt 'emq'"), "{both}");
        assert!(both.contains("PartitionKey eq 'Sales'") && both.contains("Age eq 7"), "{both}");
        let either = of(Some("Age eq 7 or Age eq 8"), Some("Sales"), None);
        assert!(either.contains("(Age eq 7) or (Age eq 8)"), "{either}");
        let parsed = Filter::parse(&either).unwrap().to_string();
        assert_eq!(parsed, either, "the `or` stays inside");
    }
}

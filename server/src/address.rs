//! Reads the address of a request: the resource in its path, and the options in its query.

use crate::failure::Failure;

/// The suffix of the account in addresses of its secondary.
const SECONDARY: &str = "-secondary";

/// The resource that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resource {
    Account,
    Batch,
    Tables,
    Table(String),
    Entities(String),
    Entity { table: String, partition_key: String, row_key: String },
}

/// Returns the resource of a raw path that begins with `/account`.
pub(crate) fn resource_of(path: &str, account: &str) -> Result<Resource, Failure> {
    let rest = below_account(path, account);
    let rest = rest.map(|rest| rest.strip_prefix(SECONDARY).unwrap_or(rest));
    let rest = match rest {
        Some("" | "/") => return Ok(Resource::Account),
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return Err(Failure::new(400, "InvalidUri")),
    };
    let text = percent_decoded(rest).ok_or_else(syntax)?;
    let Some((name, inner)) = text.split_once('(') else {
        return match &*text {
            "$batch" => Ok(Resource::Batch),
            "Tables" => Ok(Resource::Tables),
            name if name.ends_with("/$batch") => Err(Failure::new(415, "MediaTypeNotSupported")),
            name => table_name(name).map(Resource::Entities),
        };
    };
    let inner = inner.strip_suffix(')').ok_or_else(syntax)?;
    match (name, inner) {
        ("Tables", "") => Ok(Resource::Tables),
        ("Tables", quoted) => match literal(quoted) {
            Some((table, "")) => Ok(Resource::Table(table)),
            _ => Err(syntax()),
        },
        (name, "") => table_name(name).map(Resource::Entities),
        (name, keys) => entity(table_name(name)?, keys),
    }
}

fn below_account<'a>(path: &'a str, account: &str) -> Option<&'a str> {
    path.strip_prefix('/').and_then(|path| path.strip_prefix(account))
}

/// Returns whether a raw path names the account's secondary.
pub(crate) fn is_secondary(path: &str, account: &str) -> bool {
    below_account(path, account).is_some_and(|rest| rest.starts_with(SECONDARY))
}

fn table_name(name: &str) -> Result<String, Failure> {
    if name.is_empty() || name.contains('/') { Err(syntax()) } else { Ok(name.to_owned()) }
}

/// Reads `PartitionKey='..',RowKey='..'`, in either order.
fn entity(table: String, keys: &str) -> Result<Resource, Failure> {
    let (mut partition_key, mut row_key) = (None, None);
    let mut rest = keys;
    for separator in [",", ""] {
        let (name, value) = rest.split_once('=').ok_or_else(syntax)?;
        let (value, after) = literal(value).ok_or_else(syntax)?;
        rest = after.strip_prefix(separator).ok_or_else(syntax)?;
        match name.trim() {
            "PartitionKey" => partition_key = Some(value),
            "RowKey" => row_key = Some(value),
            _ => return Err(syntax()),
        }
    }
    match (partition_key, row_key, rest) {
        // The service reads these as parts of a path, wherever they are.
        (Some(partition_key), Some(row_key), "")
            if ![&partition_key, &row_key].iter().any(|key| key.contains(['/', '\\'])) =>
        {
            Ok(Resource::Entity { table, partition_key, row_key })
        }
        _ => Err(syntax()),
    }
}

/// Splits a quoted literal from the start of a text. Two quotes inside the literal mean one.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

fn syntax() -> Failure {
    Failure::with_text(400, "InvalidInput", "Bad Request - Error in query syntax.")
}

/// Decodes percent-encoded UTF-8. Returns `None` for a `%` without two digits, so two addresses never mean one row
/// by accident.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_digit(rest.next()?)? * 16 + hex_digit(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Reads the options of a query string. A `+` is a blank, as SDKs write it.
pub(crate) fn options_of(query: &str) -> Result<Vec<(String, String)>, Failure> {
    let decoded = |text: &str| percent_decoded(&text.replace('+', " ")).ok_or_else(syntax);
    query
        .split('&')
        .filter(|option| !option.is_empty())
        .map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            Ok((decoded(name)?, decoded(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_doubled_and_percent_decoded_once() {
        let found =
            resource_of("/a/T(PartitionKey='o%27%27brien%2541',RowKey='')", "a").map_err(|_| ());
        let (partition_key, row_key) = ("o'brien%41".to_owned(), String::new());
        assert_eq!(found, Ok(Resource::Entity { table: "T".into(), partition_key, row_key }));
        let found = resource_of("/a/T(RowKey='r',PartitionKey='p')", "a").map_err(|_| ());
        let (partition_key, row_key) = ("p".to_owned(), "r".to_owned());
        assert_eq!(found, Ok(Resource::Entity { table: "T".into(), partition_key, row_key }));
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for path in [
            "/b/T",
            "/ab/T",
            "/a-secondaryT",
            "T",
            "/a/T(PartitionKey='p')",
            "/a/T(PartitionKey='p',RowKey='r'",
            "/a/T(PartitionKey='p',PartitionKey='r')",
            "/a/T(PartitionKey='p',RowKey='r')x",
            "/a/T(PartitionKey='%4',RowKey='r')",
            "/a/T(PartitionKey='%ff',RowKey='r')",
            "/a/T(PartitionKey='o'brien',RowKey='r')",
            "/a/T(PartitionKey='p%2Fq',RowKey='r')",
            "/a/T(PartitionKey='p',RowKey='r%5C')",
            "/a/T/$batch",
            "/a/T/x",
        ] {
            assert!(resource_of(path, "a").is_err(), "{path}");
        }
    }
}

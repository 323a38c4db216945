//! Writes the documentation of the methods that begin a path: the steps, and the cost of a read with all or some of
//! them.

use crate::model::{Entity, Family, FamilyKind};

/// Returns the documentation of the method that begins a path through a row family.
pub(super) fn path_method_doc(entity: &Entity, family: &Family) -> String {
    let mut doc = opening_sentence(family);
    let fields = |parts: usize| steps(entity, family, parts);
    let all = family.row.parts().count();
    let is_list = family.kind == FamilyKind::List;
    if let Some(dated) = &entity.dated
        && let Some(field) = entity.fields.get(dated.field)
    {
        let name = &field.name;
        doc.push_str(&format!(
            "\n\nThe period of `{name}` names the table. Where the keys do not hold it, `{name}` or a window, \
             `{name}_between`, comes first; a window of up to 32 tables costs 1 request or more \
             for each of them, a larger one for each that exists."
        ));
    }
    doc.push_str("\n\n| given | class | `$filter` | requests |\n|---|---|---|---|");
    let partition = &family.partition.text;
    let is_period = family.has_partition_for_period(entity);
    for given in (0..=all).rev().take(if is_list { 1 } else { all + 1 }) {
        let prefix = template_prefix(&family.row.text, given);
        let (class, keys) = match (given == all, prefix.is_empty()) {
            (true, _) => ("point", format!("`RowKey eq '{}'`", family.row.text)),
            (false, false) => ("range", format!("RowKeys that begin with `{prefix}`")),
            (false, true) if is_period => ("range", "every RowKey".to_owned()),
            (false, true) => ("partition scan", "every RowKey".to_owned()),
        };
        let requests = match (given == all, is_list) {
            (true, true) => "1 for the ids, 1 more for each entity",
            (true, false) if entity.wide.is_some() && family.is_primary() => "1 for each part",
            (true, false) => "1",
            (false, _) => "1 for each 1,000 rows",
        };
        let names = fields(given);
        let names = if names.is_empty() { "nothing".to_owned() } else { quoted_names(&names) };
        doc.push_str(&format!(
            "\n| {names} | {class} | `PartitionKey eq '{partition}'` and {keys} | {requests} |"
        ));
    }
    doc
}

/// Returns the names of the steps that give the PartitionKey and the first `row_parts` parts of the RowKey.
fn steps(entity: &Entity, family: &Family, row_parts: usize) -> Vec<String> {
    let given = || family.partition.parts().chain(family.row.parts().take(row_parts));
    let mut names: Vec<String> = Vec::new();
    for part in given() {
        let Some(field) = entity.fields.get(part.field) else { continue };
        let is_value_given =
            given().any(|other| other.field == part.field && other.is_read_back_exactly(field));
        let name = &field.name;
        let step = match family.has_period_and_value_of(part.field, &entity.fields) {
            true if is_value_given => format!("{name}_exact"),
            true => format!("{name}_period"),
            false => name.clone(),
        };
        if !names.contains(&step) {
            names.push(step);
        }
    }
    names
}

fn opening_sentence(family: &Family) -> String {
    let name = &family.name;
    let table = family.table.as_ref().map(|table| format!(" of table `{}`", table.value()));
    let place = match (family.in_blob, family.is_remote, table) {
        (true, ..) => "in a blob".to_owned(),
        (_, _, Some(table)) => format!("in partitions{table}, soon after the answer"),
        (_, true, None) => "in other partitions, soon after the answer".to_owned(),
        (_, false, None) => "in the transaction of the entity".to_owned(),
    };
    match family.kind {
        FamilyKind::Primary => "Begins the path by the keys of the entity.".to_owned(),
        FamilyKind::Copy => {
            let unique = if family.unique { ", which are unique," } else { "" };
            format!(
                "Begins the path through the index `{name}`. Its copies{unique} are written {place}."
            )
        }
        FamilyKind::List => {
            format!("Begins the path through the list `{name}`. Its ids are written {place}.")
        }
    }
}

/// Returns the text of a template up to its part number `given`, counted from 0. Keys with the first `given` parts
/// begin with this text. Returns the whole template if it has no such part.
fn template_prefix(template: &str, given: usize) -> &str {
    let end = template.match_indices('{').nth(given).map_or(template.len(), |(at, _)| at);
    template.get(..end).unwrap_or(template)
}

fn quoted_names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::driver;

    /// Returns the generated code of an example entity, including doc comments.
    fn expansion() -> String {
        let entity = quote! {
            #[table(
                name = "Staff",
                partition_key = "{department}",
                row_key = "empid_{id:06}",
                index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
                index(ByName, row_key = "name_{last_name}_{id:06}"),
                list(ByCity, row_key = "city_{city}")
            )]
            struct Employee {
                department: String,
                id: u32,
                last_name: String,
                city: String,
                email: String,
            }
        };
        driver::expand_table_entity(&syn::parse2(entity).expect("a struct"))
            .to_string()
            .replace("\\n", "\n")
    }

    #[test]
    fn a_period_is_a_step_of_its_own_and_its_partition_a_range() {
        let entity = quote! {
            #[table(
                name = "Logs",
                partition_key = "{host}_{at:%Y%m%d}",
                row_key = "{at:desc}",
                index(Newest, table = "LogsByTime", partition_key = "{at:%Y%m}", row_key = "{at:desc}_{host}")
            )]
            struct Log { host: String, at: OffsetDateTime }
        };
        let code = driver::expand_table_entity(&syn::parse2(entity).expect("a struct"))
            .to_string()
            .replace("\\n", "\n");
        for line in [
            "| `host`, `at_exact` | point |",
            "| `host`, `at_period` | range | `PartitionKey eq '{host}_{at:%Y%m%d}'` and every RowKey |",
            "| `at_exact`, `host` | point |",
            "| `at_exact` | range | `PartitionKey eq '{at:%Y%m}'` and RowKeys that begin with `{at:desc}_` |",
            "| `at_period` | range | `PartitionKey eq '{at:%Y%m}'` and every RowKey |",
        ] {
            assert!(code.contains(line), "{line}\n{code}");
        }
    }

    #[test]
    fn entry_methods_say_their_steps_classes_filters_and_requests() {
        let code = expansion();
        for line in [
            "Begins the path through the index `ByEmail`. Its copies, which are unique, are written in \
             other partitions, soon after the answer.",
            "| `email` | point | `PartitionKey eq 'email_{email:lower}'` and `RowKey eq 'account'` | 1 |",
            "Begins the path through the index `ByName`. Its copies are written in the transaction of the \
             entity.",
            "| `department`, `last_name`, `id` | point | `PartitionKey eq '{department}'` and `RowKey eq \
             'name_{last_name}_{id:06}'` | 1 |",
            "| `department`, `last_name` | range | `PartitionKey eq '{department}'` and RowKeys that begin \
             with `name_{last_name}_` | 1 for each 1,000 rows |",
            "| `department` | range | `PartitionKey eq '{department}'` and RowKeys that begin with `name_` |",
            "| `department`, `city` | point | `PartitionKey eq '{department}'` and `RowKey eq \
             'city_{city}'` | 1 for the ids, 1 more for each entity |",
            "Begins the path by the keys of the entity.",
            "| `department`, `id` | point | `PartitionKey eq '{department}'` and `RowKey eq \
             'empid_{id:06}'` | 1 |",
        ] {
            assert!(code.contains(line), "{line}\n{code}");
        }
    }
}

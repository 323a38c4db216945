//! Writes the documentation that editors show at the methods of paths: the steps, the cost of a read with all or some
//! of them, and a line of code in the user's own names.

use crate::{
    model::{Entity, FamilyKind, Field, RowFamily},
    names,
    template::Form,
};

/// Returns the documentation of the method that begins a path through a row family.
pub(super) fn path_method_doc(entity: &Entity, family: &RowFamily) -> String {
    let mut doc = opening_sentence(family);
    let in_partition = family.partition.parts().count();
    let fields = |row_parts: usize| {
        let steps = steps(entity, family, |at| at < in_partition + row_parts);
        steps.into_iter().map(|(step, _)| step).collect::<Vec<_>>()
    };
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
    if let Some(calls) = complete_example(entity, family) {
        doc.push_str(&format!("\n\nThe whole key: `{calls}`"));
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

/// Returns the steps that set the key parts in `is_given`, with the fields whose values they take. Parts are counted
/// from the first part of the PartitionKey.
fn steps<'m>(
    entity: &'m Entity,
    family: &'m RowFamily,
    is_given: impl Fn(usize) -> bool,
) -> Vec<(String, &'m Field)> {
    let given = || family.parts().enumerate().filter(|(at, _)| is_given(*at)).map(|(_, part)| part);
    let mut steps: Vec<(String, &Field)> = Vec::new();
    for part in given() {
        let Some(field) = entity.fields.get(part.field) else { continue };
        let is_value_given =
            given().any(|other| other.field == part.field && other.is_read_back_exactly(field));
        let name = &field.name;
        let step = if !family.has_period_and_value_of(part.field, &entity.fields) {
            name.clone()
        } else if is_value_given {
            format!("{name}_exact")
        } else {
            format!("{name}_period")
        };
        if steps.iter().all(|(earlier, _)| *earlier != step) {
            steps.push((step, field));
        }
    }
    steps
}

/// Returns the calls that lead to a builder state, with a variable for each field: `Employee::primary().id(id)`.
/// `given` has a flag for each key part, then whether a table and a window of tables are given. Returns `None` if no
/// calls lead to this state alone, as with a bucket.
pub(super) fn example_calls(entity: &Entity, family: &RowFamily, given: &[bool]) -> Option<String> {
    let is_given = |at: usize| given.get(at).copied().unwrap_or_default();
    let is_bucket_alone = family.parts().enumerate().any(|(at, part)| {
        let mut others = family.parts().enumerate().filter(|(_, other)| other.field == part.field);
        matches!(part.form, Form::Bucket(_)) && is_given(at) && others.any(|(at, _)| !is_given(at))
    });
    if is_bucket_alone {
        return None;
    }
    let mut calls = format!("{}::{}()", names::ident_text(&entity.ident), path_method(family)?);
    let parts = family.parts().count();
    let mut given_first = None;
    let dated = entity.dated.as_ref().map(|dated| dated.field);
    if let Some((at, field)) = dated.and_then(|at| Some((at, entity.fields.get(at)?))) {
        if is_given(parts + 1) {
            calls.push_str(&format!(".{}_between(from..until)", field.name));
        } else if is_given(parts) && family.exact_part_of_field(at, &entity.fields).is_none() {
            calls.push_str(&format!(".{0}({0})", field.ident));
            given_first = Some(&field.name);
        }
    }
    for (step, field) in steps(entity, family, is_given) {
        if given_first == Some(&field.name) {
            continue;
        }
        // The method of a field named `type` is `r#type`.
        let step = if step == field.name { field.ident.to_string() } else { step };
        calls.push_str(&format!(".{step}({})", field.ident));
    }
    Some(calls)
}

/// Returns the calls that set every part of the keys, and the table.
fn complete_example(entity: &Entity, family: &RowFamily) -> Option<String> {
    let mut given = vec![true; family.parts().count() + 1];
    given.push(false);
    example_calls(entity, family, &given)
}

fn path_method(family: &RowFamily) -> Option<String> {
    match family.kind {
        FamilyKind::Primary => Some("primary".to_owned()),
        FamilyKind::Copy | FamilyKind::List => {
            names::path_method_name(&family.name).map(|method| method.to_string())
        }
    }
}

fn opening_sentence(family: &RowFamily) -> String {
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
    use proc_macro2::TokenStream;
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
        expansion_of(entity)
    }

    /// Expands a struct. Each line of the documentation is a line of the text.
    fn expansion_of(entity: TokenStream) -> String {
        let entity = syn::parse2(entity).expect("a struct");
        driver::expand_table_entity(&entity).to_string().replace("\\n", "\n")
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
        let code = expansion_of(entity);
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

    #[test]
    fn steps_have_a_line_of_code_in_the_users_names() {
        let code = expansion();
        for line in [
            "The whole key: `Employee::primary().department(department).id(id)`",
            "The whole key: `Employee::by_email().email(email)`",
            "Sets `department`: `Employee::primary().department(department)`.\n\nThe result is a path: a \
             query of it reads every row with these parts.",
            "Sets `id`: `Employee::primary().department(department).id(id)`.\n\nThis completes the key.",
            "Reads the rows with `id` in a range: \
             `Employee::primary().department(department).id_range(from..=to)`.",
            "Reads the rows whose `last_name` begins with a text: \
             `Employee::by_name().department(department).last_name_prefix(\\\"a\\\")`.",
        ] {
            assert!(code.contains(line), "{line}\n{code}");
        }
    }

    #[test]
    fn lines_of_code_have_the_steps_of_periods_buckets_and_dated_tables() {
        let entity = quote! {
            #[table(
                name = "Logs{at:%Y%m}",
                partition_key = "{host}_{id:bucket(16)}",
                row_key = "{at:%Y%m%d}_{id:06}_{at}"
            )]
            struct Log { host: String, id: u32, at: OffsetDateTime }
        };
        let code = expansion_of(entity);
        for line in [
            "`Log::primary().at_between(from..until)`.",
            "Sets `host`: `Log::primary().host(host)`.",
            "Sets `host`: `Log::primary().at_between(from..until).host(host)`.",
            "Returns a path for each bucket of `id`, for `query_many`: \
             `Log::primary().host(host).id_buckets()`.",
            "Sets the period that holds `at`: `Log::primary().host(host).id(id).at_period(at)`.",
            "Sets one value, rather than a period, of `at`: `Log::primary().host(host).id(id).at_exact(at)`.",
        ] {
            assert!(code.contains(line), "{line}\n{code}");
        }
    }

    #[test]
    fn columns_have_a_condition_or_the_reason_why_there_is_none() {
        let entity = quote! {
            #[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
            struct Employee {
                department: String,
                id: u32,
                age: Option<i32>,
                #[table(encrypt)]
                salary: f64,
                #[table(encrypt, blind)]
                ssn: String,
                #[table(json)]
                notes: Vec<String>,
                #[table(series)]
                sent: [u32; 24],
            }
        };
        let code = expansion_of(entity);
        for line in [
            "The column of `age`: property `Age`. A condition: `Employee::AGE.eq(age)`.",
            "property `Salary`. No filter compares it, because it is encrypted.",
            "property `Ssn`. A filter compares it for equality: `Employee::SSN.eq(ssn)`.",
            "property `Notes`. No filter compares it, because it is stored as JSON.",
            "A filter compares one slot: `Employee::SENT.at(slot).eq(value)`.",
        ] {
            assert!(code.contains(line), "{line}\n{code}");
        }
    }
}

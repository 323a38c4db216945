//! Writes a report as Markdown.

use super::model::{EntityModel, TableModel};

/// Returns the report as Markdown.
pub(super) fn markdown(title: &str, tables: &[TableModel]) -> String {
    let mut out = format!("# {title}\n");
    for table in tables {
        out.push_str(&format!("\n## Table {}\n\n", table.name));
        for (template, types) in &table.scopes {
            out.push_str(&format!(
                "- One transaction: rows of {} with equal PartitionKey `{template}`.\n",
                types.join(", ")
            ));
        }
        table.entities.iter().for_each(|entity| push_entity(entity, &mut out));
    }
    out
}

/// Returns code in Markdown, with the bars of tables escaped.
fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{}`", text.replace('|', "\\|")),
    }
}

fn push_table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>, out: &mut String) {
    out.push_str(&format!("\n| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len())));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
}

fn push_entity(entity: &EntityModel, out: &mut String) {
    out.push_str(&format!("\n### {}\n\n", entity.name));
    let sealed = if entity.is_sealed { ", each row sealed" } else { "" };
    out.push_str(&format!(
        "Recognised by {}, {}{sealed}.\n",
        entity.recognised_by, entity.versions
    ));
    push_table(
        &["rows", "kind", "table", "PartitionKey", "RowKey", "example", "holds", "written"],
        entity.rows.iter().map(|rows| {
            vec![
                rows.name.clone(),
                rows.kind_words(),
                rows.table.clone(),
                code(&rows.partition.template),
                code(&rows.row.template),
                format!("{} {}", code(&rows.partition.example), code(&rows.row.example)),
                rows.holds.clone(),
                rows.written().to_owned(),
            ]
        }),
        out,
    );
    push_table(
        &["property", "type", "flags"],
        entity
            .fields
            .iter()
            .map(|field| vec![code(&field.name), field.edm.clone(), field.flags.join(", ")]),
        out,
    );
    push_table(
        &["path", "given", "class", "$filter", "requests"],
        entity.paths.iter().map(|path| {
            vec![
                code(&path.entry),
                path.given.join(", "),
                path.class.clone(),
                code(&path.filter),
                path.requests.clone(),
            ]
        }),
        out,
    );
    push_table(
        &[
            "verb",
            "requests before the answer",
            "of them reads",
            "operations in the transaction",
            "requests after the answer",
        ],
        entity.costs.iter().map(|cost| {
            vec![
                code(cost.verb),
                cost.before().to_string(),
                cost.reads.to_string(),
                cost.operations.to_string(),
                cost.after_words(),
            ]
        }),
        out,
    );
    if !entity.warnings.is_empty() {
        out.push('\n');
    }
    for warning in &entity.warnings {
        out.push_str(&format!("- **Note:** {warning}\n"));
    }
}

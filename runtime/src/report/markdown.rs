//! Writes a report as Markdown.

use super::{
    model::{EntityModel, OutboxFigures, TableFigures, TableModel},
    numbers::{format_bytes, format_duration, percent, with_thousands_commas},
};
use crate::patterns::{markdown::push_table, write_cost::CostModel};

/// Returns the report as Markdown.
pub(super) fn render_markdown(
    title: &str,
    tables: &[TableModel],
    outbox: Option<&OutboxFigures>,
) -> String {
    let mut out = format!("# {title}\n");
    if let Some(outbox) = outbox {
        push_outbox(outbox, &mut out);
    }
    for table in tables {
        out.push_str(&format!("\n## Table {}\n\n", table.name));
        if let Some(periods) = &table.periods {
            out.push_str(&format!("- {periods}\n"));
        }
        for (template, types) in &table.scopes {
            out.push_str(&format!(
                "- One transaction: rows of {} with equal PartitionKey `{template}`.\n",
                types.join(", ")
            ));
        }
        if let Some(figures) = &table.figures {
            push_figures(figures, &mut out);
        }
        table.entities.iter().for_each(|entity| push_entity(entity, &mut out));
    }
    out
}

fn push_outbox(outbox: &OutboxFigures, out: &mut String) {
    let status = &outbox.status;
    let some = if outbox.is_whole { "" } else { " at least" };
    out.push_str(&format!(
        "\nOutbox:{some} {} open rows in {some_partitions} partitions, {} stuck; lag {}.\n",
        with_thousands_commas(outbox.open_row_count()),
        with_thousands_commas(status.stuck.len() as u64),
        status.oldest.map_or("none".to_owned(), format_duration),
        some_partitions = with_thousands_commas(status.partitions),
    ));
}

fn push_figures(figures: &TableFigures, out: &mut String) {
    let found = &figures.partitions;
    figures.notes.iter().for_each(|note| out.push_str(&format!("- {note}\n")));
    out.push_str(&format!(
        "- Rows: {}, {}. Partitions: {}.\n",
        with_thousands_commas(found.rows),
        format_bytes(found.bytes),
        with_thousands_commas(found.partitions)
    ));
    if found.top.is_empty() {
        return;
    }
    push_table(
        &["largest partitions", "rows", "bytes", "share of rows"],
        found.top.iter().map(|partition| {
            vec![
                code_markup(&partition.partition_key.escape_debug().to_string()),
                with_thousands_commas(partition.rows),
                format_bytes(partition.bytes),
                percent(partition.share),
            ]
        }),
        out,
    );
}

/// Returns code in Markdown, with the bars of tables escaped.
fn code_markup(text: &str) -> String {
    match text {
        "" => String::new(),
        // A bar ends the cell of a table even inside a code span.
        text => format!("`{}`", text.replace('|', "\\|")),
    }
}

fn push_entity(entity: &EntityModel, out: &mut String) {
    out.push_str(&format!("\n### {}\n\n", entity.name));
    let sealed = if entity.is_sealed { ", with a seal on each row" } else { "" };
    out.push_str(&format!(
        "Identified by {}, {}{sealed}.\n",
        entity.recognised_by, entity.versions
    ));
    push_table(
        &["rows", "kind", "table", "PartitionKey", "RowKey", "example", "holds", "written"],
        entity.rows.iter().map(|rows| {
            vec![
                rows.name.clone(),
                rows.kind_words(),
                rows.table.clone(),
                code_markup(&rows.partition.template),
                code_markup(&rows.row.template),
                format!(
                    "{} {}",
                    code_markup(&rows.partition.example),
                    code_markup(&rows.row.example)
                ),
                rows.holds.clone(),
                rows.when_written().to_owned(),
            ]
        }),
        out,
    );
    push_table(
        &["property", "type", "flags"],
        entity
            .fields
            .iter()
            .map(|field| vec![code_markup(&field.name), field.edm.clone(), field.flags.join(", ")]),
        out,
    );
    push_table(
        &["path", "given", "class", "$filter", "requests"],
        entity.paths.iter().map(|path| {
            vec![
                code_markup(&path.entry),
                path.given.join(", "),
                path.class.clone(),
                code_markup(&path.filter),
                path.requests.clone(),
            ]
        }),
        out,
    );
    push_table(
        &CostModel::HEADS,
        entity.costs.iter().map(|cost| cost.cells_of_verb(code_markup(cost.verb))),
        out,
    );
    if !entity.warnings.is_empty() {
        out.push('\n');
    }
    for warning in &entity.warnings {
        out.push_str(&format!("- **Note:** {warning}\n"));
    }
}

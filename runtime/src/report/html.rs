//! Writes a report as one HTML page that needs no other file and no script.

use super::{
    draw::escape_markup,
    model::{EntityModel, OutboxFigures, RowFamilyPlace, TableFigures, TableModel},
    numbers::{format_bytes, format_duration, percent, with_thousands_commas},
    picture::{arrow_legend_html, draw_wide_and_narrow},
};
use crate::{
    patterns::{Plan, write_cost::CostModel},
    store::usage::Prices,
};

const STYLE: &str =
    concat!(include_str!("palette.css"), include_str!("picture.css"), include_str!("style.css"));

/// Returns the report as an HTML page.
pub(super) fn render_html(
    title: &str,
    tables: &[TableModel],
    outbox: Option<&OutboxFigures>,
    plans: &[(Plan, Option<Prices>)],
) -> String {
    let title = escape_markup(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    push_contents(tables, plans, &mut out);
    if let Some(outbox) = outbox {
        push_outbox(outbox, &mut out);
    }
    tables.iter().for_each(|table| push_table(table, &mut out));
    plans.iter().for_each(|(plan, prices)| push_plan(plan, prices.as_ref(), &mut out));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn push_contents(tables: &[TableModel], plans: &[(Plan, Option<Prices>)], out: &mut String) {
    out.push_str("<nav>\n");
    for table in tables {
        let name = escape_markup(&table.name);
        out.push_str(&format!("<a class=\"table\" href=\"#table-{name}\">Table {name}</a>\n"));
        for entity in &table.entities {
            let name = escape_markup(&entity.name);
            out.push_str(&format!("<a href=\"#{name}\">{name}</a>\n"));
        }
    }
    for (plan, _) in plans {
        let name = escape_markup(plan.name());
        out.push_str(&format!("<a class=\"table\" href=\"#plan-{name}\">Plan of {name}</a>\n"));
    }
    out.push_str("</nav>\n");
}

fn push_plan(plan: &Plan, prices: Option<&Prices>, out: &mut String) {
    let name = escape_markup(plan.name());
    out.push_str(&format!("<section id=\"plan-{name}\">\n<h2>Plan of {name}</h2>\n"));
    for part in plan.parts(prices) {
        let rows = part.rows.iter();
        let rows = rows.map(|row| row.iter().map(|cell| escape_markup(cell)).collect());
        push_cells(part.title, "costs", &part.heads, rows, out);
        if !part.hot.is_empty() {
            out.push_str("<ul class=\"notes\">\n");
            for hot in &part.hot {
                out.push_str(&format!("<li>Hot: {}</li>\n", with_code(hot)));
            }
            out.push_str("</ul>\n");
        }
        for about in &part.about {
            out.push_str(&format!("<p class=\"about\">{}</p>\n", with_code(about)));
        }
    }
    out.push_str("</section>\n");
}

fn push_table(table: &TableModel, out: &mut String) {
    let name = escape_markup(&table.name);
    out.push_str(&format!("<section id=\"table-{name}\">\n<h2>Table {name}</h2>\n"));
    if let Some(periods) = &table.periods {
        out.push_str(&format!("<p class=\"about\">{}</p>\n", with_code(periods)));
    }
    if let Some(figures) = &table.figures {
        push_figures(figures, out);
    }
    out.push_str("<figure>\n");
    out.push_str(&draw_wide_and_narrow(table));
    out.push_str("<figcaption>");
    let mut rows = table.entities.iter().flat_map(|entity| &entity.rows);
    out.push_str(&arrow_legend_html(rows.any(|rows| rows.place == RowFamilyPlace::Upload)));
    out.push_str("</figcaption>\n</figure>\n");
    table.entities.iter().for_each(|entity| push_entity(entity, out));
    out.push_str("</section>\n");
}

/// Writes each number with its label into `out`, as a `<dl>` list in HTML.
fn push_numbers(numbers: &[(String, &str)], out: &mut String) {
    out.push_str("<dl class=\"figures\">\n");
    for (number, words) in numbers {
        out.push_str(&format!("<div><dt>{words}</dt><dd>{}</dd></div>\n", escape_markup(number)));
    }
    out.push_str("</dl>\n");
}

fn push_outbox(outbox: &OutboxFigures, out: &mut String) {
    let status = &outbox.status;
    out.push_str("<section id=\"outbox\">\n<h2>Open outbox work</h2>\n");
    if !outbox.is_whole {
        let first = with_thousands_commas(status.partitions);
        out.push_str(&format!(
            "<p class=\"about\">More partitions have open work: the figures cover the first {first}.</p>\n"
        ));
    }
    let numbers = [
        (status.oldest.map_or("none".to_owned(), format_duration), "lag"),
        (with_thousands_commas(outbox.open_row_count()), "open rows"),
        (with_thousands_commas(status.partitions), "partitions"),
        (status.stuck.len().to_string(), "stuck"),
    ];
    push_numbers(&numbers, out);
    out.push_str("</section>\n");
}

fn push_figures(figures: &TableFigures, out: &mut String) {
    for note in &figures.notes {
        out.push_str(&format!("<p class=\"about\">{}</p>\n", with_code(note)));
    }
    let found = &figures.partitions;
    let largest = found.top.first().map_or("none".to_owned(), |top| percent(top.share));
    let numbers = [
        (with_thousands_commas(found.rows), "rows"),
        (format_bytes(found.bytes), "size"),
        (with_thousands_commas(found.partitions), "partitions"),
        (largest, "in the largest partition"),
    ];
    push_numbers(&numbers, out);
    if found.top.is_empty() {
        return;
    }
    let rows = found.top.iter().map(|partition| {
        let share = percent(partition.share);
        vec![
            code_markup(&partition.partition_key.escape_debug().to_string()),
            with_thousands_commas(partition.rows),
            format_bytes(partition.bytes),
            format!(
                "<span class=\"bar\"><i style=\"width:{:.1}%\"></i></span>{share}",
                partition.share * 100.0
            ),
        ]
    });
    let heads = ["PartitionKey", "rows", "size", "share of rows"];
    push_cells("Largest partitions", "largest", &heads, rows, out);
}

/// Returns code as an escaped HTML `<code>` element in which long keys may break, or an empty text for empty code.
fn code_markup(text: &str) -> String {
    match text {
        "" => String::new(),
        text => {
            // Add places where a long key may break. Escape the text first: these tags have to stay markup.
            let text = escape_markup(text).replace('{', "<wbr>{").replace('_', "_<wbr>");
            format!("<code>{text}</code>")
        }
    }
}

/// Writes a table whose cells are markup.
fn push_cells(
    title: &str,
    class: &str,
    heads: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut String,
) {
    out.push_str(&format!("<h4>{title}</h4>\n<table class=\"{class}\">\n<thead><tr>"));
    for head in heads {
        out.push_str(&format!("<th>{head}</th>"));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (head, cell) in heads.iter().zip(row) {
            let empty = if cell.is_empty() { " class=\"none\"" } else { "" };
            out.push_str(&format!("<td data-head=\"{head}\"{empty}>{cell}</td>"));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
}

fn push_entity(entity: &EntityModel, out: &mut String) {
    let name = escape_markup(&entity.name);
    let sealed = if entity.is_sealed { ", with a seal on each row" } else { "" };
    out.push_str(&format!(
        "<article id=\"{name}\">\n<h3>{name}</h3>\n<p class=\"about\">Identified by {}, {}{sealed}.</p>\n",
        escape_markup(&entity.recognised_by),
        escape_markup(&entity.versions)
    ));
    if !entity.warnings.is_empty() {
        out.push_str("<ul class=\"notes\">\n");
        for warning in &entity.warnings {
            out.push_str(&format!("<li>{}</li>\n", with_code(warning)));
        }
        out.push_str("</ul>\n");
    }
    let rows = entity.rows.iter().map(|rows| {
        vec![
            format!("<b>{}</b>", escape_markup(&rows.name)),
            rows.kind_words(),
            escape_markup(&rows.table),
            format!(
                "{}<br>{}",
                code_markup(&rows.partition.template),
                code_markup(&rows.row.template)
            ),
            format!(
                "{}<br>{}",
                code_markup(&rows.partition.example),
                code_markup(&rows.row.example)
            ),
            escape_markup(&rows.holds),
            rows.when_written().to_owned(),
        ]
    });
    let heads = ["name", "kind", "table", "PartitionKey, RowKey", "example", "holds", "written"];
    push_cells("Rows", "keys", &heads, rows, out);
    let fields = entity.fields.iter().map(|field| {
        let flags: String = field
            .flags
            .iter()
            .map(|flag| format!("<span>{}</span>", escape_markup(flag)))
            .collect();
        vec![code_markup(&field.name), escape_markup(&field.edm), flags]
    });
    push_cells("Properties", "fields", &["property", "type", "flags"], fields, out);
    let paths = entity.paths.iter().map(|path| {
        vec![
            code_markup(&path.entry),
            escape_markup(&path.given.join(", ")),
            format!("<span class=\"{0}\">{0}</span>", escape_markup(&path.class)),
            code_markup(&path.filter),
            with_code(&path.requests),
        ]
    });
    let heads = ["path", "given", "class", "$filter", "requests"];
    push_cells("Access paths", "paths", &heads, paths, out);
    let costs = entity.costs.iter().map(|cost| cost.cells_of_verb(code_markup(cost.verb)));
    push_cells("Cost of each verb", "costs", &CostModel::HEADS, costs, out);
    out.push_str("</article>\n");
}

/// Returns a sentence as markup, with text in backquotes as code.
fn with_code(text: &str) -> String {
    let mut out = String::new();
    for (at, piece) in text.split('`').enumerate() {
        // Backquotes come in pairs, so a piece with an odd number lies between two of them.
        match at % 2 {
            0 => out.push_str(&escape_markup(piece)),
            _ => out.push_str(&code_markup(piece)),
        }
    }
    out
}

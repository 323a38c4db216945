//! Writes Markdown tables, numbers and percentages for reports and plans.

/// Appends a Markdown table to `out`. The caller escapes the cells.
pub(crate) fn push_table(
    heads: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut String,
) {
    out.push_str(&format!("\n| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len())));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
}

/// Returns a share as a percentage, such as `60.0 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns a number as text. Small numbers get more decimals than large ones.
pub(crate) fn number(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 && value < 1e15 => format!("{value:.0}"),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.6}"),
    }
}

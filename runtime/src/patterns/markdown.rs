//! Writes what reports and plans have in common: tables in Markdown, and shares.

/// Adds a table in Markdown. The cells are written as they are.
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

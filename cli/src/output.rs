//! Writes to standard output and standard error: tables for people, JSON for scripts, and the
//! progress of long commands.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write as _},
    process::ExitCode,
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Work that is shorter shows no progress.
const QUIET: Duration = Duration::from_secs(1);

/// Writes what a command says.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) is_json: bool,
}

impl Output {
    pub(crate) const fn new(is_json: bool) -> Self {
        Self { is_json }
    }

    /// Writes a line for people, or `value` for scripts.
    pub(crate) fn say(
        &self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> Value,
    ) -> Result<(), Failure> {
        let line = if self.is_json { value().to_string() } else { text() };
        self.line(&line)
    }

    /// Writes a line to standard output.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match writeln!(out, "{line}") {
            // Whoever reads, such as `head`, has enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
            written => written.map_err(|error| Failure::io("writing to standard output", &error)),
        }
    }

    /// Writes a remark to standard error.
    pub(crate) fn remark(&self, text: &str) {
        // A remark that nobody can read is no failure.
        let _ = writeln!(io::stderr().lock(), "{}", escaped(text));
    }

    /// Writes a failure to standard error, and returns its exit code.
    pub(crate) fn failed(&self, failure: &Failure) -> ExitCode {
        if self.is_json {
            let value = json!({"error": {"kind": failure.kind, "message": failure.message, "exit": failure.code}});
            let _ = writeln!(io::stderr().lock(), "{value}");
        } else {
            self.remark(&format!("entable: {}", failure.message));
        }
        ExitCode::from(failure.code)
    }
}

/// A line on the terminal that shows how far a long command is, from its first second on.
pub(crate) struct Progress {
    bar: Mutex<Option<ProgressBar>>,
    is_shown: bool,
    started: Instant,
}

impl Progress {
    pub(crate) fn new(output: &Output) -> Self {
        let is_shown = !output.is_json && io::stderr().is_terminal();
        Self { bar: Mutex::new(None), is_shown, started: Instant::now() }
    }

    /// Shows a text, if the command runs long enough.
    pub(crate) fn show(&self, text: impl FnOnce() -> String) {
        if !self.is_shown || self.started.elapsed() < QUIET {
            return;
        }
        if let Ok(mut bar) = self.bar.lock() {
            let bar = bar.get_or_insert_with(ProgressBar::new_spinner);
            bar.set_message(escaped(&text()));
            bar.tick();
        }
    }

    /// Removes the line, and returns the seconds since the beginning.
    pub(crate) fn end(&self) -> f64 {
        if let Ok(mut bar) = self.bar.lock()
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
        self.started.elapsed().as_secs_f64()
    }
}

/// Returns a count with its rate, such as `1200 rows in 0.5 s (2400 rows/s)`.
#[allow(clippy::cast_precision_loss, reason = "a rate needs no 52 bits")]
pub(crate) fn rate(rows: u64, seconds: f64) -> String {
    format!("{rows} rows in {seconds:.1} s ({:.0} rows/s)", rows as f64 / seconds.max(1e-3))
}

/// Returns the text without characters that a terminal would obey.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Marks of direction can make a text look like another one.
        let is_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || is_direction {
            // Writing to a text cannot fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Columns of text with a header.
#[derive(Debug)]
pub(crate) struct Grid {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Characters of a cell, at most.
const CELL: usize = 60;

impl Grid {
    pub(crate) fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.rows.push(cells.into_iter().map(|cell| shortened(&escaped(cell.as_ref()))).collect());
    }

    /// Returns the lines, each cell as wide as the widest of its column.
    pub(crate) fn lines(&self) -> Vec<String> {
        let header: Vec<String> =
            self.header.iter().map(|cell| shortened(&escaped(cell))).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&header).chain(&self.rows).collect();
        let width = |column: usize| {
            all.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..header.len()).map(width).collect();
        all.iter()
            .map(|row| {
                let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
                cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
            })
            .collect()
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(CELL) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_nothing_that_a_row_says() {
        assert_eq!(escaped("a\u{1b}[2J\u{7}\u{202e}é"), "a\\u{1b}[2J\\u{7}\\u{202e}é");
        let mut grid = Grid::new(["Key", "Value"]);
        grid.push(["a\nb", &"x".repeat(70)]);
        grid.push(["é", ""]);
        let lines = grid.lines();
        assert_eq!(
            lines,
            ["Key   Value".to_owned(), format!("a\\nb  {}..", "x".repeat(60)), "é".to_owned()]
        );
    }
}

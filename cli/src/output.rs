//! Writes to standard output and standard error: tables for people, JSON for scripts, and the
//! progress of long commands.

use std::{
    fmt::Write as _,
    future::Future,
    io::{self, IsTerminal, Write as _},
    pin::pin,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Work that is shorter shows no progress.
const QUIET: Duration = Duration::from_secs(1);
/// The time between two texts of work that does not say how far it is.
const TICK: Duration = Duration::from_millis(200);

/// Writes what a command says.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) is_json: bool,
    is_unread: AtomicBool,
}

impl Output {
    pub(crate) const fn new(is_json: bool) -> Self {
        Self { is_json, is_unread: AtomicBool::new(false) }
    }

    /// Writes a line for people, or `value` for scripts.
    pub(crate) fn say(
        &self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> Value,
    ) -> Result<(), Failure> {
        if self.is_json { self.json(&value()) } else { self.line(&text()) }
    }

    /// Writes a value as a line of JSON.
    pub(crate) fn json(&self, value: &Value) -> Result<(), Failure> {
        self.line(&json_text(value))
    }

    /// Writes a line to standard output.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.written(writeln!(io::stdout().lock(), "{line}"))
    }

    /// Returns the result of a write to standard output. If the reader has gone, such as `head`, the command
    /// continues: its exit code must report what happened to the data.
    pub(crate) fn written(&self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread.store(true, Ordering::Relaxed);
                Ok(())
            }
            written => written.map_err(|error| Failure::io("writing to standard output", &error)),
        }
    }

    /// Returns whether the reader of standard output has gone.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// Writes a remark to standard error.
    pub(crate) fn remark(&self, text: &str) {
        self.note(|| text.to_owned(), || json!({ "remark": text }));
    }

    /// Writes a line for people, or `value` for scripts, to standard error.
    pub(crate) fn note(&self, text: impl FnOnce() -> String, value: impl FnOnce() -> Value) {
        let line = if self.is_json { json_text(&value()) } else { escaped(&text()) };
        // A remark that cannot be printed is not a failure.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Writes a failure to standard error, and returns its exit code.
    pub(crate) fn failed(&self, failure: &Failure) -> ExitCode {
        self.note(
            || format!("entable: {}", failure.message),
            || json!({"error": {"kind": failure.kind, "message": failure.message, "exit": failure.code}}),
        );
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

    /// Returns how far the command is in work of a known size, and how long the rest will take.
    pub(crate) fn share(&self, done: u64, total: Option<u64>, unit: &str) -> String {
        match total {
            Some(total) => share_of_work(done, total, unit, self.started.elapsed()),
            None => format!("{done} {unit}"),
        }
    }

    /// Waits for work that does not say how far it is, and shows how long it takes.
    pub(crate) async fn wait<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(TICK, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.show(|| format!("{name}: {} s", self.started.elapsed().as_secs())),
            }
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

/// Returns a count of rows, such as `1 row` or `250 rows`.
pub(crate) fn rows(count: u64) -> String {
    format!("{count} {}", if count == 1 { "row" } else { "rows" })
}

/// Returns how far work is whose size is known, with an estimate of the time that is left, such as
/// `50 of 200 rows (25%), 6 s left`.
#[allow(clippy::cast_precision_loss, reason = "an estimate needs no 52 bits")]
fn share_of_work(done: u64, total: u64, unit: &str, elapsed: Duration) -> String {
    if done == 0 || done > total {
        return format!("{done} {unit}");
    }
    let share = done as f64 / total as f64;
    let left = elapsed.as_secs_f64() * (1.0 - share) / share;
    format!("{done} of {total} {unit} ({:.0}%), {left:.0} s left", share * 100.0)
}

/// Returns a count with its rate, such as `1200 rows in 0.5 s (2400 rows/s)`.
#[allow(clippy::cast_precision_loss, reason = "a rate needs no 52 bits")]
pub(crate) fn rate(count: u64, seconds: f64) -> String {
    let a_second = count as f64 / seconds.max(1e-3);
    format!("{} in {seconds:.1} s ({a_second:.0} rows/s)", rows(count))
}

/// Returns the text without characters that a terminal would obey.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            // Writing to a text cannot fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns whether a terminal obeys the character in place of showing it.
fn is_obeyed(c: char) -> bool {
    // Marks of direction can make a text look like another one.
    let is_direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_direction
}

/// Returns the value as JSON whose texts escape what a terminal would obey.
fn json_text(value: &Value) -> String {
    let text = value.to_string();
    if !text.chars().any(is_obeyed) {
        return text;
    }
    // Such characters occur only in JSON strings, where they can be escaped.
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            // Writing to a text cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Writes to standard output, without characters that a terminal would obey if it is one.
#[derive(Debug)]
pub(crate) struct Shown<W> {
    out: W,
    is_terminal: bool,
}

impl Shown<io::Stdout> {
    /// Shows what is written to standard output.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self { out, is_terminal }
    }
}

impl<W: io::Write> io::Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            write!(self.out, "{}{end}", escaped(line))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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
    fn work_of_a_known_size_says_what_is_left() {
        let after = Duration::from_secs(2);
        assert_eq!(share_of_work(50, 200, "rows", after), "50 of 200 rows (25%), 6 s left");
        assert_eq!(share_of_work(200, 200, "rows", after), "200 of 200 rows (100%), 0 s left");
        assert_eq!(share_of_work(0, 200, "rows", after), "0 rows");
        assert_eq!(share_of_work(201, 200, "rows", after), "201 rows", "the table has grown");
        assert_eq!((rows(0), rows(1), rows(2)), ("0 rows".into(), "1 row".into(), "2 rows".into()));
    }

    #[test]
    fn terminals_obey_nothing_that_a_row_says() {
        assert_eq!(escaped("a\u{1b}[2J\u{7}\u{202e}é"), "a\\u{1b}[2J\\u{7}\\u{202e}é");
        let text = "\u{1b}[2J\u{9b}2J\u{7f}\u{202e}é";
        let line = json_text(&json!({ "a": text }));
        assert_eq!(line, "{\"a\":\"\\u001b[2J\\u009b2J\\u007f\\u202eé\"}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), json!({ "a": text }));
        for (is_terminal, expected) in [(true, "a\\u{1b}b\né\n"), (false, "a\u{1b}b\né\n")] {
            let mut shown = Shown { out: Vec::new(), is_terminal };
            shown.write_all("a\u{1b}b\né\n".as_bytes()).unwrap();
            assert_eq!(String::from_utf8(shown.out).unwrap(), expected);
        }
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

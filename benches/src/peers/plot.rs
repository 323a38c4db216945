//! Draws the race: a bar for each store, its length the time of one operation.

use std::fmt::Write;

use super::{output::time, race::Outcome};

/// The groups of the plot: a load, and what a reader calls it.
const GROUPS: [(&str, &str); 9] = [
    ("point read", "Read one entity by its key"),
    ("read by index", "Read one entity by its e-mail address"),
    ("range of 100", "Read a range of 100 entities"),
    ("durable insert", "Insert one entity, on disk"),
    ("durable insert, 64 tasks", "The same, 64 tasks at a time"),
    ("durable change of an index key", "Change an e-mail address, on disk"),
    ("durable bulk load, 8 at a time", "Load in bulk, on disk: each entity"),
    ("relaxed insert", "Insert one entity, on disk soon"),
    ("relaxed bulk load, 8 at a time", "Load in bulk, on disk soon: each entity"),
];

const TITLE: &str =
    "Time of one operation with entable, native_db, SQLite and redb. Shorter is faster";
const WIDTH: f64 = 360.0;
/// Where bars begin.
const BARS: f64 = 78.0;
/// The length of the longest bar of a group, which leaves room for its time.
const LONGEST: f64 = 216.0;

const STYLE: &str = r#":root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--soft:#59636e;--ours:#0a5fb4;--theirs:#afb8c1}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--soft:#9198a1;--ours:#74b9ff;--theirs:#4b535d}}
svg text{font:12.5px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;fill:var(--fg)}
svg .b{font-weight:600}
svg .s{fill:var(--soft)}
svg .bg{fill:var(--bg)}
svg .ours{fill:var(--ours)}
svg .theirs{fill:var(--theirs)}"#;

/// Returns the picture as the text of a file.
pub(super) fn draw(outcomes: &[Outcome]) -> String {
    let mut body = String::new();
    text(&mut body, "b", 0.0, 18.0, "Shorter is faster");
    text(&mut body, "s", 128.0, 18.0, "the time that one takes");
    let mut y = 46.0;
    for (load, title) in GROUPS {
        let group: Vec<_> = outcomes.iter().filter(|outcome| outcome.load == load).collect();
        if !group.is_empty() {
            y = draw_group(&mut body, y, title, &group);
        }
    }
    let height = y - 12.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{TITLE}\">\n<title>{TITLE}</title>\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

/// Draws the bars of one load, and returns where the next group begins.
fn draw_group(body: &mut String, mut y: f64, title: &str, group: &[&Outcome]) -> f64 {
    text(body, "b", 0.0, y, title);
    let longest = group.iter().map(|outcome| outcome.median).fold(0.0, f64::max);
    for outcome in group {
        y += 18.0;
        let length = (outcome.median / longest * LONGEST).max(1.0);
        let class = if outcome.peer == "entable" { "ours" } else { "theirs" };
        text(body, if class == "ours" { "b" } else { "" }, 0.0, y, outcome.peer);
        let top = y - 11.0;
        writeln!(
            body,
            "<rect class=\"{class}\" x=\"{BARS}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"13\" rx=\"2\"/>"
        )
        .unwrap();
        text(body, "s", BARS + length + 6.0, y, &time(outcome.median));
    }
    y + 32.0
}

fn text(body: &mut String, class: &str, x: f64, y: f64, words: &str) {
    writeln!(body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>").unwrap();
}

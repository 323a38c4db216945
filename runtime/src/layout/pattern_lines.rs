//! Reads the lines of access patterns in the text of a layout.

use super::{
    pattern_shape::{CallShape, DeclaredShape, PatternShape, PlanShape},
    words::{Words, is_end, split_leading_quoted_text, takes_word},
};

/// Reads a line below `patterns "GROUP"`. Returns `None` for a line that is not understood.
pub(super) fn read_pattern_line(
    line: &str,
    group: &str,
    patterns: &mut Vec<PatternShape>,
) -> Option<()> {
    if let Some(line) = line.strip_prefix("  pattern ") {
        let (name, declared) = split_leading_quoted_text(line)?;
        patterns.push(PatternShape {
            group: group.to_owned(),
            name,
            declared: parse_declared(declared)?,
            calls: Vec::new(),
            compared: Vec::new(),
            plan: PlanShape {
                class: String::new(),
                requests: 0,
                round_trips: 0,
                operations: 0,
                blobs: 0,
            },
            broken: None,
        });
        return Some(());
    }
    let (word, rest) = line.strip_prefix("    ")?.split_once(' ')?;
    let pattern = patterns.last_mut().filter(|pattern| pattern.group == group)?;
    match word {
        "call" => pattern.calls.push(parse_call(rest)?),
        "compares" => pattern.compared = rest.split_whitespace().map(str::to_owned).collect(),
        "plan" => pattern.plan = parse_plan(rest)?,
        _ => return None,
    }
    Some(())
}

fn parse_declared(text: &str) -> Option<DeclaredShape> {
    let mut words = text.strip_prefix(" claims ")?.split_whitespace().peekable();
    let declared = DeclaredShape {
        claim: words.next()?.to_owned(),
        rows: parse_number(&mut words, "rows")?.unwrap_or(1),
        tables: parse_number(&mut words, "tables")?,
        partitions: parse_number(&mut words, "over")?.unwrap_or(1),
        most_requests: parse_number(&mut words, "at_most")?,
    };
    is_end(words).map(|()| declared)
}

fn parse_call(text: &str) -> Option<CallShape> {
    let (function, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (entity_type, rest) = if rest.starts_with('"') {
        let (entity_type, rest) = split_leading_quoted_text(rest)?;
        (Some(entity_type), rest)
    } else {
        (None, rest)
    };
    let mut words = rest.split_whitespace().peekable();
    let rows = words.next_if(|word| *word != "times").map(str::to_owned);
    let times = parse_number(&mut words, "times")?.unwrap_or(1);
    let times = usize::try_from(times).ok()?;
    is_end(words)?;
    Some(CallShape { function: function.to_owned(), entity_type, rows, times })
}

fn parse_plan(text: &str) -> Option<PlanShape> {
    let mut words = text.split_whitespace().peekable();
    let plan = PlanShape {
        class: words.next()?.to_owned(),
        requests: parse_number(&mut words, "requests")??,
        round_trips: parse_number(&mut words, "round_trips")??,
        operations: parse_number(&mut words, "operations")?.unwrap_or(0),
        blobs: parse_number(&mut words, "blobs")?.unwrap_or(0),
    };
    is_end(words).map(|()| plan)
}

/// Takes `word` and the number after it, if the next word is `word`. Returns `Some(None)` if it is another word, and
/// `None` if no number follows.
fn parse_number(words: &mut Words<'_>, word: &str) -> Option<Option<u64>> {
    if takes_word(words, word) { words.next()?.parse().ok().map(Some) } else { Some(None) }
}

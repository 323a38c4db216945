//! Compares the pages with the glossary: where a page first uses a term of our own, it links to the term's meaning.

use std::ops::Range;

use crate::{chapters, read};

/// The terms that a reader cannot know, with their anchors in the glossary. Ordinary words with a sense of our own, such
/// as copy, list, set, move, claim and look, are not here: nobody could tell the two senses of a use apart.
const TERMS: [(&str, &str); 30] = [
    ("index copy", "copy"),
    ("partial copy", "partial-copy"),
    ("head row", "head-row"),
    ("spill row", "spill"),
    ("row family", "row-family"),
    ("framework row", "framework-row"),
    ("discriminator", "discriminator"),
    ("type marker", "type-marker"),
    ("access path", "path"),
    ("cost class", "cost-class"),
    ("primary", "primary"),
    ("outbox", "outbox"),
    ("open work", "open-work"),
    ("dirty row", "dirty-row"),
    ("directory marker", "marker"),
    ("worker", "worker"),
    ("second look", "second-look"),
    ("write deadline", "write-deadline"),
    ("poison table", "poison"),
    ("tombstone", "tombstone"),
    ("code over work", "work-code"),
    ("held value", "held-values"),
    ("dead claim", "dead-claim"),
    ("blind token", "blind-token"),
    ("data key", "data-key"),
    ("blind token key", "blind-token-key"),
    ("content key", "content-key"),
    ("hidden absence", "hidden-absence"),
    ("shredded scope", "shredded-scope"),
    ("random history", "history"),
];

/// Words that give the term before them another sense: `primary key`, `blind token key`.
const OTHER_SENSES: [(&str, &str); 8] = [
    ("primary", "key"),
    ("primary", "keys"),
    ("primary", "region"),
    ("primary", "endpoint"),
    ("primary", "location"),
    ("primary", "address"),
    ("blind token", "key"),
    ("blind token", "keys"),
];

/// Returns the text with code, headings, pictures and the targets of links blanked out. Every byte keeps its place.
fn visible(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |range: Range<usize>| {
        bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    };
    let (mut at, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || is_code || line.starts_with('#') {
            blank(at..at + line.len());
        }
        is_code ^= is_fence;
        at += line.len();
    }
    let prose = String::from_utf8(bytes).unwrap();
    let mut bytes = prose.clone().into_bytes();
    let mut blank = |range: Range<usize>| {
        bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    };
    let mut ticks = prose.match_indices('`').map(|(at, _)| at);
    while let (Some(open), Some(close)) = (ticks.next(), ticks.next()) {
        blank(open..close + 1);
    }
    for (at, _) in prose.match_indices("](") {
        let end = prose[at..].find(')').map_or(prose.len(), |end| at + end);
        blank(at + 2..end);
        let start = prose[..at].rfind('[').unwrap_or(at);
        if prose[..start].ends_with('!') {
            blank(start - 1..end);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns the words of a text, with their places.
fn words(text: &str) -> Vec<(Range<usize>, String)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_letter = c.is_alphanumeric() || c == '-' || c == '_';
        match (is_letter, start) {
            (true, None) => start = Some(at),
            (false, Some(begin)) => {
                words.push((begin..at, text[begin..at].to_lowercase()));
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// Returns the places where a text uses a term, also in the plural.
fn uses(text: &str, term: &str) -> Vec<Range<usize>> {
    let words = words(text);
    let wanted: Vec<&str> = term.split(' ').collect();
    let is_form = |found: &str, wanted: &str| {
        found == wanted
            || found.strip_suffix("ies").is_some_and(|stem| wanted.strip_suffix('y') == Some(stem))
            || found.strip_suffix('s') == Some(wanted)
    };
    let mut uses = Vec::new();
    for (at, window) in words.windows(wanted.len()).enumerate() {
        let is_term = window.iter().zip(&wanted).all(|((_, found), wanted)| is_form(found, wanted));
        let is_one_phrase =
            window.windows(2).all(|pair| text[pair[0].0.end..pair[1].0.start].trim().is_empty());
        let next = words.get(at + wanted.len()).map_or("", |(_, word)| word);
        let is_another_sense = OTHER_SENSES.contains(&(term, next));
        if is_term && is_one_phrase && !is_another_sense {
            uses.push(window[0].0.start..window[wanted.len() - 1].0.end);
        }
    }
    uses
}

/// Returns whether a place is in the text of a link, or emphasised, as a definition is.
fn leads_to_its_meaning(text: &str, place: &Range<usize>) -> bool {
    let (before, after) = (&text[..place.start], &text[place.end..]);
    let is_emphasised = before.ends_with('*') && after.starts_with('*');
    let is_opened = before.rfind('[').is_some_and(|open| !before[open..].contains(']'));
    let is_closed = after
        .find(']')
        .is_some_and(|close| after[close..].starts_with("](") && !after[..close].contains('['));
    is_emphasised || (is_opened && is_closed)
}

#[test]
fn the_first_use_of_a_term_links_to_its_meaning() {
    let (mut missing, mut found) = (Vec::new(), 0);
    // The rows of the guide are Microsoft's sentences, whose worker and partial copy are others.
    let is_ours = |page: &str| !["glossary.md", "guide.md"].contains(&page);
    for (page, text) in chapters().into_iter().filter(|(page, _)| is_ours(page)) {
        let text = visible(&text);
        for (term, anchor) in TERMS {
            let Some(first) = uses(&text, term).into_iter().next() else { continue };
            found += 1;
            if !leads_to_its_meaning(&text, &first) {
                let line = text[..first.start].matches('\n').count() + 1;
                missing.push(format!("docs/{page}:{line}: {term} (glossary.md#{anchor})"));
            }
        }
    }
    assert!(found > 100, "found only {found} first uses");
    assert!(missing.is_empty(), "first uses without a link:\n  {}", missing.join("\n  "));
}

#[test]
fn the_glossary_has_the_terms() {
    let glossary = read("docs/glossary.md");
    for (term, anchor) in TERMS {
        assert!(glossary.contains(&format!("<a id=\"{anchor}\">")), "{term}: no {anchor}");
    }
}

#[test]
fn a_use_is_found_and_judged() {
    let judged = |text: &str, term| {
        let text = visible(text);
        uses(&text, term).first().map(|place| leads_to_its_meaning(&text, place))
    };
    assert_eq!(judged("Dirty\n  rows are kept.", "dirty row"), Some(false));
    assert_eq!(judged("A [dirty row](glossary.md#dirty-row).", "dirty row"), Some(true));
    assert_eq!(judged("[The\nrow families](x.md) of", "row family"), Some(true));
    assert_eq!(judged("The rows are the *outbox*.", "outbox"), Some(true));
    assert_eq!(judged("A dirty, row. `dirty row`\n# Dirty row\n[x](dirty row)", "dirty row"), None);
    assert_eq!(judged("```text\nworker\n```\n![A worker](worker.svg)", "worker"), None);
    assert_eq!(judged("the primary region", "primary"), None);
    assert_eq!(judged("[a] the primary [b](c)", "primary"), Some(false));
}

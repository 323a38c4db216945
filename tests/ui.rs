//! Compares the compiler's messages about mistakes: one mistake, one message, at its place.

const TOPICS: [&str; 21] = [
    "container",
    "encrypt",
    "enum",
    "field",
    "filter",
    "index",
    "limit",
    "message",
    "name",
    "patch",
    "path",
    "pattern",
    "projection",
    "properties",
    "series",
    "set",
    "shape",
    "template",
    "type",
    "version",
    "wide",
];

// Every case fails: with a case that passes, trybuild runs cargo once for each case, and not once for all.
#[test]
fn mistakes_are_shown_where_they_are_made() {
    let cases = trybuild::TestCases::new();
    for topic in TOPICS {
        cases.compile_fail(format!("ui/{topic}/*.rs"));
    }
}

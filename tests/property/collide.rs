//! Tests that two templates which the check separates have no key in common.

use entable::key::{
    Form, RowFamily, Segment, Template, TemplatePart, families_may_collide, templates_may_collide,
};
use proptest::prelude::*;

use crate::template::{key_of, templates, three_values};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn apart_is_a_proof(
        a in templates(),
        b in templates(),
        of_a in three_values(),
        of_b in three_values(),
    ) {
        let meet = templates_may_collide(a, b);
        prop_assert_eq!(meet, templates_may_collide(b, a), "{:?} {:?}", a.segments, b.segments);
        prop_assert!(templates_may_collide(a, a));
        for (key, other) in [(key_of(a, &of_a), b), (key_of(b, &of_b), a)] {
            if let Some(key) = key {
                prop_assert!(meet || !other.matches(&key), "{} {:?}", key, other.segments);
            }
        }
    }

    #[test]
    fn apart_is_a_proof_for_neighbours(
        a in templates(),
        at: prop::sample::Index,
        to in "[a_7E]{1,2}",
        of_a in three_values(),
        of_b in three_values(),
    ) {
        // The template with one segment replaced by a literal.
        let mut segments = a.segments.to_vec();
        let at = at.index(segments.len());
        segments[at] = Segment::Literal(to.leak());
        let b: &'static Template =
            Box::leak(Box::new(Template { text: "neighbour", segments: segments.leak() }));
        let meet = templates_may_collide(a, b);
        prop_assert_eq!(meet, templates_may_collide(b, a));
        for (key, other) in [(key_of(a, &of_a), b), (key_of(b, &of_b), a)] {
            if let Some(key) = key {
                prop_assert!(meet || !other.matches(&key), "{} {:?}", key, other.segments);
            }
        }
    }
}

const fn literal(text: &'static str) -> Segment {
    Segment::Literal(text)
}

const fn part(form: Form, width: Option<usize>) -> Segment {
    Segment::Part(TemplatePart::new("Field", form, width))
}

const TEXT: Segment = part(Form::Plain, None);
const ID: Segment = part(Form::Width(6), Some(6));
const FIXED: Segment = part(Form::Plain, Some(6));
const DAY: Segment = part(Form::Date("%Y-%m-%d"), Some(10));

fn meet(a: &[Segment], b: &[Segment]) -> bool {
    let of = |segments: &[Segment]| Template { text: "test", segments: segments.to_vec().leak() };
    let (a, b) = (of(a), of(b));
    assert_eq!(templates_may_collide(&a, &b), templates_may_collide(&b, &a));
    templates_may_collide(&a, &b)
}

#[test]
fn these_are_apart() {
    let cases: &[(&str, &[Segment], &[Segment])] = &[
        ("literals at the front", &[literal("empid_"), TEXT], &[literal("email_"), TEXT]),
        ("literals at the end", &[TEXT, literal("_a")], &[TEXT, literal("_b")]),
        ("literals in the middle", &[TEXT, literal("_a_"), TEXT], &[TEXT, literal("_b_"), TEXT]),
        ("lengths", &[literal("a_"), ID], &[literal("a_"), ID, literal("_x")]),
        ("digits and letters", &[literal("a_"), ID], &[literal("a_x"), TEXT]),
        ("a text that cannot hold the separator", &[TEXT, literal("_a")], &[literal("x_b_"), TEXT]),
        ("numbers of separators", &[TEXT, literal("_"), ID], &[ID, literal("_"), ID, literal("_")]),
        ("separators of a date", &[DAY], &[literal("2014_"), TEXT]),
        ("the framework's rows", &[TEXT], &[literal("~e"), TEXT]),
        ("more than one character", &[literal("\u{e9}"), ID], &[literal("\u{ea}"), ID]),
        ("a fixed part and a shorter key", &[FIXED], &[literal("abc")]),
        ("the empty key", &[], &[literal("a"), TEXT]),
    ];
    for (why, a, b) in cases {
        assert!(!meet(a, b), "{why}");
    }
}

#[test]
fn these_meet() {
    let cases: &[(&str, &[Segment], &[Segment])] = &[
        ("a bare text", &[TEXT], &[literal("empid_"), ID]),
        ("texts", &[TEXT, literal("_"), TEXT], &[literal("a_b")]),
        ("an escape", &[TEXT], &[literal("~7E")]),
        (
            "a digit of an escape as separator",
            &[TEXT, literal("7")],
            &[literal("~37"), literal("7")],
        ),
        ("nothing", &[], &[TEXT]),
        ("characters of more than one byte", &[FIXED], &[literal("\u{e9}\u{e9}\u{e9}abc")]),
        ("digits", &[literal("2014"), ID], &[part(Form::Width(10), Some(10))]),
        ("a day", &[DAY], &[literal("2014-08-22")]),
    ];
    for (why, a, b) in cases {
        assert!(meet(a, b), "{why}");
    }
}

#[test]
fn a_proof_that_takes_too_long_is_given_up() {
    let many = |last| -> Vec<Segment> {
        let mut segments: Vec<Segment> = (0..12).flat_map(|_| [TEXT, literal("_")]).collect();
        segments.push(literal(last));
        segments
    };
    assert!(!meet(&many("a"), &many("b")), "every text ends at the next `_`");
    let fixed: Vec<Segment> = std::iter::repeat_n(FIXED, 60).collect();
    assert!(meet(&many("a"), &fixed));
}

#[test]
fn literals_are_compared_by_characters_of_every_length() {
    for c in ['b', 'é', '߾', 'ࠐ', '語', '\u{10400}', '😀', '\u{10fffc}'] {
        let text = |tail: &str| literal(format!("{c}{tail}").leak());
        assert!(meet(&[text("x")], &[text("x")]), "{c}");
        assert!(!meet(&[text("x")], &[text("y")]), "{c}: a character after it");
        assert!(!meet(&[text("")], &[text("x")]), "{c}: a length");
        // The text before it escapes it, so that it ends the text at one place only.
        let in_key = literal(format!("k{c}y").leak());
        assert!(!meet(&[TEXT, text("x")], &[in_key]), "{c} ends a text");
        assert!(meet(&[TEXT, text("y")], &[in_key]), "{c} ends a text");
        for bit in 0..21 {
            let Some(other) = char::from_u32(u32::from(c) ^ 1 << bit) else { continue };
            let other = literal(format!("{other}x").leak());
            assert!(!meet(&[text("x")], &[other]), "{c} and bit {bit}");
        }
    }
}

#[test]
fn families_meet_where_table_partition_and_row_do() {
    let of = |table: Option<&'static str>, partition: &'static str, row: &'static str| {
        let template = |text: &'static str| Template { text, segments: vec![literal(text)].leak() };
        let primary = RowFamily::of_primary("Primary", 0, "Test");
        RowFamily { table, partition: template(partition), row: template(row), ..primary }
    };
    let one = of(Some("Staff"), "p", "r");
    for (other, collide) in [
        (of(Some("Staff"), "p", "r"), true),
        (of(Some("sTAFF"), "p", "r"), true),
        (of(Some("Other"), "p", "r"), false),
        (of(None, "p", "r"), false),
        (of(Some("Staff"), "q", "r"), false),
        (of(Some("Staff"), "p", "s"), false),
    ] {
        assert_eq!(families_may_collide(&one, &other), collide, "{other:?}");
        assert_eq!(families_may_collide(&other, &one), collide, "{other:?}");
    }
    assert!(families_may_collide(&of(None, "p", "r"), &of(None, "p", "r")));
}

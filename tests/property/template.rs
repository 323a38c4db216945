//! Tests whole keys along random templates.

use entable::{
    BlindTokenKey, RootKey, ValueRef,
    key::{
        Descending, FixedWidth, Form, KeyPart, KeyWriter, Segment, TOKEN_WIDTH, Template,
        TemplatePart, bucket_width, date_width, encode_bucket, encode_date, lower, unescape,
    },
};
use proptest::prelude::*;
use time::OffsetDateTime;

use crate::key::{date_forms_in_order, edge_text, times, utf16_order};

/// A value for every form; each part takes what it needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    text: String,
    number: u64,
    time: OffsetDateTime,
}

pub(crate) fn values(text: BoxedStrategy<String>) -> impl Strategy<Value = Value> {
    (text, any::<u64>(), times()).prop_map(|(text, number, time)| Value { text, number, time })
}

/// Short texts of few characters, so that parts run into literals.
pub(crate) fn tight_text() -> BoxedStrategy<String> {
    prop_oneof!["[a_~7E/]{0,4}", edge_text()].boxed()
}

fn literals() -> impl Strategy<Value = String> {
    prop_oneof!["[a_7E][a_7E~]{0,2}", "[\u{e9}\u{10000}][a_]?"]
}

fn parts() -> impl Strategy<Value = (Form, Option<usize>)> {
    prop_oneof![
        3 => Just((Form::Plain, None)),
        1 => Just((Form::Lower, None)),
        2 => (1_usize..5).prop_map(|width| (Form::Width(width), Some(width))),
        1 => Just((Form::Plain, Some(20))),
        1 => Just((Form::Descending, Some(19))),
        1 => Just((Form::Hmac, Some(TOKEN_WIDTH))),
        1 => (1_u32..300).prop_map(|n| (Form::Bucket(n), Some(bucket_width(n)))),
        1 => date_forms_in_order().prop_map(|form| {
            let width = date_width(&form);
            (Form::Date(form.leak()), Some(width))
        }),
    ]
}

prop_compose! {
    pub(crate) fn templates()(
        pieces in prop::collection::vec((prop::option::of(literals()), parts()), 1..4),
        last in prop::option::of(literals()),
    ) -> &'static Template {
        let mut segments: Vec<Segment> = Vec::new();
        for (literal, (form, width)) in pieces {
            let needs = matches!(segments.last(), Some(Segment::Part(TemplatePart { width: None, .. })));
            let literal = literal.or_else(|| needs.then(|| "_".to_owned()));
            segments.extend(literal.map(|text| Segment::Literal(text.leak())));
            segments.push(Segment::Part(TemplatePart::new("Field", form, width)));
        }
        segments.extend(last.map(|text| Segment::Literal(text.leak())));
        &*Box::leak(Box::new(Template { text: "random", segments: segments.leak() }))
    }
}

/// Returns the form of a part for a secret text.
fn token(text: &str) -> String {
    let key = BlindTokenKey::from_root(&RootKey::from_bytes([7; 32]), 1);
    key.token("Table", "Field", ValueRef::String(text))
}

/// The field as its part gives it back: what two keys must not share.
fn essence(part: &TemplatePart, value: &Value) -> String {
    let mut out = String::new();
    encode(part, value, &mut out);
    out
}

fn encode(part: &TemplatePart, value: &Value, out: &mut String) {
    match part.form {
        Form::Plain if part.width.is_some() => value.number.encode(out),
        Form::Plain => value.text.encode(out),
        Form::Lower => {
            lower(&value.text, out);
            Ok(())
        }
        Form::Width(width) => (value.number % 10_u64.pow(u32::try_from(width).unwrap()))
            .encode_zero_padded(width, out),
        Form::Descending => value.time.encode_descending(out),
        Form::Bucket(n) => encode_bucket(&value.text, n, out),
        Form::Hmac => {
            out.push_str(&token(&value.text));
            Ok(())
        }
        Form::Date(form) => encode_date(&value.time, form, out),
    }
    .unwrap();
}

pub(crate) fn key_of(template: &'static Template, values: &[Value]) -> Option<String> {
    let mut writer = KeyWriter::new(template, "RowKey");
    for (part, value) in template.parts().zip(values) {
        writer
            .write_part(|out| {
                encode(part, value, out);
                Ok(())
            })
            .unwrap();
    }
    // Random text may be too long once it is escaped.
    writer.finish().ok()
}

fn essences(template: &Template, values: &[Value]) -> Vec<String> {
    template.parts().zip(values).map(|(part, value)| essence(part, value)).collect()
}

pub(crate) fn three_values() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(values(tight_text()), 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_key_gives_its_parts_back(template in templates(), values in three_values()) {
        prop_assert!(template.can_be_split());
        let Some(key) = key_of(template, &values) else { return Ok(()) };
        prop_assert!(template.matches(&key), "{:?} {}", template.segments, key);
        let texts: [&str; 3] = template.split(&key).unwrap();
        for ((part, text), essence) in
            template.parts().zip(texts).zip(essences(template, &values))
        {
            let text = if part.width.is_some() { text.into() } else { unescape(text).unwrap() };
            prop_assert_eq!(text, essence);
        }
    }

    #[test]
    fn different_fields_make_different_keys(
        template in templates(),
        a in three_values(),
        b in three_values(),
    ) {
        let (Some(key_a), Some(key_b)) = (key_of(template, &a), key_of(template, &b)) else {
            return Ok(());
        };
        prop_assert_eq!(key_a == key_b, essences(template, &a) == essences(template, &b));
    }

    #[test]
    fn a_writer_and_a_single_part_agree(template in templates(), values in three_values()) {
        let Some(key) = key_of(template, &values) else { return Ok(()) };
        let mut joined = String::new();
        let mut at = 0;
        for segment in template.segments {
            match segment {
                Segment::Literal(text) => joined.push_str(text),
                Segment::Part(part) => {
                    let text = template.encode_part(at, |out| { encode(part, &values[at], out); Ok(()) });
                    joined.push_str(&text.unwrap());
                    at += 1;
                }
            }
        }
        prop_assert_eq!(joined, key);
    }

    #[test]
    fn taking_apart_never_panics(template in templates(), key in "[a_~7E0]{0,12}|.*") {
        if let Ok(texts) = template.split::<3>(&key) {
            prop_assert!(template.matches(&key));
            for (part, text) in template.parts().zip(texts) {
                prop_assert!(part.width.is_some() || unescape(text).is_ok());
            }
        }
    }

    #[test]
    fn fixed_parts_and_a_last_text_sort_as_a_tuple(
        a in ("[ab]{0,3}", 0_u32..3, 0_i32..3, times()),
        b in ("[ab]{0,3}", 0_u32..3, 0_i32..3, times()),
    ) {
        const LITERAL: Segment = Segment::Literal("x_");
        const fn part(form: Form, width: Option<usize>) -> Segment {
            Segment::Part(TemplatePart::new("Field", form, width))
        }
        static TEMPLATE: Template = Template {
            text: "x_{a:03}x_{b}{c:desc}{d}",
            segments: &[
                LITERAL,
                part(Form::Width(3), Some(3)),
                LITERAL,
                part(Form::Plain, Some(10)),
                part(Form::Descending, Some(19)),
                part(Form::Plain, None),
            ],
        };
        let key = |(text, id, number, time): &(String, u32, i32, OffsetDateTime)| {
            let mut key = KeyWriter::new(&TEMPLATE, "RowKey");
            key.write_part(|out| id.encode_zero_padded(3, out)).unwrap();
            key.write_part(|out| number.encode(out)).unwrap();
            key.write_part(|out| time.encode_descending(out)).unwrap();
            key.write_part(|out| text.encode(out)).unwrap();
            key.finish().unwrap()
        };
        let tuple = |(text, id, number, time): &(String, u32, i32, OffsetDateTime)| {
            (*id, *number, std::cmp::Reverse(*time), text.clone())
        };
        prop_assert_eq!(utf16_order(&key(&a), &key(&b)), tuple(&a).cmp(&tuple(&b)));
    }
}

fn literal(text: &'static str) -> Segment {
    Segment::Literal(text)
}

fn text(width: Option<usize>) -> Segment {
    Segment::Part(TemplatePart::new("Name", Form::Plain, width))
}

fn leaked(segments: &[Segment]) -> &'static Template {
    Box::leak(Box::new(Template { text: "test", segments: segments.to_vec().leak() }))
}

#[test]
fn a_terminator_may_be_a_digit_of_an_escape() {
    let template = leaked(&[text(None), literal("7"), text(None)]);
    let mut key = KeyWriter::new(template, "RowKey");
    key.write_part(|out| "~7".to_owned().encode(out)).unwrap();
    key.write_part(|out| "7~".to_owned().encode(out)).unwrap();
    let key = key.finish().unwrap();
    assert_eq!(key, "~7E~3777~7E");
    assert_eq!(template.split(&key).unwrap(), ["~7E~37", "7~7E"]);
}

#[test]
fn nothing_separates_what_it_cannot_tell_from_an_escape() {
    assert!(leaked(&[text(None), literal("_"), text(None)]).can_be_split());
    assert!(leaked(&[text(Some(3)), text(None)]).can_be_split());
    for between in ["~", "~7E", ""] {
        assert!(!leaked(&[text(None), literal(between), text(None)]).can_be_split(), "{between}");
    }
    assert!(!leaked(&[text(None), text(Some(3))]).can_be_split());
}

#[test]
fn a_key_that_lacks_a_part_is_refused() {
    let writer = KeyWriter::new(leaked(&[literal("a_"), text(None), literal("_b")]), "RowKey");
    let error = writer.finish().unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.message(), "the RowKey ends before its part `Name`");
}

#[test]
fn a_type_that_breaks_its_width_is_refused() {
    let mut writer = KeyWriter::new(leaked(&[text(Some(3))]), "RowKey");
    let error = writer.write_part(|out| "four".to_owned().encode(out)).unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.property(), Some("Name"));
    assert_eq!(error.message(), "its key part has 3 characters, the value takes 4");
}

#[test]
fn keys_that_the_template_did_not_write_are_refused() {
    let template = leaked(&[text(None), literal("_"), text(None)]);
    // An escape of a character that needs none, and none of one that does.
    for key in ["a~41_b", "a/b_c", "a_b~5F", "a", "a~5", "~_"] {
        assert!(template.split::<2>(key).is_err(), "{key}");
    }
    assert_eq!(template.split("a~5Fb_c~2F_").unwrap(), ["a~5Fb", "c~2F_"]);
}

#[test]
fn a_key_over_the_limit_is_refused_with_its_size() {
    let mut key = KeyWriter::new(leaked(&[literal("a_"), text(None)]), "RowKey");
    key.write_part(|out| "x".repeat(511).encode(out)).unwrap();
    let error = key.finish().unwrap_err();
    assert!(error.is_too_large());
    assert!(error.message().contains("513") && error.message().contains("512"), "{error}");
}

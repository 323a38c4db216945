//! Builds example keys from templates, by trying values until a part accepts one.

use uuid::Uuid;

use crate::{
    edm::{EdmType, Ticks, ValueRef},
    key::{Form, Segment, TOKEN_PLACEHOLDER, Template, TemplatePart},
};

/// 2014-07-31T09:30:00Z, in steps of 100 ns since the year 1.
const TIME: i64 = 635_423_958_000_000_000;

/// The time in the report's examples of keys and of names of tables.
pub(super) const EXAMPLE_TIME: Ticks = match Ticks::new(TIME) {
    Some(time) => time,
    None => Ticks::MIN,
};

/// Example numbers. Key parts with few digits accept the shorter ones.
const NUMBERS: [i64; 4] = [223, 42, 7, 1];

/// A key with example values, and the values' texts by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExampleKey {
    pub(super) text: String,
    pub(super) parts: Vec<ExampleKeyPart>,
}

/// The example of one key part: its field, and the text that the part writes into the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExampleKeyPart {
    pub(super) field: &'static str,
    pub(super) text: String,
    /// The stored type of the field, or `None` if the part took no value that was tried.
    pub(super) edm: Option<EdmType>,
}

/// Returns an example of a template's keys.
pub(super) fn example_key(template: &Template) -> ExampleKey {
    let parts: Vec<ExampleKeyPart> =
        template.parts().enumerate().map(|(at, part)| example_part(template, at, part)).collect();
    let mut texts = parts.iter();
    let mut text = String::new();
    for segment in template.segments {
        match segment {
            Segment::Literal(literal) => text.push_str(literal),
            Segment::Part(_) => text.push_str(texts.next().map_or("", |part| &part.text)),
        }
    }
    ExampleKey { text, parts }
}

fn example_part(template: &Template, at: usize, part: &'static TemplatePart) -> ExampleKeyPart {
    let name = text_for(part.field);
    for value in candidate_values(part.field, &name) {
        let written = template.encode_part(at, |out| (part.codec.encode)(part.form, value, out));
        if let Ok(text) = written {
            // A token depends on a secret key.
            let text = text.replace(TOKEN_PLACEHOLDER, &format!("<token of {}>", part.field));
            let edm = (!matches!(part.form, Form::Hmac)).then(|| value.edm_type());
            return ExampleKeyPart { field: part.field, text, edm };
        }
    }
    ExampleKeyPart { field: part.field, text: format!("<{}>", part.field), edm: None }
}

/// Returns values of every type that keys can have, for a field of this name. The caller takes the first value that a
/// key accepts. An Int64 comes before an Int32, because the key of an Int64 field accepts an Int32 too.
fn candidate_values<'t>(field: &str, text: &'t str) -> Vec<ValueRef<'t>> {
    let year = field.to_ascii_lowercase().contains("year").then_some(2014);
    let numbers = || year.into_iter().chain(NUMBERS);
    let mut values: Vec<ValueRef<'_>> = numbers().map(ValueRef::Int64).collect();
    let small = numbers().filter_map(|number| i32::try_from(number).ok());
    values.extend(small.map(ValueRef::Int32));
    values.push(ValueRef::Boolean(true));
    values.push(ValueRef::Guid(Uuid::from_u128(0x0f8f_ad5b_d9cb_469f_a165_7086_7728_950e)));
    values.push(ValueRef::DateTime(EXAMPLE_TIME));
    values.push(ValueRef::String(text));
    values.push(ValueRef::String("2014-07-31"));
    values
}

/// Returns a text that fits a field's name.
fn text_for(field: &str) -> String {
    const TEXTS: [(&str, &str); 12] = [
        ("mail", "jonesj@contoso.com"),
        ("firstname", "Jun"),
        ("lastname", "Jones"),
        ("department", "Sales"),
        ("city", "Seattle"),
        ("country", "US"),
        ("tenant", "contoso"),
        ("currency", "EUR"),
        ("phone", "555-0100"),
        ("host", "web01"),
        ("user", "jonesj"),
        ("name", "Jones"),
    ];
    let plain: String =
        field.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let known = TEXTS.iter().find(|(word, _)| plain.contains(word));
    known.map_or(plain.clone(), |(_, text)| (*text).to_owned())
}

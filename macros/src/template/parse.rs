//! Parses the content of braces: a field's name and its form.

use super::{
    Fault, Form, Piece, date,
    lex::{Token, lex},
};
use crate::names;

/// The maximum width of a part such as `{id:06}`, in digits.
const MAX_WIDTH: usize = 39;
/// The largest number in `bucket(n)`.
const MAX_BUCKETS: u32 = 10_000;

/// Returns the pieces of a template and all mistakes in it.
pub(crate) fn parse(text: &str) -> (Vec<Piece>, Vec<Fault>) {
    let mut faults = Vec::new();
    let tokens = lex(text, &mut faults);
    let mut pieces = Vec::new();
    for token in tokens {
        match token {
            Token::Literal(text, place) => pieces.push(Piece::Literal(text, place)),
            Token::Braces(inner, place) => match part(&inner) {
                Ok((field, form)) => pieces.push(Piece::Part { field, form, place }),
                Err((field, message)) => {
                    // An unclosed brace already has a fault.
                    if !faults.iter().any(|fault| fault.place.start == place.start) {
                        faults.push(Fault::new(&place, message));
                    }
                    pieces.push(match field {
                        Some(field) => Piece::Part { field, form: Form::Plain, place },
                        None => Piece::Lost,
                    });
                }
            },
        }
    }
    (pieces, faults)
}

/// Returns the field's name and the form of a part. For a malformed part, the error is the message and the field's
/// name, if that is valid.
fn part(inner: &str) -> Result<(String, Form), (Option<String>, String)> {
    let (field, form) = match inner.split_once(':') {
        Some((field, spec)) => (field, Some(spec)),
        None => (inner, None),
    };
    let field = field.strip_prefix("r#").unwrap_or(field);
    if field.is_empty() {
        let message = "expected the name of a field between the braces, such as `{id}`";
        return Err((None, message.to_owned()));
    }
    if !field.chars().all(|c| c == '_' || c.is_alphanumeric()) {
        return Err((None, format!("expected the name of a field, found `{field}`")));
    }
    match form.map_or(Ok(Form::Plain), |spec| self::form(field, spec)) {
        Ok(form) => Ok((field.to_owned(), form)),
        Err(message) => Err((Some(field.to_owned()), message)),
    }
}

fn form(field: &str, spec: &str) -> Result<Form, String> {
    match spec {
        "desc" => Ok(Form::Descending),
        "lower" => Ok(Form::Lower),
        "hmac" => Ok(Form::Hmac),
        "" => Err(format!("expected a form after `:`; for the default form, write `{{{field}}}`")),
        _ if spec.contains('%') => {
            date::fineness_of_form(spec).map(|finest| Form::Date(spec.to_owned(), finest))
        }
        // The empty text, for which `all` is also true, has its own arm above.
        _ if spec.bytes().all(|b| b.is_ascii_digit()) => width(field, spec),
        _ if spec.starts_with("bucket") => bucket(spec),
        _ => Err(unknown(spec)),
    }
}

/// Parses a width such as `06`. Refuses a width without a leading zero, and widths of 0 or more than `MAX_WIDTH`.
fn width(field: &str, spec: &str) -> Result<Form, String> {
    let Some(digits) = spec.strip_prefix('0') else {
        return Err(format!(
            "a width must begin with a zero, because numbers in keys are padded with zeros; write `{{{field}:0{spec}}}`"
        ));
    };
    match digits.parse() {
        Ok(width) if (1..=MAX_WIDTH).contains(&width) => Ok(Form::Width(width)),
        _ => Err(format!("expected a width from 1 to {MAX_WIDTH}, such as `06`, found `{spec}`")),
    }
}

fn bucket(spec: &str) -> Result<Form, String> {
    let count = spec.strip_prefix("bucket(").and_then(|rest| rest.strip_suffix(')'));
    match count.and_then(|count| count.trim().parse().ok()) {
        Some(count) if (1..=MAX_BUCKETS).contains(&count) => Ok(Form::Bucket(count)),
        _ => Err(format!("expected `bucket(n)` with 1 to {MAX_BUCKETS} buckets, found `{spec}`")),
    }
}

fn unknown(spec: &str) -> String {
    let known = ["desc", "lower", "hmac", "bucket(16)", "06", "%Y%m%d"];
    names::unknown_name_message("form", spec, &known)
}

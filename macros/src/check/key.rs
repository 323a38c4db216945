//! Checks key templates.

use super::conflict::has_conflict;
use crate::{
    errors::Errors,
    model::{Entity, KeyTemplate, RowFamily, Segment, TemplatePart},
    template::Form,
};

/// Reports a part of variable width that is followed by another part, or by a literal that cannot mark its end
/// because it does not begin with an ASCII character.
///
/// Uses the names of types to decide whether a part's width is fixed. If a name does not show the width, a const
/// assertion decides later.
pub(super) fn report_unseparated_parts(key: &KeyTemplate, entity: &Entity, errors: &mut Errors) {
    if !key.is_sound {
        return;
    }
    for (second, has_fixed_width) in key.segment_after_each_part(&entity.fields) {
        // Only refuse a width that is known to vary here.
        if has_fixed_width != Some(false) {
            continue;
        }
        match second {
            Segment::Part(second) => {
                errors.add_at(key.literal.span(), key.unseparated_message(second))
            }
            Segment::Literal(text, place) if !can_end_part(text) => {
                let place = place.start..place.start + 1;
                errors.add_at(key.literal.span(), key.template_error_text(&place, TERMINATOR));
            }
            Segment::Literal(..) => {}
        }
    }
}

/// The message for a literal that cannot mark the end of a part.
const TERMINATOR: &str = "a literal after a part of variable width must begin with an ASCII character, because the part escapes that character and other characters have long escapes";

fn can_end_part(literal: &str) -> bool {
    literal.starts_with(|c: char| c.is_ascii())
}

/// Reports an `Option` in a key, once for each field, because every row has all parts of its keys.
pub(super) fn refuse_optional_parts(entity: &Entity, errors: &mut Errors) {
    let mut seen = Vec::new();
    for key in entity.families.iter().flat_map(RowFamily::declared_keys) {
        for part in key.parts() {
            let Some(field) = entity.fields.get(part.field) else { continue };
            if !field.is_option_with_argument() || seen.contains(&part.field) {
                continue;
            }
            seen.push(part.field);
            let message = format!(
                "`{0}` is an `Option`, but a key needs a value for each of its parts: use a type that always has a value, such as a `String` that can be empty",
                field.name
            );
            errors.add_at(key.literal.span(), key.template_error_text(&part.place, message));
        }
    }
}

/// Reports a PartitionKey that consists only of times, because a single server would receive all current writes.
pub(super) fn refuse_hot_partition(entity: &Entity, errors: &mut Errors) {
    let Some(primary) = entity.families.first() else { return };
    let key = &primary.partition;
    if !key.is_sound {
        return;
    }
    let is_time = |part: &TemplatePart| match part.form {
        Form::Date(..) => true,
        Form::Plain | Form::Descending => {
            entity.fields.get(part.field).is_some_and(crate::model::Field::is_time_or_date)
        }
        _ => false,
    };
    let mut parts = key.parts();
    let Some(first) = parts.next() else { return };
    if !entity.allows_hot_partition && is_time(first) && parts.all(is_time) {
        let message = "the partition key consists of time alone, so one partition takes all writes of a period: begin the key with another field or `{id:bucket(16)}`, or write `allow(hot_partition)`";
        errors.add_at(key.literal.span(), key.template_error_text(&first.place, message));
    }
}

/// Reports `{field:hmac}` if a key contains the field in plain text. A field with `encrypt` in plain text is reported
/// elsewhere.
pub(super) fn refuse_tokens_that_hide_nothing(entity: &Entity, errors: &mut Errors) {
    let keys = || entity.families.iter().flat_map(RowFamily::declared_keys);
    let keys = || keys().filter(|key| key.is_sound);
    for (key, token) in keys().flat_map(KeyTemplate::tokens_with_key) {
        let Some(field) = entity.fields.get(token.field) else { continue };
        let plain = |other: &TemplatePart| other.field == token.field && !other.is_token();
        let Some(other) = keys().find(|key| key.parts().any(plain)) else { continue };
        if !field.attr.encrypt.is_set() {
            let message = format!(
                "the token of `{0}` hides nothing, because the key \"{1}\" contains `{0}` in plain text",
                field.name, other.text
            );
            errors.add_at(key.literal.span(), key.template_error_text(&token.place, message));
        }
    }
}

/// Reports a copy without a field whose token is in the copy's keys. A read verifies the token against the field.
pub(super) fn refuse_copies_without_fields_of_tokens(entity: &Entity, errors: &mut Errors) {
    for family in &entity.families {
        let tokens = family.keys().into_iter().flat_map(KeyTemplate::tokens_with_key);
        for (key, token) in tokens {
            let Some(field) = entity.fields.get(token.field) else { continue };
            if family.holds_field(token.field) {
                continue;
            }
            let message = format!(
                "`except` removes `{}` from the copy, so the token in the key \"{}\" could not be checked against the value: keep the field",
                field.name, key.text
            );
            let declaration = entity.declaration(family);
            let span = declaration.map(|declaration| declaration.span_of_left_out(&field.name));
            errors.add_at(span.unwrap_or_else(|| key.literal.span()), message);
        }
    }
}

/// Reports a field in plain text whose token is in a key, unless the field has `plaintext`. Also reports
/// `plaintext` on a field without a token.
pub(super) fn check_plaintext_attribute(entity: &Entity, errors: &mut Errors) {
    let keys = || entity.families.iter().flat_map(RowFamily::keys);
    for (at, field) in entity.fields.iter().enumerate() {
        let (name, attr) = (&field.name, &field.attr);
        let parts = |key: &KeyTemplate, is_token: bool| {
            key.parts().any(|part| part.field == at && part.is_token() == is_token)
        };
        let token = keys().filter(|key| key.is_sound).find(|key| parts(key, true));
        let is_in_plain_key = keys().any(|key| key.is_sound && parts(key, false));
        let is_meant = attr.encrypt.is_set() || attr.plaintext.is_set() || is_in_plain_key;
        match (token, attr.plaintext.span()) {
            (Some(key), _) if !is_meant && field.storage.can_be_in_key() => {
                let message = format!(
                    "`{name}` would be stored in plain text next to its token in the key \"{}\": write `#[table(encrypt)]` on it, or `#[table(plaintext)]` if everyone who can read the table may see the value",
                    key.text
                );
                errors.add_at(field.span, message);
            }
            (None, Some(span)) if entity.has_only_sound_templates() && !has_conflict(field) => {
                let message = format!(
                    "`plaintext` has no effect on `{name}`, because no key contains its token: remove it, or write `{{{name}:hmac}}` in a key"
                );
                errors.add_at(span, message);
            }
            _ => {}
        }
    }
}

//! Rules for keys.

use crate::{
    errors::Errors,
    model::{Entity, Key, Part, Segment},
    template::Form,
};

/// A part of variable width ends where the literal after it begins, so there has to be one.
///
/// Here as far as the names of types tell; a const assertion tells the rest.
pub(super) fn separated(key: &Key, entity: &Entity, errors: &mut Errors) {
    // Only what is known to vary is refused here.
    let is_fixed = |part: &Part| {
        entity.fields.get(part.field).and_then(|field| part.has_fixed_width(field)) != Some(false)
    };
    let pairs = key.segments.iter().zip(key.segments.iter().skip(1));
    for (first, second) in pairs {
        match (first, second) {
            (Segment::Part(first), Segment::Part(second)) if !is_fixed(first) => {
                errors.at(key.literal.span(), key.fault(&second.place, SEPARATED));
            }
            (Segment::Part(first), Segment::Literal(text, place))
                if !is_fixed(first) && !can_end_a_part(text) =>
            {
                let place = place.start..place.start + 1;
                errors.at(key.literal.span(), key.fault(&place, TERMINATOR));
            }
            _ => {}
        }
    }
}

/// Why a part has to be followed by a literal.
pub(crate) const SEPARATED: &str = "a part of variable width needs a literal after it, write one such as `_` here: its end could not be found in the key";

/// Why not every literal will do.
const TERMINATOR: &str = "the literal after a part of variable width begins with an ASCII character: it is escaped in the part, and escapes of others are long";

fn can_end_a_part(literal: &str) -> bool {
    literal.starts_with(|c: char| c.is_ascii())
}

/// A partition that is a time takes all writes of that time: one server does all the work.
pub(super) fn hot_partition(entity: &Entity, errors: &mut Errors) {
    let Some(primary) = entity.families.first() else { return };
    let key = &primary.partition;
    let is_time = |part: &Part| match part.form {
        Form::Date(..) => true,
        Form::Plain | Form::Descending => {
            entity.fields.get(part.field).is_some_and(crate::model::Field::is_time)
        }
        _ => false,
    };
    let mut parts = key.parts();
    let Some(first) = parts.next() else { return };
    if !entity.may_be_hot && is_time(first) && parts.all(is_time) {
        let message = "a partition by time alone takes all writes of that time: begin the key with another field or `{id:bucket(16)}`, or write `allow(hot_partition)`";
        errors.at(key.literal.span(), key.fault(&first.place, message));
    }
}

/// A token hides a value, so that the value stands in no other key, and a copy that is found by the
/// token holds the value: else nobody could tell whether the token is its own.
pub(super) fn tokens(entity: &Entity, errors: &mut Errors) {
    let keys = || entity.families.iter().flat_map(|family| [&family.partition, &family.row]);
    for (at, family) in entity.families.iter().enumerate() {
        for key in [&family.partition, &family.row] {
            let is_own = at == 0 || std::ptr::eq(key, &family.row);
            for part in key.parts().filter(|part| part.form == Form::Hmac && is_own) {
                let Some(field) = entity.fields.get(part.field) else { continue };
                let plain = |other: &Part| other.field == part.field && other.form != Form::Hmac;
                let is_held = family.holds.get(part.field).copied().unwrap_or_default();
                let name = &field.name;
                if field.attr.encrypt.is_set() {
                    // `encrypt` on a field in plain text is a message of its own.
                } else if let Some(other) = keys().find(|key| key.parts().any(plain)) {
                    let message = format!(
                        "`{name}` stands in plain text in the key \"{}\", so that its token hides nothing",
                        other.text
                    );
                    errors.at(key.literal.span(), key.fault(&part.place, message));
                }
                if !is_held {
                    let message = format!(
                        "`except` leaves out `{name}`, and the token in the key could not be checked against it: keep the field"
                    );
                    errors.at(key.literal.span(), key.fault(&part.place, message));
                }
            }
        }
    }
}

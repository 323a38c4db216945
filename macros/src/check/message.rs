//! Checks messages.

use super::names::LIBRARY_PREFIX;
use crate::{errors::Errors, model::Message};

/// Reports a message name that is empty, too long, has control characters or looks like one of the library's own
/// messages.
pub(super) fn check_name(message: &Message, errors: &mut Errors) {
    let name = message.name.value();
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        errors.add_at(
            message.name.span(),
            "the name of a message must have 1 to 255 characters and no control characters",
        );
    } else if name.starts_with(LIBRARY_PREFIX) {
        errors.add_at(
            message.name.span(),
            format!(
                "`{name}` begins with `{LIBRARY_PREFIX}`, which is reserved for messages of the library; choose another name with `name = \"..\"`"
            ),
        );
    }
}

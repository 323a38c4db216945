//! Checks messages.

use crate::{errors::Errors, model::Message};

/// Reports a message name that is empty, too long or has control characters.
pub(super) fn check_name(message: &Message, errors: &mut Errors) {
    let name = message.name.value();
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        errors.add_at(message.name.span(), "a message's name has 1 to 255 characters, no controls");
    }
}

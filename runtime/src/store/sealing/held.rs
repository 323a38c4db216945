//! The secret values of an entity that moves: values that only a program with the keys can know or have written. The code
//! of a move covers them and cannot be used for other values.

use super::{
    RowSealer,
    plan::{OperationToSeal, would_read_as_encrypted},
};
use crate::{
    authentic::SecretValues,
    entity::{SEAL, Schema},
    error::Result,
    plan::move_mark::is_move_mark,
    row::{Row, property_name_from_utf8},
};

impl RowSealer {
    /// Returns the secret values of a row that is about to be written.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` for a property name that is not UTF-8.
    pub(crate) fn secret_values_before_write(
        &self,
        schema: &'static Schema,
        to_seal: &OperationToSeal,
    ) -> Result<SecretValues> {
        let plan = self.plan_seal(to_seal)?;
        let (mut held, mut each) = (SecretValues::new(), plan.each.iter());
        let mut properties = to_seal.operation.row().properties();
        while let Some((name, value)) = properties.next()? {
            let is_sealed = each.next().is_some_and(Option::is_some);
            let name = property_name_from_utf8(name)?;
            if !is_framework(schema, name) && (is_sealed || schema.sealed) {
                held.insert(name.to_owned(), Some(value.to_value()));
            }
        }
        // A hidden absence is also a value, which the code must cover.
        held.extend(plan.absent.iter().map(|(name, _)| (name.to_string(), None)));
        Ok(held)
    }
}

/// Returns the secret values of a row, given in its stored form and decrypted as `plain`.
///
/// # Errors
///
/// Fails with `is_corrupt` if the row is damaged.
pub(crate) fn secret_values_after_read(
    schema: &'static Schema,
    stored: &Row,
    plain: &Row,
) -> Result<SecretValues> {
    let mut held = SecretValues::new();
    let mut properties = stored.properties();
    while let Some((name, value)) = properties.next()? {
        let name = property_name_from_utf8(name)?;
        if is_framework(schema, name) {
            continue;
        }
        if would_read_as_encrypted(value) {
            // An envelope with a null decrypts to no property.
            held.insert(name.to_owned(), plain.get(name)?.map(|value| value.to_value()));
        } else if schema.sealed {
            held.insert(name.to_owned(), Some(value.to_value()));
        }
    }
    Ok(held)
}

/// Returns whether a stored row has an encrypted value.
pub(crate) fn has_encrypted_property(stored: &Row) -> Result<bool> {
    let mut properties = stored.properties();
    while let Some((_, value)) = properties.next()? {
        if would_read_as_encrypted(value) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a property belongs to the library instead of the entity.
fn is_framework(schema: &'static Schema, name: &str) -> bool {
    let is_hidden = || schema.token_and_seal_properties().iter().any(|hidden| hidden == name);
    name == SEAL || is_move_mark(name) || is_hidden()
}

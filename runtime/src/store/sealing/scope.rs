//! Checks the scopes of remote copies. A copy with encrypted values may only be in a different key scope than its
//! primary if a writer without keys cannot choose the copy's partition.

use super::{RowSealer, plan::OperationToSeal};
use crate::{
    batch::Operation,
    entity::Schema,
    error::{Error, ErrorKind, Result},
    key::{Form, RowFamily},
    plan::StoredAs,
    row::Row,
};

impl RowSealer {
    /// Refuses a copy with encrypted values of a primary in the partition `owner` if the copy is in a different key
    /// scope and its PartitionKey is made from plain properties. Otherwise, anybody who can write the primary's row
    /// could change such a property and make a worker seal the values for a scope whose keys they have.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for such a copy.
    pub(crate) fn refuse_untrusted_copy_scope(
        &self,
        schema: &'static Schema,
        family: &'static RowFamily,
        owner: &str,
        copy: &Row,
    ) -> Result<()> {
        if self.may_cross_scopes(schema, family, owner, copy.partition_key()) {
            return Ok(());
        }
        let stored_as = StoredAs::Entity(schema, family);
        let to_seal = OperationToSeal::new(Operation::insert(copy.clone()), stored_as);
        if self.plan_seal(&to_seal)?.is_empty() {
            Ok(())
        } else {
            Err(copy_in_other_scope_error(family, copy))
        }
    }

    /// Refuses to encrypt a remote copy whose PartitionKey is made from plain properties and belongs to a different
    /// key scope than its primary's PartitionKey.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for such a copy.
    pub(super) fn check_copy_before_sealing(
        &self,
        schema: &'static Schema,
        family: &'static RowFamily,
        copy: &Row,
    ) -> Result<()> {
        if !family.is_remote || !family.is_copy() {
            return Ok(());
        }
        let Some(primary) = schema.primary_family_of_copy(family) else { return Ok(()) };
        let kinds = crate::entity::CopyAndPrimaryFamily { copy: family, primary, schema };
        let owner = crate::plan::outbox::remote_copy::owner_keys(copy, kinds)?;
        match owner {
            Some((owner, _))
                if !self.may_cross_scopes(schema, family, &owner, copy.partition_key()) =>
            {
                Err(copy_in_other_scope_error(family, copy))
            }
            _ => Ok(()),
        }
    }

    fn may_cross_scopes(
        &self,
        schema: &'static Schema,
        family: &'static RowFamily,
        owner: &str,
        partition_key: &str,
    ) -> bool {
        let Some(keys) = &self.keys else { return true };
        schema.sealed
            || has_authentic_partition(schema, family)
            || keys.scope_of(owner) == keys.scope_of(partition_key)
    }
}

/// Returns whether a writer without encryption keys cannot choose the partition of a copy. Each part of the copy's
/// PartitionKey must be a blind token of an encrypted field, or a field in the primary's keys.
fn has_authentic_partition(schema: &'static Schema, family: &'static RowFamily) -> bool {
    let Some(primary) = schema.primary_family_of_copy(family) else { return false };
    family.partition.parts().all(|part| match part.form {
        Form::Hmac => schema.sealed_columns().iter().any(|column| column.name == part.field),
        _ => primary.in_keys.contains(&part.field),
    })
}

fn copy_in_other_scope_error(family: &RowFamily, copy: &Row) -> Error {
    let message = "the copy has encrypted values under another key scope than its primary, but its PartitionKey is \
                   built from plain properties that anyone with write access can change; declare the type `seal`, or \
                   leave the encrypted columns out of the copy with `only(..)`";
    let error = Error::new(ErrorKind::Invalid, message).with_index(family.name);
    error.at_keys(copy.partition_key(), copy.row_key())
}

//! Plans which properties of a row are encrypted, and how.

use std::borrow::Cow;

use super::RowSealer;
use crate::{
    batch::{Operation, Verb},
    edm::ValueRef,
    entity::{Schema, SealedColumn, TYPE_NAME},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    plan::{StoredAs, hidden_nulls, outbox::is_owner_or_version},
    row::{Row, property_name_from_utf8},
};

/// The older version that wrote a row, if the row is encrypted again and keeps that version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptVersion {
    pub(crate) schema: &'static Schema,
    /// Whether the row gets a seal because the older version declares one.
    pub(crate) has_seal: bool,
}

/// An operation, and the form that its row is stored in.
#[derive(Debug)]
pub(crate) struct OperationToSeal {
    pub(crate) operation: Operation,
    pub(crate) stored_as: StoredAs,
    /// Adds an older version's declarations to the type's. `None` for a row of the current version.
    pub(crate) kept_version: Option<KeptVersion>,
}

impl OperationToSeal {
    pub(crate) fn new(operation: Operation, stored_as: StoredAs) -> Self {
        Self { operation, stored_as, kept_version: None }
    }
}

/// How one property is encrypted: the multiple that its length is padded to, and its blind token.
#[derive(Debug, Clone, Default)]
pub(crate) struct PropertyEncryption {
    pub(crate) pad: usize,
    /// The name of the property with the blind token and the token's length in characters, if there is a token.
    pub(crate) companion: Option<(Cow<'static, str>, u32)>,
}

impl PropertyEncryption {
    fn seal_of_column(column: &SealedColumn) -> Self {
        Self { pad: column.sealed.pad as usize, companion: column.companion.clone() }
    }
}

/// Which properties of one row are encrypted, and how.
#[derive(Debug, Default)]
pub(crate) struct SealPlan {
    /// How each property of the row is encrypted, in the row's order. `None` for a plain property.
    pub(crate) each: Vec<Option<PropertyEncryption>>,
    /// Absent properties that are stored as an encrypted value to hide their absence.
    pub(crate) absent: Vec<(Cow<'static, str>, PropertyEncryption)>,
    /// Whether the row gets a seal, which authenticates all its other properties.
    pub(crate) has_seal: bool,
}

impl SealPlan {
    /// Returns whether the row is stored unchanged.
    pub(crate) fn is_empty(&self) -> bool {
        self.each.iter().all(Option::is_none) && self.absent.is_empty() && !self.has_seal
    }

    /// Returns whether the row needs a blind token.
    pub(crate) fn makes_tokens(&self) -> bool {
        self.each.iter().flatten().any(|column| column.companion.is_some())
    }
}

impl RowSealer {
    /// Returns which properties of an operation's row are encrypted.
    pub(crate) fn plan_seal(&self, to_seal: &OperationToSeal) -> Result<SealPlan> {
        let OperationToSeal { operation, stored_as, kept_version } = to_seal;
        let older = kept_version.map(|kept| kept.schema);
        let is_remote = stored_as.type_and_family().is_some_and(|(_, family)| family.is_remote);
        let (row, verb) = (operation.row(), operation.verb());
        if verb == Verb::Delete || matches!(stored_as, StoredAs::Framework) {
            return Ok(SealPlan::default());
        }
        let declared = stored_as.type_and_family();
        let columns =
            declared.map_or_else(Vec::new, |(schema, _)| schema.sealed_columns_with(older));
        let schema = declared.map(|(schema, _)| schema);
        let has_seal = schema.is_some_and(|schema| schema.sealed)
            || kept_version.is_some_and(|kept| kept.has_seal);
        if columns.is_empty()
            && self.encrypt_if.is_none()
            && row.encrypted_names().is_empty()
            && !has_seal
        {
            return Ok(SealPlan::default());
        }
        let mut plan = SealPlan {
            each: self.each(row, older.or(schema), is_remote, &columns)?,
            ..SealPlan::default()
        };
        let is_whole = matches!(verb, Verb::Insert | Verb::Replace | Verb::InsertOrReplace);
        // A type declares which absences are hidden. For rows without a type and properties that the type does not
        // declare, only the row itself shows this.
        let is_undeclared = |name: &str| {
            declared.is_none_or(|(schema, family)| {
                family.left_out.is_empty() && schema.keeps_unknown_property(name)
            })
        };
        for name in row.encrypted_names().iter().filter(|name| is_whole && is_undeclared(name)) {
            if row.get(name)?.is_none() {
                plan.absent.push((Cow::Owned(name.to_string()), PropertyEncryption::default()));
            }
        }
        if let Some((_, family)) = declared {
            let absent = hidden_nulls(&columns, row, verb, family)?;
            plan.absent.extend(
                absent.iter().map(|c| (c.name.clone(), PropertyEncryption::seal_of_column(c))),
            );
            plan.has_seal = has_seal;
            // The seal covers all properties and cannot be made for some of them.
            if has_seal && matches!(verb, Verb::Merge | Verb::InsertOrMerge) {
                let message =
                    "a part of a sealed entity cannot be written alone; write the whole entity";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        Ok(plan)
    }

    fn each(
        &self,
        row: &Row,
        schema: Option<&'static Schema>,
        is_remote: bool,
        columns: &[SealedColumn],
    ) -> Result<Vec<Option<PropertyEncryption>>> {
        let (partition_key, row_key) = (row.partition_key(), row.row_key());
        let mut each = Vec::new();
        let mut properties = row.properties();
        while let Some((name, _)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            let column = match columns.iter().find(|column| column.name == name) {
                Some(column) => Some(PropertyEncryption::seal_of_column(column)),
                None if is_never_encrypted(schema, is_remote, name) => None,
                None => {
                    // A property that was read encrypted is written encrypted, even if nothing declares it.
                    let is_wanted = row.has_encrypted_name(name)
                        || self.is_undeclared_property_chosen(partition_key, row_key, name);
                    is_wanted.then(PropertyEncryption::default)
                }
            };
            each.push(column);
        }
        Ok(each)
    }
}

/// Returns whether a property is never encrypted. These are the discriminator, which queries read, and the name of
/// a blob, which a sweep compares. In a remote copy (`is_remote`), they also include the library's own properties,
/// such as the owner's keys, which workers read.
fn is_never_encrypted(schema: Option<&'static Schema>, is_remote: bool, name: &str) -> bool {
    let type_property = schema.map_or(Some(TYPE_NAME), Schema::type_property);
    let mut blobs = schema.into_iter().flat_map(|schema| schema.blobs);
    type_property == Some(name)
        || is_remote && is_owner_or_version(name)
        || blobs.any(|names| names.name == name)
}

impl RowSealer {
    /// Returns whether the client's `encrypt_if` chooses this property of an entity's row.
    pub(crate) fn is_chosen_for_encryption(
        &self,
        schema: &'static Schema,
        family: &RowFamily,
        row: &Row,
        name: &str,
    ) -> bool {
        !is_never_encrypted(Some(schema), family.is_remote, name)
            && self.is_undeclared_property_chosen(row.partition_key(), row.row_key(), name)
    }
}

/// Returns whether plain bytes would be mistaken for an encrypted value when they are read.
pub(crate) fn would_read_as_encrypted(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Binary(bytes) if crate::seal::is_envelope(bytes))
}

//! What of a row is to be sealed.

use std::borrow::Cow;

use super::Vault;
#[cfg(feature = "encrypt")]
use crate::key::Family;
use crate::{
    batch::{Operation, Verb},
    edm::ValueRef,
    entity::{Discriminator, Schema, SealedColumn},
    error::{Error, ErrorKind, Result},
    plan::{Home, hidden, outbox::is_owner_property},
    row::Row,
};

/// An operation, and whose row it writes.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) operation: Operation,
    pub(crate) home: Home,
}

impl Placed {
    pub(crate) fn new(operation: Operation, home: Home) -> Self {
        Self { operation, home }
    }
}

/// How one property is sealed.
#[derive(Debug, Clone, Default)]
pub(crate) struct How {
    pub(crate) pad: usize,
    /// The property with its token, and how long that is.
    pub(crate) companion: Option<(Cow<'static, str>, u32)>,
}

impl How {
    fn of(column: &SealedColumn) -> Self {
        Self { pad: column.sealed.pad as usize, companion: column.companion.clone() }
    }
}

/// What of a row is sealed.
#[derive(Debug, Default)]
pub(crate) struct Intent {
    /// For each of the row's properties.
    pub(crate) each: Vec<Option<How>>,
    /// Absent properties that are sealed as such.
    pub(crate) absent: Vec<(Cow<'static, str>, How)>,
    /// Whether a property vouches for the row.
    pub(crate) vouched: bool,
}

impl Intent {
    /// Whether the row is stored as it is.
    pub(crate) fn is_nothing(&self) -> bool {
        self.each.iter().all(Option::is_none) && self.absent.is_empty() && !self.vouched
    }

    /// Whether a token is made.
    pub(crate) fn has_companions(&self) -> bool {
        self.each.iter().flatten().any(|how| how.companion.is_some())
    }
}

impl Vault {
    /// What of an operation's row is sealed.
    pub(crate) fn intent(&self, placed: &Placed) -> Result<Intent> {
        let Placed { operation, home } = placed;
        let is_elsewhere = home.schema().is_some_and(|(_, family)| family.is_remote);
        let (row, verb) = (operation.row(), operation.verb());
        if verb == Verb::Delete || matches!(home, Home::Framework) {
            return Ok(Intent::default());
        }
        let declared = home.schema();
        let columns = declared.map_or_else(Vec::new, |(schema, _)| schema.sealed_columns());
        let schema = declared.map(|(schema, _)| schema);
        if columns.is_empty()
            && self.encrypt_if.is_none()
            && row.encrypted_names().is_empty()
            && !schema.is_some_and(|schema| schema.sealed)
        {
            return Ok(Intent::default());
        }
        let mut intent =
            Intent { each: self.each(row, schema, is_elsewhere, &columns)?, ..Intent::default() };
        let is_whole = matches!(verb, Verb::Insert | Verb::Replace | Verb::InsertOrReplace);
        // A type says which of its absent values are hidden; of other rows nobody else knows.
        for name in row.encrypted_names().iter().filter(|_| is_whole && declared.is_none()) {
            if row.get(name)?.is_none() {
                intent.absent.push((Cow::Owned(name.to_string()), How::default()));
            }
        }
        if let Some((schema, family)) = declared {
            let absent = hidden(&columns, row, verb, family)?;
            intent.absent.extend(absent.iter().map(|c| (c.name.clone(), How::of(c))));
            intent.vouched = schema.sealed;
            if schema.sealed && matches!(verb, Verb::Merge | Verb::InsertOrMerge) {
                let message = "a part of a sealed entity cannot be written alone";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        Ok(intent)
    }

    fn each(
        &self,
        row: &Row,
        schema: Option<&'static Schema>,
        is_elsewhere: bool,
        columns: &[SealedColumn],
    ) -> Result<Vec<Option<How>>> {
        let (partition_key, row_key) = (row.partition_key(), row.row_key());
        let mut each = Vec::new();
        let mut properties = row.properties();
        while let Some((name, _)) = properties.next()? {
            let name = text_of(name)?;
            let how = match columns.iter().find(|column| column.name == name) {
                Some(column) => Some(How::of(column)),
                None if stays_plain(schema, is_elsewhere, name) => None,
                None => {
                    let is_wanted = row.encrypted_names().iter().any(|known| **known == *name)
                        || self.chooses(partition_key, row_key, name);
                    is_wanted.then(How::default)
                }
            };
            each.push(how);
        }
        Ok(each)
    }
}

/// Whether the property says what the row is or whose: workers and queries look into it.
fn stays_plain(schema: Option<&'static Schema>, is_elsewhere: bool, name: &str) -> bool {
    let discriminator = match schema.map(|schema| schema.discriminator) {
        Some(Discriminator::Property(name)) => name,
        Some(Discriminator::RowKey) => "",
        None => "EntityType",
    };
    name == discriminator || is_elsewhere && is_owner_property(name)
}

#[cfg(feature = "encrypt")]
impl Vault {
    /// Whether the client chooses to encrypt a property of an entity's row.
    pub(crate) fn chooses_of(
        &self,
        schema: &'static Schema,
        family: &Family,
        row: &Row,
        name: &str,
    ) -> bool {
        !stays_plain(Some(schema), family.is_remote, name)
            && self.chooses(row.partition_key(), row.row_key(), name)
    }
}

pub(crate) fn text_of(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| crate::row::corrupt_row("a property's name is not UTF-8"))
}

/// Whether plain bytes would be taken for sealed ones when they are read.
#[cfg(feature = "encrypt")]
pub(crate) fn looks_sealed(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Binary(bytes) if crate::seal::is_envelope(bytes))
}

#[cfg(not(feature = "encrypt"))]
pub(crate) fn looks_sealed(_: ValueRef<'_>) -> bool {
    false
}

//! Defines [`Operation`], one write of one row.

use crate::{
    error::{Error, Result, ServiceCode},
    row::{ETag, Row, json_text_length},
};

/// What an operation does to a row, and whether the row has to exist before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Inserts the row. Fails if it exists.
    Insert,
    /// Replaces the existing row. Fails if it is missing.
    Replace,
    /// Sets the given properties of the existing row and keeps its others. Fails if it is missing.
    Merge,
    /// Inserts the row, or replaces the existing one.
    InsertOrReplace,
    /// Inserts the row, or sets the given properties of the existing one.
    InsertOrMerge,
    /// Deletes the existing row. Fails if it is missing.
    Delete,
}

impl Verb {
    /// Returns whether the verb may create a row.
    ///
    /// ```
    /// use entable_core::Verb;
    ///
    /// assert!(Verb::InsertOrMerge.may_insert_row());
    /// assert!(!Verb::Merge.may_insert_row());
    /// ```
    pub const fn may_insert_row(self) -> bool {
        match self {
            Self::Insert | Self::InsertOrReplace | Self::InsertOrMerge => true,
            Self::Replace | Self::Merge | Self::Delete => false,
        }
    }
}

/// The condition on the existing row of a replace, merge or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `If-Match: *`: the row has to exist.
    Any,
    /// `If-Match` with an ETag: the row has to exist and not to have changed since the ETag was
    /// read.
    Match(ETag),
}

impl Condition {
    /// Returns the condition that a row which was read or written is unchanged.
    ///
    /// ```
    /// use entable_core::{Condition, Row, Ticks};
    ///
    /// let row = Row::build("Sales", "223").finish()?;
    /// assert!(Condition::unchanged(&row).unwrap_err().is_precondition_failed());
    /// let written = row.with_timestamp(Ticks::UNIX_EPOCH);
    /// assert_eq!(Some(Condition::unchanged(&written)?), written.etag().map(Condition::Match));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` if the row has no ETag. After a lost answer another writer may have
    /// changed the row since, and a write without a condition would overwrite that change.
    pub fn unchanged(row: &Row) -> Result<Self> {
        row.etag().map(Self::Match).ok_or_else(|| {
            let message = "the entity's ETag is unknown because the answer to its last write was lost; read the \
                           entity again";
            let error = Error::service(ServiceCode::UpdateConditionNotSatisfied, message);
            error.at_keys(row.partition_key(), row.row_key())
        })
    }

    /// Returns the condition on the ETag that was read; `Any` if none is known.
    ///
    /// ```
    /// use entable_core::{Condition, ETag, Ticks};
    ///
    /// let etag = ETag::from_timestamp(Ticks::UNIX_EPOCH);
    /// assert_eq!(Condition::for_etag(Some(etag.clone())), Condition::Match(etag));
    /// assert_eq!(Condition::for_etag(None), Condition::Any);
    /// ```
    pub fn for_etag(etag: Option<ETag>) -> Self {
        etag.map_or(Self::Any, Self::Match)
    }
}

/// One write of one row: what to do, the row, and the condition on the existing row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    verb: Verb,
    row: Row,
    condition: Condition,
}

impl Operation {
    /// Creates an operation that inserts the row.
    pub fn insert(row: Row) -> Self {
        Self { verb: Verb::Insert, row, condition: Condition::Any }
    }

    /// Creates an operation that inserts the row or replaces the existing one.
    pub fn insert_or_replace(row: Row) -> Self {
        Self { verb: Verb::InsertOrReplace, row, condition: Condition::Any }
    }

    /// Creates an operation that inserts the row or sets its properties on the existing one.
    pub fn insert_or_merge(row: Row) -> Self {
        Self { verb: Verb::InsertOrMerge, row, condition: Condition::Any }
    }

    /// Creates an operation that replaces the existing row.
    pub fn replace(row: Row, condition: Condition) -> Self {
        Self { verb: Verb::Replace, row, condition }
    }

    /// Creates an operation that sets the row's properties on the existing row.
    pub fn merge(row: Row, condition: Condition) -> Self {
        Self { verb: Verb::Merge, row, condition }
    }

    /// Creates an operation that deletes the row with keys `partition_key` and `row_key`.
    ///
    /// # Errors
    ///
    /// `is_too_large` for keys that are too long for any row.
    pub fn delete(partition_key: &str, row_key: &str, condition: Condition) -> Result<Self> {
        // The keys alone: a delete sends no properties.
        let row = Row::build(partition_key, row_key).finish()?;
        Ok(Self { verb: Verb::Delete, row, condition })
    }

    /// Returns a copy of the operation that writes `row` in place of its own row.
    ///
    /// ```
    /// use entable_core::{Operation, Row};
    ///
    /// let insert = Operation::insert(Row::build("Sales", "223").finish()?);
    /// let other = insert.with_row(Row::build("Sales", "224").finish()?);
    /// assert_eq!((other.verb(), other.row().row_key()), (insert.verb(), "224"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_row(&self, row: Row) -> Self {
        Self { verb: self.verb, row, condition: self.condition.clone() }
    }

    /// Returns the kind of the operation.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// Returns the row to write. The row of a delete has keys alone.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Returns the condition on the existing row, or `None` for insert, insert-or-replace and
    /// insert-or-merge, which have none.
    pub fn condition(&self) -> Option<&Condition> {
        match self.verb {
            Verb::Replace | Verb::Merge | Verb::Delete => Some(&self.condition),
            Verb::Insert | Verb::InsertOrReplace | Verb::InsertOrMerge => None,
        }
    }

    /// Returns the bytes that the operation takes in a request body, headers included, for an account and
    /// a table of the longest names: a batch that stays below the limit by this count stays below it on
    /// the wire.
    ///
    /// # Errors
    ///
    /// Fails if [`Row::check`] refuses the row.
    pub fn request_bytes(&self) -> Result<usize> {
        let row = &self.row;
        let (partition_key, row_key) = row.keys();
        let keys = [partition_key, row_key].into_iter();
        // An insert has its keys in the body, a deletion in the address, and the others in both.
        let in_address = match self.verb {
            Verb::Insert => 0,
            _ => keys.clone().map(address_bytes).sum(),
        };
        let in_body = match self.verb {
            Verb::Delete => 0,
            _ => keys.map(json_text_length).sum(),
        };
        let version = match self.condition() {
            Some(Condition::Match(etag)) => etag.to_string().len(),
            _ => 0,
        };
        Ok(HEADER_BYTES + version + in_address + in_body + row.checked_request_bytes()?)
    }
}

/// Most bytes of one operation's boundary, headers and address, without keys and ETag: for an
/// endpoint of 100 bytes and a table's name of 63.
const HEADER_BYTES: usize = 576;

/// Returns whether a byte is written to an address unchanged (RFC 3986, section 2.3).
pub const fn is_unreserved_url_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns the number of bytes that a key takes in an address.
fn address_bytes(key: &str) -> usize {
    let bytes = key.bytes().map(|byte| match byte {
        _ if is_unreserved_url_byte(byte) => 1,
        // Written as two quotes.
        b'\'' => 2,
        // Every other byte is written as `%` and two digits.
        _ => 3,
    });
    bytes.sum()
}

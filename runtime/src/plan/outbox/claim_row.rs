//! Claims and reservations: how a transaction takes keys of unique indexes in other partitions.
//!
//! A claim is a row beside the entities. It names the keys that a transaction is about to take.
//! Reservations are copies under these keys that name the claim. The transaction deletes the claim
//! and so makes its reservations valid. A claim that is marked dead can no longer be deleted by its
//! transaction, whose condition on the claim's ETag then fails.

use super::{
    copy_address::CopyAddress,
    hash::hash128,
    remote_copy::{CLAIM_PROPERTY, FROM, TABLE, VERSION, owner_keys},
    reserved_keys::{CLAIM, FORMAT, FORMAT_NAME, TYPE_NAME},
};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::CopyFamily,
    error::{Error, ErrorKind, Result},
    limits::PROPERTIES,
    row::{ETag, Row},
};

/// The prefix of the properties of a claim that hold its keys.
const KEY_PROPERTY: &str = "C_";
/// The property that marks a claim as dead.
const DEAD: &str = "Dead";

/// The maximum number of keys in one claim: the row also holds its type, format and `Dead`.
pub(crate) const MAX_CLAIMED_KEYS: usize = PROPERTIES - 3;

/// A key of a unique index that a claim names, and the primary that takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimedKey {
    pub(crate) address: CopyAddress,
    /// The RowKey of the primary, which is in the claim's partition.
    pub(crate) primary: String,
}

impl ClaimedKey {
    fn texts(&self) -> [&str; 5] {
        let [index, table, partition_key, row_key] = self.address.exact();
        [index, table, partition_key, row_key, &self.primary]
    }

    fn from_json(value: &str) -> Option<Self> {
        let [index, table, partition_key, row_key, primary] = serde_json::from_str(value).ok()?;
        let address = CopyAddress::from_exact([index, table, partition_key, row_key]);
        Some(Self { address, primary })
    }
}

/// Returns the RowKey of the claim with this id.
pub(crate) fn claim_row_key(id: &str) -> String {
    [CLAIM, id].concat()
}

/// Returns the operation that inserts claim `id`, naming the claimed keys.
pub(crate) fn insert_claim(
    partition_key: &str,
    id: &str,
    keys: &[ClaimedKey],
) -> Result<Operation> {
    let mut row = Row::build(partition_key, &claim_row_key(id));
    row.put(TYPE_NAME, ValueRef::String("entable.claim"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    for key in keys {
        let value = serde_json::Value::from(key.texts().to_vec()).to_string();
        row.put(&[KEY_PROPERTY, &hash128(&key.texts())].concat(), ValueRef::String(&value));
    }
    row.finish().map(Operation::insert)
}

/// Returns the operation that marks a claim as dead, under the condition `seen` on its ETag.
pub(crate) fn kill_claim(partition_key: &str, id: &str, seen: Condition) -> Result<Operation> {
    let mut row = Row::build(partition_key, &claim_row_key(id));
    row.put(DEAD, ValueRef::Boolean(true));
    Ok(Operation::merge(row.finish()?, seen))
}

/// Returns whether the transaction of a claim can still be committed.
pub(crate) fn is_claim_alive(claim: &Row) -> Result<bool> {
    Ok(claim.get(DEAD)? != Some(ValueRef::Boolean(true)))
}

/// A claim as it was read from the store.
#[derive(Debug, Clone)]
pub(crate) struct StoredClaim {
    pub(crate) id: String,
    pub(crate) keys: Vec<ClaimedKey>,
    pub(crate) is_alive: bool,
}

impl StoredClaim {
    /// Reads a claim: the row that names the unique keys which a transaction is about to take.
    ///
    /// # Errors
    ///
    /// `is_decode` if a property of the row does not hold the two keys that its name announces.
    pub(crate) fn from_row(row: &Row) -> Result<Self> {
        let id = row.row_key().strip_prefix(CLAIM).unwrap_or_default().to_owned();
        let mut keys = Vec::new();
        let mut properties = row.properties();
        while let Some((property, value)) = properties.next()? {
            if !property.starts_with(KEY_PROPERTY.as_bytes()) {
                continue;
            }
            let key = match value {
                ValueRef::String(value) => ClaimedKey::from_json(value),
                _ => None,
            };
            keys.push(key.ok_or_else(|| {
                let property = String::from_utf8_lossy(property);
                Error::new(ErrorKind::Decode, "expected the address of a claimed key")
                    .in_property(&property)
                    .at_keys(row.partition_key(), row.row_key())
            })?);
        }
        Ok(Self { id, keys, is_alive: is_claim_alive(row)? })
    }
}

/// Returns the id of the claim that reserves a remote row, or `None` if the row is not reserved.
pub(crate) fn reserving_claim(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(CLAIM_PROPERTY)? {
        Some(ValueRef::String(id)) => Some(id),
        _ => None,
    })
}

/// Returns the primary that a reserved row was taken over from, or `None` if it was inserted.
pub(crate) fn previous_owner(row: &Row) -> Result<Option<RowAddress>> {
    let Some(ValueRef::String(text)) = row.get(FROM)? else { return Ok(None) };
    let parsed: Option<[String; 3]> = serde_json::from_str(text).ok();
    Ok(parsed.map(|[table, partition_key, row_key]| RowAddress { table, partition_key, row_key }))
}

/// Returns the primary that a remote copy belongs to, or `None` if the copy does not say.
/// `primary_table` is the table of the primaries if the index has no table of its own.
pub(crate) fn owner_of_copy(
    row: &Row,
    kinds: CopyFamily,
    primary_table: &str,
) -> Result<Option<RowAddress>> {
    let table = match (kinds.copy.table, row.get(TABLE)?) {
        (None, _) => primary_table,
        (Some(_), Some(ValueRef::String(table))) => table,
        (Some(_), _) => return Ok(None),
    };
    let keys = owner_keys(row, kinds)?;
    Ok(keys.map(|(partition_key, row_key)| RowAt::new(table, &partition_key, &row_key).to_owned()))
}

/// Returns the copy as a reservation of claim `id`, without the ETag of a primary. `from` is the
/// primary that the key is taken over from.
pub(crate) fn reservation_row(copy: &Row, id: &str, from: Option<&RowAddress>) -> Result<Row> {
    let mut row = Row::build(copy.partition_key(), copy.row_key());
    let mut properties = copy.properties();
    while let Some((name, value)) = properties.next()? {
        if name != VERSION.as_bytes()
            && name != CLAIM_PROPERTY.as_bytes()
            && name != FROM.as_bytes()
        {
            row.put(&String::from_utf8_lossy(name), value);
        }
    }
    row.put(CLAIM_PROPERTY, ValueRef::String(id));
    if let Some(from) = from {
        let from_json = serde_json::Value::from(from.at().texts().to_vec()).to_string();
        row.put(FROM, ValueRef::String(&from_json));
    }
    Ok(row.finish()?.with_encrypted_names_of(copy))
}

/// Returns the operation that lets claim `id` reserve a row that was found, and changes nothing
/// else.
pub(crate) fn reserve_existing(found: &Row, id: &str) -> Result<Operation> {
    let mut row = Row::build(found.partition_key(), found.row_key());
    row.put(CLAIM_PROPERTY, ValueRef::String(id));
    Ok(Operation::merge(row.finish()?, Condition::for_etag(found.etag())))
}

/// Returns the row with the ETag that a write gave it, if the answer told one.
pub(crate) fn with_new_etag(row: &Row, etag: Option<ETag>) -> Row {
    match etag {
        Some(etag) => row.clone().with_etag(etag),
        None => row.clone(),
    }
}

//! Claims and reservations, with which a transaction takes keys of unique indexes in other partitions.
//!
//! A claim is a row in the entities' partition and contains the keys that a transaction will take. Reservations are
//! copies under these keys that contain the claim's id. The transaction deletes the claim, which makes the
//! reservations valid. Marking a claim dead changes its ETag and thereby fails its transaction.

use super::{
    copy_address::{CopyAddress, read_prefixed_texts},
    hash::hash128,
    remote_copy::{CLAIM_PROPERTY, DERIVED_FROM, OWNER_TABLE, PREVIOUS_OWNER, owner_keys},
    reserved_keys::{CLAIM, FORMAT, FORMAT_NAME, TYPE_NAME},
};
use crate::{
    address::{Names, RowAddress, RowAt, TableName},
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::CopyAndPrimaryFamily,
    error::Result,
    limits::PROPERTIES,
    row::{ETag, Row},
};

/// The prefix of a claim's properties that contain its keys.
const KEY_PROPERTY: &str = "C_";
/// The property with the writer of a claim and the run of its program.
const WRITER: &str = "Writer";
/// The property that marks a claim as dead.
const DEAD: &str = "Dead";

/// The maximum number of keys in one claim: the 252 properties of a row, minus the claim's own three (type, format and
/// `Dead`). A transaction that takes more unique keys in other partitions fails with `is_too_large` before it reserves
/// any.
pub(crate) const MAX_CLAIMED_KEYS: usize = PROPERTIES - 3;

/// A key of a unique index in a claim, and the primary that wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimedKeyAndPrimary {
    pub(crate) address: CopyAddress,
    /// The RowKey of the primary, which is in the claim's partition.
    pub(crate) primary: String,
}

impl ClaimedKeyAndPrimary {
    fn stored_texts(&self) -> [&str; 5] {
        let [index, table, partition_key, row_key] = self.address.stored_texts();
        [index, table, partition_key, row_key, &self.primary]
    }

    fn from_json(names: Names, value: &str) -> Option<Self> {
        let [index, table, partition_key, row_key, primary] = serde_json::from_str(value).ok()?;
        let address = CopyAddress::from_texts(names, [index, table, partition_key, row_key]);
        Some(Self { address, primary })
    }
}

/// Returns the RowKey of the claim with this id.
pub(crate) fn claim_row_key(id: &str) -> String {
    [CLAIM, id].concat()
}

/// A writer that keeps its name across restarts of its program, and one run of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriterRun {
    /// The writer's name from the caller.
    pub(crate) writer: String,
    /// A random id of this run.
    pub(crate) run: String,
}

impl WriterRun {
    /// Returns the run that made a claim, or `None` if its writer has no name.
    pub(crate) fn of_claim(claim: &Row) -> Result<Option<Self>> {
        let Some(ValueRef::String(text)) = claim.get(WRITER)? else { return Ok(None) };
        let parsed: Option<[String; 2]> = serde_json::from_str(text).ok();
        Ok(parsed.map(|[writer, run]| Self { writer, run }))
    }

    /// Returns whether `other` is an earlier or later run of this writer.
    pub(crate) fn is_other_run(&self, other: &Self) -> bool {
        self.writer == other.writer && self.run != other.run
    }
}

/// Returns the operation that inserts a writer's claim `id` with the claimed keys.
pub(crate) fn insert_claim(
    partition_key: &str,
    id: &str,
    keys: &[ClaimedKeyAndPrimary],
    writer: Option<&WriterRun>,
) -> Result<Operation> {
    let mut row = Row::build(partition_key, &claim_row_key(id));
    row.put(TYPE_NAME, ValueRef::String("entable.claim"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    // A full claim has no room for the writer, whose next run then waits for a worker.
    if let Some(WriterRun { writer, run }) = writer.filter(|_| keys.len() < MAX_CLAIMED_KEYS) {
        let value = serde_json::Value::from(vec![writer.as_str(), run.as_str()]).to_string();
        row.put(WRITER, ValueRef::String(&value));
    }
    for key in keys {
        let value = serde_json::Value::from(key.stored_texts().to_vec()).to_string();
        // Named by a hash, because keys contain characters that property names must not
        // contain.
        row.put(&[KEY_PROPERTY, &hash128(&key.stored_texts())].concat(), ValueRef::String(&value));
    }
    row.finish().map(Operation::insert)
}

/// Returns the operation that marks a claim dead, under the condition `seen` on its ETag.
pub(crate) fn mark_claim_dead(partition_key: &str, id: &str, seen: Condition) -> Result<Operation> {
    let mut row = Row::build(partition_key, &claim_row_key(id));
    row.put(DEAD, ValueRef::Boolean(true));
    // A merge keeps the claim's keys, whose reservations must still be settled.
    Ok(Operation::merge(row.finish()?, seen))
}

/// Returns whether a claim's transaction can still be committed.
pub(crate) fn is_claim_alive(claim: &Row) -> Result<bool> {
    Ok(claim.get(DEAD)? != Some(ValueRef::Boolean(true)))
}

/// A claim that was read from the store.
#[derive(Debug, Clone)]
pub(crate) struct StoredClaim {
    pub(crate) id: String,
    pub(crate) keys: Vec<ClaimedKeyAndPrimary>,
    pub(crate) is_alive: bool,
}

impl StoredClaim {
    /// Reads a claim.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if a property that should contain a key does not.
    pub(crate) fn from_row(names: Names, row: &Row) -> Result<Self> {
        let id = row.row_key().strip_prefix(CLAIM).unwrap_or_default().to_owned();
        let expected = "the address of a claimed key";
        let parse = |text: &str| ClaimedKeyAndPrimary::from_json(names, text);
        let keys = read_prefixed_texts(row, KEY_PROPERTY, parse, expected)?;
        Ok(Self { id, keys, is_alive: is_claim_alive(row)? })
    }
}

/// Returns the id of the claim that reserves a remote row, if it is reserved.
pub(crate) fn id_of_reserving_claim(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(CLAIM_PROPERTY)? {
        Some(ValueRef::String(id)) => Some(id),
        _ => None,
    })
}

/// Returns the primary that a reserved row was taken over from, or `None` if the row was inserted.
pub(crate) fn previous_owner(names: Names, row: &Row) -> Result<Option<RowAddress>> {
    let Some(ValueRef::String(text)) = row.get(PREVIOUS_OWNER)? else { return Ok(None) };
    let parsed: Option<[String; 3]> = serde_json::from_str(text).ok();
    Ok(parsed.map(|texts| names.address(texts)))
}

/// Returns the primary that a remote copy belongs to, or `None` if the copy does not contain it. `primary_table` is the
/// primary's table if the index does not have its own.
pub(crate) fn owner_of_copy(
    row: &Row,
    kinds: CopyAndPrimaryFamily,
    primary_table: TableName<'_>,
) -> Result<Option<RowAddress>> {
    let table = match (kinds.copy.table, row.get(OWNER_TABLE)?) {
        (None, _) => primary_table,
        (Some(_), Some(ValueRef::String(table))) => primary_table.sibling(table),
        (Some(_), _) => return Ok(None),
    };
    let keys = owner_keys(row, kinds)?;
    Ok(keys.map(|(partition_key, row_key)| RowAt::new(table, &partition_key, &row_key).to_owned()))
}

/// Returns the copy as a reservation of claim `id`, without the primary's ETag. `from` is the primary that the key
/// is taken over from.
pub(crate) fn reservation_row(copy: &Row, id: &str, from: Option<&RowAddress>) -> Result<Row> {
    let mut row = Row::build(copy.partition_key(), copy.row_key());
    let mut properties = copy.properties();
    while let Some((name, value)) = properties.next()? {
        // A reservation is not derived from any stored version of its primary.
        if name != DERIVED_FROM.as_bytes()
            && name != CLAIM_PROPERTY.as_bytes()
            && name != PREVIOUS_OWNER.as_bytes()
        {
            row.put(&String::from_utf8_lossy(name), value);
        }
    }
    row.put(CLAIM_PROPERTY, ValueRef::String(id));
    if let Some(from) = from {
        let from_json =
            serde_json::Value::from(from.as_row_at().table_and_key_texts().to_vec()).to_string();
        row.put(PREVIOUS_OWNER, ValueRef::String(&from_json));
    }
    Ok(row.finish()?.inherit_encrypted_names_of(copy))
}

/// Returns the operation that marks an existing row as reserved by claim `id` and changes nothing else.
pub(crate) fn reserve_existing(found: &Row, id: &str) -> Result<Operation> {
    let mut row = Row::build(found.partition_key(), found.row_key());
    row.put(CLAIM_PROPERTY, ValueRef::String(id));
    Ok(Operation::merge(row.finish()?, Condition::for_etag(found.etag())))
}

/// Returns the row with its ETag from a write, or unchanged if the store returned none.
pub(crate) fn row_with_written_etag(row: &Row, etag: Option<ETag>) -> Row {
    match etag {
        Some(etag) => row.clone().with_etag(etag),
        None => row.clone(),
    }
}

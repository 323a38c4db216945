//! Claims: that a transaction is about to take keys of unique indexes in other partitions.
//!
//! The claim is a row beside the entities, and what it claims are reservations: copies that name
//! it. The transaction deletes the row; a claim that was called dead cannot become true any more.

use super::{
    dirty_row::CopyAddress,
    hash::hash128,
    remote_copy::{CLAIM_PROPERTY, FROM, TABLE, VERSION, keys_of_owner},
    reserved_keys::{CLAIM, FORMAT, FORMAT_NAME, TYPE_NAME},
};
use crate::{
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::CopyFamily,
    error::{Error, ErrorKind, Result},
    limits::PROPERTIES,
    row::{ETag, Row},
};

/// What the properties that name claimed keys begin with.
const NAME: &str = "C_";
/// The property of a claim that cannot become true any more.
const DEAD: &str = "Dead";

/// Keys that one claim has room for, beside its type and format, and what calls it dead.
pub(crate) const MOST_CLAIMED: usize = PROPERTIES - 3;

/// A primary, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
}

impl Place {
    pub(crate) fn new(table: &str, partition_key: &str, row_key: &str) -> Self {
        let (table, partition_key) = (table.to_owned(), partition_key.to_owned());
        Self { table, partition_key, row_key: row_key.to_owned() }
    }

    /// Whether it is the same row: a table has one name in any case.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.table.eq_ignore_ascii_case(&other.table)
            && self.partition_key == other.partition_key
            && self.row_key == other.row_key
    }

    fn text(&self) -> String {
        let texts = [&self.table, &self.partition_key, &self.row_key];
        serde_json::Value::from(texts.map(String::as_str).to_vec()).to_string()
    }
}

/// A key that is claimed, and for which primary of the claim's partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) name: CopyAddress,
    /// The RowKey of the primary.
    pub(crate) primary: String,
}

impl Claimed {
    fn texts(&self) -> [&str; 5] {
        let CopyAddress { index, table, partition_key, row_key } = &self.name;
        [index, table, partition_key, row_key, &self.primary]
    }

    fn parse(value: &str) -> Option<Self> {
        let [index, table, partition_key, row_key, primary] = serde_json::from_str(value).ok()?;
        Some(Self { name: CopyAddress { index, table, partition_key, row_key }, primary })
    }
}

/// The RowKey of the claim with that id.
pub(crate) fn claim_key(id: &str) -> String {
    [CLAIM, id].concat()
}

/// What puts a claim up.
pub(crate) fn claimed(partition_key: &str, id: &str, keys: &[Claimed]) -> Result<Operation> {
    let mut row = Row::build(partition_key, &claim_key(id));
    row.put(TYPE_NAME, ValueRef::String("entable.claim"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    for key in keys {
        let value = serde_json::Value::from(key.texts().to_vec()).to_string();
        row.put(&[NAME, &hash128(&key.texts())].concat(), ValueRef::String(&value));
    }
    row.finish().map(Operation::insert)
}

/// What calls a claim dead, in the version that it was seen in.
pub(crate) fn killed(partition_key: &str, id: &str, seen: Condition) -> Result<Operation> {
    let mut row = Row::build(partition_key, &claim_key(id));
    row.put(DEAD, ValueRef::Boolean(true));
    Ok(Operation::merge(row.finish()?, seen))
}

/// Whether the transaction of a claim may still come.
pub(crate) fn is_alive(claim: &Row) -> Result<bool> {
    Ok(claim.get(DEAD)? != Some(ValueRef::Boolean(true)))
}

/// A claim as it was read.
#[derive(Debug, Clone)]
pub(crate) struct OpenClaim {
    pub(crate) id: String,
    pub(crate) keys: Vec<Claimed>,
    pub(crate) is_alive: bool,
}

impl OpenClaim {
    /// The claim of that row.
    pub(crate) fn of(row: &Row) -> Result<Self> {
        let id = row.row_key().strip_prefix(CLAIM).unwrap_or_default().to_owned();
        let mut keys = Vec::new();
        let mut properties = row.properties();
        while let Some((property, value)) = properties.next()? {
            if !property.starts_with(NAME.as_bytes()) {
                continue;
            }
            let key = match value {
                ValueRef::String(value) => Claimed::parse(value),
                _ => None,
            };
            keys.push(key.ok_or_else(|| {
                let property = String::from_utf8_lossy(property);
                Error::new(ErrorKind::Decode, "expected the name of a claimed key")
                    .in_property(&property)
                    .at_keys(row.partition_key(), row.row_key())
            })?);
        }
        Ok(Self { id, keys, is_alive: is_alive(row)? })
    }
}

/// The claim that a row elsewhere is reserved by, if any.
pub(crate) fn claim_of(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(CLAIM_PROPERTY)? {
        Some(ValueRef::String(id)) => Some(id),
        _ => None,
    })
}

/// The primary that a reservation was taken over from, if any.
pub(crate) fn from_of(row: &Row) -> Result<Option<Place>> {
    let Some(ValueRef::String(text)) = row.get(FROM)? else { return Ok(None) };
    let parsed: Option<[String; 3]> = serde_json::from_str(text).ok();
    Ok(parsed.map(|[table, partition_key, row_key]| Place { table, partition_key, row_key }))
}

/// The primary that a row elsewhere says it is a copy of; `table`: where primaries of an index
/// without a table of its own are.
pub(crate) fn place_of(row: &Row, kinds: CopyFamily, table: &str) -> Result<Option<Place>> {
    let table = match (kinds.copy.table, row.get(TABLE)?) {
        (None, _) => table,
        (Some(_), Some(ValueRef::String(table))) => table,
        (Some(_), _) => return Ok(None),
    };
    let keys = keys_of_owner(row, kinds)?;
    Ok(keys.map(|(partition_key, row_key)| Place::new(table, &partition_key, &row_key)))
}

/// The row with the name of a claim, and of whom it was taken over from: of no version yet.
pub(crate) fn reserved(copy: &Row, id: &str, from: Option<&Place>) -> Result<Row> {
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
        row.put(FROM, ValueRef::String(&from.text()));
    }
    Ok(row.finish()?.with_encrypted_names_of(copy))
}

/// What puts the name of another claim on a reservation, and leaves all else.
pub(crate) fn renamed(found: &Row, id: &str) -> Result<Operation> {
    let mut row = Row::build(found.partition_key(), found.row_key());
    row.put(CLAIM_PROPERTY, ValueRef::String(id));
    Ok(Operation::merge(row.finish()?, Condition::for_etag(found.etag())))
}

/// The row in another version.
pub(crate) fn written(row: &Row, etag: Option<ETag>) -> Row {
    match etag {
        Some(etag) => row.clone().with_etag(etag),
        None => row.clone(),
    }
}

//! A table without a type: keys, filters and bags of properties.

use super::{
    bulk::{
        Bulk,
        group::{BulkChange, BulkVerb, Rewritable, Writable},
    },
    client::Client,
    transaction::Transaction,
};
use crate::{
    access::Keys,
    backend::Read,
    batch::{Condition, Operation, Written},
    edm::InvalidValue,
    entity::{Access, DynamicEntity, FromRow, Path, Schema, Stored, TableEntity},
    error::{BoxError, Error, ErrorKind, Result, ServiceCode},
    filter::Filter,
    plan,
    row::Row,
};
use crate::{
    query::{build::Query, decode::at, request::Request},
    store::{
        backoff,
        sealing::{open::Reading, plan::Placed},
    },
};

/// The property in which earlier storage libraries describe how a row is encrypted.
const LEGACY: &str = "_ClientEncryptionMetadata1";

/// Which rows: [`Keys`], both keys, a typed path or a [`Filter`].
#[derive(Debug, Clone)]
pub struct Selection {
    access: Access,
    filter: Option<Filter>,
    /// Whose path it is, where its keys lack tokens.
    schema: Option<&'static Schema>,
}

impl Client {
    /// A table whose entities are read and written without a type.
    pub fn dynamic(&self, table: impl Into<String>) -> DynamicTable {
        DynamicTable::new(self.clone(), table.into())
    }
}

impl Selection {
    fn of(keys: Keys, fault: Option<(&'static str, InvalidValue)>) -> Self {
        let access = Access { family: None, keys, parts: Vec::new(), fault, open: None };
        Self { access, filter: None, schema: None }
    }

    /// The request for these rows.
    pub(super) fn request(self, store: crate::store::Store, table: String) -> Request {
        let mut request = Request::new(store, table, self.access).with_keys_of(self.schema);
        if let Some(filter) = self.filter {
            request.condition(Ok(filter));
        }
        request
    }

    /// Whether it is one row.
    pub(super) fn is_point(&self) -> Result<bool> {
        Ok(self.filter.is_none() && self.access.checked()?.as_point().is_some())
    }

    /// The PartitionKey, where it is known.
    pub(super) fn partition_key(&self) -> &str {
        self.access.keys.partition.as_deref().unwrap_or_default()
    }
}

impl From<Keys> for Selection {
    fn from(keys: Keys) -> Self {
        Self::of(keys, None)
    }
}

impl From<&Keys> for Selection {
    fn from(keys: &Keys) -> Self {
        Self::of(keys.clone(), None)
    }
}

/// One row, by its PartitionKey and its RowKey.
impl From<(&str, &str)> for Selection {
    fn from((partition_key, row_key): (&str, &str)) -> Self {
        Self::of(Keys::point(partition_key, row_key), None)
    }
}

impl From<Filter> for Selection {
    fn from(filter: Filter) -> Self {
        Self { filter: Some(filter), ..Self::of(Keys::whole_table(), None) }
    }
}

/// The rows that the path addresses, of whatever type.
impl<P: Path> From<P> for Selection {
    fn from(path: P) -> Self {
        let Access { keys, fault, open, .. } = path.access();
        let schema = open.is_some().then_some(P::Entity::SCHEMA);
        let access = Access { family: None, keys, parts: Vec::new(), fault, open };
        Self { access, filter: None, schema }
    }
}

/// The entities of a table, read and written as bags of properties.
///
/// ```
/// use entable::prelude::*;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// client.create_table("Staff").await?;
/// let staff = client.dynamic("Staff");
/// staff.insert(&DynamicEntity::new("Marketing", "Department").with("EmployeeCount", 153)).await?;
///
/// let marketing = staff.get("Marketing", "Department").await?.expect("it was inserted");
/// assert_eq!(marketing.i32("EmployeeCount")?, 153);
/// let scan = staff.query(Filter::parse("EmployeeCount ge 100")?);
/// assert!(scan.collect().await.unwrap_err().is_scan_refused());
/// assert_eq!(scan.allow_scan().collect().await?.len(), 1);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DynamicTable {
    client: Client,
    name: String,
}

impl DynamicTable {
    pub(super) fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The entity with these keys.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn get(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Stored<DynamicEntity>>> {
        let read = Read { table: &self.name, partition_key, row_key, select: None };
        match self.client.store().read_as(read, Reading::Untyped).await? {
            None => Ok(None),
            Some(row) => decode(row).map_err(|error| error.in_table(&self.name)),
        }
    }

    /// The entities that are selected by keys or by a filter. A selection without a PartitionKey
    /// has to be allowed to scan.
    pub fn query(
        &self,
        selection: impl Into<Selection>,
    ) -> Query<DynamicEntity, Stored<DynamicEntity>> {
        let request = selection.into().request(self.client.store().clone(), self.name.clone());
        Query::new(request, decode)
    }

    /// Creates the entity.
    ///
    /// # Errors
    ///
    /// `is_conflict` where its keys are taken.
    pub async fn insert(&self, entity: &DynamicEntity) -> Result<Stored<DynamicEntity>> {
        self.put(entity, Operation::insert).await
    }

    /// Creates the entity or puts it in place of what is there.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn insert_or_replace(&self, entity: &DynamicEntity) -> Result<Stored<DynamicEntity>> {
        self.put(entity, Operation::insert_or_replace).await
    }

    /// Creates the entity or sets its properties on what is there.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn insert_or_merge(&self, entity: &DynamicEntity) -> Result<Stored<DynamicEntity>> {
        self.put(entity, Operation::insert_or_merge).await
    }

    /// Puts the entity in place of the version that was read.
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` where the row changed since.
    pub async fn replace(&self, stored: &Stored<DynamicEntity>) -> Result<Stored<DynamicEntity>> {
        plan::refuse_changed_keys(stored, stored).map_err(|error| error.in_table(&self.name))?;
        let guard = Condition::Match(stored.etag());
        self.put(stored, |row| Operation::replace(row, guard)).await
    }

    /// Sets the properties that differ from what was read, on the version that was read. The others
    /// are not sent.
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` where the row changed since; `is_invalid` where a property was taken
    /// out, which no merge does.
    pub async fn patch(&self, stored: &Stored<DynamicEntity>) -> Result<Stored<DynamicEntity>> {
        if stored.row().get(LEGACY)?.is_some() {
            let message = "the row is encrypted by an earlier storage library, whose format a merge breaks; replace the whole row, or take the table over with `migrate_legacy`";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .in_table(&self.name)
                .at_keys(stored.partition_key(), stored.row_key()));
        }
        let changes = changes(stored).map_err(|error| error.in_table(&self.name))?;
        let merge = Operation::merge(changes.to_row()?, Condition::Match(stored.etag()));
        let written = self.client.store().write_one(&self.name, untyped(merge)).await?;
        Ok(with_version(DynamicEntity::clone(stored), stored.to_row()?, written))
    }

    /// Reads the entity, changes it, and sets the properties that changed on the version that was
    /// read; again, from a fresh read, where another writer was first.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.dynamic("Staff");
    /// # staff.insert(&DynamicEntity::new("Sales", "Department").with("EmployeeCount", 153)).await?;
    /// let sales = staff.update("Sales", "Department", |department| {
    ///     let count = department.i32("EmployeeCount")?;
    ///     department.set("EmployeeCount", count + 1);
    ///     Ok(())
    /// });
    /// assert_eq!(sales.await?.i32("EmployeeCount")?, 154);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is no such entity; `is_rejected` where `change` says no;
    /// `is_contended` where other writers kept winning; as [`patch`](Self::patch).
    pub async fn update(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut DynamicEntity) -> Result<(), BoxError>,
    ) -> Result<Stored<DynamicEntity>> {
        let place = |error: Error| error.in_table(&self.name).at_keys(partition_key, row_key);
        for attempt in 0..backoff::ATTEMPTS {
            let Some(mut stored) = self.get(partition_key, row_key).await? else {
                let message = "there is no such entity";
                return Err(place(Error::service(ServiceCode::ResourceNotFound, message)));
            };
            change(&mut stored).map_err(|reason| {
                let message = format!("the change of the entity was not accepted: {reason}");
                place(Error::new(ErrorKind::Rejected, message).with_source(reason))
            })?;
            match self.patch(&stored).await {
                Err(error) if error.is_precondition_failed() => {
                    backoff::wait(&self.client.store().random, attempt).await
                }
                other => return other,
            }
        }
        Err(place(backoff::contended()))
    }

    /// Deletes the entity with these keys, in the version that the condition asks for.
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is none, `is_precondition_failed` for another version.
    pub async fn delete(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: Condition,
    ) -> Result<()> {
        let delete = Operation::delete(partition_key, row_key, condition)?;
        self.client.store().write_one(&self.name, untyped(delete)).await.map(drop)
    }

    /// Deletes the entity with these keys if it is there, in whatever version; `true`: it was.
    ///
    /// # Errors
    ///
    /// `is_not_found` where the table is missing.
    pub async fn delete_at(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        match self.delete(partition_key, row_key, Condition::Any).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_row_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An entity group transaction in this table.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.client.clone(), Some(self.name.clone()))
    }

    /// Many writes to this table.
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.client.clone(), Some(self.name.clone()))
    }

    async fn put(
        &self,
        entity: &DynamicEntity,
        operation: impl FnOnce(Row) -> Operation,
    ) -> Result<Stored<DynamicEntity>> {
        let row = entity.to_row().map_err(|error| error.in_table(&self.name))?;
        let written =
            self.client.store().write_one(&self.name, untyped(operation(row.clone()))).await?;
        Ok(with_version(entity.clone(), row, written))
    }
}

/// A dynamic entity does not say its table: the caller names it.
impl Writable for DynamicEntity {
    fn table(&self) -> &'static str {
        ""
    }

    fn change(&self, verb: BulkVerb) -> Result<BulkChange> {
        let row = self.to_row()?;
        Ok(BulkChange(match verb {
            BulkVerb::Insert => plan::insert_row(row),
            BulkVerb::InsertOrReplace => plan::insert_or_replace_row(row),
        }))
    }
}

impl Rewritable for DynamicEntity {
    fn home(&self) -> &'static str {
        ""
    }

    fn replacement(stored: &Stored<Self>) -> Result<BulkChange> {
        plan::replace_row(stored, stored).map(BulkChange)
    }

    fn removal(stored: &Stored<Self>) -> Result<BulkChange> {
        plan::delete_row(stored).map(BulkChange)
    }

    fn reread(row: Row) -> Result<Option<Stored<Self>>> {
        decode(row)
    }

    fn type_name(&self) -> &'static str {
        "DynamicEntity"
    }
}

/// The properties that are not as they were read.
fn changes(stored: &Stored<DynamicEntity>) -> Result<DynamicEntity> {
    plan::refuse_changed_keys(stored, stored)?;
    let before = stored.row().to_bag()?;
    if let Some((gone, _)) = before.iter().find(|(name, _)| stored.get(name).is_none()) {
        let message = "a merge removes no property; write the entity with `replace`";
        return Err(at(stored.row(), Error::new(ErrorKind::Invalid, message)).in_property(gone));
    }
    let mut changes = DynamicEntity::new(stored.partition_key(), stored.row_key());
    for (name, value) in stored.properties().iter() {
        if before.get(name) != Some(value) {
            changes.set(name, value.clone());
            if stored.is_encrypted(name) {
                changes.encrypt(name);
            }
        }
    }
    Ok(changes)
}

fn untyped(operation: Operation) -> Placed {
    Placed::new(operation, plan::StoredAs::Untyped)
}

fn with_version(entity: DynamicEntity, row: Row, written: Written) -> Stored<DynamicEntity> {
    let row = match written.etag {
        Some(etag) => row.with_etag(etag),
        None => row,
    };
    Stored::new(entity, row, written.status)
}

fn decode(row: Row) -> Result<Option<Stored<DynamicEntity>>> {
    match DynamicEntity::from_row(&row) {
        Ok(entity) => Ok(Some(Stored::new(entity, row, 200))),
        Err(error) => Err(at(&row, error)),
    }
}

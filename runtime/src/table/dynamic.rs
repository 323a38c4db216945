//! A table without an entity type, whose rows are read and written as bags of properties.

use std::{
    borrow::Cow,
    pin::pin,
    sync::{Mutex, PoisonError},
};

use super::{
    bulk::Bulk,
    client::Client,
    transaction::Transaction,
    writable::{BulkChange, BulkVerb, Rewritable, Writable},
};
use crate::{
    access::Keys,
    backend::ReadRequest,
    batch::{Condition, Operation, Written},
    entity::{
        DynamicEntity, FromRow, Path, Schema, Stored, TableEntity, UntypedPath, dated::TimeWindow,
        etag_if_unchanged,
    },
    error::{BoxError, Error, ErrorKind, Result, ServiceCode},
    filter::Filter,
    limits::check_key,
    plan,
    row::{Row, error_with_row_keys},
};
use crate::{
    query::{build::Query, request::Request},
    store::{
        backoff::{self, Attempt},
        sealing::{open::ReadAs, plan::OperationToSeal},
    },
};

/// The property that describes the encryption of a row in storage libraries before 2020.
const LEGACY: &str = "_ClientEncryptionMetadata1";

/// The rows that an untyped query selects: by [`Keys`], by both keys, by a typed path or by a [`Filter`].
#[derive(Debug, Clone)]
pub struct RowSelection {
    access: UntypedPath,
    filter: Option<Filter>,
    /// The entity that a typed path belongs to, if the path's keys still lack their blind tokens.
    schema: Option<&'static Schema>,
}

impl Client {
    /// Returns a table whose entities are read and written as bags of properties.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let row = client.dynamic("Staff").get("Sales", "empid_000007").await?;
    /// assert_eq!(row.and_then(|row| row.get("Age").cloned()), Some(Value::Int32(30)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn dynamic(&self, table: impl Into<String>) -> DynamicTable {
        DynamicTable::new(self.clone(), table.into())
    }
}

impl RowSelection {
    fn of_keys(keys: Keys) -> Self {
        let fault = keys.fault.clone();
        let access = UntypedPath { fault, ..UntypedPath::of_keys(None, keys) };
        Self { access, filter: None, schema: None }
    }

    /// Makes a request for the selected rows.
    pub(super) fn into_request(self, store: crate::store::Store, table: String) -> Request {
        let mut request = Request::new(store, table, self.access).with_schema_of_keys(self.schema);
        if let Some(filter) = self.filter {
            request.add_condition(Ok(filter));
        }
        request
    }

    /// Returns whether the selection is one row, given by both keys.
    pub(super) fn is_point(&self) -> Result<bool> {
        Ok(self.filter.is_none() && self.access.checked_keys()?.as_point().is_some())
    }

    /// Returns the PartitionKey, or an empty string if it is not known.
    pub(super) fn known_partition_key(&self) -> &str {
        self.access.keys.partition.as_deref().unwrap_or_default()
    }
}

impl From<Keys> for RowSelection {
    fn from(keys: Keys) -> Self {
        Self::of_keys(keys)
    }
}

impl From<&Keys> for RowSelection {
    fn from(keys: &Keys) -> Self {
        Self::of_keys(keys.clone())
    }
}

/// Selects one row by PartitionKey and RowKey.
impl From<(&str, &str)> for RowSelection {
    fn from((partition_key, row_key): (&str, &str)) -> Self {
        Self::of_keys(Keys::point(partition_key, row_key))
    }
}

impl From<Filter> for RowSelection {
    fn from(filter: Filter) -> Self {
        Self { filter: Some(filter), ..Self::of_keys(Keys::whole_table()) }
    }
}

/// Selects the rows that a typed path addresses, whatever their types.
impl<P: Path> From<P> for RowSelection {
    fn from(path: P) -> Self {
        let UntypedPath { keys, fault, open, window, .. } = path.access();
        let fault = fault.or_else(|| window.and_then(TimeWindow::fault_in_untyped_query));
        let schema = open.is_some().then_some(P::Entity::SCHEMA);
        let access = UntypedPath { fault, open, ..UntypedPath::of_keys(None, keys) };
        Self { access, filter: None, schema }
    }
}

/// Reads and writes the entities of a table as bags of properties.
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

    /// Returns the table's name.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(Client::memory().dynamic("Staff").name(), "Staff");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the entity with keys `partition_key` and `row_key`. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for keys that no row can have, and with errors of the backend.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let cao = rows.get("Sales", "empid_000007").await?;
    /// assert!(cao.is_some_and(|cao| cao.get("Age") == Some(&Value::Int32(30))));
    /// assert!(rows.get("Sales", "nobody").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Stored<DynamicEntity>>> {
        let read = ReadRequest { table: &self.name, partition_key, row_key, select: None };
        check_key("PartitionKey", partition_key)
            .and_then(|()| check_key("RowKey", row_key))
            .map_err(|error| error.in_table(&self.name))?;
        let store = self.client.store();
        let read = pin!(store.read_decrypted(read, ReadAs::Untyped));
        match store.usage.begin_verb("get", &self.name).run(read).await? {
            None => Ok(None),
            Some(row) => decode(row).map_err(|error| error.in_table(&self.name)),
        }
    }

    /// Returns a query of the entities that keys or a filter select. A selection that is not limited to one
    /// PartitionKey needs `allow_scan`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let employees = rows.query(Keys::partition("Sales").prefix("empid_"));
    /// assert_eq!(employees.collect().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(
        &self,
        selection: impl Into<RowSelection>,
    ) -> Query<DynamicEntity, Stored<DynamicEntity>> {
        let request = selection.into().into_request(self.client.store().clone(), self.name.clone());
        let request = request.with_outbox_and_table(&self.client.outbox, &self.name);
        Query::new(request, decode)
    }

    /// Creates the entity.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if the keys are taken, and with `is_invalid` if the RowKey or a property name is
    /// reserved for the library (see [`DynamicEntity::allow_framework_names`]).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let mut row = DynamicEntity::new("Sales", "note");
    /// row.set("Text", "hello");
    /// client.dynamic("Staff").insert(&row).await?;
    /// let again = client.dynamic("Staff").insert(&row).await;
    /// assert!(again.is_err_and(|error| error.is_conflict()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert(&self, entity: &DynamicEntity) -> Result<Stored<DynamicEntity>> {
        self.put_row("insert", entity.row_to_insert(), entity, Operation::insert).await
    }

    /// Inserts the entity or replaces the existing one.
    ///
    /// # Errors
    ///
    /// Returns the backend's error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let mut note = DynamicEntity::new("Sales", "note");
    /// note.set("Text", "hello");
    /// rows.insert_or_replace(&note).await?;
    /// assert!(rows.get("Sales", "note").await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_or_replace(&self, entity: &DynamicEntity) -> Result<Stored<DynamicEntity>> {
        let row = entity.row_to_insert();
        self.put_row("insert_or_replace", row, entity, Operation::insert_or_replace).await
    }

    /// Inserts the entity or merges it into the existing one.
    ///
    /// # Errors
    ///
    /// Returns the backend's error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let mut note = DynamicEntity::new("Sales", "note");
    /// note.set("Text", "hello");
    /// rows.insert_or_merge(&note).await?;
    /// assert!(rows.get("Sales", "note").await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_or_merge(&self, entity: &DynamicEntity) -> Result<Stored<DynamicEntity>> {
        let row = entity.row_to_insert();
        self.put_row("insert_or_merge", row, entity, Operation::insert_or_merge).await
    }

    /// Replaces the entity under the ETag that was read.
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the row changed since it was read, and with `is_not_found` if it was
    /// deleted. Fails with `is_invalid` if a property name is reserved for the library (see
    /// [`DynamicEntity::allow_framework_names`]).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let mut note = rows.insert(&DynamicEntity::new("Sales", "note")).await?;
    /// note.set("Text", "hello");
    /// rows.replace(&note).await?;
    /// assert!(rows.replace(&note).await.is_err_and(|error| error.is_precondition_failed()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace(&self, stored: &Stored<DynamicEntity>) -> Result<Stored<DynamicEntity>> {
        plan::refuse_changed_keys(stored, stored).map_err(|error| error.in_table(&self.name))?;
        let guard =
            Condition::unchanged(stored.row()).map_err(|error| error.in_table(&self.name))?;
        let row = stored.row_to_replace();
        self.put_row("replace", row, stored, |row| Operation::replace(row, guard)).await
    }

    /// Merges the properties that have changed since the entity was read, under the ETag that was read. Does not
    /// send other properties.
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the row changed since it was read, and with `is_invalid` if a
    /// property was removed, because a merge cannot remove one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let mut note = rows.insert(&DynamicEntity::new("Sales", "note")).await?;
    /// note.set("Text", "hello");
    /// rows.patch(&note).await?;
    /// assert!(rows.get("Sales", "note").await?.is_some_and(|note| note.get("Text").is_some()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn patch(&self, stored: &Stored<DynamicEntity>) -> Result<Stored<DynamicEntity>> {
        if stored.row().get(LEGACY)?.is_some() {
            let message = "an earlier storage library encrypted the row, and a merge would break its format; replace \
                           the whole row, or migrate the table with `migrate_legacy`";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .in_table(&self.name)
                .at_keys(stored.partition_key(), stored.row_key()));
        }
        let changes = changed_properties(stored).map_err(|error| error.in_table(&self.name))?;
        let guard =
            Condition::unchanged(stored.row()).map_err(|error| error.in_table(&self.name))?;
        let merge = Operation::merge(changes.row_to_replace()?, guard);
        let mut written = self.write_operation("patch", merge).await?;
        let row = stored.to_row()?;
        if written.etag.is_none() {
            let found = self.get(row.partition_key(), row.row_key()).await;
            let found = found.map(|found| found.map(|found| found.row().clone()));
            written.etag = etag_if_unchanged(found, &row);
        }
        Ok(with_version(DynamicEntity::clone(stored), row, written))
    }

    /// Reads the entity, changes it, and merges the changed properties under the ETag that was read. If another
    /// writer changed the entity in between, reads it again and calls `change` again.
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
    /// Fails with `is_not_found` if the entity does not exist, with `is_rejected` if `change` returns an
    /// error, and with `is_contended` if other writers won every race. Otherwise fails as
    /// [`patch`](Self::patch) does.
    pub async fn update(
        &self,
        partition_key: &str,
        row_key: &str,
        change: impl FnMut(&mut DynamicEntity) -> Result<(), BoxError>,
    ) -> Result<Stored<DynamicEntity>> {
        let place = |error: Error| error.in_table(&self.name).at_keys(partition_key, row_key);
        // Only one attempt runs at a time, so the lock never waits.
        let change = Mutex::new(change);
        let updated =
            backoff::retry_lost_races(&self.client.store().random, backoff::ATTEMPTS, || async {
                let Some(mut stored) = self.get(partition_key, row_key).await? else {
                    let message = "there is no such entity";
                    return Err(place(Error::service(ServiceCode::ResourceNotFound, message)));
                };
                let changed = change.lock().unwrap_or_else(PoisonError::into_inner)(&mut stored);
                changed.map_err(|reason| {
                    place(Error::rejected_by_user_code("the change of the entity", reason))
                })?;
                match self.patch(&stored).await {
                    Err(error) if error.is_precondition_failed() => Ok(Attempt::Raced),
                    patched => patched.map(Attempt::Done),
                }
            });
        updated.await?.ok_or_else(|| place(backoff::contended_error()))
    }

    /// Deletes the entity with keys `partition_key` and `row_key` under the given condition.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?.client().dynamic("Staff");
    /// staff.insert(&DynamicEntity::new("Sales", "note")).await?;
    /// staff.delete("Sales", "note", Condition::Any).await?;
    /// let error = staff.delete("Sales", "note", Condition::Any).await.unwrap_err();
    /// assert!(error.is_not_found());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the entity does not exist, and with `is_precondition_failed` if its ETag
    /// differs.
    pub async fn delete(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: Condition,
    ) -> Result<()> {
        let delete = Operation::delete(partition_key, row_key, condition)?;
        self.write_operation("delete", delete).await.map(drop)
    }

    /// Deletes the entity with keys `partition_key` and `row_key` if it exists, whatever its ETag. Returns `true` if it
    /// existed.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the table does not exist.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// assert!(!client.dynamic("Staff").delete_at("Sales", "nobody").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_at(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        match self.delete(partition_key, row_key, Condition::Any).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_row_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Begins an entity group transaction in this table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let mut transaction = rows.transaction();
    /// transaction.insert(&DynamicEntity::new("Sales", "note"))?;
    /// transaction.commit().await?;
    /// assert!(rows.get("Sales", "note").await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.client.clone(), Some(self.name.clone()))
    }

    /// Begins bulk writes to this table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let rows = staff().await?.client().dynamic("Staff");
    /// let notes = (0..5).map(|n| DynamicEntity::new("Sales", format!("note_{n}")));
    /// assert_eq!(rows.bulk().insert_all(notes).await?.done, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.client.clone(), Some(self.name.clone()))
    }

    async fn put_row(
        &self,
        verb: &'static str,
        row: Result<Row>,
        entity: &DynamicEntity,
        operation: impl FnOnce(Row) -> Operation,
    ) -> Result<Stored<DynamicEntity>> {
        let row = row.map_err(|error| error.in_table(&self.name))?;
        let written = self.write_operation(verb, operation(row.clone())).await?;
        Ok(with_version(entity.clone(), row, written))
    }

    async fn write_operation(&self, verb: &'static str, operation: Operation) -> Result<Written> {
        let store = self.client.store();
        let write = store.seal_and_write(&self.name, vec![untyped_to_seal(operation)], None);
        let written = store.usage.begin_verb(verb, &self.name).run(pin!(write)).await?;
        Written::of_single_operation(written)
    }
}

/// A dynamic entity does not know its table, so the caller names it.
impl Writable for DynamicEntity {
    fn table(&self) -> Cow<'static, str> {
        Cow::Borrowed("")
    }

    fn change(&self, verb: BulkVerb) -> Result<BulkChange> {
        let row = self.row_to_insert()?;
        Ok(BulkChange(match verb {
            BulkVerb::Insert => plan::insert_row(row),
            BulkVerb::InsertOrReplace => plan::insert_or_replace_row(row),
        }))
    }
}

impl Rewritable for DynamicEntity {
    fn home(_: &Stored<Self>) -> Result<Cow<'static, str>> {
        Ok(Cow::Borrowed(""))
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

/// Returns an entity with only the properties that differ from the stored row.
fn changed_properties(stored: &Stored<DynamicEntity>) -> Result<DynamicEntity> {
    plan::refuse_changed_keys(stored, stored)?;
    let before = stored.row().to_bag()?;
    if let Some((gone, _)) = before.iter().find(|(name, _)| stored.get(name).is_none()) {
        let message = "a merge cannot remove a property; write the entity with `replace`";
        return Err(error_with_row_keys(stored.row(), Error::new(ErrorKind::Invalid, message))
            .in_property(gone));
    }
    let mut changes = DynamicEntity::new(stored.partition_key(), stored.row_key());
    changes.allow_framework_names_like(stored);
    for (name, value) in stored.properties().iter() {
        if !before.get(name).is_some_and(|old| old.is_stored_like(value)) {
            changes.set(name, value.clone());
            // A value that was read encrypted must not become plain by the merge.
            if stored.is_encrypted(name) {
                changes.encrypt(name);
            }
        }
    }
    Ok(changes)
}

fn untyped_to_seal(operation: Operation) -> OperationToSeal {
    OperationToSeal::new(operation, plan::StoredAs::Untyped)
}

fn with_version(entity: DynamicEntity, row: Row, written: Written) -> Stored<DynamicEntity> {
    let row = written.row_with_written_etag(row);
    Stored::new(entity, row, written.status)
}

fn decode(row: Row) -> Result<Option<Stored<DynamicEntity>>> {
    match DynamicEntity::from_row(&row) {
        Ok(entity) => Ok(Some(Stored::new(entity, row, 200))),
        Err(error) => Err(error_with_row_keys(&row, error)),
    }
}

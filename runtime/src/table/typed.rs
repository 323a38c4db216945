//! `Table<E>`: creating and deleting a table, point reads, and the queries of one entity type.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use futures_util::{TryStreamExt, future::BoxFuture};

use super::{
    bulk::Bulk,
    client::Client,
    row_verbs::{TakeRow, TypedRows},
    transaction::Transaction,
};
use crate::{
    address::{RowAt, TableName},
    entity::{
        FromRow, FullView, HoldsProjection, IntoPoint, ListView, Path, Point, Projection, Stored,
        TableEntity, UntypedPath,
        dated::Period,
        home::{table_of_stored, table_to_replace_in},
    },
    error::Result,
    key::RowFamily,
    plan::TokenMaker,
    query::{
        build::{Queried, Query, TypedRequest},
        decode::decode_required,
        fan_out::QueryMany,
        list_query,
        plan::{ReadPlan, RowType},
        request::Request,
    },
    row::Row,
    store::InFlight,
};

/// The number of point reads that `get_many` keeps in flight.
const POINT_READS: usize = 32;

/// Reads and writes the entities of one type in one table.
///
/// Cheap to clone. The table may hold rows of other types as well. Reads skip those rows, and writes never
/// touch them.
pub struct Table<E> {
    pub(crate) client: Client,
    pub(crate) name: String,
    of: PhantomData<fn() -> E>,
}

impl Client {
    /// Returns the table of an entity type, under the name that the type declares.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff: Table<Employee> = Client::memory().table();
    /// assert_eq!(staff.name(), "Staff");
    /// # Ok(())
    /// # }
    /// ```
    pub fn table<E: TableEntity>(&self) -> Table<E> {
        self.table_named(E::SCHEMA.table)
    }

    /// Returns a table of an entity type under a different name than it declares.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let archive: Table<Employee> = Client::memory().table_named("Archive");
    /// assert_eq!(archive.name(), "Archive");
    /// # Ok(())
    /// # }
    /// ```
    pub fn table_named<E: TableEntity>(&self, name: impl Into<String>) -> Table<E> {
        self.outbox.add_type(E::SCHEMA);
        Table::new(self.clone(), name.into())
    }
}

impl<E> Clone for Table<E> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone(), of: PhantomData }
    }
}

impl<E> fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<E: TableEntity> Table<E> {
    pub(crate) fn new(client: Client, name: String) -> Self {
        Self { client, name, of: PhantomData }
    }

    /// Returns the table's name in the client's store.
    pub(crate) fn table_name(&self) -> TableName<'_> {
        self.client.store().names().name(&self.name)
    }

    /// Returns the part of the table that does not depend on the type.
    pub(super) fn rows(&self) -> TypedRows<'_> {
        TypedRows { outbox: &self.client.outbox, table: &self.name, of: RowType::of::<E, E>() }
    }

    /// Returns the address of a row of this table.
    pub(crate) fn row_at<'k>(&'k self, partition_key: &'k str, row_key: &'k str) -> RowAt<'k> {
        RowAt::new(self.table_name(), partition_key, row_key)
    }

    /// Returns the period of the table, if it is a dated table.
    pub(crate) fn period_of_table(&self) -> Option<Period> {
        self.rows().period()
    }

    /// Returns the table's name. Returns `None` if this handle represents all dated tables of the entity, among
    /// which each write chooses one.
    fn name_if_one_table(&self) -> Option<String> {
        let is_template = E::SCHEMA.dated.is_some_and(|dated| dated.template == self.name);
        (!is_template).then(|| self.name.clone())
    }

    /// Returns the table of an entity, whose name is `home`, as [`TypedRows::home_table`] does.
    fn home_table_of_entity(
        &self,
        mut home: impl FnMut() -> Result<Cow<'static, str>>,
    ) -> Result<Cow<'_, Self>> {
        self.rows().home_table(&mut home).map(|table| self.table_named(table))
    }

    fn table_named(&self, table: Cow<'_, str>) -> Cow<'_, Self> {
        match table {
            Cow::Borrowed(_) => Cow::Borrowed(self),
            Cow::Owned(name) => Cow::Owned(Self::new(self.client.clone(), name)),
        }
    }

    /// Returns the table that an entity belongs to.
    pub(super) fn table_of_entity(&self, entity: &E) -> Result<Cow<'_, Self>> {
        self.home_table_of_entity(|| Ok(entity.home_table()))
    }

    /// Returns the table that a stored entity was read from.
    pub(super) fn table_of_stored(&self, stored: &Stored<E>) -> Result<Cow<'_, Self>> {
        self.home_table_of_entity(|| table_of_stored(stored))
    }

    /// Returns the table that a stored entity was read from. Fails with `is_invalid` if the value has changed and
    /// now belongs to another dated table.
    pub(super) fn table_of_replaced(&self, stored: &Stored<E>) -> Result<Cow<'_, Self>> {
        self.home_table_of_entity(|| table_to_replace_in(stored))
    }

    /// Returns the table of a path to one row.
    pub(super) fn table_of_point(&self, access: &UntypedPath) -> Result<Cow<'_, Self>> {
        self.rows().table_of_point(access).map(|table| self.table_named(table))
    }

    /// Returns the table of a path to one row. Also returns the path, with its blind tokens.
    pub(super) async fn resolve_point<'a>(
        &'a self,
        access: &'a UntypedPath,
    ) -> Result<(Cow<'a, Self>, Cow<'a, UntypedPath>)> {
        let table = self.table_of_point(access)?;
        let access = table.rows().add_tokens_to_path(access).await?;
        Ok((table, access))
    }

    /// Returns the table's name.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(staff().await?.name(), "Staff");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the client that the table belongs to.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert_eq!(staff.client().tables().await?, ["Staff"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates the table, and the tables of its remote copies that do not exist.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if the table exists.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff: Table<Employee> = Client::memory().table();
    /// staff.create().await?;
    /// assert!(staff.create().await.is_err_and(|error| error.is_conflict()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create(&self) -> Result<()> {
        self.rows().create_tables().await
    }

    /// Creates the table, and the tables of its remote copies, if they do not exist. Returns `true`
    /// if the table was created.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a name that the service refuses.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff: Table<Employee> = Client::memory().table();
    /// assert!(staff.create_if_not_exists().await?);
    /// assert!(!staff.create_if_not_exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_if_not_exists(&self) -> Result<bool> {
        self.rows().create_tables_if_not_exist().await
    }

    /// Deletes the table with all its entities, of every type, in one request.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the table does not exist.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.delete_table().await?;
    /// assert!(staff.get(at(7)).await.is_err_and(|error| error.is_not_found()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_table(&self) -> Result<()> {
        self.client.store().delete_table(&self.name).await
    }

    /// Deletes the table if it exists. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// Returns the backend's error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert!(staff.delete_table_if_exists().await?);
    /// assert!(!staff.delete_table_if_exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_table_if_exists(&self) -> Result<bool> {
        self.client.store().delete_table_if_exists(&self.name).await
    }

    /// Reads the entity at a point in one request. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails with `is_unrecognized_entity` for a row of another type, and with `is_decode` for a
    /// row that does not fit the struct.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let by_email = Employee::by_email().department("Sales").email("HALL223@contoso.com");
    /// assert_eq!(staff.get(by_email).await?.map(|hall| hall.id), Some(223));
    /// assert!(staff.get(at(999)).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(
        &self,
        point: impl IntoPoint<Entity = E, View = impl FullView>,
    ) -> BoxFuture<'_, Result<Option<Stored<E>>>> {
        self.read_point("get", point.into_point().access())
    }

    /// Reads some fields of the entity at a point in one request. The point may be one of a partial copy that
    /// holds the fields.
    ///
    /// # Errors
    ///
    /// Fails with `is_unrecognized_entity` for a row of another type, and with `is_decode` for a
    /// row that does not fit.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let contact = staff().await?.get_as::<Contact>(at(7)).await?;
    /// assert_eq!(contact.map(|contact| contact.email.clone()).as_deref(), Some("cao7@contoso.com"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_as<P>(
        &self,
        point: impl IntoPoint<Entity = E, View = impl HoldsProjection<P>>,
    ) -> BoxFuture<'_, Result<Option<Stored<P>>>>
    where
        P: Projection<Entity = E>,
    {
        self.read_point("get_as", point.into_point().access())
    }

    /// Reads the entities at several points concurrently, one request each, and returns them in the
    /// order of the points.
    ///
    /// # Errors
    ///
    /// Fails as [`get`](Self::get) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let found = staff().await?.get_many([at(224), at(999), at(7)]).await?;
    /// let ids: Vec<_> = found.iter().map(|one| one.as_ref().map(|one| one.id)).collect();
    /// assert_eq!(ids, [Some(224), None, Some(7)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_many(
        &self,
        points: impl IntoIterator<Item = impl IntoPoint<Entity = E, View = impl FullView>>,
    ) -> BoxFuture<'_, Result<Vec<Option<Stored<E>>>>> {
        let paths: Vec<_> = points.into_iter().map(|point| point.into_point().access()).collect();
        let reads = paths.into_iter().map(|path| self.read_point("get", path));
        let load = self.client.store().begin_load(InFlight::Default(POINT_READS));
        // Boxed for a single compiler message about a path that does not fit, as the other point reads are.
        Box::pin(load.run_in_order(reads).try_collect())
    }

    /// Reads the entity at a point as a `T`.
    // Boxed: the compiler reports a path that does not fit three times if a verb returns `impl Future`.
    pub(super) fn read_point<T: FromRow>(
        &self,
        verb: &'static str,
        access: UntypedPath,
    ) -> BoxFuture<'_, Result<Option<Stored<T>>>> {
        let of = RowType::of::<E, T>();
        let rows = TypedRows { of, ..self.rows() };
        let mut plan = ReadPlan::for_row(self.client.store(), of, access);
        Box::pin(async move {
            let mut found = FoundEntity { of: PhantomData::<E>, stored: None };
            rows.read_point(verb, &mut plan, &mut found).await?;
            Ok(found.stored)
        })
    }

    /// Reads a primary, whether expired or not. Writes and maintenance do not check the time.
    pub(crate) async fn read_primary(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Stored<E>>> {
        let row = self.rows().read_primary((partition_key, row_key)).await?;
        row.map(|row| self.decode_primary(row)).transpose()
    }

    pub(super) fn decode_primary(&self, row: Row) -> Result<Stored<E>> {
        decode_required::<E, E>(row, E::SCHEMA.primary()?)
            .map_err(|error| error.in_table(&self.name))
    }

    /// Returns the table that holds the rows of a row family: the family's own table, or this one. Returns this
    /// table for `None`, which is the row family of a path that names none.
    fn table_of(&self, family: Option<&'static RowFamily>) -> Cow<'_, str> {
        family.map_or(Cow::Borrowed(&*self.name), |family| {
            family.table_given_primary_table(&self.name)
        })
    }

    /// Returns a query of the entities on a path. Sends nothing until you ask for items.
    ///
    /// A query of partial copies needs a projection, which you set with `select`. A query of a list reads the list,
    /// then each of its entities by key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let some = Employee::primary().department("Sales").id_range(200..=299);
    /// assert_eq!(staff.query(some).collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn query<P>(&self, path: P) -> <P::View as Queried<E>>::Query
    where
        P: Path<Entity = E>,
        P::View: Queried<E>,
    {
        let access = path.access();
        // A list refers to entities of this table, whichever table holds the list.
        let table = match access.family {
            Some(family) if family.is_list() => self.name.clone(),
            family => self.table_of(family).into_owned(),
        };
        let mut request = Request::new(self.client.store().clone(), table, access)
            .with_outbox_and_table(&self.client.outbox, &self.name);
        if let Some(dated) = &E::SCHEMA.dated {
            request = request.for_dated_tables(dated, &self.name);
        }
        <P::View as Queried<E>>::query(TypedRequest(request))
    }

    /// Reads the keys of the entities in a list, in the order in which they were added. Takes one request.
    ///
    /// # Errors
    ///
    /// Fails with the backend's error, and with `is_decode` if the list's content is not a list of keys.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let halls = Employee::by_last_name().department("Sales").last_name("Hall");
    /// let keys = staff.keys(halls).await?;
    /// assert_eq!(keys.iter().map(Point::row_key).collect::<Vec<_>>(), ["empid_000223"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys<P>(&self, path: P) -> BoxFuture<'_, Result<Vec<Point<E>>>>
    where
        P: Path<Entity = E, View: ListView>,
    {
        Box::pin(self.read_keys_of_list(path.access()))
    }

    async fn read_keys_of_list(&self, list: UntypedPath) -> Result<Vec<Point<E>>> {
        let request = Request::new(self.client.store().clone(), self.name.clone(), list)
            .with_schema_of_keys(Some(E::SCHEMA));
        let request = match &E::SCHEMA.dated {
            Some(dated) => request.for_dated_tables(dated, &self.name),
            None => request,
        };
        let plan = Arc::new(request).plan(None).await?;
        list_query::read_entity_keys_of_lists::<E>(&plan)
            .await
            .map_err(|error| error.in_table(&self.name))
    }

    /// Returns the queries of several paths as one query. At most `concurrency` of them run at the same time, 8 by
    /// default.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let paths = ["Sales", "Marketing"].map(|name| Employee::primary().department(name));
    /// let found = staff().await?.query_many(paths).concurrency(2).collect().await?;
    /// assert_eq!(found.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn query_many<P>(&self, paths: impl IntoIterator<Item = P>) -> QueryMany<E>
    where
        P: Path<Entity = E>,
        P::View: Queried<E, Query = Query<E, Stored<E>>>,
    {
        QueryMany::new(paths.into_iter().map(|path| self.query(path)).collect())
    }

    /// Begins an entity group transaction in this table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let archive: Table<Employee> = Client::memory().table_named("Archive");
    /// archive.create().await?;
    /// let mut transaction = archive.transaction();
    /// transaction.insert(&employee(1, "Hall"))?.insert(&employee(2, "Hall"))?;
    /// transaction.commit().await?;
    /// assert_eq!(archive.query(sales()).collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.client.clone(), self.name_if_one_table())
    }

    /// Begins bulk writes to this table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.bulk().insert_all((300..400).map(|id| employee(id, "Hall"))).await?;
    /// assert_eq!((report.done, report.is_complete()), (100, true));
    /// # Ok(())
    /// # }
    /// ```
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.client.clone(), self.name_if_one_table())
    }

    /// Returns the maker of blind tokens for the entity's keys.
    pub(crate) async fn key_token_maker(&self) -> Result<TokenMaker> {
        self.client
            .store()
            .token_maker_of_type(E::SCHEMA)
            .await
            .map_err(|error| error.in_table(&self.name))
    }

    /// Calls `make` with the blind token keys that it needs, as [`Store::run_with_blind_token_keys`] does.
    ///
    /// [`Store::run_with_blind_token_keys`]: crate::store::rows::Store::run_with_blind_token_keys
    pub(crate) async fn run_with_blind_token_keys<T>(
        &self,
        tokens: &TokenMaker,
        make: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        self.client.store().run_with_blind_token_keys(tokens, make).await
    }
}

/// The entity `E` that was found, read as a `T`.
struct FoundEntity<E, T> {
    of: PhantomData<E>,
    stored: Option<Stored<T>>,
}

impl<E: TableEntity, T: FromRow> TakeRow for FoundEntity<E, T> {
    fn take_row(&mut self, row: Row, family: &'static RowFamily) -> Result<()> {
        self.stored = Some(decode_required::<E, T>(row, family)?);
        Ok(())
    }
}

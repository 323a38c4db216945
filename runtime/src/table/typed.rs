//! A table of one entity type: its life and point reads.

use std::{borrow::Cow, fmt, marker::PhantomData};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{bulk::Bulk, client::Client, transaction::Transaction};
use crate::{
    backend::Read,
    entity::{
        Access, FromRow, FullView, ListRows, Path, Point, Projection, ReadableAs, Recognition,
        Stored, TableEntity,
    },
    error::Result,
    key::{Family, FamilyKind},
    plan::Tokens,
    query::{
        build::{Queried, Query, TypedRequest},
        columns::columns_of_point,
        confirm::confirmed_row,
        fan_out::QueryMany,
        list_query,
        request::Request,
    },
    row::Row,
    store::sealing::open::Reading,
};

/// Point reads that `get_many` has in flight.
const POINT_READS: usize = 32;

/// The entities of one type in one table.
///
/// Cheap to clone. The table may hold other types as well: they are never touched, and skipped when
/// rows are read.
pub struct Table<E> {
    pub(crate) client: Client,
    pub(crate) name: String,
    of: PhantomData<fn() -> E>,
}

impl Client {
    /// The table of an entity, under the name that the entity declares.
    pub fn table<E: TableEntity>(&self) -> Table<E> {
        self.table_named(E::SCHEMA.table)
    }

    /// The table of an entity under another name.
    pub fn table_named<E: TableEntity>(&self, name: impl Into<String>) -> Table<E> {
        self.outbox.meet(E::SCHEMA);
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

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The client that it belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates the table, and those of its copies where these have tables of their own and there are
    /// none yet.
    ///
    /// # Errors
    ///
    /// `is_conflict` where it exists.
    pub async fn create(&self) -> Result<()> {
        self.client.create_table(&self.name).await?;
        self.create_further().await
    }

    /// The tables of copies are shared with other entities.
    async fn create_further(&self) -> Result<()> {
        let families: &'static [Family] = E::SCHEMA.families;
        for table in families.iter().filter_map(|family| family.table) {
            self.client.create_table_if_not_exists(table).await?;
        }
        Ok(())
    }

    /// Creates the table where there is none, and those of its copies; `true`: it was created.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a name that the service refuses.
    pub async fn create_if_not_exists(&self) -> Result<bool> {
        let created = self.client.create_table_if_not_exists(&self.name).await?;
        self.create_further().await?;
        Ok(created)
    }

    /// Deletes the table with all its entities, of every type, in one request.
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is none.
    pub async fn delete_table(&self) -> Result<()> {
        self.client.delete_table(&self.name).await
    }

    /// Deletes the table where there is one; `true`: it was there.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn delete_table_if_exists(&self) -> Result<bool> {
        self.client.delete_table_if_exists(&self.name).await
    }

    /// The entity at a point, in one read; `None`: there is none.
    ///
    /// # Errors
    ///
    /// `is_unrecognized_entity` for a row of another type, `is_decode` for one that does not fit.
    pub async fn get<V: FullView>(&self, point: Point<E, V>) -> Result<Option<Stored<E>>> {
        self.read_point(point.as_access()).await
    }

    /// Some fields of the entity at a point, in one read; a partial copy does where it holds them.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn get_as<P>(&self, point: Point<E, impl ReadableAs<P>>) -> Result<Option<Stored<P>>>
    where
        P: Projection<Entity = E>,
    {
        self.read_point(point.as_access()).await
    }

    /// The entities at several points, in the order of the points: parallel point reads, one
    /// request each.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn get_many<V: FullView>(
        &self,
        points: impl IntoIterator<Item = Point<E, V>>,
    ) -> Result<Vec<Option<Stored<E>>>> {
        let points: Vec<Point<E, V>> = points.into_iter().collect();
        stream::iter(points)
            .map(|point| async move { self.get(point).await })
            .buffered(POINT_READS)
            .try_collect()
            .await
    }

    async fn read_point<T: FromRow>(&self, access: &Access) -> Result<Option<Stored<T>>> {
        let access = self.keyed(access).await?;
        let (partition_key, row_key) =
            access.point().map_err(|error| error.in_table(&self.name))?;
        let family = access.family.map_or(E::SCHEMA.primary(), Ok)?;
        self.read_row(partition_key, row_key, family).await
    }

    pub(crate) async fn read_primary(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Stored<E>>> {
        self.read_row(partition_key, row_key, E::SCHEMA.primary()?).await
    }

    async fn read_row<T: FromRow>(
        &self,
        partition_key: &str,
        row_key: &str,
        family: &'static Family,
    ) -> Result<Option<Stored<T>>> {
        let select = columns_of_point::<E, T>(Some(family));
        let table = self.table_of(Some(family));
        let read = Read { table, partition_key, row_key, select: select.as_deref() };
        let Some(row) = self.client.store().read_as(read, Reading::Typed(E::SCHEMA)).await? else {
            return Ok(None);
        };
        match confirmed_row(self.client.store(), &self.name, E::SCHEMA, family, row).await? {
            None => Ok(None),
            Some(row) => crate::query::decode::decode_required::<E, T>(row, family)
                .map(Some)
                .map_err(|error| error.in_table(table)),
        }
    }

    /// The table that rows of a family are in.
    fn table_of(&self, family: Option<&'static Family>) -> &str {
        family.and_then(|family| family.table).unwrap_or(&self.name)
    }

    /// The entities on a path: a query that runs when it is asked for items.
    ///
    /// A path to partial copies has to be given a projection with `select`. A path to a list reads
    /// the list, and then each of its entities by its key.
    ///
    /// ```ignore
    /// let sales = staff.query(Employee::primary().department("Sales")).collect().await?;
    /// ```
    pub fn query<P>(&self, path: P) -> <P::View as Queried<E>>::Query
    where
        P: Path<Entity = E>,
        P::View: Queried<E>,
    {
        let access = path.access();
        // A list leads to entities in this table, wherever it is itself.
        let table = match access.family {
            Some(family) if family.kind == FamilyKind::List => self.name.clone(),
            family => self.table_of(family).to_owned(),
        };
        let request = Request::new(self.client.store().clone(), table, access);
        <P::View as Queried<E>>::query(TypedRequest(request))
    }

    /// The keys of the entities in a list, in the order in which they were added: one request.
    ///
    /// # Errors
    ///
    /// The backend's; `is_decode` for a list that holds something else.
    pub async fn keys<P>(&self, path: P) -> Result<Vec<Point<E>>>
    where
        P: Path<Entity = E, View = ListRows>,
    {
        let request = Request::new(self.client.store().clone(), self.name.clone(), path.access())
            .with_keys_of(Some(E::SCHEMA));
        let request = request.prepare().await?;
        list_query::points::<E>(&request).await.map_err(|error| error.in_table(&self.name))
    }

    /// The entities on several paths: a query each, some at a time.
    pub fn query_many<P>(&self, paths: impl IntoIterator<Item = P>) -> QueryMany<E>
    where
        P: Path<Entity = E>,
        P::View: Queried<E, Query = Query<E, Stored<E>>>,
    {
        QueryMany::new(paths.into_iter().map(|path| self.query(path)).collect())
    }

    /// An entity group transaction in this table.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.client.clone(), Some(self.name.clone()))
    }

    /// Many writes to this table.
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.client.clone(), Some(self.name.clone()))
    }

    /// What makes the tokens of the entity's keys.
    pub(crate) async fn tokens(&self) -> Result<Tokens> {
        self.client.store().tokens_of(E::SCHEMA).await.map_err(|error| error.in_table(&self.name))
    }

    /// Rows for a check: a copy that does not open is handed out as it is stored, so that it is
    /// found to differ and can be mended.
    pub(crate) async fn open_to_check(&self, rows: Vec<Row>) -> Result<Vec<Row>> {
        self.open_to_check_in(&self.name, rows).await
    }

    /// The same for rows of a table that its copies are in.
    pub(crate) async fn open_to_check_in(&self, table: &str, rows: Vec<Row>) -> Result<Vec<Row>> {
        let stored = rows.clone();
        let reading = Reading::Typed(E::SCHEMA);
        let opened = self.client.store().sealing.open(table, rows, reading, None).await;
        let both = opened.into_iter().zip(stored);
        both.map(|(opened, stored)| match opened {
            Err(error) if (error.is_decrypt() || error.is_decode()) && is_copy::<E>(&stored) => {
                Ok(stored)
            }
            opened => opened.map_err(|error| error.in_table(table)),
        })
        .collect()
    }

    /// The path with the tokens of its keys.
    pub(crate) async fn keyed<'a>(&self, access: &'a Access) -> Result<Cow<'a, Access>> {
        if !access.is_open() {
            return Ok(Cow::Borrowed(access));
        }
        let keyed = self
            .client
            .store()
            .tokens()
            .await
            .and_then(|tokens| tokens.resolve_tokens(E::SCHEMA, access));
        keyed.map(Cow::Owned).map_err(|error| error.in_table(&self.name))
    }
}

/// Whether a row is a copy of the entity.
fn is_copy<E: TableEntity>(row: &Row) -> bool {
    let copies = E::SCHEMA.families.iter().filter(|family| family.kind == FamilyKind::Copy);
    let mut kinds = copies.map(|family| E::SCHEMA.recognize(row, family));
    let is_primary = E::SCHEMA.primary().and_then(|family| E::SCHEMA.recognize(row, family));
    !matches!(is_primary, Ok(Recognition::Ours | Recognition::Version(_)))
        && kinds.any(|kind| matches!(kind, Ok(Recognition::Ours)))
}

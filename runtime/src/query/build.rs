//! Builds a query. Each method adds to its request, and nothing is sent.

use std::{fmt, marker::PhantomData, sync::Arc};

use futures_util::stream::BoxStream;

use super::{
    decode::{decode_or_skip, decode_required},
    explain::Explain,
    fetched_page::FetchedPage,
    plan::{ItemOrigin, RowType},
    request::Request,
};
use crate::{
    entity::{
        DynamicEntity, FromRow, FullView, ListRows, Predicate, Projection, Stored, TableEntity,
        View,
    },
    error::Result,
    filter::Filter,
    row::Row,
};

/// The items of a query. Each page is fetched once the previous one is used up, or [ahead](Query::read_ahead).
pub type Items<T> = BoxStream<'static, Result<T>>;

/// Decodes a row of a page into an item. Returns `None` to skip the row. A row that could not be decrypted is passed
/// as an error. Errors name the row's keys.
pub(crate) type DecodeRow<T> =
    Arc<dyn Fn(&FetchedPage, Result<Row>) -> Result<Option<T>> + Send + Sync>;

/// A condition for [`Query::filter`]: a predicate on the entity's columns, or an untyped [`Filter`] for
/// dynamic tables.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on `{E}`",
    note = "compare columns of the entity, as in `Employee::AGE.ge(30)`; for untyped filters, use `client.dynamic(..)`"
)]
pub trait QueryCondition<E> {
    /// Converts the condition into the filter that is sent.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if a value cannot be stored in its column.
    fn into_filter(self) -> Result<Filter>;
}

impl<E> QueryCondition<E> for Predicate<E> {
    fn into_filter(self) -> Result<Filter> {
        Self::into_filter(self)
    }
}

impl QueryCondition<DynamicEntity> for Filter {
    fn into_filter(self) -> Result<Filter> {
        Ok(self)
    }
}

/// Declares the methods that a query of partial copies also has before its projection is chosen.
macro_rules! setters {
    () => {
        /// Keeps only the rows that meet a condition. Several conditions are combined with `and`.
        ///
        /// ```
        /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Error> {
        /// let staff = staff().await?;
        /// let some = staff.query(sales()).filter(Employee::AGE.ge(30) & !Employee::LAST_NAME.eq("Cao"));
        /// assert_eq!(some.collect().await?.len(), 2);
        /// # Ok(())
        /// # }
        /// ```
        #[must_use]
        pub fn filter(mut self, condition: impl QueryCondition<E>) -> Self {
            self.request_mut().add_condition(condition.into_filter());
            self
        }

        /// Returns at most `items` items in total, the first in key order. Stores without an order refuse it. See
        /// [`Query::any_order`].
        ///
        /// ```
        /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Error> {
        /// assert_eq!(staff().await?.query(sales()).take(2).collect().await?.len(), 2);
        /// # Ok(())
        /// # }
        /// ```
        #[must_use]
        pub fn take(mut self, items: u64) -> Self {
            self.request_mut().take = Some(items);
            self
        }

        /// Reads at most `rows` rows per request, 1 to 1,000.
        ///
        /// ```
        /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Error> {
        /// let page = staff().await?.query(sales()).page_size(2).page(None).await?;
        /// assert_eq!((page.items.len(), page.next.is_some()), (2, true));
        /// # Ok(())
        /// # }
        /// ```
        #[must_use]
        pub fn page_size(mut self, rows: u32) -> Self {
            self.request_mut().page_size = Some(rows);
            self
        }

        /// Allows a query of more than 10,000 dated tables by a client that may not list tables, such as one with a
        /// shared access signature. Such a client has to ask each table of the window, with one request at least. A
        /// window of more than 10,000 tables is probably a mistyped year, so it is refused unless you call this.
        ///
        /// Has no effect for other clients: they list the tables first and read only those that exist.
        ///
        /// ```
        /// use entable::{
        ///     ErrorKind,
        ///     backend::{Memory, layer::{FaultInjector, InjectedFault, RequestKind}},
        ///     prelude::*,
        /// };
        /// use time::{OffsetDateTime, macros::datetime};
        ///
        /// #[derive(TableEntity)]
        /// #[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
        /// struct Login { user: String, at: OffsetDateTime }
        ///
        /// # tokio::runtime::Runtime::new()?.block_on(async {
        /// // A client that may read rows but not list tables.
        /// let fault = FaultInjector::around(Memory::new());
        /// let denied = || InjectedFault::Before(Error::new(ErrorKind::Denied, "may not list tables"));
        /// let client = Client::builder().backend(fault.clone()).build()?;
        /// let logins: Table<Login> = client.table();
        ///
        /// let years = datetime!(2000-01-01 0:00 UTC)..datetime!(2028-01-01 0:00 UTC);
        /// let query = logins.query(Login::primary().at_between(years).user("don"));
        /// assert_eq!(query.explain().tables, 10_227);
        /// fault.inject(RequestKind::Tables, 0, denied());
        /// assert!(query.collect().await.is_err_and(|error| error.is_invalid()));
        ///
        /// fault.inject(RequestKind::Tables, 0, denied());
        /// assert!(query.allow_many_tables().collect().await?.is_empty(), "asks each of the 10,227 tables");
        /// # Ok::<(), Error>(()) })?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[must_use]
        pub fn allow_many_tables(mut self) -> Self {
            self.request_mut().allows_many_tables = true;
            self
        }

        /// Sets the scopes in which a condition on a `blind` property is looked up. Values are compared through the
        /// blind tokens of these scopes, and rows of other scopes are not found. You only need this if scopes have
        /// their own blind token keys and the path has no PartitionKey from which the scope follows.
        ///
        /// ```
        /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Error> {
        /// let scopes = ["tenant-7", "tenant-8"].map(entable::KeyScope::named);
        /// let staff = staff().await?;
        /// assert_eq!(staff.query(sales()).in_scopes(scopes).collect().await?.len(), 3);
        /// # Ok(())
        /// # }
        /// ```
        #[must_use]
        pub fn in_scopes(
            mut self,
            scopes: impl IntoIterator<Item = crate::seal::KeyScope>,
        ) -> Self {
            self.request_mut().scopes = scopes.into_iter().map(Some).collect();
            self
        }
    };
}
pub(super) use setters;

/// A query of entity `E` with items of type `T`.
///
/// Cheap to clone. Sends nothing until you call [`stream`](Self::stream), [`collect`](Self::collect),
/// [`first`](Self::first) or [`page`](Self::page).
pub struct Query<E, T = Stored<E>> {
    pub(crate) request: Arc<Request>,
    pub(crate) decode: DecodeRow<T>,
    of: PhantomData<fn() -> E>,
}

impl<E, T> Clone for Query<E, T> {
    fn clone(&self) -> Self {
        Self { request: self.request.clone(), decode: self.decode.clone(), of: PhantomData }
    }
}

impl<E, T> fmt::Debug for Query<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Query").field(&self.explain()).finish()
    }
}

impl<E: TableEntity> Query<E, Stored<E>> {
    /// Reads only the fields of a projection. The service does not send other fields.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let contacts = staff().await?.query(sales()).select::<Contact>();
    /// assert_eq!(
    ///     contacts.explain().select,
    ///     ["PartitionKey", "RowKey", "Timestamp", "EntityType", "Email"]
    /// );
    /// assert_eq!(contacts.collect().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn select<P: Projection<Entity = E>>(self) -> Query<E, Stored<P>> {
        query_decoded_as::<E, P>(self.request)
    }
}

/// Creates a query that selects the properties of `T` and decodes each row as a `T`, which is the entity or a projection.
/// Skips rows of other types. A query of a list reads the entities in the list.
pub(crate) fn query_decoded_as<E: TableEntity, T: FromRow>(
    request: impl Into<Arc<Request>>,
) -> Query<E, Stored<T>> {
    let mut request = request.into();
    let family = request.family();
    if request.reads_list() {
        let edited = Request::unshared(&mut request);
        edited.select_of_entities = T::columns(None);
        edited.origin_of_items = ItemOrigin::EntitiesOfLists(RowType::of::<E, T>());
        return Query::new(request, |row| {
            decode_required::<E, T>(row, E::SCHEMA.primary()?).map(Some)
        });
    }
    Request::unshared(&mut request).select = T::columns(family);
    Query::new(request, move |row| {
        decode_or_skip::<E, T>(row, family.map_or_else(|| E::SCHEMA.primary(), Ok)?)
    })
}

/// Determines the type of a path's query from the rows that the path leads to. A query of partial copies
/// needs a projection (`select`) before it can run.
#[diagnostic::on_unimplemented(message = "this path cannot be queried")]
pub trait Queried<E: TableEntity>: View {
    /// The type of the query.
    type Query;

    #[doc(hidden)]
    fn query(request: TypedRequest) -> Self::Query;
}

/// A request of a typed path. [`Queried`] turns it into a query.
#[derive(Debug)]
pub struct TypedRequest(pub(crate) Request);

impl<E: TableEntity, V: FullView> Queried<E> for V {
    type Query = Query<E, Stored<E>>;

    fn query(request: TypedRequest) -> Self::Query {
        query_decoded_as::<E, E>(request.0.for_entity::<E>())
    }
}

impl<E: TableEntity> Queried<E> for ListRows {
    type Query = Query<E, Stored<E>>;

    fn query(request: TypedRequest) -> Self::Query {
        query_decoded_as::<E, E>(request.0.for_entity::<E>())
    }
}

impl<E, T> Query<E, T> {
    pub(crate) fn new(
        request: impl Into<Arc<Request>>,
        decode: impl Fn(Row) -> Result<Option<T>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            request: request.into(),
            decode: Arc::new(move |_, row| decode(row?)),
            of: PhantomData,
        }
    }

    /// Decodes the rows with another function, as another entity type.
    pub(crate) fn read_as<F, U>(
        self,
        decode: impl Fn(Row) -> Result<Option<U>> + Send + Sync + 'static,
    ) -> Query<F, U> {
        Query::new(self.request, decode)
    }

    /// Keeps the request and changes the conversion of its rows.
    pub(crate) fn map_decode<U>(
        self,
        map: impl FnOnce(DecodeRow<T>) -> DecodeRow<U>,
    ) -> Query<E, U> {
        Query { request: self.request, decode: map(self.decode), of: PhantomData }
    }

    pub(crate) fn request_mut(&mut self) -> &mut Request {
        Request::unshared(&mut self.request)
    }

    pub(crate) fn edit_request(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(self.request_mut());
        self
    }

    setters!();

    /// Allows a table scan, which is refused by default.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let older = client.dynamic("Staff").query(Filter::parse("Age gt 29")?);
    /// assert!(older.collect().await.is_err_and(|error| error.is_scan_refused()));
    /// assert_eq!(older.allow_scan().collect().await?.len(), 6, "three employees and their copies");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn allow_scan(mut self) -> Self {
        self.request_mut().scan_allowed = true;
        self
    }

    /// Accepts any rows as the first ones, for stores without an order (Cosmos DB).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// // The store in memory has an order, so the call changes nothing here.
    /// let some = staff().await?.query(sales()).any_order().take(2);
    /// assert_eq!(some.collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn any_order(mut self) -> Self {
        self.request_mut().any_order = true;
        self
    }

    /// Returns what the query will send, without sending it.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let some = Employee::primary().department("Sales").id_range(200..=299);
    /// let explain = staff().await?.query(some).explain();
    /// assert_eq!(explain.class, CostClass::Range);
    /// assert_eq!(
    ///     explain.filter,
    ///     "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000200') and (RowKey le 'empid_000299')"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(&self) -> Explain {
        Explain::of_request(&self.request)
    }
}

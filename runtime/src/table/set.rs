//! A table whose rows have several entity types.

use std::{fmt, marker::PhantomData};

use futures_util::TryStreamExt;

use super::{
    bulk::Bulk, client::Client, dynamic::RowSelection, transaction::Transaction, writable::Writable,
};
use crate::query::{
    build::{Query, QueryCondition},
    plan::ReadPlan,
    request::Request,
};
use crate::{
    access::Keys,
    entity::{
        Aggregate, EntitySet, SetMembers, Stored, UntypedPath,
        set::{ResolvedRow, aggregate::PartitionFold, read_set_item},
    },
    error::{Error, ErrorKind, Result},
    filter::Filter,
    row::{Row, error_with_row_keys},
};

/// Reads and writes the rows of a table as values of a set `S`: an enum with one variant per entity, or a
/// struct that folds a partition.
///
/// Never returns index copies or the library's own rows. A row of a type that is not in the set is an error,
/// unless the set has a variant for it.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(Debug, TableEntity)]
/// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
///
/// #[derive(Debug, TableEntity)]
/// #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
/// pub struct Department { pub name: String, pub employee_count: i32 }
///
/// #[derive(Debug, EntitySet)]
/// pub enum StaffRow { Employee(Employee), Department(Department) }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// client.create_table("Staff").await?;
/// let staff = client.set::<StaffRow>("Staff");
/// let mut egt = staff.transaction();
/// egt.insert(&Employee { department: "Sales".into(), id: 223, age: 34 })?
///     .insert(&Department { name: "Sales".into(), employee_count: 1 })?;
/// egt.commit().await?;
///
/// for row in staff.query(Keys::partition("Sales")).collect().await? {
///     match &*row {
///         StaffRow::Employee(employee) => assert_eq!(employee.age, 34),
///         StaffRow::Department(department) => assert_eq!(department.employee_count, 1),
///     }
/// }
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SetTable<S> {
    client: Client,
    name: String,
    of: PhantomData<fn() -> S>,
}

impl Client {
    /// Returns a table whose rows are read as a set of types.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// assert_eq!(client.set::<StaffRow>("Staff").name(), "Staff");
    /// # Ok(())
    /// # }
    /// ```
    pub fn set<S: SetMembers>(&self, table: impl Into<String>) -> SetTable<S> {
        SetTable::new(self.clone(), table.into())
    }
}

impl<S> Clone for SetTable<S> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone(), of: PhantomData }
    }
}

impl<S> fmt::Debug for SetTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: SetMembers> SetTable<S> {
    pub(super) fn new(client: Client, name: String) -> Self {
        client.store().estimate_store_time_if_expiring(S::MEMBERS.schemas().iter().copied());
        Self { client, name, of: PhantomData }
    }

    /// Returns the table's name.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// assert_eq!(staff.name(), "Staff");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins an entity group transaction in this table.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// let mut egt = staff.transaction();
    /// egt.insert(&jones())?.insert(&Department { name: "Sales".into(), employee_count: 1 })?;
    /// egt.commit().await?;
    /// assert_eq!(staff.query(Keys::partition("Sales")).collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.client.clone(), Some(self.name.clone()))
    }

    /// Begins bulk writes to this table.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// let report = staff.bulk().insert_all([jones()]).await?;
    /// assert_eq!(report.done, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.client.clone(), Some(self.name.clone()))
    }
}

impl<S: EntitySet> SetTable<S> {
    /// Reads the row with the keys in `row`. Returns `None` if it does not exist.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// staff.insert(&jones().into()).await?;
    /// let row = staff.get(Keys::point("Sales", "empid_000223")).await?;
    /// assert!(row.is_some_and(|row| *row == StaffRow::Employee(jones())));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unrecognized_entity` for a row of a type that is not in the set, with `is_decode` for a row
    /// that does not fit its type, and with `is_invalid` if the selection is not a single row.
    pub async fn get(&self, row: impl Into<RowSelection>) -> Result<Option<Stored<S>>> {
        let place = |error: Error| error.in_table(&self.name);
        let selection = row.into();
        let is_point = selection.is_point().map_err(place)?;
        let request = selection.into_request(self.client.store().clone(), self.name.clone());
        let (store, schema) = (self.client.store(), request.schema_of_keys());
        let access = store.path_with_key_tokens(schema, &request.access).await.map_err(place)?;
        let point = access.checked_keys().map_err(place)?.as_point().filter(|_| is_point);
        let Some((partition_key, row_key)) = point else {
            let message = "`get` takes both keys of one row; use `query` for several rows";
            return Err(place(Error::new(ErrorKind::Invalid, message)));
        };
        let plan =
            ReadPlan::for_row_of_set::<S>(store, UntypedPath::of_keys(None, Keys::whole_table()));
        match plan.read_row(store, store.names().row_at(&self.name, partition_key, row_key)).await?
        {
            None => Ok(None),
            Some(row) => decode_item::<S>(row, false).map_err(place),
        }
    }

    /// Returns a query of the rows that keys, a typed path or a filter select. Sends nothing until you ask for
    /// items. A selection without a PartitionKey needs `allow_scan`.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// staff.insert(&jones().into()).await?;
    /// assert_eq!(staff.query(Employee::primary().department("Sales")).collect().await?.len(), 1);
    /// let of_any = staff.query(Filter::eq("Id", 223));
    /// assert!(of_any.collect().await.unwrap_err().is_scan_refused());
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(&self, selection: impl Into<RowSelection>) -> Query<SetOf<S>, Stored<S>> {
        let request = selection.into().into_request(self.client.store().clone(), self.name.clone());
        let request = request.with_outbox_and_table(&self.client.outbox, &self.name);
        let is_other = |row: &Row| Ok(S::other(row)?.is_some());
        Query::new(request.for_set::<S>(is_other), decode::<S>(false))
    }

    /// Creates the entity that a value holds.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// staff.insert(&StaffRow::Employee(jones())).await?;
    /// assert!(staff.insert(&StaffRow::Employee(jones())).await.unwrap_err().is_conflict());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`](crate::Table::insert) does.
    pub async fn insert(&self, value: &S) -> Result<()>
    where
        S: Writable,
    {
        let mut egt = self.transaction();
        // The caller wrote a single value and knows nothing of positions in a transaction.
        egt.insert(value).map_err(Error::without_operation)?;
        egt.commit().await.map(drop).map_err(Error::without_operation)
    }

    /// Inserts the entity that a value holds, or replaces the existing one.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// let sales = |employee_count| StaffRow::Department(Department { name: "Sales".into(), employee_count });
    /// staff.insert_or_replace(&sales(1)).await?;
    /// staff.insert_or_replace(&sales(2)).await?;
    /// let row = staff.get(Keys::point("Sales", "department")).await?;
    /// assert!(row.is_some_and(|row| *row == sales(2)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert_or_replace`](crate::Table::insert_or_replace) does.
    pub async fn insert_or_replace(&self, value: &S) -> Result<()>
    where
        S: Writable,
    {
        let mut egt = self.transaction();
        egt.insert_or_replace(value).map_err(Error::without_operation)?;
        egt.commit().await.map(drop).map_err(Error::without_operation)
    }
}

impl<A: Aggregate> SetTable<A> {
    /// Reads the selected rows in one query and folds them into the struct.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// # #[derive(Debug, EntitySet)]
    /// # struct Sales {
    /// #     #[table(one)] department: Option<Stored<Department>>,
    /// #     #[table(many)] employees: Vec<Stored<Employee>>,
    /// # }
    /// staff.insert(&jones().into()).await?;
    /// let sales = client.set::<Sales>("Staff").load(Keys::partition("Sales")).await?;
    /// assert_eq!((sales.department, sales.employees.len()), (None, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if a field `#[table(one)]` that is not an `Option` has no row. Fails with
    /// `is_decode` if a field `#[table(one)]` has a second row, or if a row does not fit its type. Fails with
    /// `is_unrecognized_entity` for a row of a type that is not in the set, if the struct has no field for it, and
    /// with `is_scan_refused` without a PartitionKey.
    pub async fn load(&self, selection: impl Into<RowSelection>) -> Result<A> {
        let selection = selection.into();
        let partition_key = selection.known_partition_key().to_owned();
        let request = selection.into_request(self.client.store().clone(), self.name.clone());
        // The fold receives a row of an unknown type and fails if the struct has no field for it.
        let request = request.for_set::<A>(|_| Ok(true));
        let query: Query<A, Row> = Query::new(request, |row| Ok(Some(row)));
        let rows: Vec<Row> = query.stream().try_collect().await?;
        PartitionFold::new::<A>(&partition_key, rows)
            .and_then(|mut folding| A::fold(&mut folding))
            .map_err(|error| error.in_table(&self.name))
    }
}

/// Marks a query as a query of a set, whose rows may be of any member type.
#[derive(Debug, Clone, Copy)]
pub struct SetOf<S>(PhantomData<fn() -> S>);

/// Conditions on a set are untyped, because its members have different columns.
impl<S: EntitySet> QueryCondition<SetOf<S>> for Filter {
    fn into_filter(self) -> Result<Filter> {
        Ok(self)
    }
}

impl<S: EntitySet> Query<SetOf<S>, Stored<S>> {
    /// Returns index copies as well. A copy of a member is an item of that member, and [`Stored::index`]
    /// returns its index.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// client.table::<Employee>().insert(&jones()).await?;
    /// let query = staff.query(Keys::partition("Sales"));
    /// assert_eq!(query.collect().await?.len(), 1);
    /// let rows = staff.query(Keys::partition("Sales")).include_copies().collect().await?;
    /// assert_eq!(rows.len(), 2);
    /// assert_eq!(rows.iter().filter(|row| row.index() == Some("ByEmail")).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn include_copies(self) -> Self {
        let include = |request: &mut Request| {
            request.copies = true;
            // A projection that was selected before must include the properties that identify copies.
            if request.select.is_some() {
                request.select = S::set_columns(true);
            }
        };
        self.edit_request(include).read_as(decode::<S>(true))
    }

    /// Reads the rows as values of another set, whose members are projections. Only their properties, the keys and
    /// the type are sent.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// # #[derive(Debug, Clone, PartialEq, Projection)]
    /// # #[table(of = Employee)]
    /// # struct Number { id: u32 }
    /// # #[derive(Debug, EntitySet)]
    /// # enum Numbers { Employee(Number) }
    /// client.table::<Employee>().insert(&jones()).await?;
    /// let rows = staff.query(Keys::partition("Sales")).select::<Numbers>().collect().await?;
    /// let Numbers::Employee(number) = &*rows[0];
    /// assert_eq!(number.id, 223);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn select<P: EntitySet>(self) -> Query<SetOf<P>, Stored<P>> {
        let copies = self.request.copies;
        self.edit_request(|request| request.select = P::set_columns(copies))
            .read_as(decode::<P>(copies))
    }
}

/// Decodes a row that was read again because another writer had changed it. Returns `None` for a copy and for
/// a framework row. Called by generated code.
///
/// # Errors
///
/// Fails as [`SetTable::get`] does.
pub fn decode_reread_row<S: EntitySet>(row: Row) -> Result<Option<Stored<S>>> {
    decode_item(row, false)
}

fn decode<S: EntitySet>(copies: bool) -> impl Fn(Row) -> Result<Option<Stored<S>>> {
    move |row| decode_item(row, copies)
}

fn decode_item<S: EntitySet>(row: Row, copies: bool) -> Result<Option<Stored<S>>> {
    match read_set_item::<S>(&row, copies) {
        Ok(ResolvedRow::Hidden) => Ok(None),
        Ok(ResolvedRow::Item(value, Some(matched))) => {
            Ok(Some(Stored::from_read_row(value, row, matched.family())))
        }
        Ok(ResolvedRow::Item(value, None)) => Ok(Some(Stored::new(value, row, 200))),
        Err(error) => Err(error_with_row_keys(&row, error)),
    }
}

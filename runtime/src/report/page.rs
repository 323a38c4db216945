//! Defines [`Report`], and [`report!`](crate::report!), which makes one of entity types.

use super::{
    describe::tables_of,
    figures::measure_store,
    html, markdown,
    model::{OutboxFigures, TableModel},
    picture::table_picture_file,
};
use crate::{entity::Schema, error::Result, patterns::Plan, store::usage::Prices, table::Client};

/// Returns the [`Report`](crate::report::Report) of entity types: their layout and its costs, as
/// Markdown and as an HTML page.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
///         index(ByEmail, row_key = "email_{email:lower}", unique))]
/// pub struct Employee { pub department: String, pub id: u32, pub email: String }
///
/// let report = entable::report![Employee].titled("Staff of Contoso");
/// let text = report.markdown();
/// assert!(text.starts_with("# Staff of Contoso\n"));
/// assert!(text.contains("(PartitionKey eq 'Sales') and (RowKey eq 'empid_000223')"));
/// assert!(report.html().contains("</svg>"));
/// ```
#[macro_export]
macro_rules! report {
    ($($entity:ty),+ $(,)?) => {
        $crate::report::Report::of(&[$(<$entity as $crate::TableEntity>::SCHEMA),+])
    };
}

/// The layout of entity types for people: rows with example keys, properties, transactions, copies,
/// access paths, the cost of each verb, and what will be expensive. [`report!`](crate::report!) makes it.
///
/// It needs no store: all of it follows from the types. [`measured`](Self::measured) adds what a store has.
#[derive(Debug)]
pub struct Report {
    title: String,
    tables: Vec<TableModel>,
    outbox: Option<OutboxFigures>,
    plans: Vec<(Plan, Option<Prices>)>,
}

impl Report {
    /// Returns the report on the entity types that `schemas` describe.
    #[doc(hidden)]
    pub fn of(schemas: &[&'static Schema]) -> Self {
        Self {
            title: "Tables".to_owned(),
            tables: tables_of(schemas),
            outbox: None,
            plans: Vec::new(),
        }
    }

    /// Sets the title. The default is "Tables".
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// let report = entable::report![Employee].titled("Staff");
    /// assert!(report.html().contains("<title>Staff</title>"));
    /// ```
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Adds figures from a store. For each table: rows, bytes, partitions and the five largest partitions. For
    /// the outbox: its open work and lag.
    ///
    /// Reads tables and partitions up to a bound. Each request reads 1,000 rows of a table, with at most 100
    /// requests: figures of a larger table cover its first 100,000 rows, and say so. The outbox takes one
    /// request for each page of its directory, and at least one for each of its first 100 partitions. For dated
    /// tables, `measured` lists all tables and reads the newest one with rows among the newest eight. Rows
    /// stay encrypted, so no key is needed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = entable::report![Employee].measured(staff.client()).await?;
    /// assert!(report.markdown().contains("Partitions: 1"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the first error of the backend. A missing table is not an error.
    pub async fn measured(self, client: &Client) -> Result<Self> {
        let Self { title, mut tables, plans, .. } = self;
        let outbox = measure_store(client, &mut tables).await?;
        Ok(Self { title, tables, outbox: Some(outbox), plans })
    }

    /// Adds the plan of access patterns after the tables: what each pattern costs, the load of account and
    /// partitions, and storage.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "hire" write insert::<Employee>() at 2/h;
    /// }
    /// let report = entable::report![Employee].with_plan(STAFF.plan());
    /// assert!(report.markdown().contains("## Plan of STAFF"));
    /// assert!(report.html().contains("<h2>Plan of STAFF</h2>"));
    /// ```
    #[must_use]
    pub fn with_plan(mut self, plan: Plan) -> Self {
        self.plans.push((plan, None));
        self
    }

    /// Adds the plan of access patterns with prices. [`with_plan`](Self::with_plan) adds it without prices.
    ///
    /// ```
    /// # use entable::{Prices, prelude::*};
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// # entable::access_patterns! { STAFF; "hire" write insert::<Employee>() at 1/s; }
    /// let prices = Prices::per_10_000(0.5, 0.5, 1.0, 0.7);
    /// let report = entable::report![Employee].with_priced_plan(STAFF.plan(), prices);
    /// assert!(report.markdown().contains("| price of a month |"));
    /// ```
    #[must_use]
    pub fn with_priced_plan(mut self, plan: Plan, prices: Prices) -> Self {
        self.plans.push((plan, Some(prices)));
        self
    }

    /// Returns the report as Markdown.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// assert!(entable::report![Employee].markdown().contains("## Table Staff"));
    /// ```
    pub fn markdown(&self) -> String {
        let mut out = markdown::render_markdown(&self.title, &self.tables, self.outbox.as_ref());
        for (plan, prices) in &self.plans {
            out.push_str(&format!("\n## Plan of {}\n", plan.name()));
            plan.push_markdown(prices.as_ref(), &mut out);
        }
        out
    }

    /// Returns the report as one HTML page with pictures, for light and dark screens, phones and paper.
    /// It needs no other file and no script.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// assert!(entable::report![Employee].html().starts_with("<!doctype html>"));
    /// ```
    pub fn html(&self) -> String {
        html::render_html(&self.title, &self.tables, self.outbox.as_ref(), &self.plans)
    }

    /// Returns the picture of a table as an SVG file for light and dark pages, such as a README. Returns
    /// `None` if no type of the report has its primaries in the table.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// let picture = entable::report![Employee].picture("Staff");
    /// assert!(picture.is_some_and(|picture| picture.starts_with("<svg ")));
    /// ```
    pub fn picture(&self, table: &str) -> Option<String> {
        self.tables.iter().find(|found| found.name == table).map(table_picture_file)
    }
}

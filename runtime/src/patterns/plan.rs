//! Plans: the requests, load, storage and prices of access patterns, per second and per month.

use serde::{Deserialize, Serialize};

use super::{pattern::Pattern, question::Requests, row_size::estimate_row_bytes, steps::Step};
use crate::{
    entity::{Schema, TableEntity},
    error::{Error, ErrorKind, Result},
    limits::{ACCOUNT_REQUESTS_PER_SECOND, PARTITION_ENTITIES_PER_SECOND, saturating_u64},
    maintain::PartitionReport,
    store::usage::Prices,
};

/// Seconds of a month of 30 days.
pub(super) const MONTH: f64 = 2_592_000.0;
/// The version of the JSON text.
const FORMAT: u32 = 1;

/// The requests, load of partitions, storage and prices of a design. Requests and load are computed from its patterns
/// alone, and storage from what [`storing`](Self::storing) and its variants add.
/// [`AccessPatterns::plan`](super::AccessPatterns::plan) makes it.
///
/// ```
/// # use entable::prelude::*;
/// # #[derive(TableEntity)]
/// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// # pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
/// entable::access_patterns! {
///     STAFF;
///     "employee by id" point get(Employee::primary().department("Sales").id(223)) at 3_000/s;
///     "hire" write insert::<Employee>() at 1/s;
/// }
/// let plan = STAFF.plan().storing::<Employee>(100_000);
/// assert_eq!(plan.requests_per_second(), 3_001.0);
/// // More than one partition takes: `over 40` says that 40 departments share the load.
/// assert_eq!(plan.hot_partitions().len(), 1);
/// assert!(plan.markdown().contains("| employee by id | get | Point |"));
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    format: u32,
    pub(super) name: String,
    pub(super) calls: Vec<PlannedCall>,
    pub(super) stored: Vec<StoredRows>,
}

/// A pattern with the planned cost and load of its call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedCall {
    pub(super) name: String,
    pub(super) verb: String,
    /// The cost class of a read, `Write` of a write.
    pub(super) class: String,
    pub(super) follows: bool,
    pub(super) per_second: f64,
    /// The number of partitions that share the load.
    pub(super) partitions: u64,
    /// The requests of one call.
    pub(super) requests: Requests,
    /// The same requests, with the partitions that they read and write.
    pub(super) steps: Vec<Step>,
}

/// The rows of a type or a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredRows {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// How the figure was made.
    pub(super) how: String,
}

impl PlannedCall {
    fn of_pattern(pattern: &Pattern) -> Self {
        let question = &pattern.question;
        Self {
            name: pattern.name.clone(),
            verb: question.verb.to_owned(),
            class: question.class().map_or_else(|| "Write".to_owned(), |class| class.to_string()),
            follows: question.follows,
            per_second: pattern.per_second,
            partitions: pattern.partitions,
            requests: pattern.cost(),
            steps: pattern.steps(),
        }
    }

    /// Returns the requests to the table store in a second.
    pub(super) fn requests_per_second(&self) -> f64 {
        count_to_f64(self.requests.total()) * self.per_second
    }

    /// Returns the price of the requests of a month.
    pub(super) fn price_per_month(&self, prices: &Prices) -> f64 {
        let [read, scan, write, transaction] = prices.of_each_request();
        let Requests { reads, scans, writes, transactions, after, .. } = self.requests;
        let of_a_call = count_to_f64(reads) * read
            + count_to_f64(scans) * scan
            + count_to_f64(writes.saturating_add(after)) * write
            + count_to_f64(transactions) * transaction;
        of_a_call * self.per_second * MONTH
    }

    /// Returns `follows` if the call deals with remote rows that are written later than their primaries, otherwise
    /// `exact`.
    pub(super) const fn consistency(&self) -> &'static str {
        if self.follows { "follows" } else { "exact" }
    }
}

impl Plan {
    /// Returns the name of the patterns.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plan of some patterns, under a name for its headings.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// use entable::patterns::{self, Pattern, Per, Plan};
    ///
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// let hires = [2, 20].map(|rate| Pattern::write("hire", patterns::insert::<Employee>()).at((rate, Per::s)));
    /// let plans = hires.map(|hire| Plan::of_patterns("Staff", &[hire]));
    /// assert_eq!(plans.map(|plan| plan.requests_per_second()), [2.0, 20.0]);
    /// ```
    pub fn of_patterns(name: &str, patterns: &[Pattern]) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            calls: patterns.iter().map(PlannedCall::of_pattern).collect(),
            stored: Vec::new(),
        }
    }

    /// Adds the storage of `entities` entities of a type, with all of their copies. Sizes follow from the
    /// declaration, with 32 characters for each text.
    #[must_use]
    pub fn storing<E: TableEntity>(self, entities: u64) -> Self {
        self.add_type::<E>(entities, None)
    }

    /// Adds the storage of `entities` entities of a type, with all of their copies. A primary has `bytes`
    /// bytes, and each copy has the share of its properties.
    #[must_use]
    pub fn storing_bytes<E: TableEntity>(self, entities: u64, bytes: u64) -> Self {
        self.add_type::<E>(entities, Some(bytes))
    }

    /// Adds the storage of a table as [`Client::partition_report`](crate::Client::partition_report) measured it.
    #[must_use]
    pub fn storing_measured(mut self, table: &str, report: &PartitionReport) -> Self {
        let how = if report.is_whole { "measured" } else { "measured, the first rows only" };
        self.stored.push(StoredRows {
            name: table.to_owned(),
            rows: report.rows,
            bytes: report.bytes,
            how: how.to_owned(),
        });
        self
    }

    /// Adds the storage of `entities` entities of a type, with all of their copies, if each row has the mean size of a
    /// row in `report`, which [`Client::partition_report`](crate::Client::partition_report) measured. Measuring ten
    /// thousand entities is enough to estimate the size of a billion.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// entable::access_patterns! { STAFF; "hire" write insert::<Employee>() at 1/s; }
    /// let staff = staff().await?;
    /// let report = staff.client().partition_report("Staff").await?;
    /// let plan = STAFF.plan().storing_at_measured_size::<Employee>(1_000_000_000, &report);
    /// assert!(plan.markdown().contains("bytes a row as measured"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn storing_at_measured_size<E: TableEntity>(
        mut self,
        entities: u64,
        report: &PartitionReport,
    ) -> Self {
        let schema = E::SCHEMA;
        let rows = entities.saturating_mul(rows_of_entity(schema));
        // A product of two large counts needs more than 64 bits.
        let mean = u128::from(report.bytes).div_ceil(u128::from(report.rows.max(1)));
        let bytes = u128::from(rows).saturating_mul(u128::from(report.bytes));
        let bytes = bytes / u128::from(report.rows.max(1));
        self.stored.push(StoredRows {
            name: schema.entity.to_owned(),
            rows,
            bytes: saturating_u64(bytes),
            how: format!(
                "{} rows an entity, {mean} bytes a row as measured",
                rows_of_entity(schema)
            ),
        });
        self
    }

    fn add_type<E: TableEntity>(mut self, entities: u64, given: Option<u64>) -> Self {
        let schema = E::SCHEMA;
        let families = schema.families.iter().filter(|family| !family.in_blob);
        let sizes: Vec<u64> = families.map(|family| estimate_row_bytes(schema, family)).collect();
        let estimated: u64 = sizes.iter().sum();
        let primary = sizes.first().copied().unwrap_or(0).max(1);
        let bytes = given.map_or(estimated, |given| estimated.saturating_mul(given) / primary);
        let rows = rows_of_entity(schema);
        let how = match given {
            None => format!("{rows} rows an entity, {bytes} bytes by its declaration"),
            Some(given) => format!("{rows} rows an entity, {given} bytes a primary"),
        };
        self.stored.push(StoredRows {
            name: schema.entity.to_owned(),
            rows: entities.saturating_mul(rows),
            bytes: entities.saturating_mul(bytes),
            how,
        });
        self
    }

    /// Returns the plan with `factor` times the load.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let mut plan = self.clone();
        plan.calls.iter_mut().for_each(|call| call.per_second *= factor);
        plan
    }

    /// Returns the requests to the table store in a second.
    pub fn requests_per_second(&self) -> f64 {
        self.calls.iter().map(PlannedCall::requests_per_second).sum()
    }

    /// Returns the load as a share of the documented limit of an account, [`ACCOUNT_REQUESTS_PER_SECOND`].
    pub fn account_share(&self) -> f64 {
        self.requests_per_second() / f64::from(ACCOUNT_REQUESTS_PER_SECOND)
    }

    /// Returns how many times the load may grow before the account or a partition reaches its documented
    /// limit. The result is below 1 if the load already exceeds a limit, and infinite without a load.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "hire" write insert::<Employee>() at 500/s over 40;
    /// }
    /// // 20,000 requests a second for an account; a partition gets 12.5 of 2,000 entities a second.
    /// assert_eq!(STAFF.plan().times_until_limit(), 40.0);
    /// ```
    pub fn times_until_limit(&self) -> f64 {
        let hottest = self.hottest_load() / f64::from(PARTITION_ENTITIES_PER_SECOND);
        1.0 / self.account_share().max(hottest)
    }

    /// Returns the number of stored bytes of all entities and tables that were added to the plan.
    pub fn stored_bytes(&self) -> u64 {
        self.stored.iter().fold(0, |sum, stored| sum.saturating_add(stored.bytes))
    }

    /// Returns the price of a month of 30 days: requests and storage.
    pub fn price_per_month(&self, prices: &Prices) -> f64 {
        let requests: f64 = self.calls.iter().map(|call| call.price_per_month(prices)).sum();
        requests + prices.of_stored_bytes(count_to_f64(self.stored_bytes()))
    }

    /// Returns the plan as JSON, for the command `entable plan`.
    pub fn to_json(&self) -> String {
        // A struct of texts and numbers has a text.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads the text of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// `is_decode` for a text that is no plan, or one of a later version.
    pub fn from_json(text: &str) -> Result<Self> {
        let plan: Self = serde_json::from_str(text).map_err(|error| {
            Error::new(ErrorKind::Decode, format!("the text is no plan of patterns: {error}"))
        })?;
        if plan.format == FORMAT {
            return Ok(plan);
        }
        let message = format!("the plan has format {}, this program reads {FORMAT}", plan.format);
        Err(Error::new(ErrorKind::Decode, message))
    }
}

/// Returns the number of rows of an entity with all of its copies.
fn rows_of_entity(schema: &Schema) -> u64 {
    let families = schema.families.iter().filter(|family| !family.in_blob).count();
    let further_parts = schema.parts.len().saturating_sub(1);
    saturating_u64(families + further_parts)
}

/// Converts a count to a floating-point number. Counts above 2^53 are rounded.
#[allow(clippy::cast_precision_loss, reason = "a figure need not be exact to the 16th digit")]
pub(super) const fn count_to_f64(count: u64) -> f64 {
    count as f64
}

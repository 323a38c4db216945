//! A pattern: a question with its name, its maximum cost, and how often it is asked.

use super::{
    question::{Question, Requests},
    steps::Step,
};
use crate::access::CostClass;

/// A question of a program: its name, the cost class that it claims, and its load. The macro
/// [`access_patterns!`](crate::access_patterns!) makes patterns; the functions here do what it does.
///
/// ```
/// # use entable::prelude::*;
/// use entable::patterns::{self, Pattern, Per};
///
/// # #[derive(TableEntity)]
/// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// # pub struct Employee { pub department: String, pub id: u32 }
/// let sales = Employee::primary().department("Sales");
/// let pattern = Pattern::partition_scan("a department", patterns::query(sales)).rows(2_500).at((20, Per::s));
/// assert_eq!(pattern.request_count(), 3);
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    pub(crate) name: String,
    /// The cost class that the pattern claims, or `None` for a write.
    pub(crate) claim: Option<CostClass>,
    pub(crate) question: Question,
    pub(crate) rows: u64,
    pub(crate) most_requests: Option<u64>,
    pub(crate) per_second: f64,
    /// The number of partitions that the load is spread over evenly. 1 unless [`over`](Self::over) sets it.
    pub(crate) partitions: u64,
    /// The number of existing tables in a window of dated tables. `None` unless [`tables`](Self::tables) sets it.
    pub(crate) tables: Option<u64>,
}

/// The unit of time of a rate, for [`Pattern::at`].
#[allow(non_camel_case_types, reason = "written as units are: `20/s`")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// A second.
    s,
    /// A minute.
    min,
    /// An hour.
    h,
    /// A day.
    day,
}

impl Per {
    const fn seconds(self) -> f64 {
        match self {
            Self::s => 1.0,
            Self::min => 60.0,
            Self::h => 3_600.0,
            Self::day => 86_400.0,
        }
    }
}

/// How often a question is asked: a number and a unit of time, such as `(20, Per::s)`. In
/// [`access_patterns!`](crate::access_patterns!), write `at 20/s`.
#[diagnostic::on_unimplemented(
    message = "a rate needs a unit",
    label = "this number has no unit: write `at 20/s`, `/min`, `/h` or `/day`"
)]
pub trait Rate: rate::Sealed {
    #[doc(hidden)]
    fn per_second(self) -> f64;
}

mod rate {
    pub trait Sealed {}
    impl<N: Into<f64>> Sealed for (N, super::Per) {}
}

impl<N: Into<f64>> Rate for (N, Per) {
    fn per_second(self) -> f64 {
        self.0.into() / self.1.seconds()
    }
}

impl Pattern {
    fn new(name: &str, claim: Option<CostClass>, question: Question) -> Self {
        Self {
            name: name.to_owned(),
            claim,
            question,
            rows: 1,
            most_requests: None,
            per_second: 0.0,
            partitions: 1,
            tables: None,
        }
    }

    /// Creates a pattern that reads one row.
    pub fn point(name: &str, question: impl Into<Question>) -> Self {
        Self::new(name, Some(CostClass::Point), question.into())
    }

    /// Creates a pattern that reads the rows between two RowKeys of a partition.
    pub fn range(name: &str, question: impl Into<Question>) -> Self {
        Self::new(name, Some(CostClass::Range), question.into())
    }

    /// Creates a pattern that reads a whole partition.
    pub fn partition_scan(name: &str, question: impl Into<Question>) -> Self {
        Self::new(name, Some(CostClass::PartitionScan), question.into())
    }

    /// Creates a pattern that reads a whole table.
    pub fn table_scan(name: &str, question: impl Into<Question>) -> Self {
        Self::new(name, Some(CostClass::TableScan), question.into())
    }

    /// Creates a pattern that writes an entity.
    pub fn write(name: &str, question: impl Into<Question>) -> Self {
        Self::new(name, None, question.into())
    }

    /// Sets the number of entities that a call finds, or that a bulk load writes; 1 if it is not set.
    #[must_use]
    pub fn rows(self, rows: u64) -> Self {
        Self { rows, ..self }
    }

    /// Sets how often the question is asked, as a number and a unit of time.
    #[must_use]
    pub fn at(self, rate: impl Rate) -> Self {
        Self { per_second: rate.per_second(), ..self }
    }

    /// Sets over how many partitions the load is spread evenly. The default is 1, the worst case. The entities of a
    /// bulk load are spread over the same partitions.
    #[must_use]
    pub fn over(self, partitions: u64) -> Self {
        Self { partitions: partitions.max(1), ..self }
    }

    /// Sets the number of existing tables in a window of dated tables, which the rows are spread over evenly. The
    /// default is 1. Only a window of more than 32 tables needs it, because its query reads only the existing tables. A
    /// query of a smaller window asks every table.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// use entable::patterns::{self, Pattern};
    /// use time::{OffsetDateTime, macros::datetime};
    ///
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Visits{at:%Y%m%d}", partition_key = "{page}", row_key = "{at:desc}")]
    /// # pub struct Visit { pub page: String, pub at: OffsetDateTime }
    /// let year = datetime!(2026-01-01 0:00 UTC)..datetime!(2027-01-01 0:00 UTC);
    /// let visits = Visit::primary().at_between(year).page("home");
    /// let pattern = Pattern::partition_scan("a year", patterns::query(visits)).rows(500).tables(30);
    /// // A list of the tables, and a page of each.
    /// assert_eq!(pattern.request_count(), 31);
    /// // Eight tables are read at the same time.
    /// assert_eq!(pattern.round_trips(), 5);
    /// ```
    #[must_use]
    pub fn tables(self, tables: u64) -> Self {
        Self { tables: Some(tables), ..self }
    }

    /// Sets the maximum number of requests of a call, including requests after its answer.
    #[must_use]
    pub fn requests(self, most: u64) -> Self {
        Self { most_requests: Some(most), ..self }
    }

    /// Returns the number of requests that a call sends to the table store, including requests after its answer.
    pub fn request_count(&self) -> u64 {
        self.cost().total()
    }

    /// Returns the number of requests that a call sends to the blob store, including requests after its answer.
    pub fn blob_request_count(&self) -> u64 {
        self.cost().blobs
    }

    /// Returns the latency of a call in round trips: how many requests the caller waits for, one after another.
    /// Requests that are sent at the same time count once. Requests after the answer do not count.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// use entable::patterns::{self, Pattern};
    ///
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         list(ByCity, row_key = "city_{city}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub city: String }
    /// let kiel = Employee::by_city().department("Sales").city("Kiel");
    /// let pattern = Pattern::range("people of a city", patterns::query(kiel)).rows(20);
    /// // The ids, then 20 people at the same time.
    /// assert_eq!((pattern.request_count(), pattern.round_trips()), (21, 2));
    /// ```
    pub fn round_trips(&self) -> u64 {
        self.cost().round_trips
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of operations in the transaction of a write, or in the largest one of a bulk load; 0 for
    /// a read.
    pub fn operation_count(&self) -> u64 {
        self.question.largest_transaction(self.rows, self.partitions)
    }

    pub(crate) fn cost(&self) -> Requests {
        self.question.requests(self.rows, self.tables, self.partitions)
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        self.question.steps(self.rows, self.tables, self.partitions)
    }

    /// Returns text about the first claim of the pattern that does not hold, or about a refused call. Returns `None`
    /// if every claim holds.
    pub(crate) fn find_broken_claim(&self) -> Option<String> {
        if let Some(fault) = &self.question.fault {
            return Some(format!("the call is refused: {fault}"));
        }
        let class = self.question.class();
        let of_table = format!("{} of `{}`", self.question.verb, self.question.table);
        match (self.claim, class) {
            (Some(claim), Some(class)) if class > claim => {
                return Some(format!(
                    "{of_table} claims to be a {claim} and is a {class}: $filter={}",
                    self.question.filter
                ));
            }
            (Some(claim), None) => {
                return Some(format!("{of_table} claims to be a {claim} and writes"));
            }
            (None, Some(class)) => {
                return Some(format!("{of_table} claims to write and is a {class}"));
            }
            _ => {}
        }
        let requests = self.request_count();
        let most = self.most_requests.filter(|most| requests > *most)?;
        Some(format!("{of_table} claims at most {most} requests and sends {requests}"))
    }
}

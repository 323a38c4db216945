//! A pattern: a question with its name, what it may cost, and how often it is asked.

use super::question::{Question, Requests};
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
/// let pattern = Pattern::partition_scan("a department", patterns::query(sales)).rows(2_500).at(20, Per::s);
/// assert_eq!(pattern.request_count(), 3);
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    pub(super) name: String,
    /// The class that the pattern claims; `None` for a write.
    pub(super) claim: Option<CostClass>,
    pub(super) question: Question,
    pub(super) rows: u64,
    pub(super) most_requests: Option<u64>,
    pub(super) per_second: f64,
    /// The number of partitions that the load is spread over evenly; 1 if nobody said it.
    pub(super) partitions: u64,
}

/// The time that a rate is counted in, as [`Pattern::at`] takes it.
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

    /// Sets the number of entities that a call finds; 1 if it is not set.
    #[must_use]
    pub fn rows(self, rows: u64) -> Self {
        Self { rows, ..self }
    }

    /// Sets how often the question is asked.
    #[must_use]
    pub fn at(self, times: impl Into<f64>, per: Per) -> Self {
        Self { per_second: times.into() / per.seconds(), ..self }
    }

    /// Sets over how many partitions the load is spread evenly; 1 if it is not set, the worst case.
    #[must_use]
    pub fn over(self, partitions: u64) -> Self {
        Self { partitions: partitions.max(1), ..self }
    }

    /// Sets the most requests that a call may send, those after the answer included.
    #[must_use]
    pub fn requests(self, most: u64) -> Self {
        Self { most_requests: Some(most), ..self }
    }

    /// Returns the number of requests of a call to the table store, those after the answer included.
    pub fn request_count(&self) -> u64 {
        self.cost().total()
    }

    /// Returns the number of operations in the transaction of a write; 0 for a read.
    pub fn operation_count(&self) -> u64 {
        if self.question.class().is_some() { 0 } else { self.cost().rows }
    }

    pub(super) fn cost(&self) -> Requests {
        self.question.requests(self.rows)
    }

    /// Returns what does not hold, in words; `None` if all that the pattern claims holds.
    pub(super) fn find_broken_claim(&self) -> Option<String> {
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

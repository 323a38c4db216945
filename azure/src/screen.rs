//! Checks the rows of an answer against the request.
//!
//! A proxy, a restored account or the operator of the table may return other rows. A reader that accepted them would
//! find an entity under wrong keys, or one that the filter excludes. A row with wrong keys is an error. A row that the
//! filter excludes is left out.

use std::{cmp::Ordering, ops::Bound};

use entable_core::{
    backend::ScanRequest,
    edm::{Value, ValueRef},
    error::{Error, ErrorKind, Result},
    filter::{Filter, KeyBounds, compare_utf16},
    row::Row,
};

/// The conditions of one query that can be evaluated on the rows of its answer.
#[derive(Debug)]
pub(crate) struct AnswerConditions<'a> {
    bounds: KeyBounds,
    conditions: Vec<&'a Filter>,
}

impl<'a> AnswerConditions<'a> {
    /// Collects the conditions of the scan that can be compared here, because they name only
    /// properties that the answer contains. Other conditions are left to the service.
    pub(crate) fn new(scan: &ScanRequest<'a>) -> Self {
        let mut conditions = Vec::new();
        let mut rest = vec![scan.filter];
        while let Some(filter) = rest.pop() {
            match filter {
                Filter::And(all) => rest.extend(all),
                filter if is_evaluable(filter, scan.select) => conditions.push(filter),
                _ => {}
            }
        }
        Self { bounds: KeyBounds::of_filter(scan.filter), conditions }
    }

    /// Fails if the row's keys are outside of the bounds that were asked for. Returns `None` if the
    /// row fails a condition that the service evaluates in the same way, else the row.
    pub(crate) fn keep_matching_row(&self, row: Row) -> Result<Option<Row>> {
        let (partition_key, row_key) = row.keys();
        if !is_key_within(&self.bounds.partition, partition_key)
            || !is_key_within(&self.bounds.row, row_key)
        {
            let message = "the answer contains a row outside the requested keys; check proxies between this program and the \
                 service";
            return Err(Error::new(ErrorKind::Backend, message).at_keys(partition_key, row_key));
        }
        for condition in &self.conditions {
            if !condition.matches(&row)? && !is_open(condition, &row)? {
                return Ok(None);
            }
        }
        Ok(Some(row))
    }
}

fn is_key_within((lower, upper): &(Bound<String>, Bound<String>), key: &str) -> bool {
    let is_above = match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => compare_utf16(key, lower) != Ordering::Less,
        Bound::Excluded(lower) => compare_utf16(key, lower) == Ordering::Greater,
    };
    is_above
        && match upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => compare_utf16(key, upper) != Ordering::Greater,
            Bound::Excluded(upper) => compare_utf16(key, upper) == Ordering::Less,
        }
}

/// Returns whether the answer contains every property that the filter names.
fn is_evaluable(filter: &Filter, select: Option<&[String]>) -> bool {
    let mut evaluable = true;
    filter.visit_properties(&mut |name| {
        let is_selected = select.is_none_or(|names| names.iter().any(|known| known == name));
        evaluable &= is_selected || matches!(name, "PartitionKey" | "RowKey" | "Timestamp");
    });
    evaluable
}

/// Returns whether the service may evaluate the filter on this row differently from this crate.
/// That is so if a compared value or literal is NaN, since the service does not document such
/// comparisons, or if the filter compares a Timestamp that the answer does not contain.
fn is_open(filter: &Filter, row: &Row) -> Result<bool> {
    let mut open = Ok(false);
    filter.visit_operands(|name, literal| {
        let is_nan =
            |value: Option<ValueRef<'_>>| matches!(value, Some(ValueRef::Double(v)) if v.is_nan());
        match (name, row.get(name)) {
            ("Timestamp", _) if row.timestamp().is_none() => open = Ok(true),
            (_, Ok(stored)) if is_nan(stored) || is_nan(literal.map(Value::as_ref)) => {
                open = Ok(true)
            }
            (_, Ok(_)) => {}
            (_, Err(error)) => open = Err(error),
        }
    });
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(filter: &str, select: Option<&[&str]>, row: &Row) -> Result<bool> {
        let filter = Filter::parse(filter).unwrap();
        let select: Option<Vec<String>> =
            select.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let select = select.as_deref();
        let scan = ScanRequest { table: "Staff", filter: &filter, select, top: None, from: None };
        AnswerConditions::new(&scan).keep_matching_row(row.clone()).map(|row| row.is_some())
    }

    #[test]
    fn a_row_outside_of_the_keys_is_an_error_and_one_that_fails_a_condition_is_left_out() {
        let row = Row::build("p", "r").with("A", ValueRef::Int32(1)).unwrap();
        let row = row.with("N", ValueRef::Double(f64::NAN)).unwrap().finish().unwrap();
        for wrong in
            ["PartitionKey eq 'q'", "RowKey gt 'r'", "RowKey lt 'r' and A eq 1", "RowKey ge 's'"]
        {
            let error = pass(wrong, None, &row).unwrap_err();
            assert!(error.is_backend() && error.keys() == Some(("p", "r")), "{wrong}");
        }
        for right in [
            "",
            "PartitionKey eq 'p' and RowKey le 'r'",
            "A eq 1",
            "N gt 1.0",
            "Timestamp gt datetime'2020-01-01T00:00:00Z'",
        ] {
            assert!(pass(right, None, &row).unwrap(), "{right}");
        }
        for fails in
            ["A eq 2", "A eq 1 and (A eq 2 or B eq 1)", "not (A eq 1)", "RowKey ne 'r'", "B"]
        {
            assert!(!pass(fails, None, &row).unwrap(), "{fails}");
        }
        // The service does not document how it compares a number with NaN, so its answer counts.
        let nan = Filter::lt("A", f64::NAN);
        let one = Row::build("p", "r").with("A", ValueRef::Double(1.0)).unwrap().finish().unwrap();
        let scan =
            ScanRequest { table: "Staff", filter: &nan, select: None, top: None, from: None };
        assert!(AnswerConditions::new(&scan).keep_matching_row(one).unwrap().is_some());
        // The answer does not say what `A` is.
        assert!(pass("A eq 2", Some(&["B"]), &row).unwrap());
        assert!(!pass("A eq 2", Some(&["A"]), &row).unwrap());
        assert!(!pass("RowKey ne 'r' and A eq 2", Some(&[]), &row).unwrap());
    }
}

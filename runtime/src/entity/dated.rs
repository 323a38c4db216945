//! Dated tables: an entity whose table name contains the period of a field, `Logins{at:%Y%m%d}`.

use std::borrow::Cow;

use time::{Date, Duration, Month, OffsetDateTime, Time};

use crate::{
    access::KeyFault,
    address::TableName,
    edm::{InvalidValue, Ticks},
    error::{Error, ErrorKind, Result},
    key::{Form, RowFamily, encode_ticks_in_form},
};

/// The names of an entity's tables, one table for each period of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatedTables {
    /// The declared name, such as `Logins{at:%Y%m%d}`. It represents all of the entity's tables.
    pub template: &'static str,
    /// The text before the date in each table's name. It ends with a letter.
    pub prefix: &'static str,
    /// The date form that follows the prefix: `%Y`, `%Y%m`, `%Y%m%d` or `%Y%m%d%H`.
    pub form: &'static str,
    /// The property of the field whose time selects the table.
    pub property: &'static str,
}

/// The times that a path selects, from `from` (inclusive) to `until` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    pub(crate) from: Ticks,
    pub(crate) until: Ticks,
    /// Whether the path gives a single time instead of a window. Only the table of that time is then read.
    pub(crate) is_time: bool,
}

impl TimeWindow {
    /// Creates the window of a single time, whose table is read.
    pub(crate) const fn at_time(time: Ticks) -> Self {
        Self { from: time, until: time, is_time: true }
    }

    /// Returns the fault of a window of times in an untyped query, which cannot filter by the property of the
    /// time. Returns `None` if the path gives a single time.
    pub(crate) fn fault_in_untyped_query(self) -> Option<KeyFault> {
        let message = "a time window needs a typed query; call `client.table().query(..)`, or name one table and give \
                       its keys";
        (!self.is_time).then(|| KeyFault::new("the window", InvalidValue::new(message)))
    }
}

/// One period of dated tables, such as a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Period {
    pub(crate) start: Ticks,
}

impl DatedTables {
    /// Returns the period that a time is in.
    pub(crate) fn period_at(&self, time_ticks: Ticks) -> Period {
        let time = OffsetDateTime::from(time_ticks);
        let (date, hour) = match self.form {
            "%Y" => (first_day_of_month(time.year(), Month::January), 0),
            "%Y%m" => (first_day_of_month(time.year(), time.month()), 0),
            "%Y%m%d" => (Some(time.date()), 0),
            _ => (Some(time.date()), time.hour()),
        };
        let start = date.and_then(|date| period_starting(date, hour));
        // The start of the year, month, day or hour of a valid time is valid, so the fallback is
        // unreachable.
        start.unwrap_or(Period { start: time_ticks })
    }

    /// Returns the name of the table of a period.
    ///
    /// # Errors
    ///
    /// Fails outside the years 1 to 9999.
    pub(crate) fn name_of_period(&self, period: Period) -> Result<String, InvalidValue> {
        let mut name = self.prefix.to_owned();
        encode_ticks_in_form(period.start, self.form, &mut name)?;
        Ok(name)
    }

    /// Returns the digits at the end of a period's table name. Fails if the date form cannot represent the start
    /// of the period.
    pub(crate) fn digits_of_period(&self, period: Period) -> Result<String, InvalidValue> {
        let mut digits = String::new();
        encode_ticks_in_form(period.start, self.form, &mut digits)?;
        Ok(digits)
    }

    /// Returns the period of the table with this name, or `None` if it is not one of the dated tables.
    pub(crate) fn period_of(&self, name: TableName<'_>) -> Option<Period> {
        let (prefix, digits) = name.as_str().split_at_checked(self.prefix.len())?;
        if name.sibling(prefix) != name.sibling(self.prefix)
            || !digits.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let count = match self.form {
            "%Y" => 4,
            "%Y%m" => 6,
            "%Y%m%d" => 8,
            _ => 10,
        };
        if digits.len() != count {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<u16> { digits.get(from..to)?.parse().ok() };
        // The number of digits matches the form, so the only missing units are ones that the form lacks.
        let month = number(4, 6).unwrap_or(1);
        let day = u8::try_from(number(6, 8).unwrap_or(1)).ok()?;
        let hour = u8::try_from(number(8, 10).unwrap_or(0)).ok()?;
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, day).ok()?;
        period_starting(date, hour)
    }

    /// Returns the next period, or `None` after the year 9999.
    pub(crate) fn period_after(&self, period: Period) -> Option<Period> {
        let time = OffsetDateTime::from(period.start);
        let date = time.date();
        match self.form {
            "%Y" => period_starting(first_day_of_month(date.year() + 1, Month::January)?, 0),
            "%Y%m" if date.month() == Month::December => {
                period_starting(first_day_of_month(date.year() + 1, Month::January)?, 0)
            }
            "%Y%m" => period_starting(first_day_of_month(date.year(), date.month().next())?, 0),
            "%Y%m%d" => period_starting(date.next_day()?, 0),
            _ => {
                let start = Ticks::try_from(time.checked_add(Duration::HOUR)?).ok()?;
                Some(Period { start })
            }
        }
    }

    /// Returns the previous period, or `None` before the year 1.
    pub(crate) fn period_before(&self, period: Period) -> Option<Period> {
        let before = Ticks::new(period.start.get().checked_sub(1)?)?;
        Some(self.period_at(before))
    }

    /// Returns the number of periods from `first` to `last`, both included.
    pub(crate) fn count_periods(&self, first: Period, last: Period) -> u64 {
        let (from, to) = (OffsetDateTime::from(first.start), OffsetDateTime::from(last.start));
        let months =
            |time: OffsetDateTime| i64::from(time.year()) * 12 + i64::from(u8::from(time.month()));
        let steps = match self.form {
            "%Y" => i64::from(to.year() - from.year()),
            "%Y%m" => months(to) - months(from),
            "%Y%m%d" => (to - from).whole_days(),
            _ => (to - from).whole_hours(),
        };
        // `last` is never before `first`.
        u64::try_from(steps + 1).unwrap_or_default()
    }

    /// Returns the first and the last period that overlap the window, or `None` if the window is empty.
    pub(crate) fn first_and_last_period_in(&self, window: TimeWindow) -> Option<(Period, Period)> {
        let first = self.period_at(window.from);
        if window.is_time {
            return Some((first, first));
        }
        // The end is not part of the window.
        let last = Ticks::new(window.until.get().checked_sub(1)?)?;
        (window.from < window.until).then(|| (first, self.period_at(last)))
    }

    /// Returns whether a window begins and ends at period boundaries. All times in the tables of its periods are
    /// then in the window.
    pub(crate) fn has_whole_periods(&self, window: TimeWindow) -> bool {
        let is_start = |time: Ticks| self.period_at(time).start == time;
        is_start(window.from) && is_start(window.until)
    }

    /// Returns whether the family's RowKeys contain the time in descending form, newest first. Queries then also
    /// read the tables newest first.
    pub(crate) fn is_newest_first(&self, family: &RowFamily) -> bool {
        let mut parts = family.row.parts();
        parts.any(|part| part.field == self.property && part.form == Form::Descending)
    }
}

fn first_day_of_month(year: i32, month: Month) -> Option<Date> {
    Date::from_calendar_date(year, month, 1).ok()
}

fn period_starting(date: Date, hour: u8) -> Option<Period> {
    let start = date.with_time(Time::from_hms(hour, 0, 0).ok()?).assume_utc();
    Some(Period { start: Ticks::try_from(start).ok()? })
}

/// Returns the error for writing an entity to a table that it does not belong to.
pub(crate) fn wrong_table_error(table: &str, wanted: &str) -> Error {
    let message = format!(
        "the entity's time belongs to table `{wanted}`, but this write goes to `{table}`; move a stored entity with \
         `move_to`"
    );
    Error::new(ErrorKind::Invalid, message).in_table(table)
}

/// Refuses to write an entity to the dated table of another period. `home` is the entity's own table. A table
/// with any other name accepts entities of every time.
#[allow(clippy::ptr_arg, reason = "an owned name is that of a dated table")]
pub(crate) fn check_home_table(table: &str, home: &Cow<'static, str>) -> Result<()> {
    // Only the name of an undated table is a constant.
    let Cow::Owned(home) = home else { return Ok(()) };
    let letters = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let split = letters(home);
    let is_sibling = letters(table) == split
        && table.len() == home.len()
        && table
            .get(..split)
            .zip(home.get(..split))
            .is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
    // A yearly table ends with 4 digits, a monthly one with 6, a daily one with 8, an hourly one with 10.
    // The derive refuses a digit before them.
    let is_dated = matches!(home.len() - split, 4 | 6 | 8 | 10);
    if is_dated && is_sibling && table.get(split..) != home.get(split..) {
        return Err(wrong_table_error(table, home));
    }
    Ok(())
}

/// Returns the error for keys that do not determine the dated table.
pub(crate) fn unspecified_dated_table_error(dated: &DatedTables) -> Error {
    let message = format!(
        "the keys do not determine the table of `{}`; add the field that names the table to the path, or open one \
         table with `client.table_named`",
        dated.template
    );
    Error::new(ErrorKind::Invalid, message).in_table(dated.template)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::address::Names;

    fn tables(form: &'static str) -> DatedTables {
        DatedTables { template: "Logs{at}", prefix: "Logs", form, property: "At" }
    }

    fn ticks(time: OffsetDateTime) -> Ticks {
        Ticks::try_from(time).unwrap()
    }

    #[test]
    fn names_and_periods_go_both_ways() {
        let time = ticks(datetime!(2014-12-31 23:59:59.9999999 UTC));
        for (form, name, next) in [
            ("%Y", "Logs2014", "Logs2015"),
            ("%Y%m", "Logs201412", "Logs201501"),
            ("%Y%m%d", "Logs20141231", "Logs20150101"),
            ("%Y%m%d%H", "Logs2014123123", "Logs2015010100"),
        ] {
            let tables = tables(form);
            let period = tables.period_at(time);
            assert_eq!(tables.name_of_period(period).unwrap(), name);
            assert_eq!(tables.period_of(Names::ANY_CASE.name(name)), Some(period));
            let after = tables.period_after(period).unwrap();
            assert_eq!(tables.name_of_period(after).unwrap(), next);
            assert_eq!(tables.period_before(after), Some(period));
        }
    }

    #[test]
    fn other_names_are_no_tables_of_it() {
        let days = tables("%Y%m%d");
        for name in
            ["Logs", "Logs2014", "Logs20141301", "Logs20140230", "Logs2014123123", "Logz20141231"]
        {
            assert_eq!(days.period_of(Names::ANY_CASE.name(name)), None, "{name}");
        }
        assert!(days.period_of(Names::ANY_CASE.name("lOGS20141231")).is_some());
    }

    #[test]
    fn periods_are_counted_without_going_through_them() {
        let (from, to) = (datetime!(2011-11-30 22:00 UTC), datetime!(2016-03-01 01:59 UTC));
        for form in ["%Y", "%Y%m", "%Y%m%d", "%Y%m%d%H"] {
            let tables = tables(form);
            let (first, last) = (tables.period_at(ticks(from)), tables.period_at(ticks(to)));
            let all = std::iter::successors(Some(first), |period| tables.period_after(*period));
            let walked = all.take_while(|period| *period <= last).count();
            assert_eq!(tables.count_periods(first, last), u64::try_from(walked).unwrap(), "{form}");
            assert_eq!(tables.count_periods(last, last), 1, "{form}");
        }
    }

    #[test]
    fn the_calendar_ends() {
        let days = tables("%Y%m%d");
        assert_eq!(days.period_after(days.period_at(ticks(datetime!(9999-12-31 12:00 UTC)))), None);
        assert_eq!(
            days.period_before(days.period_at(ticks(datetime!(0001-01-01 00:00 UTC)))),
            None
        );
    }

    #[test]
    fn the_end_of_a_window_is_not_part_of_it() {
        let days = tables("%Y%m%d");
        let (from, until) = (datetime!(2014-07-30 12:00 UTC), datetime!(2014-08-01 00:00 UTC));
        let window = TimeWindow { from: ticks(from), until: ticks(until), is_time: false };
        let (first, last) = days.first_and_last_period_in(window).unwrap();
        assert_eq!(days.name_of_period(first).unwrap(), "Logs20140730");
        assert_eq!(days.name_of_period(last).unwrap(), "Logs20140731");
        assert!(!days.has_whole_periods(window));
        assert_eq!(
            days.first_and_last_period_in(TimeWindow { until: window.from, ..window }),
            None
        );
    }
}

//! Defines [`Hour`], the period of one folder of a log, and [`TimeWindow`], the times that a reader asks
//! for.

use std::ops::{Range, RangeInclusive};

use time::OffsetDateTime;

use crate::edm::Ticks;

/// Ticks in one hour.
const PER_HOUR: i64 = 3600 * Ticks::PER_SECOND;

/// An hour in UTC, counted from 0001-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Hour(i64);

impl Hour {
    /// Returns the hour that a time is in.
    pub(super) const fn hour_of(at: Ticks) -> Self {
        Self(at.get() / PER_HOUR)
    }

    /// Returns the time at which the hour begins.
    pub(super) fn start_time(self) -> Ticks {
        Ticks::new(self.0.saturating_mul(PER_HOUR)).unwrap_or(Ticks::MAX)
    }
}

/// Returns a time in ticks. A time before the year 1 becomes the earliest, one after the year 9999
/// the latest.
pub(super) fn clamped_ticks(at: OffsetDateTime) -> Ticks {
    Ticks::try_from(at)
        .unwrap_or_else(|_| if at < OffsetDateTime::UNIX_EPOCH { Ticks::MIN } else { Ticks::MAX })
}

/// The times from `start` on and before `end`, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeWindow {
    start: i64,
    end: i64,
}

impl TimeWindow {
    /// Creates the window of a range of times. Rounds both ends down to 100 ns, like the times of
    /// records. An empty or reversed range gives a window without times.
    pub(super) fn new(times: Range<OffsetDateTime>) -> Self {
        Self { start: clamped_ticks(times.start).get(), end: clamped_ticks(times.end).get() }
    }

    /// Returns whether the window holds a time.
    pub(super) const fn contains_time(self, at: Ticks) -> bool {
        at.get() >= self.start && at.get() < self.end
    }

    /// Returns whether the window holds a time between `first` and `last`, both included.
    pub(super) const fn overlaps_times(self, first: Ticks, last: Ticks) -> bool {
        first.get() < self.end && last.get() >= self.start
    }

    /// Returns whether the window holds the whole hour.
    pub(super) const fn covers_hour(self, hour: Hour) -> bool {
        let start = hour.0.saturating_mul(PER_HOUR);
        start >= self.start && start.saturating_add(PER_HOUR) <= self.end
    }

    /// Returns the hours that the window has a part of.
    pub(super) fn hours(self) -> impl Iterator<Item = Hour> + Send {
        // The end is outside of the window, so an hour that begins there is outside too.
        let last = if self.start < self.end { (self.end - 1) / PER_HOUR } else { -1 };
        let hours: RangeInclusive<i64> = self.start / PER_HOUR..=last;
        hours.map(Hour)
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{Hour, TimeWindow, clamped_ticks};

    #[test]
    fn a_window_has_the_hours_that_it_touches_and_no_other() {
        let hours = |a, b| {
            TimeWindow::new(a..b).hours().map(|h| h.start_time().to_string()).collect::<Vec<_>>()
        };
        let at = datetime!(2014-07-31 23:59:59.9999999 UTC);
        assert_eq!(hours(at, datetime!(2014-08-01 0:00 UTC)), ["2014-07-31T23:00:00Z"]);
        assert_eq!(
            hours(at, datetime!(2014-08-01 0:00:00.0000001 UTC)),
            ["2014-07-31T23:00:00Z", "2014-08-01T00:00:00Z"]
        );
        assert!(hours(at, at).is_empty());
        assert!(hours(at, datetime!(2014-07-31 18:00 UTC)).is_empty(), "ends before it begins");
        assert_eq!(hours(datetime!(2014-08-01 1:30 +2), datetime!(2014-08-01 1:31 +2)).len(), 1);
    }

    #[test]
    fn only_a_whole_hour_is_covered() {
        let (six, seven) = (datetime!(2014-07-31 18:00 UTC), datetime!(2014-07-31 19:00 UTC));
        let hour = Hour::hour_of(clamped_ticks(six));
        let tick = time::Duration::nanoseconds(100);
        assert!(TimeWindow::new(six..seven).covers_hour(hour));
        assert!(!TimeWindow::new(six + tick..seven).covers_hour(hour));
        assert!(!TimeWindow::new(six..seven - tick).covers_hour(hour));
    }
}

//! Defines [`LogHour`], the period of one folder of a log, and [`LogWindow`], the times that a reader asks
//! for.

use std::ops::Range;

use time::OffsetDateTime;

use crate::edm::Ticks;

/// Ticks in one hour.
const PER_HOUR: i64 = 3600 * Ticks::PER_SECOND;

const HOURS_OF_DAY: i64 = 24;

/// An hour in UTC, counted from 0001-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LogHour(i64);

impl LogHour {
    /// Returns the hour that a time is in.
    pub(super) const fn hour_of(at: Ticks) -> Self {
        Self(at.get() / PER_HOUR)
    }

    /// Returns the time when the hour begins.
    pub(super) fn start_time(self) -> Ticks {
        Ticks::new(self.0.saturating_mul(PER_HOUR)).unwrap_or(Ticks::MAX)
    }
}

/// A folder of a log: all hours of a month or of a day, or one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogFolder {
    /// The first hour in the folder.
    pub(super) first: LogHour,
    pub(super) span: FolderSpan,
}

/// The time span that a folder covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderSpan {
    Hour,
    Day,
    Month,
}

impl LogFolder {
    /// Returns the folder of one hour.
    pub(super) const fn of_hour(hour: LogHour) -> Self {
        Self { first: hour, span: FolderSpan::Hour }
    }

    /// Returns the largest folder whose first hour is `first` and whose last hour is before `end`.
    fn largest_at(first: LogHour, end: LogHour) -> Self {
        let is_midnight = first.0 % HOURS_OF_DAY == 0;
        let is_first_day = OffsetDateTime::from(first.start_time()).day() == 1;
        let month = Self { first, span: FolderSpan::Month };
        let day = Self { first, span: FolderSpan::Day };
        match (is_midnight, is_first_day) {
            (true, true) if first.0 + month.hours() <= end.0 => month,
            (true, _) if first.0 + day.hours() <= end.0 => day,
            _ => Self::of_hour(first),
        }
    }

    /// Returns the number of hours in the folder.
    fn hours(self) -> i64 {
        match self.span {
            FolderSpan::Hour => 1,
            FolderSpan::Day => HOURS_OF_DAY,
            FolderSpan::Month => {
                let start = OffsetDateTime::from(self.first.start_time());
                i64::from(start.month().length(start.year())) * HOURS_OF_DAY
            }
        }
    }

    /// Returns the year that the folder is in.
    pub(super) fn year(self) -> i32 {
        OffsetDateTime::from(self.first.start_time()).year()
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
pub(super) struct LogWindow {
    start: i64,
    end: i64,
}

impl LogWindow {
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
    pub(super) const fn covers_hour(self, hour: LogHour) -> bool {
        let start = hour.0.saturating_mul(PER_HOUR);
        start >= self.start && start.saturating_add(PER_HOUR) <= self.end
    }

    /// Returns the folders for exactly the hours that overlap the window: months, days and hours, each folder as
    /// large as possible.
    pub(super) fn folders(self) -> impl Iterator<Item = LogFolder> + Send {
        // The end is outside of the window, so an hour that begins there is outside too.
        let end = if self.start < self.end { (self.end - 1) / PER_HOUR + 1 } else { 0 };
        let mut next = self.start / PER_HOUR;
        std::iter::from_fn(move || {
            let folder =
                (next < end).then(|| LogFolder::largest_at(LogHour(next), LogHour(end)))?;
            next += folder.hours();
            Some(folder)
        })
    }
}

#[cfg(test)]
mod tests {
    use time::{OffsetDateTime, macros::datetime};

    use super::{LogHour, LogWindow, clamped_ticks};
    use crate::blob::log::name::folder_name;

    fn folders(from: OffsetDateTime, until: OffsetDateTime) -> Vec<String> {
        let folders = LogWindow::new(from..until).folders();
        folders.map(|folder| folder_name("q", folder)).collect()
    }

    #[test]
    fn a_window_has_the_hours_that_it_touches_and_no_other() {
        let at = datetime!(2014-07-31 23:59:59.9999999 UTC);
        assert_eq!(folders(at, datetime!(2014-08-01 0:00 UTC)), ["q/2014/07/31/2300"]);
        assert_eq!(
            folders(at, datetime!(2014-08-01 0:00:00.0000001 UTC)),
            ["q/2014/07/31/2300", "q/2014/08/01/0000"]
        );
        assert!(folders(at, at).is_empty());
        assert!(folders(at, datetime!(2014-07-31 18:00 UTC)).is_empty(), "ends before it begins");
        assert_eq!(folders(datetime!(2014-08-01 1:30 +2), datetime!(2014-08-01 1:31 +2)).len(), 1);
    }

    #[test]
    fn whole_days_and_months_are_one_folder_each() {
        let (from, until) = (datetime!(2015-12-30 22:30 UTC), datetime!(2016-03-02 1:00:01 UTC));
        assert_eq!(
            folders(from, until),
            [
                "q/2015/12/30/2200",
                "q/2015/12/30/2300",
                "q/2015/12/31",
                "q/2016/01",
                "q/2016/02",
                "q/2016/03/01",
                "q/2016/03/02/0000",
                "q/2016/03/02/0100"
            ]
        );
        // A partly covered hour is listed whole. So is a day whose 24 hours are all at least partly covered.
        let (from, until) = (datetime!(2016-02-29 0:59 UTC), datetime!(2016-02-29 23:01 UTC));
        assert_eq!(folders(from, until), ["q/2016/02/29"]);
        let all = LogWindow::new(datetime!(0001-01-01 0:00 UTC)..datetime!(9999-12-31 23:59 UTC));
        assert_eq!(all.folders().count(), 9999 * 12);
    }

    #[test]
    fn only_a_whole_hour_is_covered() {
        let (six, seven) = (datetime!(2014-07-31 18:00 UTC), datetime!(2014-07-31 19:00 UTC));
        let hour = LogHour::hour_of(clamped_ticks(six));
        let tick = time::Duration::nanoseconds(100);
        assert!(LogWindow::new(six..seven).covers_hour(hour));
        assert!(!LogWindow::new(six + tick..seven).covers_hour(hour));
        assert!(!LogWindow::new(six..seven - tick).covers_hour(hour));
    }
}

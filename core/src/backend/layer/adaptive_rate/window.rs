//! A window: the number of requests that may be in flight at the same time. It grows while the store answers in time.

use std::time::Duration;

use tokio::time::Instant;

/// The first size of a window. Loads without a window use the same number.
const FIRST: f64 = 8.0;
/// The largest size. Every request in flight holds its entities in memory.
const MOST: f64 = 1_024.0;
/// The growth with each answer until the store has shown its limit: a quarter of the window in each round trip.
const SEEKING: f64 = 0.25;
/// The share of a window that remains after a refusal.
const DECREASE: f64 = 0.9;
/// For this long after the window shrank, refusals do not shrink it again. They answer requests that were sent before.
const REACTION: Duration = Duration::from_millis(100);
/// The amount by which the window shrinks with each request that waited too long for its turn. In a round trip, that is
/// a tenth of the window.
const WAITING: f64 = 0.1;
/// The window grows while requests wait for less than this part of the mean time of an answer.
const SHORT_WAIT: f64 = 0.5;
/// The window shrinks while requests wait for more than this many times the mean time of an answer. Between the two, the
/// store is busy all the time and a single read does not wait long.
const LONG_WAIT: f64 = 1.5;
/// The window does not grow while the mean time of an answer is more than this many times the best mean.
const LATE: f64 = 2.0;
/// The number of answers that the mean time of an answer covers. Before that many answers, no mean counts as the best
/// one, because the first answer may have been quick by chance.
const MEMORY: u32 = 64;
/// The growth of the best time with each answer, so that a load of larger requests is measured by itself after some
/// thousand answers.
const FORGETTING: f64 = 1.0 / 4_096.0;

/// The number of requests that may be in flight. It grows by a quarter in each round trip until the first refusal or
/// late answer. After that, each round trip adds one request, and a refusal takes a tenth away.
#[derive(Debug)]
pub(super) struct Window {
    size: f64,
    /// `true` until the store has shown its limit once.
    is_seeking: bool,
    shrunk: Option<Instant>,
    /// The number of answers, up to [`MEMORY`].
    answers: u32,
    /// The mean time of an answer in seconds, and the best mean so far.
    mean: f64,
    best: f64,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self { size: FIRST, is_seeking: true, shrunk: None, answers: 0, mean: 0.0, best: 0.0 }
    }

    /// Returns how many requests may be in flight. At least 1.
    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    /// Records an answer that took the time `took`, to a request that waited for `waited` before it was sent. The
    /// window only grows while `in_flight` requests fill a quarter of it. Answers that arrive together empty it one by
    /// one, and most of them still find it in use.
    pub(super) fn note_answer(&mut self, waited: Duration, took: Duration, in_flight: f64) {
        self.count_time(took);
        let waited = waited.as_secs_f64();
        if waited > LONG_WAIT * self.mean {
            // More requests would only wait longer, and a single read behind them would wait as long.
            self.size = (self.size - WAITING).max(1.0);
            self.is_seeking = false;
        } else if self.mean > self.best * LATE {
            self.is_seeking = false;
        } else if waited <= SHORT_WAIT * self.mean && in_flight * 4.0 >= self.size {
            let step = if self.is_seeking { SEEKING } else { 1.0 / self.size };
            self.size = (self.size + step).min(MOST);
        }
    }

    /// Shrinks the window after the store refused a request because the account has too many.
    pub(super) fn shrink(&mut self, now: Instant) {
        self.is_seeking = false;
        let is_old_news = |shrunk| now.saturating_duration_since(shrunk) < REACTION;
        if self.shrunk.is_some_and(is_old_news) {
            return;
        }
        self.size = (self.size * DECREASE).max(1.0);
        self.shrunk = Some(now);
    }

    /// Counts the time of an answer.
    fn count_time(&mut self, took: Duration) {
        self.answers = (self.answers + 1).min(MEMORY);
        self.mean += (took.as_secs_f64() - self.mean) / f64::from(self.answers);
        let forgotten = self.best + self.best * FORGETTING;
        self.best = if self.answers < MEMORY { self.mean } else { forgotten.min(self.mean) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    fn answers(window: &mut Window, count: usize, waited: Duration, took: Duration) {
        for _ in 0..count {
            let in_flight = window.size();
            window.note_answer(waited, took, in_flight);
        }
    }

    #[test]
    fn it_grows_by_a_quarter_until_the_first_refusal_and_then_by_one_in_each_round_trip() {
        let now = Instant::now();
        let mut window = Window::new();
        answers(&mut window, 8, Duration::ZERO, SOON);
        assert!((window.size() - 10.0).abs() < 1e-9);
        window.shrink(now);
        assert!((window.size() - 9.0).abs() < 1e-9);
        answers(&mut window, 9, Duration::ZERO, SOON);
        assert!((window.size() - 10.0).abs() < 0.1, "{}", window.size());
    }

    #[test]
    fn refusals_of_one_moment_shrink_it_once() {
        let now = Instant::now();
        let mut window = Window::new();
        answers(&mut window, 4 * 92, Duration::ZERO, SOON);
        for millis in 0..100 {
            window.shrink(now + Duration::from_millis(millis));
        }
        assert!((window.size() - 90.0).abs() < 1e-9);
        window.shrink(now + REACTION);
        assert!((window.size() - 81.0).abs() < 1e-9);
        for seconds in 1..200 {
            window.shrink(now + Duration::from_secs(seconds));
        }
        assert!((window.size() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn it_stops_growing_where_answers_only_come_later() {
        let mut window = Window::new();
        answers(&mut window, 4 * 92, Duration::ZERO, SOON);
        // The mean passes twice the best after 64 * ln(3 / 2) = 26 answers.
        answers(&mut window, 30, Duration::ZERO, 4 * SOON);
        let size = window.size();
        assert!(size < 110.0, "{size}");
        answers(&mut window, 500, Duration::ZERO, 4 * SOON);
        assert!((window.size() - size).abs() < 1e-9, "{}", window.size());
        // With quick answers it grows again, one request in each round trip.
        answers(&mut window, 500, Duration::ZERO, SOON);
        assert!(window.size() > size + 2.0 && window.size() < size + 5.0, "{}", window.size());
    }

    #[test]
    fn it_shrinks_while_requests_wait_long_for_their_turn() {
        let mut window = Window::new();
        answers(&mut window, 4 * 92, Duration::ZERO, SOON);
        answers(&mut window, 100, 2 * SOON, SOON);
        assert!((window.size() - 90.0).abs() < 1e-6);
        // A short queue keeps the store busy.
        answers(&mut window, 100, SOON, SOON);
        assert!((window.size() - 90.0).abs() < 1e-6);
    }

    #[test]
    fn it_grows_only_where_it_is_used_and_has_an_end() {
        let mut window = Window::new();
        for _ in 0..100 {
            window.note_answer(Duration::ZERO, SOON, 1.0);
        }
        assert!((window.size() - FIRST).abs() < 1e-9);
        answers(&mut window, 5_000, Duration::ZERO, SOON);
        assert!((window.size() - MOST).abs() < 1e-9);
    }
}

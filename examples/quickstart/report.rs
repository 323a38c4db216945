//! Prints questions, answers and their costs.

use std::fmt::{self, Debug, Display};

use entable::{BoxError, backend::layer::Recorder};

/// Prints each question and counts its requests.
#[derive(Debug)]
pub struct Report {
    recorder: Recorder,
    questions: usize,
}

impl Report {
    /// Makes a report of the requests that `recorder` records.
    pub fn new(recorder: Recorder) -> Self {
        Self { recorder, questions: 0 }
    }

    /// Prints the next question and its plan, and forgets earlier requests.
    pub fn question(&mut self, question: &str, explain: impl Display) {
        self.questions += 1;
        println!("\n{}. {question}", self.questions);
        for line in explain.to_string().lines() {
            println!("   {line}");
        }
        self.recorder.clear();
    }

    /// Prints the requests since the question and their number, which it returns.
    pub fn print_requests(&self, rows: usize) -> usize {
        self.recorder.requests().iter().for_each(|request| println!("   {request}"));
        self.print_cost(rows)
    }

    /// Prints the number of rows and of requests since the question; returns the number of requests.
    pub fn print_cost(&self, rows: usize) -> usize {
        let requests = self.recorder.take().len();
        println!("   -> {rows} rows, {requests} requests");
        requests
    }
}

/// Prints several values, one per line.
#[derive(Debug)]
pub struct Joined<T>(pub Vec<T>);

impl<T: Display> Display for Joined<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}

/// Fails if an answer differs from the expected one, which was computed from the files by other means.
pub fn check<T: PartialEq<U> + Debug, U: Debug>(
    what: &str,
    found: T,
    expected: U,
) -> Result<(), BoxError> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

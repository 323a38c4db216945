//! Questions, answers, and what they cost.

use std::fmt::{self, Debug, Display};

use entable::{BoxError, backend::layer::Recorder};

/// Prints each question and counts its requests.
#[derive(Debug)]
pub struct Told {
    recorder: Recorder,
    questions: usize,
}

impl Told {
    /// Counts what goes through `recorder`.
    pub fn new(recorder: Recorder) -> Self {
        Self { recorder, questions: 0 }
    }

    /// The next question, and how it will be asked.
    pub fn ask(&mut self, question: &str, explain: impl Display) {
        self.questions += 1;
        println!("\n{}. {question}", self.questions);
        for line in explain.to_string().lines() {
            println!("   {line}");
        }
        self.recorder.clear();
    }

    /// What was sent, and what it cost.
    pub fn sent(&self, rows: usize) -> usize {
        self.recorder.requests().iter().for_each(|request| println!("   {request}"));
        self.answered(rows)
    }

    /// What it cost; the next question counts from zero.
    pub fn answered(&self, rows: usize) -> usize {
        let requests = self.recorder.take().len();
        println!("   -> {rows} rows, {requests} requests");
        requests
    }
}

/// Several queries, one after another.
#[derive(Debug)]
pub struct Each<T>(pub Vec<T>);

impl<T: Display> Display for Each<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}

/// An answer that is not the one worked out from the files by other means is an error.
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

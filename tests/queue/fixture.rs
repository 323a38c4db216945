//! Defines a store whose clock stands still, and clients whose clocks are wrong.

use std::{sync::Arc, time::Duration};

use entable::{
    Batch, Clock, Row, SteppedClock, Ticks, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
        layer::{FaultInjector, Recorder},
    },
    prelude::*,
    queue::{Received, TableQueue},
};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: i64 = 3_600;

/// A clock that is some seconds off another.
#[derive(Debug)]
pub(crate) struct Skewed {
    pub(crate) clock: Arc<SteppedClock>,
    pub(crate) seconds: i64,
}

impl Clock for Skewed {
    fn now(&self) -> Ticks {
        Ticks::new(self.clock.now().get() + self.seconds * 10_000_000).unwrap()
    }
}

pub(crate) struct World {
    pub(crate) clock: Arc<SteppedClock>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) recorder: Recorder,
    pub(crate) fault: FaultInjector,
}

impl World {
    pub(crate) fn new() -> Self {
        let start = Ticks::new(638_000_000_000_000_000).unwrap();
        let clock = Arc::new(SteppedClock::new(start));
        let memory = Arc::new(Memory::with_clock(clock.clone()));
        let fault = FaultInjector::around(memory.clone());
        Self { clock, memory, recorder: Recorder::around(fault.clone()), fault }
    }

    /// A client whose clock is some seconds off the store's.
    pub(crate) fn client(&self, seconds: i64) -> Client {
        let clock = Arc::new(Skewed { clock: self.clock.clone(), seconds });
        Client::builder().backend(self.recorder.clone()).clock(clock).build().unwrap()
    }

    pub(crate) fn queue(&self, seconds: i64) -> TableQueue {
        self.client(seconds).table_queue("letters")
    }

    /// Some time goes by, and a little more: Timestamps are a few ticks apart.
    pub(crate) fn pass(&self, time: Duration) {
        self.clock.advance(time + Duration::from_millis(1));
    }

    /// The requests since the last look, as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.recorder.take().iter().map(ToString::to_string).collect()
    }
}

/// The texts of messages, sorted.
pub(crate) fn bodies(received: &[Received]) -> Vec<&str> {
    let mut bodies: Vec<&str> = received.iter().map(Received::body).collect();
    bodies.sort_unstable();
    bodies
}

/// A store whose pages have no date.
#[derive(Debug)]
pub(crate) struct Undated(pub(crate) Arc<Memory>);

impl Backend for Undated {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move { Ok(Rows { date: None, ..self.0.scan(request).await? }) })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

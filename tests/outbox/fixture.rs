//! Defines an entity with remote copies, and a store whose clock is stepped by hand.

use std::{sync::Arc, time::Duration};

use entable::{
    OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, Recorder},
    },
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "at_{department}_{id:06}"),
    index(
        ByName,
        table = "StaffByName",
        partition_key = "{last_name}",
        row_key = "name_{department}_{id:08}",
        only(age)
    )
)]
pub(crate) struct Employee {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) last_name: String,
    pub(crate) age: i32,
    pub(crate) email: String,
    pub(crate) visits: i64,
}

#[derive(Debug, Projection)]
#[table(of = Employee)]
pub(crate) struct Age {
    pub(crate) age: i32,
}

pub(crate) fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        age: 34,
        email: format!("Jones{id}@contoso.com"),
        visits: 0,
    }
}

/// A store in memory with everything that a test looks at.
pub(crate) struct World {
    pub(crate) clock: Arc<SteppedClock>,
    pub(crate) recorder: Recorder,
    pub(crate) fault: FaultInjector,
    pub(crate) client: Client,
    pub(crate) staff: Table<Employee>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(OutboxOptions::default()).await
    }

    /// A store whose writers leave everything to workers.
    pub(crate) async fn left_to_workers() -> Self {
        Self::with(OutboxOptions::default().background(0)).await
    }

    pub(crate) async fn with(options: OutboxOptions) -> Self {
        // Most tests look at what is there between the commit and the work that follows it.
        let options = options.copies_before_answer(false);
        let start = Ticks::new(630_000_000_000_000_000).unwrap();
        let clock = Arc::new(SteppedClock::new(start));
        let recorder = Recorder::around(Memory::with_clock(clock.clone()));
        let fault = FaultInjector::around(recorder.clone());
        let client = Client::builder()
            .backend(fault.clone())
            .clock(clock.clone())
            .outbox(options)
            .seed(7)
            .build()
            .unwrap();
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        recorder.clear();
        Self { clock, recorder, fault, client, staff }
    }

    /// Another client of the same store.
    pub(crate) fn other_client(&self) -> Client {
        Client::builder().backend(self.recorder.clone()).clock(self.clock.clone()).build().unwrap()
    }

    /// Lets some time go by, and a little more: rows that are written while the clock stands still
    /// have Timestamps a tick apart.
    pub(crate) fn later(&self, time: Duration) {
        self.clock.advance(time + Duration::from_secs(1));
    }

    /// The requests so far, a line each, and a new start.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.recorder.take().iter().map(ToString::to_string).collect()
    }

    /// The RowKeys of a partition.
    pub(crate) async fn rows(&self, table: &str, partition_key: &str) -> Vec<String> {
        let rows = self.client.dynamic(table).query(Keys::partition(partition_key));
        rows.collect().await.unwrap().iter().map(|row| row.row_key().to_owned()).collect()
    }

    /// Returns the outbox rows in the partition of the employees.
    pub(crate) async fn open(&self) -> Vec<String> {
        let rows = self.rows("Staff", "Sales").await;
        rows.into_iter().filter(|key| key.starts_with("~e") && !key.starts_with("~e0_")).collect()
    }

    /// How many markers the directory has.
    pub(crate) async fn markers(&self) -> usize {
        let all =
            self.client.dynamic("EntableDirectory").query(Filter::parse("Table ge ''").unwrap());
        match all.allow_scan().collect().await {
            Ok(markers) => markers.len(),
            Err(error) if error.code() == Some("TableNotFound") => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

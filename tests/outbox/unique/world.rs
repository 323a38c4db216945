//! Defines an entity with two values that are unique across partitions, and a store whose clock is stepped by hand.

use std::{sync::Arc, time::Duration};

use entable::{
    OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, Recorder},
    },
    prelude::*,
};

/// Two values of their own: by email in another partition, by badge in another table.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "empid_{department}",
    row_key = "{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "email", unique),
    index(
        ByBadge,
        table = "Badges",
        partition_key = "{badge}",
        row_key = "badge",
        only(name),
        unique,
        when = Person::has_badge
    )
)]
pub(crate) struct Person {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) badge: String,
}

impl Person {
    fn has_badge(&self) -> bool {
        self.badge != "none"
    }
}

pub(crate) fn person(id: u32, email: &str) -> Person {
    Person {
        department: "Sales".into(),
        id,
        name: format!("Person {id}"),
        email: email.into(),
        badge: "none".into(),
    }
}

pub(crate) struct World {
    pub(crate) clock: Arc<SteppedClock>,
    pub(crate) recorder: Recorder,
    pub(crate) fault: FaultInjector,
    pub(crate) client: Client,
    pub(crate) staff: Table<Person>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let start = Ticks::new(630_000_000_000_000_000).unwrap();
        let clock = Arc::new(SteppedClock::new(start));
        let recorder = Recorder::around(Memory::with_clock(clock.clone()));
        let fault = FaultInjector::around(recorder.clone());
        let builder = Client::builder().backend(fault.clone()).clock(clock.clone());
        let outbox = OutboxOptions::default().copies_before_answer(false);
        let client = builder.outbox(outbox).seed(7).build().unwrap();
        let staff = client.table::<Person>();
        staff.create().await.unwrap();
        // Registrations are not what is counted here.
        staff.insert(&person(999_999, "first@a.com")).await.unwrap();
        client.wait_for_copies().await;
        recorder.clear();
        Self { clock, recorder, fault, client, staff }
    }

    /// A client that remembers nothing of what the other one did.
    pub(crate) fn another_client(&self) -> Client {
        let builder = Client::builder().backend(self.fault.clone()).clock(self.clock.clone());
        let outbox = OutboxOptions::default().copies_before_answer(false);
        builder.outbox(outbox).build().unwrap()
    }

    pub(crate) fn later(&self, time: Duration) {
        self.clock.advance(time + Duration::from_secs(1));
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.recorder.take().iter().map(ToString::to_string).collect()
    }

    pub(crate) async fn rows(&self, table: &str, partition_key: &str) -> Vec<String> {
        let rows = self.client.dynamic(table).query(Keys::partition(partition_key));
        rows.collect().await.unwrap().iter().map(|row| row.row_key().to_owned()).collect()
    }

    /// The row of an email as it is.
    pub(crate) async fn reservation(&self, email: &str) -> Option<DynamicEntity> {
        let partition_key = format!("email_{email}");
        let row = self.client.dynamic("Staff").get(&partition_key, "email").await.unwrap();
        row.map(Stored::into_inner)
    }

    /// Returns the outbox rows in the partition of the people.
    pub(crate) async fn open(&self) -> Vec<String> {
        let rows = self.rows("Staff", "empid_Sales").await;
        rows.into_iter().filter(|key| key.starts_with("~e") && !key.starts_with("~e0_")).collect()
    }

    /// Finishes the open work, and its second look.
    pub(crate) async fn recover(&self) {
        self.client.wait_for_copies().await;
        let worker = self.client.worker();
        for _ in 0..4 {
            worker.drain().await.unwrap();
            self.later(OutboxOptions::WRITE_DEADLINE);
        }
        worker.drain().await.unwrap();
    }
}

pub(crate) fn by_email(email: &str) -> Point<Person, entable::entity::FullCopy> {
    Person::by_email().email(email)
}

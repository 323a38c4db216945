//! Tests unique values on a store that leaves an ETag out of an answer.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Condition, OutboxOptions, ValueRef, Verb,
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
    },
    batch::{Batch, Operation, Written},
    prelude::*,
    row::Row,
};

use super::{Person, World, by_email, person};
use crate::hooked::Hooked;

/// A store that leaves out the ETags of some rows which it has written.
struct WithoutEtags<B> {
    inner: B,
    is_left_out: fn(&Operation) -> bool,
    /// Whether a row of which the ETag was left out is marked dead before the answer.
    marks_dead: bool,
    /// The writes without a condition of rows of which an ETag was left out.
    unconditional: Arc<Mutex<Vec<String>>>,
}

impl<B: Backend> WithoutEtags<B> {
    fn new(inner: B, is_left_out: fn(&Operation) -> bool) -> Self {
        Self { inner, is_left_out, marks_dead: false, unconditional: Arc::default() }
    }
}

impl<B> fmt::Debug for WithoutEtags<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithoutEtags").finish_non_exhaustive()
    }
}

impl<B: Backend> Backend for WithoutEtags<B> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            for one in batch.operations() {
                let is_overwritten = one.condition() == Some(&Condition::Any)
                    || matches!(one.verb(), Verb::InsertOrReplace | Verb::InsertOrMerge);
                let row = one.row();
                if is_overwritten && (row.row_key().starts_with("~e1_") || row.row_key() == "email")
                {
                    let write = format!("{:?} {}", one.verb(), row.row_key());
                    self.unconditional.lock().unwrap().push(write);
                }
            }
            let mut written = self.inner.apply(batch).await?;
            for (one, answer) in batch.operations().iter().zip(&mut written) {
                if (self.is_left_out)(one) {
                    answer.etag = None;
                    if self.marks_dead {
                        let mut dead = Row::build(one.row().partition_key(), one.row().row_key());
                        dead.put("Dead", ValueRef::Boolean(true));
                        let dead = Operation::merge(dead.finish()?, Condition::Any);
                        self.inner.apply(&Batch::single(batch.table(), dead)?).await?;
                    }
                }
            }
            Ok(written)
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

fn is_claim(one: &Operation) -> bool {
    one.verb() == Verb::Insert && one.row().row_key().starts_with("~e1_")
}

fn is_reservation(one: &Operation) -> bool {
    one.row().row_key() == "email"
}

/// A client of a store that leaves ETags out, and what it wrote without a condition.
fn client_of<B: Backend>(
    world: &World,
    store: WithoutEtags<B>,
) -> (Client, Arc<Mutex<Vec<String>>>) {
    let unconditional = store.unconditional.clone();
    let outbox = OutboxOptions::default().copies_before_answer(false);
    let client = Client::builder().backend(store).clock(world.clock.clone()).outbox(outbox);
    (client.build().unwrap(), unconditional)
}

#[tokio::test]
async fn a_claim_without_an_etag_is_read() {
    let world = World::new().await;
    let (client, unconditional) =
        client_of(&world, WithoutEtags::new(world.fault.clone(), is_claim));
    let staff = client.table::<Person>();
    staff.insert(&person(1, "a@a.com")).await.unwrap().wait_for_copies().await.unwrap();
    world.requests();
    staff.insert(&person(2, "b@a.com")).await.unwrap().wait_for_copies().await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 6, "one more than with an ETag: {requests:#?}");
    assert!(requests[1].starts_with("read Staff (empid_Sales, ~e1_"), "{requests:#?}");
    assert_eq!(*unconditional.lock().unwrap(), [""; 0]);
    assert_eq!(world.open().await, [""; 0]);
}

#[tokio::test]
async fn a_dead_claim_whose_etag_was_left_out_takes_no_effect() {
    let world = World::new().await;
    let (client, unconditional) = {
        let (other, clock) = (world.another_client(), world.clock.clone());
        let is_transaction = |one: &Operation| one.row().row_key() == "000001";
        let store = Hooked::before(world.fault.clone(), is_transaction, async move {
            // The writer is slow: a worker ends its claim, and another entity takes the value.
            clock.advance(OutboxOptions::CLAIM_TIME + Duration::from_secs(1));
            other.worker().with::<Person>().drain().await.unwrap();
            other.table::<Person>().insert(&person(2, "a@a.com")).await.unwrap();
        });
        client_of(&world, WithoutEtags::new(store, is_claim))
    };
    let late = client.table::<Person>().insert(&person(1, "a@a.com")).await.unwrap_err();
    assert!(late.is_unique_violation(), "{late}");
    assert_eq!(late.holder(), Some(("empid_Sales", "000002")));
    world.recover().await;
    let found = world.staff.get(by_email("a@a.com")).await.unwrap().unwrap();
    assert_eq!(found.id, 2);
    assert_eq!(*unconditional.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_claim_that_is_dead_when_it_is_read_is_not_used() {
    let world = World::new().await;
    let store = WithoutEtags::new(world.fault.clone(), is_claim);
    let (client, _) = client_of(&world, WithoutEtags { marks_dead: true, ..store });
    let error = client.table::<Person>().insert(&person(1, "a@a.com")).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    assert!(error.to_string().contains("was removed before the write could use it"), "{error}");
    assert!(world.reservation("a@a.com").await.is_none(), "nothing was reserved");
    world.recover().await;
    assert_eq!(world.open().await, [""; 0]);
}

#[tokio::test]
async fn a_reservation_without_an_etag_is_left_to_a_worker() {
    let world = World::new().await;
    let store = WithoutEtags::new(world.fault.clone(), is_reservation);
    let (client, unconditional) = client_of(&world, store);
    let staff = client.table::<Person>();
    let mut one = staff.insert(&person(1, "a@a.com")).await.unwrap();
    client.wait_for_copies().await;
    assert_eq!(world.open().await.len(), 1, "the dirty row");
    one.email = "b@a.com".into();
    staff.replace(&one).await.unwrap();
    client.wait_for_copies().await;
    assert_eq!(*unconditional.lock().unwrap(), [""; 0]);
    world.recover().await;
    assert_eq!(world.open().await, [""; 0]);
    assert!(world.reservation("a@a.com").await.is_none());
    assert!(world.reservation("b@a.com").await.unwrap().get("SrcC").is_none());
    assert_eq!(world.staff.get(by_email("b@a.com")).await.unwrap().unwrap().id, 1);
}

#[tokio::test]
async fn a_row_is_taken_over_within_the_write_deadline() {
    let world = World::new().await;
    // The copy of the first entity stays in the way of the second.
    let outbox = OutboxOptions::default().background(0);
    let builder = Client::builder().backend(world.fault.clone()).clock(world.clock.clone());
    let deleting = builder.outbox(outbox).build().unwrap().table::<Person>();
    deleting.insert(&person(1, "a@a.com")).await.unwrap();
    deleting.delete_at(Person::primary().department("Sales").id(1)).await.unwrap();
    let is_taken_over = |one: &Operation| one.verb() == Verb::Merge && is_reservation(one);
    let (store, kept) = Hooked::holding(world.fault.clone(), is_taken_over);
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    let staff = client.table::<Person>();
    let again = person(1, "a@a.com");
    let inserted = tokio::time::timeout(Duration::from_millis(200), staff.insert(&again)).await;
    assert!(inserted.is_err(), "the request waits: {inserted:?}");
    let batch = kept.lock().unwrap().take().unwrap();
    world.later(OutboxOptions::WRITE_DEADLINE);
    assert!(batch.check_deadline().is_err_and(|error| error.is_contended()));
}

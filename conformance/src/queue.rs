//! The promises of queues: `docs/queues.md`, whose numbers they bear.

use std::{sync::Arc, time::Duration};

use entable_core::{
    clock::SteppedClock,
    error::Result,
    queue::{LONGEST, Poison, Queue, Received},
};

/// The shortest time that a message is hidden for.
const SHORT: Duration = Duration::from_secs(1);
/// Longer than that, whatever a date is cut to.
const OVER: Duration = Duration::from_millis(3_200);
/// Longer than any of these tests.
const LONG: Duration = Duration::from_secs(60);

/// A queue that nobody else uses, and how time goes by for it.
#[derive(Debug, Clone)]
pub struct QueueSetup {
    queue: Arc<dyn Queue>,
    /// The clock of the store and its client. `None` uses the system's clock.
    clock: Option<Arc<SteppedClock>>,
}

impl<Q: Queue> From<Q> for QueueSetup {
    /// Tests a new queue in real time: each lease of a test is waited for.
    fn from(queue: Q) -> Self {
        Self { queue: Arc::new(queue), clock: None }
    }
}

impl QueueSetup {
    /// Tests a new queue whose store and client take the time from `clock`. Tests advance that clock
    /// where they would have to wait.
    pub fn stepped(queue: impl Queue, clock: Arc<SteppedClock>) -> Self {
        Self { queue: Arc::new(queue), clock: Some(clock) }
    }

    /// Waits until a lease of [`SHORT`] has expired.
    async fn outlast_short_lease(&self) {
        match &self.clock {
            Some(clock) => clock.advance(OVER),
            None => tokio::time::sleep(OVER).await,
        }
    }

    async fn given(&self, body: &str) -> String {
        self.queue.send(body, Duration::ZERO).await.expect("a message can be sent")
    }

    async fn received(&self, most: usize, visibility: Duration) -> Vec<Received> {
        self.queue.receive(most, visibility).await.expect("messages can be received")
    }

    /// The one message that is there.
    async fn one(&self, visibility: Duration) -> Received {
        let mut received = self.received(1, visibility).await;
        assert_eq!(received.len(), 1, "the message is there");
        received.remove(0)
    }

    async fn is_empty(&self) -> bool {
        self.received(32, LONG).await.is_empty()
    }

    async fn poisoned(&self) -> Vec<Poison> {
        self.queue.poisoned(32).await.expect("poison can be listed")
    }
}

fn is_lost<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.expect_err("the message is not this receiver's");
    assert!(error.is_lease_lost(), "{error:?}");
}

/// 1 A queue that nobody has sent to is empty.
pub async fn a_new_queue_is_empty(queue: &QueueSetup) {
    assert!(queue.is_empty().await);
    assert!(queue.poisoned().await.is_empty());
}

/// 2 A message is received as it was sent.
pub async fn a_body_comes_as_it_was_sent(queue: &QueueSetup) {
    for body in
        ["a", "<a href='b'>&amp; \"c\"\n</a>", "{\"a\":1}", "\u{e9}\u{1f600}", "YWJj", " a "]
    {
        queue.given(body).await;
        let received = queue.one(LONG).await;
        assert_eq!((received.body(), received.dequeue_count()), (body, 1));
        queue.queue.delete(&received).await.expect("it can be deleted");
    }
}

/// 3 A received message is hidden from other receivers until its timeout ends.
pub async fn a_message_that_was_received_is_hidden(queue: &QueueSetup) {
    queue.given("a").await;
    let received = queue.one(LONG).await;
    assert!(queue.is_empty().await);
    assert!(received.until() <= tokio::time::Instant::now() + LONG);
}

/// 3 After its timeout a message is visible again, and its dequeue count rises.
pub async fn a_message_comes_again(queue: &QueueSetup) {
    let id = queue.given("a").await;
    let first = queue.one(SHORT).await;
    queue.outlast_short_lease().await;
    let second = queue.one(LONG).await;
    assert_eq!((first.id(), first.dequeue_count()), (&*id, 1));
    assert_eq!((second.id(), second.dequeue_count()), (&*id, 2));
}

/// 4 A message is not visible before its delay has passed.
pub async fn a_delay_is_kept(queue: &QueueSetup) {
    queue.queue.send("a", SHORT).await.expect("a message can be sent");
    assert!(queue.is_empty().await);
    queue.outlast_short_lease().await;
    assert_eq!(queue.one(LONG).await.dequeue_count(), 1);
}

/// 5 A message that was deleted does not come again, and nobody has it any more.
pub async fn a_message_is_deleted_for_good(queue: &QueueSetup) {
    queue.given("a").await;
    let mut received = queue.one(SHORT).await;
    queue.queue.delete(&received).await.expect("it can be deleted");
    is_lost(queue.queue.delete(&received).await);
    is_lost(queue.queue.extend(&mut received, LONG, None).await);
    is_lost(queue.queue.poison(&received, "why").await);
    queue.outlast_short_lease().await;
    assert!(queue.is_empty().await);
    assert!(queue.poisoned().await.is_empty());
}

/// 6 A message that is extended stays hidden.
pub async fn an_extended_message_stays_hidden(queue: &QueueSetup) {
    queue.given("a").await;
    let mut received = queue.one(SHORT).await;
    let until = received.until();
    queue.queue.extend(&mut received, LONG, None).await.expect("it can be extended");
    assert!(received.until() > until);
    queue.outlast_short_lease().await;
    assert!(queue.is_empty().await);
    assert_eq!((received.body(), received.dequeue_count()), ("a", 1));
    queue.queue.delete(&received).await.expect("it is this receiver's still");
}

/// 6 A message that is extended by nothing is visible at once.
pub async fn a_message_is_given_back(queue: &QueueSetup) {
    queue.given("a").await;
    let mut received = queue.one(LONG).await;
    queue.queue.extend(&mut received, Duration::ZERO, None).await.expect("it can be given back");
    queue.outlast_short_lease().await;
    assert_eq!(queue.one(LONG).await.dequeue_count(), 2);
}

/// 6 A body that is changed is received as changed.
pub async fn a_body_is_changed(queue: &QueueSetup) {
    queue.given("a").await;
    let mut received = queue.one(LONG).await;
    let extended = queue.queue.extend(&mut received, SHORT, Some("b")).await;
    extended.expect("it can be changed");
    assert_eq!(received.body(), "b");
    queue.outlast_short_lease().await;
    assert_eq!(queue.one(LONG).await.body(), "b");
}

/// 7 A receiver that has lost its message gets an error and changes nothing.
pub async fn a_lost_lease_is_told(queue: &QueueSetup) {
    queue.given("a").await;
    let mut first = queue.one(SHORT).await;
    queue.outlast_short_lease().await;
    let second = queue.one(LONG).await;
    is_lost(queue.queue.delete(&first).await);
    is_lost(queue.queue.extend(&mut first, Duration::ZERO, Some("b")).await);
    is_lost(queue.queue.poison(&first, "why").await);
    assert!(queue.poisoned().await.is_empty());
    assert_eq!(second.body(), "a");
    queue.queue.delete(&second).await.expect("it is the second receiver's");
}

/// 7 An extension takes the place of what went before.
pub async fn an_old_receipt_is_worth_nothing(queue: &QueueSetup) {
    queue.given("a").await;
    let mut received = queue.one(LONG).await;
    let old = received.clone();
    queue.queue.extend(&mut received, LONG, None).await.expect("it can be extended");
    is_lost(queue.queue.delete(&old).await);
    queue.queue.delete(&received).await.expect("it is this receiver's");
}

/// 8 Poison is not received, is listed, and can be put back.
pub async fn poison_is_kept_aside(queue: &QueueSetup) {
    queue.given("a").await;
    queue.given("b").await;
    let received = queue.received(2, SHORT).await;
    assert_eq!(received.len(), 2);
    for message in &received {
        queue.queue.poison(message, "it is down").await.expect("it can be put aside");
    }
    queue.outlast_short_lease().await;
    assert!(queue.is_empty().await);
    let poison = queue.poisoned().await;
    let mut bodies: Vec<_> = poison.iter().map(Poison::body).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, ["a", "b"]);
    let reason = queue.queue.capabilities().keeps_reason.then_some("it is down");
    assert!(poison.iter().all(|poison| poison.reason() == reason));
    let back = poison.iter().find(|poison| poison.body() == "a").expect("it is listed");
    queue.queue.requeue(back).await.expect("it can be put back");
    let again = queue.one(LONG).await;
    assert_eq!((again.body(), again.dequeue_count()), ("a", 1));
    assert!(queue.queue.requeue(back).await.expect_err("it is back").is_not_found());
}

/// 9 At most as many messages come as were asked for, and all come in the end.
pub async fn no_more_come_than_were_asked_for(queue: &QueueSetup) {
    for at in 0..40 {
        queue.given(&at.to_string()).await;
    }
    let mut bodies = Vec::new();
    for most in [0, 1, 7, 32, 32, 32] {
        let received = queue.received(most, LONG).await;
        assert!(received.len() <= most);
        bodies.extend(received.iter().map(|one| one.body().parse::<u32>().expect("a number")));
    }
    bodies.sort_unstable();
    assert_eq!(bodies, (0..40).collect::<Vec<_>>());
}

/// 10 Receivers at once share nothing and lose nothing.
pub async fn receivers_share_nothing(queue: &QueueSetup) {
    for at in 0..30 {
        queue.given(&at.to_string()).await;
    }
    let mut ids = Vec::new();
    for _ in 0..20 {
        let receive = (0..4).map(|_| queue.queue.receive(10, LONG));
        for received in futures_util::future::join_all(receive).await {
            let received = received.expect("messages can be received");
            ids.extend(received.iter().map(|one| one.id().to_owned()));
        }
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), all), (30, 30));
}

/// 11 What a queue does not take is refused.
pub async fn limits_are_checked(queue: &QueueSetup) {
    let too_long = LONGEST + Duration::from_secs(1);
    let long = "a".repeat(70_000);
    assert!(queue.queue.send(&long, Duration::ZERO).await.expect_err("too large").is_too_large());
    assert!(queue.queue.send("a", too_long).await.expect_err("too long").is_invalid());
    assert!(queue.queue.receive(1, too_long).await.expect_err("too long").is_invalid());
    assert!(queue.queue.receive(1, Duration::ZERO).await.expect_err("no time").is_invalid());
    queue.given(&"\u{20ac}".repeat(16_000)).await;
    let mut received = queue.one(LONG).await;
    assert_eq!(received.body().len(), 48_000);
    let extended = queue.queue.extend(&mut received, LONG, Some(&long)).await;
    assert!(extended.expect_err("too large").is_too_large());
    assert!(
        queue.queue.extend(&mut received, too_long, None).await.expect_err("long").is_invalid()
    );
    queue.queue.delete(&received).await.expect("it is this receiver's still");
}

/// Generates one test for each promise of a queue: `queue_suite!(name, queue)`.
///
/// `queue` is evaluated again in each test, inside an async function. It must be a queue that nobody else
/// uses, or a [`QueueSetup`](crate::QueueSetup) of it with a clock that the tests advance.
/// Mark a queue that cannot always be reached as `optional` and give an `Option`.
///
/// ```
/// # #[allow(unused)]
/// # mod memory_tests {
/// use std::sync::Arc;
/// use entable_core::queue::Queue;
///
/// /// Returns a new queue, or `None` if the service of the queues cannot be reached.
/// fn queue() -> Option<Arc<dyn Queue>> {
///     # /*
///     ..
///     # */
///     # None
/// }
///
/// entable_conformance::queue_suite!(letters, optional queue());
/// # }
/// ```
#[macro_export]
macro_rules! queue_suite {
    ($suite:ident, optional $queue:expr) => {
        mod $suite {
            #[allow(unused_imports, reason = "the queue may be written without them")]
            use super::*;

            $crate::queue_promises!($queue,
                a_new_queue_is_empty
                a_body_comes_as_it_was_sent
                a_message_that_was_received_is_hidden
                a_message_comes_again
                a_delay_is_kept
                a_message_is_deleted_for_good
                an_extended_message_stays_hidden
                a_message_is_given_back
                a_body_is_changed
                a_lost_lease_is_told
                an_old_receipt_is_worth_nothing
                poison_is_kept_aside
                no_more_come_than_were_asked_for
                receivers_share_nothing
                limits_are_checked
            );
        }
    };
    ($suite:ident, $queue:expr) => {
        $crate::queue_suite!($suite, optional Some($queue));
    };
}

/// The tests of a suite.
#[doc(hidden)]
#[macro_export]
macro_rules! queue_promises {
    ($queue:expr, $($promise:ident)*) => {
        $(#[test]
        fn $promise() {
            $crate::block_on(Box::pin(async {
                if let Some(queue) = $queue {
                    let setup = $crate::QueueSetup::from(queue);
                    $crate::queue::$promise(&setup).await;
                }
            }));
        })*
    };
}

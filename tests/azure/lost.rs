//! Lost answers on the wire: the emulator behind a client that breaks the nth request, before or
//! after it was carried out, with the retry layer in front.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Azure, Batch, Condition, ETag, Error, Operation, Result, Seen, ValueRef, Verb, Written,
    backend::{
        Backend, BoxFuture,
        azure::{HttpAnswer, HttpRequest, Method, SendFailure, Transport},
        layer::{Retry, RetryPolicy},
    },
};

use crate::emulator::{apply, options, read, row, table};

/// The fault that a write meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// 503 with the service's own body.
    Busy,
    /// 503 of something on the way.
    Bare,
    Timeout,
    Reset,
}

const LOSSES: [Loss; 4] = [Loss::Busy, Loss::Bare, Loss::Timeout, Loss::Reset];

/// The loss that the next write meets, and whether it is carried out before.
type Plan = Arc<Mutex<Option<(Loss, bool)>>>;

/// A client that breaks one write.
#[derive(Debug)]
struct Lossy {
    inner: Arc<dyn Transport>,
    plan: Plan,
}

impl Lossy {
    async fn exchange(&self, request: &HttpRequest) -> Result<HttpAnswer, SendFailure> {
        let writes = request.method() != Method::Get;
        let plan = self.plan.lock().unwrap().take_if(|_| writes);
        let Some((loss, after)) = plan else { return self.inner.send(request).await };
        if after {
            let answer = self.inner.send(request).await?;
            assert!((200..300).contains(&answer.status()), "{}", answer.status());
        }
        let busy =
            r#"{"odata.error":{"code":"ServerBusy","message":{"value":"The server is busy."}}}"#;
        let answer = |body: &'static str| Ok(HttpAnswer::new(503).with_body(body));
        match loss {
            Loss::Busy => answer(busy),
            Loss::Bare => answer("<html>"),
            Loss::Timeout => std::future::pending().await,
            Loss::Reset => Err(SendFailure::Lost("the connection was reset".into())),
        }
    }
}

impl Transport for Lossy {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
        Box::pin(self.exchange(request))
    }
}

/// The emulator, plain and behind losses, and a table.
struct Stack {
    plain: Azure,
    retry: Retry,
    plan: Plan,
    table: String,
}

async fn stack(ids: bool) -> Option<Stack> {
    let (plain, table) = table().await?;
    let plan = Plan::default();
    let lost = Arc::clone(&plan);
    let options = options()?
        .wrap_transport(move |inner| Arc::new(Lossy { inner, plan: Arc::clone(&lost) }))
        .timeout(Duration::from_millis(500));
    let delay = Duration::from_millis(5);
    let policy = RetryPolicy::new().delays(delay, delay).operation_ids(ids);
    let retry = Retry::around(Azure::new(options).unwrap(), policy);
    Some(Stack { plain, retry, plan, table })
}

impl Stack {
    async fn given(&self, key: &str) -> ETag {
        let insert = Operation::insert(row("p", key, "old"));
        apply(&self.plain, &self.table, insert).await.unwrap().etag.unwrap()
    }

    async fn text(&self, key: &str) -> Option<String> {
        let row = read(&self.plain, &self.table, "p", key).await.unwrap()?;
        match row.get("Text").unwrap() {
            Some(ValueRef::String(text)) => Some(text.to_owned()),
            _ => None,
        }
    }

    async fn version(&self, key: &str) -> Option<ETag> {
        read(&self.plain, &self.table, "p", key).await.unwrap()?.etag()
    }

    /// Makes the write, whose first attempt is lost.
    async fn write(
        &self,
        loss: Loss,
        after: bool,
        operations: Vec<Operation>,
    ) -> Result<Vec<Written>> {
        *self.plan.lock().unwrap() = Some((loss, after));
        let mut batch = Batch::new(&*self.table);
        operations.into_iter().for_each(|operation| batch.push(operation).unwrap());
        let result = self.retry.apply(&batch).await;
        assert!(self.plan.lock().unwrap().is_none(), "the loss did not happen");
        result
    }

    async fn operation(&self, verb: Verb, key: &str) -> Operation {
        let etag = if verb == Verb::Insert { None } else { Some(self.given(key).await) };
        let condition = etag.map_or(Condition::Any, Condition::Match);
        let new = row("p", key, "new");
        match verb {
            Verb::Insert => Operation::insert(new),
            Verb::Replace => Operation::replace(new, condition),
            Verb::Merge => Operation::merge(new, condition),
            Verb::InsertOrReplace => Operation::insert_or_replace(new),
            Verb::InsertOrMerge => Operation::insert_or_merge(new),
            Verb::Delete => Operation::delete("p", key, condition).unwrap(),
        }
    }
}

const VERBS: [Verb; 6] = [
    Verb::Insert,
    Verb::Replace,
    Verb::Merge,
    Verb::InsertOrReplace,
    Verb::InsertOrMerge,
    Verb::Delete,
];

fn inserts_or_changes(verb: Verb) -> bool {
    matches!(verb, Verb::InsertOrReplace | Verb::InsertOrMerge)
}

fn is_open(error: &Error, seen: Seen) -> bool {
    error.is_ambiguous() && error.seen() == Some(seen)
}

#[tokio::test]
async fn a_write_that_was_lost_before_it_happened_is_made_or_said_to_be_open() {
    let Some(stack) = stack(false).await else { return };
    for loss in LOSSES {
        for verb in VERBS {
            let key = format!("{loss:?}{verb:?}");
            let operation = stack.operation(verb, &key).await;
            let result = stack.write(loss, false, vec![operation]).await;
            let new = (verb != Verb::Delete).then_some("new");
            if inserts_or_changes(verb) && loss != Loss::Busy {
                assert!(is_open(&result.unwrap_err(), Seen::Other), "{key}");
                assert_eq!(stack.text(&key).await.as_deref(), Some("old"), "{key}");
            } else {
                result.unwrap_or_else(|error| panic!("{key}: {error:?}"));
                assert_eq!(stack.text(&key).await.as_deref(), new, "{key}");
            }
        }
    }
}

#[tokio::test]
async fn a_write_that_was_lost_after_it_happened_is_not_doubled_and_no_conflict() {
    let Some(stack) = stack(false).await else { return };
    for loss in LOSSES {
        for verb in VERBS {
            let key = format!("{loss:?}{verb:?}");
            let operation = stack.operation(verb, &key).await;
            let result = stack.write(loss, true, vec![operation]).await;
            let seen = if verb == Verb::Delete { Seen::Absent } else { Seen::Equal };
            match result {
                Ok(written) => {
                    assert!(inserts_or_changes(verb), "{key}");
                    assert_eq!(written[0].etag, stack.version(&key).await, "{key}");
                }
                Err(error) => {
                    assert!(!inserts_or_changes(verb) && is_open(&error, seen), "{key}: {error:?}")
                }
            }
        }
    }
}

#[tokio::test]
async fn an_operation_id_tells_what_became_of_it() {
    let Some(stack) = stack(true).await else { return };
    for loss in LOSSES {
        for verb in VERBS.into_iter().filter(|verb| *verb != Verb::Delete) {
            let key = format!("{loss:?}{verb:?}");
            let operation = stack.operation(verb, &key).await;
            let written = stack.write(loss, true, vec![operation]).await;
            let written = written.unwrap_or_else(|error| panic!("{key}: {error:?}"));
            // Another writer may have merged other properties since, which the write does not name.
            let expected = stack.version(&key).await.filter(|_| verb != Verb::Merge);
            assert_eq!(written[0].etag, expected, "{key}");
        }
    }
}

#[tokio::test]
async fn a_lost_transaction_happens_once() {
    for ids in [false, true] {
        let Some(stack) = stack(ids).await else { return };
        for loss in LOSSES {
            for after in [false, true] {
                let key = |name: &str| format!("{loss:?}{after}{name}");
                let one = stack.given(&key("1")).await;
                let three = stack.given(&key("3")).await;
                let operations = vec![
                    Operation::replace(row("p", &key("1"), "new"), Condition::Match(one)),
                    Operation::insert(row("p", &key("2"), "new")),
                    Operation::delete("p", &key("3"), Condition::Match(three)).unwrap(),
                ];
                let result = stack.write(loss, after, operations).await;
                match result {
                    Ok(written) => {
                        assert!(ids || !after, "{loss:?}");
                        assert_eq!(written[1].etag, stack.version(&key("2")).await);
                    }
                    Err(error) => {
                        assert!(!ids && after && is_open(&error, Seen::Equal), "{error:?}")
                    }
                }
                assert_eq!(stack.text(&key("2")).await.as_deref(), Some("new"), "{loss:?}");
                assert_eq!(stack.text(&key("3")).await, None, "{loss:?}");
            }
        }
    }
}

//! Requests that failed for a while are made again, and a write is never doubled.
//!
//! A read that failed is read again. A write that was not carried out is made again. A write whose
//! answer was lost is looked into: its rows are read, and it is made again only where its guards
//! are as they were, so that one of two fails if the first still arrives. What then cannot be told
//! is `is_ambiguous`, with what was seen.

mod loss;
mod op_id;
mod policy;
#[cfg(test)]
mod tests;
mod verdict;

use std::{borrow::Cow, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};

pub use self::policy::RetryPolicy;
use self::{
    loss::Loss,
    op_id::OpId,
    policy::{Attempts, Budget},
    verdict::{Verdict, judge},
};
use crate::{
    backend::{Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest},
    batch::{Batch, Written},
    error::{Error, ErrorKind, Result, Seen, ServiceCode},
    row::Row,
};

/// Rows of a lost transaction that are read at the same time.
const READS: usize = 8;

/// A layer that makes requests again which failed for a while. Clones share the budget.
///
/// ```
/// use entable::{
///     Error, ServiceCode,
///     backend::{Backend, Memory, TableRequest, layer::{Fault, On, Retry, RetryPolicy, Trouble}},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let fault = Fault::around(Memory::new());
/// fault.inject(On::Tables, 0, Trouble::Before(Error::service(ServiceCode::ServerBusy, "busy")));
/// let retry = Retry::around(fault, RetryPolicy::new());
/// retry.tables(TableRequest::Create("Staff")).await?;
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Retry {
    inner: Arc<dyn Backend>,
    policy: RetryPolicy,
    budget: Arc<Budget>,
}

impl Retry {
    /// A layer in front of `backend`.
    pub fn around(backend: impl Backend, policy: RetryPolicy) -> Self {
        let budget = Arc::new(Budget::new(policy.budget));
        Self { inner: Arc::new(backend), policy, budget }
    }

    fn attempts(&self) -> Attempts<'_> {
        Attempts::new(&self.policy, &self.budget)
    }

    /// A request that changes nothing.
    async fn reading<'a, T>(&self, request: impl Fn() -> BoxFuture<'a, Result<T>>) -> Result<T> {
        let mut attempts = self.attempts();
        loop {
            match request().await {
                Ok(answer) => {
                    self.budget.refund();
                    return Ok(answer);
                }
                Err(error) if Loss::read_may_pass(&error) => {
                    if !attempts.wait_after(&error).await {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn writing(&self, batch: &Batch) -> Result<Vec<Written>> {
        let stamped = if self.policy.operation_ids { op_id::stamped(batch) } else { None };
        let (batch, id) = match stamped {
            Some((batch, id)) => (Cow::Owned(batch), Some(id)),
            None => (Cow::Borrowed(batch), None),
        };
        let mut attempts = self.attempts();
        let mut doubt = None;
        loop {
            let error = match self.inner.apply(&batch).await {
                Ok(written) => {
                    self.budget.refund();
                    return Ok(written);
                }
                Err(error) => error,
            };
            let loss = Loss::of_write(&error);
            if matches!(loss, Loss::Throttled | Loss::Unknown) {
                doubt = doubt.max(Some(loss));
            }
            let more = loss != Loss::Refused && attempts.wait_after(&error).await;
            let Some(doubt) = doubt else {
                if more {
                    continue;
                }
                return Err(error);
            };
            match self.look(&batch, id).await {
                Ok(Verdict::Done(written)) => return Ok(written),
                Ok(Verdict::Again { .. }) if more => {}
                Ok(Verdict::Unclear { unguarded: true, .. })
                    if more && doubt == Loss::Throttled => {}
                Ok(verdict) => return Err(end(&batch, &verdict, loss, doubt, error)),
                Err(unread) => return Err(unseen(&batch, &error, unread)),
            }
        }
    }

    /// A request beside the port's that changes nothing.
    #[cfg(feature = "azure")]
    pub(crate) async fn repeat<'a, T>(
        &self,
        request: impl Fn() -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        self.reading(request).await
    }

    /// A request beside the port's that says what is to be, by the rule of an unguarded write: where
    /// its answer was lost, `holds` looks whether it is so, and only after "too busy" is it made
    /// again. Another's later change would be undone.
    #[cfg(feature = "azure")]
    pub(crate) async fn ensure<'a>(
        &self,
        request: impl Fn() -> BoxFuture<'a, Result<()>>,
        holds: impl Fn() -> BoxFuture<'a, Result<bool>>,
    ) -> Result<()> {
        let mut attempts = self.attempts();
        loop {
            let Err(error) = request().await else { return Ok(()) };
            let loss = Loss::of_write(&error);
            let more = loss != Loss::Refused && attempts.wait_after(&error).await;
            let in_doubt = matches!(loss, Loss::Throttled | Loss::Unknown);
            if in_doubt && self.reading(&holds).await.is_ok_and(|holds| holds) {
                return Ok(());
            }
            if !more || loss == Loss::Unknown {
                return Err(error);
            }
        }
    }

    /// Reads the rows of a write again.
    async fn look(&self, batch: &Batch, id: Option<OpId>) -> Result<Verdict> {
        let table = batch.table();
        let mut reads: Vec<BoxFuture<'_, Result<Option<Row>>>> = Vec::with_capacity(batch.len());
        for operation in batch.operations() {
            let row = operation.row();
            let (partition_key, row_key) = (row.partition_key(), row.row_key());
            let request = Read { table, partition_key, row_key, select: None };
            reads.push(Box::pin(self.reading(move || self.inner.read(request))));
        }
        let rows: Vec<Option<Row>> = stream::iter(reads).buffered(READS).try_collect().await?;
        judge(batch, &rows, id)
    }

    /// Creating and deleting a table say what is to be, not who did it: after a lost answer "there
    /// already" and "not there" are what was asked for.
    async fn changing_tables(
        &self,
        request: TableRequest<'_>,
        done: ServiceCode,
    ) -> Result<TableNames> {
        let mut attempts = self.attempts();
        let mut in_doubt = false;
        loop {
            let error = match self.inner.tables(request).await {
                Ok(answer) => {
                    self.budget.refund();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if in_doubt && error.service_code() == Some(&done) {
                return Ok(TableNames::default());
            }
            let loss = Loss::of_write(&error);
            in_doubt |= matches!(loss, Loss::Throttled | Loss::Unknown);
            if loss == Loss::Refused || !attempts.wait_after(&error).await {
                return Err(error);
            }
        }
    }
}

/// The error of a write that is not made again.
fn end(batch: &Batch, verdict: &Verdict, last: Loss, doubt: Loss, error: Error) -> Error {
    match verdict {
        // Refused while a guard of it was as before: that refusal is the truth.
        Verdict::Again { certain: true } if last == Loss::Refused => error,
        // Never more than "too busy", and nothing to be seen of it.
        Verdict::Again { .. } if last != Loss::Refused && doubt == Loss::Throttled => error,
        Verdict::Unclear { seen, .. } => ambiguous(batch, *seen, error),
        Verdict::Again { certain: true } => ambiguous(batch, Seen::Unchanged, error),
        Verdict::Again { .. } | Verdict::Done(_) => ambiguous(batch, Seen::Absent, error),
    }
}

fn ambiguous(batch: &Batch, seen: Seen, cause: Error) -> Error {
    let what = match seen {
        Seen::Equal => {
            "the row holds what was written, by this write or by another that says the same"
        }
        Seen::Absent => "there is no such row now",
        Seen::Unchanged => "the row is as it was",
        Seen::Other => "the row holds something else now",
    };
    let message = format!("the answer was lost and the write may have happened: {what}");
    in_place(batch, Error::new(ErrorKind::Ambiguous, message).with_seen(seen).with_source(cause))
}

fn unseen(batch: &Batch, cause: &Error, unread: Error) -> Error {
    let message = format!(
        "the answer was lost ({}) and the row cannot be read; the write may have happened",
        cause.message()
    );
    in_place(batch, Error::new(ErrorKind::Ambiguous, message).with_source(unread))
}

fn in_place(batch: &Batch, error: Error) -> Error {
    let error = error.in_table(batch.table());
    match batch.operations() {
        [only] => error.at_keys(only.row().partition_key(), only.row().row_key()),
        _ => error,
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Retry {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(self.reading(move || self.inner.read(request)))
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(self.reading(move || self.inner.scan(request)))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(self.writing(batch))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(_) => {
                    self.changing_tables(request, ServiceCode::TableAlreadyExists).await
                }
                TableRequest::Delete(_) => {
                    self.changing_tables(request, ServiceCode::ResourceNotFound).await
                }
                TableRequest::List { .. } => self.reading(move || self.inner.tables(request)).await,
            }
        })
    }
}

//! The retry layer: repeats reads and writes that failed, and never doubles a write.

use std::{borrow::Cow, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    failure::FailureCertainty,
    operation_id::{self, OperationId},
    policy::{RetryBudget, RetryPolicy, RetryState},
    verdict::{WriteVerdict, judge_write_from_rows},
};
use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::forward::forward_to_inner,
        layer::verb_counts::{count_request_retry, note_lost_answer_decision},
    },
    batch::{Batch, Operation, Written},
    error::{Error, ErrorKind, Result, Seen, ServiceCode},
    row::Row,
};

/// Number of rows of a transaction that are read at the same time after its answer was lost.
const PARALLEL_READS: usize = 8;

/// A layer that repeats failed requests by a [`RetryPolicy`]. Clones share the budget of retries.
///
/// ```
/// use entable_core::{
///     Error, ServiceCode,
///     backend::{Backend, Memory, TableRequest, layer::{FaultInjector, RequestKind, Retry, RetryPolicy, InjectedFault}},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let fault = FaultInjector::around(Memory::new());
/// fault.inject(RequestKind::Tables, 0, InjectedFault::Before(Error::service(ServiceCode::ServerBusy, "busy")));
/// let retry = Retry::around(fault, RetryPolicy::new());
/// retry.tables(TableRequest::Create("Staff")).await?;
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Retry {
    inner: Arc<dyn Backend>,
    policy: RetryPolicy,
    budget: Arc<RetryBudget>,
}

/// Returns whether a read that failed with this error may succeed later, or elsewhere.
pub fn is_read_worth_repeating(error: &Error) -> bool {
    FailureCertainty::is_read_worth_repeating(error)
}

impl Retry {
    /// Makes a retry layer in front of `backend`.
    pub fn around(backend: impl Backend, policy: RetryPolicy) -> Self {
        let budget = Arc::new(RetryBudget::new(policy.budget));
        Self { inner: Arc::new(backend), policy, budget }
    }

    fn new_state(&self) -> RetryState<'_> {
        RetryState::new(&self.policy, &self.budget)
    }

    /// Makes a read request, and repeats it while the policy allows.
    async fn retry_read<'a, T>(
        &self,
        table: &str,
        request: impl Fn() -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut attempts = self.new_state();
        loop {
            match request().await {
                Ok(answer) => {
                    self.budget.refund_tenth_of_retry();
                    return Ok(answer);
                }
                Err(error) if FailureCertainty::is_read_worth_repeating(&error) => {
                    if !attempts.wait_for_next_attempt(&error).await {
                        return Err(error);
                    }
                    count_request_retry(table);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes a write, and repeats it only where it cannot take effect twice.
    async fn retry_write(&self, given: &Batch) -> Result<Vec<Written>> {
        let with_ids = if self.policy.operation_ids {
            operation_id::batch_with_operation_id(given)
        } else {
            None
        };
        let (mut batch, mut id) = match with_ids {
            Some((batch, id)) => (Cow::Owned(batch), Some(id)),
            None => (Cow::Borrowed(given), None),
        };
        let mut attempts = self.new_state();
        // The most doubtful failure so far: what a later attempt sees may be the work of an earlier one.
        let mut doubt = None;
        loop {
            let error = match self.inner.apply(&batch).await {
                Ok(written) => {
                    self.budget.refund_tenth_of_retry();
                    return Ok(written);
                }
                Err(error) => error,
            };
            // A merge may meet a row that has room for what is given, and none for the id.
            if id.is_some() && doubt.is_none() && error.is_too_large() {
                (batch, id) = (Cow::Borrowed(given), None);
                continue;
            }
            let failure = FailureCertainty::of_write(&error);
            if matches!(failure, FailureCertainty::Throttled | FailureCertainty::Unknown) {
                doubt = doubt.max(Some(failure));
            }
            // Wait before the rows are read: a write whose answer was lost may still be on its way.
            let more = failure != FailureCertainty::Refused
                && attempts.wait_for_next_attempt(&error).await;
            let Some(doubt) = doubt else {
                if more {
                    count_request_retry(batch.table());
                    continue;
                }
                return Err(error);
            };
            match self.judge_by_rows(&batch, id, doubt, more).await {
                Ok(WriteVerdict::Done(written)) => {
                    note_lost_answer_decision(batch.table(), "carried_out");
                    return Ok(written);
                }
                Ok(WriteVerdict::Repeatable { .. }) if more => {}
                // "Too busy" comes before any work, except from a proxy: in all likelihood the
                // write is sent for the first time here, and not a second time over the changes of
                // others.
                Ok(WriteVerdict::Unclear { unguarded: true, .. })
                    if more && doubt == FailureCertainty::Throttled => {}
                verdict => {
                    let error = match verdict {
                        Ok(verdict) => final_error(&batch, &verdict, failure, doubt, error),
                        Err(unread) => unread_rows_error(&batch, &error, unread),
                    };
                    let is_known = error.kind() != ErrorKind::Ambiguous;
                    let decision = if is_known { "not_carried_out" } else { "ambiguous" };
                    note_lost_answer_decision(batch.table(), decision);
                    return Err(error);
                }
            }
            note_lost_answer_decision(batch.table(), "sent_again");
            count_request_retry(batch.table());
        }
    }

    /// Makes a read request that is not part of the [`Backend`] trait, and repeats it while the policy
    /// allows.
    #[doc(hidden)]
    pub async fn retry_non_backend_read<'a, T>(
        &self,
        request: impl Fn() -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        self.retry_read("", request).await
    }

    /// Makes a write that is not part of the [`Backend`] trait and that sets a whole state. After
    /// "too busy" or a lost answer, calls `holds` to read whether the state is as requested. Does not
    /// repeat the write after a lost answer: it could undo the change of another writer in between.
    #[doc(hidden)]
    pub async fn retry_non_backend_write<'a>(
        &self,
        request: impl Fn() -> BoxFuture<'a, Result<()>>,
        holds: impl Fn() -> BoxFuture<'a, Result<bool>>,
    ) -> Result<()> {
        let mut attempts = self.new_state();
        loop {
            let Err(error) = request().await else { return Ok(()) };
            let failure = FailureCertainty::of_write(&error);
            let more = failure != FailureCertainty::Refused
                && attempts.wait_for_next_attempt(&error).await;
            let in_doubt =
                matches!(failure, FailureCertainty::Throttled | FailureCertainty::Unknown);
            // If the state cannot be read either, the error of the write says more.
            if in_doubt && self.retry_read("", &holds).await.is_ok_and(|holds| holds) {
                return Ok(());
            }
            if !more || failure == FailureCertainty::Unknown {
                return Err(error);
            }
        }
    }

    /// Reads the rows of a write and judges by them whether it was carried out. Reads the first row of a transaction
    /// alone if the transaction may be repeated (`more`): it is all or nothing, so one row often decides, and a store
    /// that is too busy is spared the other reads. If another row no longer satisfies its guard, the store refuses the
    /// repeated transaction.
    async fn judge_by_rows(
        &self,
        batch: &Batch,
        id: Option<OperationId>,
        doubt: FailureCertainty,
        more: bool,
    ) -> Result<WriteVerdict> {
        let (first, rest) = batch.operations().split_at(1.min(batch.len()));
        let mut rows = self.read_rows(batch.table(), first).await?;
        if more && !rest.is_empty() {
            let verdict = judge_write_from_rows(batch, &rows, id)?;
            if can_repeat_by_first_row(&verdict, id, doubt) {
                return Ok(verdict);
            }
        }
        rows.extend(self.read_rows(batch.table(), rest).await?);
        judge_write_from_rows(batch, &rows, id)
    }

    /// Reads the rows of these operations, several at a time.
    async fn read_rows(&self, table: &str, operations: &[Operation]) -> Result<Vec<Option<Row>>> {
        let mut reads: Vec<BoxFuture<'_, Result<Option<Row>>>> =
            Vec::with_capacity(operations.len());
        for operation in operations {
            let row = operation.row();
            let (partition_key, row_key) = (row.partition_key(), row.row_key());
            let request = ReadRequest { table, partition_key, row_key, select: None };
            reads.push(Box::pin(self.retry_read(table, move || self.inner.read(request))));
        }
        stream::iter(reads).buffered(PARALLEL_READS).try_collect().await
    }

    /// Creates or deletes a table, and repeats the request while the policy allows. `done` is the code of a
    /// table that exists already or is gone already.
    async fn retry_table_change(
        &self,
        request: TableRequest<'_>,
        done: ServiceCode,
    ) -> Result<TableNames> {
        let mut attempts = self.new_state();
        let mut in_doubt = false;
        loop {
            let error = match self.inner.tables(request).await {
                Ok(answer) => {
                    self.budget.refund_tenth_of_retry();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            // After a lost answer, "exists already" and "is gone" are what the caller wants.
            if in_doubt && error.service_code() == Some(&done) {
                return Ok(TableNames::default());
            }
            let failure = FailureCertainty::of_write(&error);
            in_doubt |= matches!(failure, FailureCertainty::Throttled | FailureCertainty::Unknown);
            if failure == FailureCertainty::Refused || !attempts.wait_for_next_attempt(&error).await
            {
                return Err(error);
            }
            if let TableRequest::Create(name) | TableRequest::Delete(name) = request {
                count_request_retry(name);
            }
        }
    }
}

/// Returns whether the verdict of a transaction's first row is enough to repeat the transaction.
fn can_repeat_by_first_row(
    verdict: &WriteVerdict,
    id: Option<OperationId>,
    doubt: FailureCertainty,
) -> bool {
    match verdict {
        WriteVerdict::Repeatable { certain: true } => true,
        // With ids, another row may prove that the transaction was carried out.
        _ if id.is_some() => false,
        WriteVerdict::Repeatable { .. } => true,
        WriteVerdict::Unclear { unguarded, .. } => {
            *unguarded && doubt == FailureCertainty::Throttled
        }
        WriteVerdict::Done(_) => false,
    }
}

/// Returns the error for a write that is not repeated. Returns `error` if the answers and the rows
/// say that the write did not happen. Otherwise returns an `is_ambiguous` error with the state that was
/// found.
fn final_error(
    batch: &Batch,
    verdict: &WriteVerdict,
    last: FailureCertainty,
    doubt: FailureCertainty,
    error: Error,
) -> Error {
    match verdict {
        // The write was refused while the row was still unchanged, so no earlier attempt succeeded.
        WriteVerdict::Repeatable { certain: true } if last == FailureCertainty::Refused => error,
        // The service only said "too busy", and the rows show no trace of the write.
        WriteVerdict::Repeatable { .. }
            if last != FailureCertainty::Refused && doubt == FailureCertainty::Throttled =>
        {
            error
        }
        WriteVerdict::Unclear { seen, .. } => ambiguous_error(batch, *seen, error),
        WriteVerdict::Repeatable { certain: true } => {
            ambiguous_error(batch, Seen::Unchanged, error)
        }
        WriteVerdict::Repeatable { .. } | WriteVerdict::Done(_) => {
            ambiguous_error(batch, Seen::Absent, error)
        }
    }
}

fn ambiguous_error(batch: &Batch, seen: Seen, cause: Error) -> Error {
    let what = match seen {
        Seen::Equal => "the row now contains what this write, or an equal one, wrote",
        Seen::Absent => "the row does not exist now",
        Seen::Unchanged => "the row is unchanged",
        Seen::Other => "the row now contains something else",
    };
    let message = format!("the answer was lost and the write may have happened: {what}");
    name_rows(batch, Error::new(ErrorKind::Ambiguous, message).with_seen(seen).with_source(cause))
}

fn unread_rows_error(batch: &Batch, cause: &Error, unread: Error) -> Error {
    let message = format!(
        "the answer was lost ({}) and the row cannot be read; the write may have happened",
        cause.message()
    );
    name_rows(batch, Error::new(ErrorKind::Ambiguous, message).with_source(unread))
}

fn name_rows(batch: &Batch, error: Error) -> Error {
    let error = error.in_table(batch.table());
    match batch.operations() {
        [only] => error.at_keys(only.row().partition_key(), only.row().row_key()),
        _ => error,
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Retry {
    forward_to_inner!(origin);
    forward_to_inner!(store);

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(self.retry_read(request.table, move || self.inner.read(request)))
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(self.retry_read(request.table, move || self.inner.scan(request)))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(self.retry_write(batch))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(_) => {
                    self.retry_table_change(request, ServiceCode::TableAlreadyExists).await
                }
                TableRequest::Delete(_) => {
                    self.retry_table_change(request, ServiceCode::ResourceNotFound).await
                }
                TableRequest::List { .. } => {
                    self.retry_read("", move || self.inner.tables(request)).await
                }
            }
        })
    }
}

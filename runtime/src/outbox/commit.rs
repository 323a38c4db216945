//! Commits changes: reads what they need, plans and sends one entity group transaction, and plans again
//! if another writer changed a row of the framework in between.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use futures_util::future::try_join_all;

use super::{
    claims::Claims,
    outbox_plan::{ExtraRows, OutboxPlan},
    state::Outbox,
    unique_violation::Wanted,
};
use crate::{
    backend::Read,
    batch::Written,
    entity::BackgroundWork,
    error::{Error, ErrorKind, Result, ServiceCode},
    key::Family,
    limits::BATCH_OPERATIONS,
    plan::{Change, Effect, Role, StoredList, Tokens, TransactionPlan, Unresolved, list_deltas},
    row::Row,
    store::{
        backoff,
        lists::read_list,
        sealing::{open::Reading, plan::Placed},
    },
};

/// What became of one change.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The answer for the primary; `None` where there was nothing to do.
    pub(crate) written: Option<Written>,
    /// The primary as it is now, where the verb knows all of it.
    pub(crate) row: Option<Row>,
}

/// What became of all changes.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) outcomes: Vec<Outcome>,
    /// What goes on in other partitions.
    pub(crate) pending: BackgroundWork,
}

/// Writes all changes or none; they are in one partition.
///
/// An error's `failed_index` is the change.
pub(crate) async fn commit(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
) -> Result<Landed> {
    commit_with(outbox, table, changes, &ExtraRows::default()).await
}

/// The same with further rows of the outbox.
pub(crate) async fn commit_with(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    extra_rows: &ExtraRows,
) -> Result<Landed> {
    let mut busy = None;
    for attempt in 0..backoff::ATTEMPTS {
        match try_once(outbox, table, changes, extra_rows).await? {
            Attempt::Landed(landed) => return Ok(landed),
            Attempt::Raced => busy = None,
            Attempt::Busy(error) => busy = Some(error),
        }
        backoff::wait(&outbox.store.random, attempt).await;
    }
    if let Some(busy) = busy {
        return Err(busy);
    }
    let (partition_key, row_key) = changes.first().map(Change::keys).unwrap_or_default();
    Err(backoff::contended().in_table(table).at_keys(partition_key, row_key))
}

/// Puts the tokens into the keys of a verb. It fetches the index key only if the verb needs tokens.
///
/// # Errors
///
/// Fails if no index key can be had, or if the keys cannot be completed.
pub(crate) async fn resolve_change(
    outbox: &Outbox,
    table: &str,
    verb: Unresolved,
) -> Result<Change> {
    let tokens = match &verb {
        Unresolved::NeedsTokens(_) => outbox.store.tokens().await,
        Unresolved::Ready(_) => Ok(Tokens::none()),
    };
    tokens.and_then(|tokens| verb.resolve(&tokens)).map_err(|error| error.in_table(table))
}

/// Puts the tokens into the keys of verbs. It fetches the index key only if a verb needs tokens.
///
/// # Errors
///
/// Fails if no index key can be had, or with the index of the verb whose keys cannot be completed.
pub(crate) async fn resolve_changes(
    outbox: &Outbox,
    table: &str,
    verbs: Vec<Unresolved>,
) -> Result<Vec<Change>> {
    let needs_tokens = |verb: &Unresolved| matches!(verb, Unresolved::NeedsTokens(_));
    let tokens = match verbs.iter().any(needs_tokens) {
        true => outbox.store.tokens().await.map_err(|error| error.in_table(table))?,
        false => Tokens::none(),
    };
    let changes = verbs.into_iter().enumerate().map(|(index, verb)| {
        verb.resolve(&tokens).map_err(|error| error.in_table(table).at_operation(index))
    });
    changes.collect()
}

/// What became of one attempt.
enum Attempt {
    Landed(Landed),
    /// Another writer was first on an internal row.
    Raced,
    /// Another write of the same entity is under way, or died.
    Busy(Error),
}

/// Reads, plans and sends.
///
/// A copy that was not there to be deleted is left out of the same plan only: a writer that creates
/// it moves the primary's version as well, and a new plan from that version deletes it.
async fn try_once(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    extra_rows: &ExtraRows,
) -> Result<Attempt> {
    let effects = try_join_all(
        changes.iter().enumerate().map(|(verb, change)| effect(outbox, table, verb, change)),
    )
    .await?;
    let lists = read_lists(outbox, table, &effects).await?;
    let mut work = OutboxPlan::of(outbox, table, &effects, extra_rows).await;
    if work.claims() {
        // Nothing is reserved for a transaction that is too large.
        let planned = TransactionPlan::new(&effects, &lists, &HashSet::new())?.planned().len();
        check_room(table, planned + work.operations())?;
    }
    let claims = match work.claim(outbox).await {
        Ok(claims) => claims,
        Err(error) if error.is_contended() => return Ok(Attempt::Busy(error)),
        Err(error) => {
            return Err(match work.verb_of(&effects, &error) {
                Some(verb) if error.is_unique_violation() => error.at_operation(verb),
                _ => error,
            });
        }
    };
    let plan = Planned { table, changes, effects: &effects, lists: &lists };
    let landed = plan.send(outbox, work, claims.as_ref()).await;
    if let (Some(claims), Ok(None) | Err(_)) = (&claims, &landed) {
        claims.release(outbox, landed.as_ref().err().is_none_or(Error::is_outcome_known)).await;
    }
    Ok(landed?.map_or(Attempt::Raced, Attempt::Landed))
}

/// What is known before anything is sent.
struct Planned<'p> {
    table: &'p str,
    changes: &'p [Change],
    effects: &'p [Arc<Effect>],
    lists: &'p BTreeMap<String, Option<StoredList>>,
}

impl Planned<'_> {
    /// Sends the transaction, again where a row of the framework was not as it was thought to be.
    async fn send(
        &self,
        outbox: &Arc<Outbox>,
        mut work: OutboxPlan<'_>,
        claims: Option<&Claims>,
    ) -> Result<Option<Landed>> {
        let Self { table, changes, effects, lists } = *self;
        let mut missing = HashSet::new();
        loop {
            let mut transaction = TransactionPlan::new(effects, lists, &missing)?;
            work.record(outbox, &mut transaction, claims).await?;
            let failure = match send(outbox, table, &transaction).await {
                Ok(written) => {
                    let outcomes = outcomes(effects, &transaction, &written);
                    let pending = work.begin(outbox, &transaction, &written);
                    return Ok(Some(Landed { outcomes, pending }));
                }
                Err(error) => error,
            };
            match Failed::of(&failure, &transaction, changes) {
                Failed::Caller(verb) => return Err(failure.at_operation(verb)),
                Failed::Taken(verb, family, copy) => {
                    let Some(effect) = effects.get(verb) else { return Err(failure) };
                    let wanted = Wanted { table, copy, family, effect };
                    let Some(error) = wanted.violation(outbox).await? else { return Ok(None) };
                    let code = failure.service_code().cloned();
                    let error = error.at_operation(verb);
                    return Err(code.into_iter().fold(error, Error::with_code));
                }
                Failed::MissingCopy(row_key) if missing.insert(row_key.clone()) => {}
                Failed::OutboxPlan(role) if work.goes_on(outbox, role) => {}
                Failed::MissingCopy(_) | Failed::OutboxPlan(_) | Failed::Other => {
                    return Err(failure.without_operation());
                }
                Failed::Race => return Ok(None),
                Failed::Behind => return Err(behind(table, &failure)),
            }
        }
    }
}

/// Returns the effect of a change, after a read of the primary if it needs one.
async fn effect(
    outbox: &Outbox,
    table: &str,
    index: usize,
    change: &Change,
) -> Result<Arc<Effect>> {
    let verb = match change {
        Change::Blind(effect) => return Ok(effect.clone()),
        Change::OnCurrent(verb) => verb,
    };
    let (partition_key, row_key) = verb.keys();
    let read = Read { table, partition_key, row_key, select: None };
    let row = outbox.store.read_as(read, Reading::Typed(verb.schema())).await?;
    let effect = verb.effect(row.as_ref());
    effect.map(Arc::new).map_err(|error| error.in_table(table).at_operation(index))
}

/// Reads every list that the effects change: the head, and spills where it has any.
async fn read_lists(
    outbox: &Outbox,
    table: &str,
    effects: &[Arc<Effect>],
) -> Result<BTreeMap<String, Option<StoredList>>> {
    let deltas = list_deltas(effects);
    let partition_key = effects
        .iter()
        .find_map(|effect| effect.primary.first())
        .map(|operation| operation.row().partition_key())
        .unwrap_or_default();
    let lists = deltas.into_keys().map(|row_key| async move {
        let list = read_list(&outbox.store, table, partition_key, &row_key).await?;
        Ok::<_, Error>((row_key, list))
    });
    Ok(try_join_all(lists).await?.into_iter().collect())
}

fn check_room(table: &str, operations: usize) -> Result<()> {
    if operations <= BATCH_OPERATIONS {
        return Ok(());
    }
    let message = format!(
        "an entity group transaction has at most {BATCH_OPERATIONS} operations, copies, lists and the outbox included, and this makes {operations}"
    );
    let error = Error::new(ErrorKind::TooLarge, message);
    Err(error.with_code(ServiceCode::InvalidInput).in_table(table))
}

async fn send(outbox: &Outbox, table: &str, transaction: &TransactionPlan) -> Result<Vec<Written>> {
    let planned = transaction.planned();
    check_room(table, planned.len())?;
    let placed = planned.iter().map(|one| Placed::new(one.operation.clone(), one.stored_as));
    outbox.store.write(table, placed.collect()).await
}

fn outcomes(
    effects: &[Arc<Effect>],
    transaction: &TransactionPlan,
    written: &[Written],
) -> Vec<Outcome> {
    let results = transaction.result_positions(effects.len());
    effects
        .iter()
        .zip(results)
        .map(|(effect, at)| Outcome {
            written: at.and_then(|at| written.get(at).cloned()),
            row: effect.row.clone(),
        })
        .collect()
}

/// Whose fault a failure is.
enum Failed<'t> {
    /// The verb of that number.
    Caller(usize),
    /// A key of an index is taken.
    Taken(usize, &'static Family, &'t Row),
    /// An old copy is not there, and need not be deleted.
    MissingCopy(String),
    /// Another writer was first on a row that is not the caller's.
    Race,
    /// A row of the outbox was not as it was thought to be.
    OutboxPlan(Role),
    /// Too much work of one primary is open.
    Behind,
    /// No operation's.
    Other,
}

impl<'t> Failed<'t> {
    fn of(error: &Error, transaction: &'t TransactionPlan, changes: &[Change]) -> Self {
        let at = match error.failed_index() {
            Some(at) => at,
            None if transaction.planned().len() == 1 => 0,
            None => return Self::Other,
        };
        let Some(failed) = transaction.planned().get(at) else { return Self::Other };
        if error.is_too_large() {
            return match (failed.role, transaction.verb_at(at)) {
                (Role::Dirty(_), _) => Self::Behind,
                (_, Some(verb)) => Self::Caller(verb),
                (_, None) => Self::Other,
            };
        }
        let raced = error.lost_race();
        match failed.role {
            Role::Primary(verb) => {
                let reads_again = changes.get(verb).is_some_and(Change::reads_again);
                if raced && reads_again { Self::Race } else { Self::Caller(verb) }
            }
            Role::NewCopy(verb, family) if error.is_conflict() => {
                Self::Taken(verb, family, failed.operation.row())
            }
            Role::NewCopy(verb, _) => Self::Caller(verb),
            Role::OldCopy if error.is_not_found() && raced => {
                Self::MissingCopy(failed.operation.row().row_key().to_owned())
            }
            role @ (Role::Dirty(_) | Role::Note | Role::Fence) if raced => Self::OutboxPlan(role),
            _ if raced => Self::Race,
            _ => Self::Other,
        }
    }
}

/// A primary whose dirty row is full: its rows elsewhere kept changing, and no worker came.
fn behind(table: &str, failure: &Error) -> Error {
    let message = "the work on the entity's copies in other partitions is too far behind: run a worker, `client.worker().run(..)`";
    let error = Error::new(ErrorKind::Contended, message).in_table(table);
    match failure.keys() {
        Some((partition_key, row_key)) => error.at_keys(partition_key, row_key),
        None => error,
    }
}

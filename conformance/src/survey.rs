//! Tries every promise on one service and reports those that it breaks.

use std::{any::Any, sync::Arc};

use super::{Setup, Trial};
use entable_core::{
    backend::{Backend, TableRequest},
    error::{Error, ErrorKind, Result},
};

/// The function that tries a promise.
type TryPromise = fn(Setup) -> Trial;

/// Every promise with its name.
const TRIALS: &[(&str, TryPromise)] = crate::for_each_promise!(crate::promise_trials);

/// The longest prefix: the rest of a name of 63 characters is needed by promises about names.
const PREFIX_LENGTH: usize = 20;

/// A promise that a service breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The promise as `topic::promise`.
    pub promise: &'static str,
    /// The assertion that failed, with what was found.
    pub found: String,
}

/// The outcome of a [`survey`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SurveyReport {
    /// Number of promises that the service keeps.
    pub kept: usize,
    /// The promises that it breaks, in the order of [`PROMISES`](super::PROMISES).
    pub differences: Vec<Difference>,
}

/// Tries every promise on a backend, one after the other. Creates tables whose names begin with `prefix`,
/// and deletes them afterwards.
///
/// `before_each` is called with the name of each promise before it is tried. A promise is an assertion that
/// panics where it is broken. Unless the program sets a panic hook of its own, each panic is written to
/// standard error.
///
/// # Errors
///
/// * `is_invalid` if `prefix` is not 1 to 20 ASCII letters and digits that begin with a letter, or if a table
///   with such a name exists.
/// * Errors of the service if tables cannot be listed, created or deleted. Tables may then be left;
///   [`delete_tables`] deletes them.
///
/// ```
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
/// use std::sync::Arc;
/// use entable_conformance::{PROMISES, survey};
/// use entable_core::backend::Memory;
///
/// let report = survey(Arc::new(Memory::new()), "Check7f3a", |_| ()).await?;
/// assert_eq!((report.kept, report.differences.len()), (PROMISES.len(), 0));
/// # Ok::<(), entable_core::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn survey(
    backend: Arc<dyn Backend>,
    prefix: &str,
    mut before_each: impl FnMut(&'static str),
) -> Result<SurveyReport> {
    refuse_prefix(prefix)?;
    if !tables_of(&*backend, prefix).await?.is_empty() {
        let message =
            format!("tables whose names begin with `{prefix}` already exist; use another prefix");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    probe(&*backend, prefix).await?;
    let mut report = SurveyReport::default();
    for (promise, trial) in TRIALS {
        before_each(promise);
        // The whole trial is a task: a setup whose table cannot be created breaks the promise, too.
        let (backend, prefix, trial) = (Arc::clone(&backend), prefix.to_owned(), *trial);
        let task = tokio::spawn(async move {
            trial(Setup::with_prefix(backend, &prefix).await).await;
        });
        match task.await {
            Ok(()) => report.kept += 1,
            Err(broken) => report.differences.push(Difference { promise, found: found_by(broken) }),
        }
    }
    delete_tables(&*backend, prefix).await?;
    Ok(report)
}

/// Deletes all tables whose names begin with `prefix`, in any case. Returns their number.
///
/// # Errors
///
/// `is_invalid` for a prefix that [`survey`] refuses; errors of the service.
pub async fn delete_tables(backend: &dyn Backend, prefix: &str) -> Result<usize> {
    refuse_prefix(prefix)?;
    let names = tables_of(backend, prefix).await?;
    let mut deleted = 0;
    for name in names {
        match backend.tables(TableRequest::Delete(&name)).await {
            Ok(_) => deleted += 1,
            // Another process, or an attempt whose answer was lost, has deleted it.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

/// Creates and deletes a table, to report missing permissions once and not for each promise.
async fn probe(backend: &dyn Backend, prefix: &str) -> Result<()> {
    let name = format!("{prefix}Probe");
    backend.tables(TableRequest::Create(&name)).await?;
    backend.tables(TableRequest::Delete(&name)).await.map(drop)
}

fn refuse_prefix(prefix: &str) -> Result<()> {
    let is_name = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_name && prefix.len() <= PREFIX_LENGTH {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Invalid,
        format!(
            "expected a prefix of 1 to {PREFIX_LENGTH} ASCII letters and digits that begins with a letter, found \
         {prefix:?}"
        ),
    ))
}

/// Returns the names of tables that begin with `prefix`, in any case.
async fn tables_of(backend: &dyn Backend, prefix: &str) -> Result<Vec<String>> {
    let (mut names, mut from) = (Vec::new(), None::<String>);
    loop {
        let request = TableRequest::List { from: from.as_deref(), within: None };
        let page = backend.tables(request).await?;
        names.extend(page.names.into_iter().filter(|name| {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        }));
        from = page.next;
        if from.is_none() {
            return Ok(names);
        }
    }
}

/// Returns the message of the assertion that failed.
fn found_by(broken: tokio::task::JoinError) -> String {
    let Ok(payload) = broken.try_into_panic() else {
        return "the promise was cancelled".to_owned();
    };
    let payload: &(dyn Any + Send) = &*payload;
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

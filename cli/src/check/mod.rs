//! Checks a service against what the library promises: four parts, each a list of findings.
//!
//! The tables of all parts have names with one random prefix. [`run`] deletes them, whatever the outcome is.

mod isolated;
mod lost;
mod outcome;
mod patterns;
mod relay;
mod report;
mod timings;

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use clap::ValueEnum;
use entable::{
    AzureOptions, Error,
    backend::{Backend, layer::Recorder},
    conformance::{PROMISES, delete_tables, survey},
};

use self::isolated::Isolated;
pub(crate) use self::report::{Report, Scrubber};

/// A part of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckPart {
    /// Each promise of the service's behaviour that the library relies on
    Promises,
    /// The patterns of the design guide, by typed entities
    Patterns,
    /// Writes whose connection a proxy on this machine cuts
    LostAnswers,
    /// The time of common requests
    Timings,
}

impl CheckPart {
    /// Every part, in the order of running.
    pub(crate) const ALL: [Self; 4] =
        [Self::Promises, Self::Patterns, Self::LostAnswers, Self::Timings];
}

/// The service that is checked.
pub(crate) struct Service {
    /// The service behind retries, as programs use it.
    pub(crate) backend: Arc<dyn Backend>,
    /// How the service is reached, for connections through a proxy that cuts them. Without it no answer is
    /// lost.
    pub(crate) options: Option<AzureOptions>,
}

/// Returns a prefix of table names that no other check has used.
pub(crate) fn random_prefix() -> String {
    // The standard library seeds each of these hashers at random.
    format!("Check{:08x}", RandomState::new().build_hasher().finish() >> 32)
}

/// Runs parts of the check in tables whose names begin with `prefix`, and deletes these tables. Calls
/// `progress` with the name of each step.
///
/// # Errors
///
/// Errors of the service that prevent any check: no connection, or no permission to create tables.
pub(crate) async fn run(
    service: &Service,
    prefix: &str,
    parts: &[CheckPart],
    progress: impl Fn(&str),
) -> Result<Report, Error> {
    let counted = Recorder::around(Arc::clone(&service.backend));
    let checked = Service { backend: Arc::new(counted.clone()), options: service.options.clone() };
    let mut report = Report::default();
    let mut outcome = Ok(());
    for part in CheckPart::ALL.into_iter().filter(|part| parts.contains(part)) {
        outcome = run_part(&checked, prefix, part, &progress, &mut report).await;
        // The log of requests is counted and not kept: a check sends thousands.
        report.requests += counted.take().len();
        if outcome.is_err() {
            break;
        }
    }
    progress("deleting the tables");
    let deleted = delete_tables(&*service.backend, prefix).await;
    outcome.and(deleted.map(drop)).map(|()| report)
}

async fn run_part(
    service: &Service,
    prefix: &str,
    part: CheckPart,
    progress: &impl Fn(&str),
    report: &mut Report,
) -> Result<(), Error> {
    match part {
        CheckPart::Promises => {
            let mut tried = 0;
            let prefix = format!("{prefix}P");
            let surveyed = survey(Arc::clone(&service.backend), &prefix, |promise| {
                tried += 1;
                progress(&format!("promise {tried} of {}: {promise}", PROMISES.len()));
            });
            report.add_survey(surveyed.await?);
        }
        CheckPart::Patterns => {
            let isolated: Arc<dyn Backend> =
                Isolated::around(Arc::clone(&service.backend), &format!("{prefix}G"));
            report.patterns = patterns::try_all(&isolated, progress).await;
        }
        CheckPart::LostAnswers => {
            if let Some(options) = &service.options {
                let table = format!("{prefix}Lost");
                report.lost_answers =
                    lost::try_all(&service.backend, options, &table, progress).await?;
            }
        }
        CheckPart::Timings => {
            progress("timings");
            report.timings = timings::measure(&*service.backend, &format!("{prefix}Time")).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

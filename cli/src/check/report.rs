//! The report of a check, as Markdown and as JSON, without secrets.

use std::fmt::Write as _;

use entable::conformance::SurveyReport;
use serde_json::{Value, json};

use super::{outcome::Finding, timings::Timing};

/// The findings of a check, by part.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Number of promises that are kept.
    pub(crate) promises_kept: usize,
    /// The promises that are broken.
    pub(crate) promises_broken: Vec<Finding>,
    pub(crate) patterns: Vec<Finding>,
    pub(crate) lost_answers: Vec<Finding>,
    pub(crate) timings: Vec<Timing>,
    /// Number of requests that were sent, without those through the relay and without retries.
    pub(crate) requests: usize,
}

impl Report {
    pub(super) fn add_survey(&mut self, survey: SurveyReport) {
        self.promises_kept = survey.kept;
        self.promises_broken = survey
            .differences
            .into_iter()
            .map(|one| Finding { name: one.promise.to_owned(), found: Some(one.found) })
            .collect();
    }

    /// Returns everything that was not as promised.
    pub(crate) fn differences(&self) -> impl Iterator<Item = &Finding> {
        [&self.promises_broken, &self.patterns, &self.lost_answers]
            .into_iter()
            .flatten()
            .filter(|finding| finding.found.is_some())
    }

    /// Returns the report as Markdown. `service` describes the service without naming the account.
    pub(crate) fn to_markdown(&self, service: &str, scrubber: &Scrubber) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "# Check of {service}\n\nentable {}, {} requests. Differences from what is promised: {}.",
            env!("CARGO_PKG_VERSION"),
            self.requests,
            self.differences().count(),
        );
        let promises = self.promises_kept + self.promises_broken.len();
        for (title, tried, findings) in [
            ("Promises", promises, &self.promises_broken),
            ("Patterns of the design guide", self.patterns.len(), &self.patterns),
            ("Lost answers", self.lost_answers.len(), &self.lost_answers),
        ] {
            let broken: Vec<_> =
                findings.iter().filter_map(|one| Some((&one.name, one.found.as_ref()?))).collect();
            let _ = writeln!(
                text,
                "\n## {title}\n\nTried {tried}, as promised {}.",
                tried - broken.len()
            );
            for (name, found) in broken {
                let _ = writeln!(
                    text,
                    "\n### {name}\n\n```text\n{}\n```",
                    fenced(&scrubber.scrub(found))
                );
            }
        }
        if !self.timings.is_empty() {
            let _ = writeln!(
                text,
                "\n## Times\n\n| request | timed | median | slowest |\n|---|---|---|---|"
            );
        }
        for Timing { name, requests, median_ms, slowest_ms } in &self.timings {
            let _ =
                writeln!(text, "| {name} | {requests} | {median_ms:.1} ms | {slowest_ms:.1} ms |");
        }
        text
    }

    /// Returns the report for scripts.
    pub(crate) fn to_json(&self, service: &str, scrubber: &Scrubber) -> Value {
        let findings = |findings: &[Finding]| -> Vec<Value> {
            let one = |finding: &Finding| json!({"name": finding.name, "found": finding.found.as_deref().map(|found| scrubber.scrub(found))});
            findings.iter().map(one).collect()
        };
        let timing = |one: &Timing| {
            json!({
                "request": one.name, "timed": one.requests, "median_ms": one.median_ms, "slowest_ms": one.slowest_ms,
            })
        };
        json!({
            "entable": env!("CARGO_PKG_VERSION"),
            "service": service,
            "requests": self.requests,
            "differences": self.differences().count(),
            "promises": {"kept": self.promises_kept, "broken": findings(&self.promises_broken)},
            "patterns": findings(&self.patterns),
            "lost_answers": findings(&self.lost_answers),
            "timings": self.timings.iter().map(timing).collect::<Vec<_>>(),
        })
    }
}

/// Returns the text without a line that would end its block of Markdown.
fn fenced(text: &str) -> String {
    text.replace("```", "` ` `")
}

/// Removes the account's name, its host and its secrets from texts. Errors contain no secrets, but a report
/// for others must not depend on that alone.
#[derive(Debug, Default)]
pub(crate) struct Scrubber {
    hidden: Vec<String>,
}

impl Scrubber {
    /// Hides these texts. Texts of fewer than three characters hide nothing.
    pub(crate) fn new(hidden: impl IntoIterator<Item = String>) -> Self {
        let mut hidden: Vec<_> = hidden.into_iter().filter(|text| text.len() >= 3).collect();
        // A text that contains another one goes first.
        hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self { hidden }
    }

    pub(crate) fn scrub(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, hidden| text.replace(hidden, "<hidden>"))
    }
}

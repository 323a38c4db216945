//! Compares the access patterns of two programs: what each cost, what it costs, and which change of an entity type
//! is the cause.

use std::fmt;

use super::{
    causes::causes_of_call,
    pattern_shape::{CallShape, DeclaredShape, PatternShape, PlanShape},
    shape::EntityShape,
};

/// A pattern whose cost differs from its plan in the layout file, whose declaration has changed, or whose claim does
/// not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatternChange {
    /// The name of the patterns, such as `STAFF`.
    pub patterns: String,
    /// The name of the pattern.
    pub name: String,
    /// The differences, in words: what the pattern was, and what it is.
    pub what: Vec<String>,
    /// The changes of entity types that caused the differences in `what`, such as an added index. Empty if the two
    /// layouts show none.
    pub because: Vec<String>,
    /// The claim that the pattern no longer meets, in words; `None` if it meets all.
    pub broken: Option<String>,
}

impl fmt::Display for PatternChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pattern \"{}\" of {}", self.name, self.patterns)?;
        let mut separator = ": ";
        for what in &self.what {
            write!(f, "{separator}{what}")?;
            separator = "; ";
        }
        self.because.iter().try_for_each(|because| write!(f, "\n  because {because}"))?;
        match &self.broken {
            Some(broken) => write!(f, "\n  does not hold: {broken}"),
            None => Ok(()),
        }
    }
}

/// Returns the patterns that changed, with the changes of entity types that caused it.
pub(super) fn compare_patterns(
    (old, new): (&[PatternShape], &[PatternShape]),
    entities: (&[EntityShape], &[EntityShape]),
) -> Vec<PatternChange> {
    let mut changes = Vec::new();
    for is in new {
        let was = old.iter().find(|was| was.has_name_of(is));
        let what = match was {
            Some(was) => differences(was, is),
            None => vec![format!("is new, {}", plan_words(&is.plan))],
        };
        if what.is_empty() && is.broken.is_none() {
            continue;
        }
        let because = was.map_or_else(Vec::new, |was| causes(was, is, entities));
        changes.push(PatternChange { what, because, ..PatternChange::of_pattern(is) });
    }
    for was in old.iter().filter(|was| !new.iter().any(|is| is.has_name_of(was))) {
        let what = vec!["is gone".to_owned()];
        changes.push(PatternChange { what, ..PatternChange::of_pattern(was) });
    }
    changes
}

impl PatternChange {
    fn of_pattern(pattern: &PatternShape) -> Self {
        Self {
            patterns: pattern.group.clone(),
            name: pattern.name.clone(),
            what: Vec::new(),
            because: Vec::new(),
            broken: pattern.broken.clone(),
        }
    }
}

fn differences(was: &PatternShape, is: &PatternShape) -> Vec<String> {
    let mut what = Vec::new();
    if was.plan != is.plan {
        what.push(format!("was {}, and is {}", plan_words(&was.plan), plan_words(&is.plan)));
    }
    if was.calls != is.calls {
        what.push(format!("called {}, and calls {}", calls(&was.calls), calls(&is.calls)));
    }
    let only = |some: &[String], others: &[String]| {
        let only = some.iter().filter(|name| !others.contains(name));
        only.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let (more, fewer) = (only(&is.compared, &was.compared), only(&was.compared, &is.compared));
    if !more.is_empty() {
        what.push(format!("now compares {more} in each row"));
    }
    if !fewer.is_empty() {
        what.push(format!("no longer compares {fewer} in each row"));
    }
    what.extend(declared_difference(&was.declared, &is.declared));
    what
}

fn declared_difference(was: &DeclaredShape, is: &DeclaredShape) -> Option<String> {
    (was != is).then(|| format!("claimed `{was}`, and claims `{is}`"))
}

/// Returns the changes of entity types that a changed plan or a broken claim follows from.
fn causes(
    was: &PatternShape,
    is: &PatternShape,
    entities: (&[EntityShape], &[EntityShape]),
) -> Vec<String> {
    if was.plan == is.plan && was.compared == is.compared && is.broken.is_none() {
        return Vec::new();
    }
    let compared = [was.compared.as_slice(), is.compared.as_slice()].concat();
    let mut causes: Vec<String> = Vec::new();
    for call in &is.calls {
        for cause in causes_of_call(call, &compared, entities) {
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
    if causes.is_empty() && was.calls == is.calls && was.declared == is.declared {
        causes.push(
            "the call, its example values or entable changed: no layout of a type did".to_owned(),
        );
    }
    causes
}

fn calls(calls: &[CallShape]) -> String {
    let texts: Vec<String> = calls.iter().map(|call| format!("`{call}`")).collect();
    texts.join(", ")
}

/// Returns a plan in words: `a Range of 2 requests in 2 round trips`.
fn plan_words(plan: &PlanShape) -> String {
    let count = |number: u64, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    let mut words = format!(
        "a {} of {} in {}",
        plan.class,
        count(plan.requests, "request"),
        count(plan.round_trips, "round trip")
    );
    for (number, noun) in [(plan.operations, "operation"), (plan.blobs, "request")] {
        if number > 0 {
            words.push_str(&format!(", {}", count(number, noun)));
        }
    }
    if plan.blobs > 0 {
        words.push_str(" to blobs");
    }
    words
}

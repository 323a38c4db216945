//! Holds an access pattern as owned text, from a program or from a file, and writes it as lines of the file.

use std::fmt;

use crate::{
    access::CostClass,
    patterns::{Pattern, question::QuestionCall},
};

/// A pattern with its plan. `PartialEq` compares what the file holds, and whether the claim holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatternShape {
    /// The name of the patterns that it belongs to, such as `STAFF`. Quotes and control characters are escaped.
    pub(super) group: String,
    /// The name, escaped as the group's.
    pub(super) name: String,
    /// The pattern as the program declares it.
    pub(super) declared: DeclaredShape,
    pub(super) calls: Vec<CallShape>,
    /// The properties that rows are compared by once their keys are found.
    pub(super) compared: Vec<String>,
    pub(super) plan: PlanShape,
    /// The claim that the pattern does not meet, in words. In a file this is always `None`.
    pub(super) broken: Option<String>,
}

/// A pattern's claim and sizes, as the program declares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeclaredShape {
    /// The claimed cost class, or `Write`.
    pub(super) claim: String,
    pub(super) rows: u64,
    pub(super) tables: Option<u64>,
    /// The partitions of a bulk load; 1 for any other call.
    pub(super) partitions: u64,
    pub(super) most_requests: Option<u64>,
}

/// A call of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallShape {
    pub(super) function: String,
    /// The entity type; `None` for a set.
    pub(super) entity_type: Option<String>,
    /// `Primary`, or the index or list that is read. `None` for a write, and for a scan of a table.
    pub(super) rows: Option<String>,
    /// The number of consecutive equal calls of the pattern, one for each entity that a transaction writes.
    pub(super) times: usize,
}

/// The planned cost of a pattern's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanShape {
    /// The cost class, or `Write`.
    pub(super) class: String,
    pub(super) requests: u64,
    pub(super) round_trips: u64,
    pub(super) operations: u64,
    pub(super) blobs: u64,
}

/// The class of a write in the file.
const WRITE: &str = "Write";

impl PatternShape {
    pub(super) fn shape_of_pattern(group: &str, pattern: &Pattern) -> Self {
        let (question, cost) = (&pattern.question, pattern.cost());
        let name_of = |class: Option<CostClass>| {
            class.map_or_else(|| WRITE.to_owned(), |class| class.to_string())
        };
        let is_bulk = cost.entities > 0;
        Self {
            group: group.escape_debug().to_string(),
            name: pattern.name.escape_debug().to_string(),
            declared: DeclaredShape {
                claim: name_of(pattern.claim),
                rows: pattern.rows,
                tables: pattern.tables,
                partitions: if is_bulk { pattern.partitions } else { 1 },
                most_requests: pattern.most_requests,
            },
            calls: shapes_of_calls(&question.calls),
            compared: question.compared.clone(),
            plan: PlanShape {
                class: name_of(question.class()),
                requests: cost.total(),
                round_trips: cost.round_trips,
                operations: pattern.operation_count(),
                blobs: cost.blobs,
            },
            broken: pattern.find_broken_claim(),
        }
    }

    /// Returns whether two shapes are of the same pattern.
    pub(super) fn has_name_of(&self, other: &Self) -> bool {
        (&self.group, &self.name) == (&other.group, &other.name)
    }
}

impl CallShape {
    /// Returns whether the call reads the index or list of the type.
    pub(super) fn reads(&self, entity_type: &str, rows: &str) -> bool {
        self.entity_type.as_deref() == Some(entity_type) && self.rows.as_deref() == Some(rows)
    }
}

/// Returns the shapes of calls. Equal calls that follow one another are one shape.
fn shapes_of_calls(calls: &[QuestionCall]) -> Vec<CallShape> {
    let mut shapes: Vec<CallShape> = Vec::new();
    for call in calls {
        let shape = CallShape {
            function: call.function.to_owned(),
            entity_type: call.schema.map(|schema| schema.entity_type.to_owned()),
            rows: call.family.map(|family| family.name.to_owned()),
            times: 1,
        };
        match shapes.last_mut() {
            Some(last) if (CallShape { times: 1, ..last.clone() }) == shape => last.times += 1,
            _ => shapes.push(shape),
        }
    }
    shapes
}

impl fmt::Display for PatternShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, declared, calls, compared, plan, .. } = self;
        writeln!(f, "  pattern \"{name}\" claims {declared}")?;
        calls.iter().try_for_each(|call| writeln!(f, "    call {call}"))?;
        if !compared.is_empty() {
            writeln!(f, "    compares {}", compared.join(" "))?;
        }
        writeln!(f, "    plan {plan}")
    }
}

impl fmt::Display for DeclaredShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.claim)?;
        let unless_one = |number: u64| Some(number).filter(|number| *number != 1);
        for (word, number) in [
            ("rows", unless_one(self.rows)),
            ("tables", self.tables),
            ("over", unless_one(self.partitions)),
            ("at_most", self.most_requests),
        ] {
            if let Some(number) = number {
                write!(f, " {word} {number}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for CallShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        if let Some(entity_type) = &self.entity_type {
            write!(f, " \"{entity_type}\"")?;
        }
        if let Some(rows) = &self.rows {
            write!(f, " {rows}")?;
        }
        if self.times != 1 {
            write!(f, " times {}", self.times)?;
        }
        Ok(())
    }
}

impl fmt::Display for PlanShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, requests, round_trips, operations, blobs } = self;
        write!(f, "{class} requests {requests} round_trips {round_trips}")?;
        for (word, number) in [("operations", *operations), ("blobs", *blobs)] {
            if number > 0 {
                write!(f, " {word} {number}")?;
            }
        }
        Ok(())
    }
}

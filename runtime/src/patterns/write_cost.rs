//! Computes what each verb costs, from the copies and lists of an entity type.

use super::stages::Stages;
use crate::{
    entity::{ColumnSchema, Schema},
    key::RowFamily,
};

/// The number of requests and operations that a verb costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CostModel {
    pub(crate) verb: &'static str,
    /// Requests that read, before the transaction.
    pub(crate) reads: usize,
    /// Writes before the transaction, which reserve unique values.
    pub(crate) reservations: usize,
    /// Blobs that are written before the transaction.
    pub(crate) uploads: usize,
    /// Operations in the transaction, which is one request.
    pub(crate) operations: usize,
    /// The stages that the caller waits for before the transaction.
    pub(crate) stages: Stages,
    /// Requests that are sent after the verb has returned to its caller.
    pub(crate) after: usize,
    /// Blobs that are removed after the verb has returned to its caller.
    pub(crate) removals: usize,
    /// Whether a worker sends more requests later. After a remote row was deleted, a worker looks at it a second time,
    /// when no delayed write can bring it back.
    pub(crate) is_confirmed: bool,
}

impl CostModel {
    /// The column heads of a table of costs.
    pub(crate) const HEADS: [&str; 5] = [
        "verb",
        "requests before the answer",
        "reads among them",
        "operations in the transaction",
        "requests after the answer",
    ];

    /// Returns the verb's row in a table of costs, with a cell for each of [`HEADS`](Self::HEADS). The
    /// first cell is `verb`, the verb's name with the caller's markup.
    pub(crate) fn cells_of_verb(&self, verb: String) -> Vec<String> {
        let (reads, operations) = (self.reads.to_string(), self.operations.to_string());
        vec![
            verb,
            self.request_words_before_answer(),
            reads,
            operations,
            self.request_words_after_answer(),
        ]
    }

    /// Returns the requests that the caller waits for one after another.
    pub(crate) fn round_trips(&self) -> usize {
        self.stages.round_trips() + 1
    }

    /// Returns the cost with these stages before the transaction.
    const fn after_stages(self, stages: Stages) -> Self {
        Self { stages, ..self }
    }

    /// Returns text that says how many requests are sent before the verb returns to its caller.
    pub(crate) fn request_words_before_answer(&self) -> String {
        // The transaction itself is one more request.
        with_blobs(self.reads + self.reservations + 1, self.uploads)
    }

    /// Returns text that says how many requests are sent after the verb has returned to its caller, and whether a
    /// worker sends more.
    pub(crate) fn request_words_after_answer(&self) -> String {
        let later = if self.is_confirmed { ", and a worker's" } else { "" };
        with_blobs(self.after, self.removals) + later
    }
}

/// Returns a number of requests to the table store as text, and the additional requests to the blob store
/// if there are any: `3, and 1 to the blob store`.
fn with_blobs(requests: usize, blobs: usize) -> String {
    match blobs {
        0 => requests.to_string(),
        blobs => format!("{requests}, and {blobs} to the blob store"),
    }
}

/// The numbers of rows, copies, lists and blobs of an entity.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    copies: usize,
    lists: usize,
    remote_copies: usize,
    /// The number of remote copies whose keys are reserved.
    reserved: usize,
    remote_lists: usize,
    /// Fields whose bytes are in blobs.
    blobs: usize,
    /// Rows of the entity itself: the parts of a wide entity.
    parts: usize,
    /// The number of copies that a change without a change of keys writes again.
    changed_copies: usize,
    /// The number of remote copies that such a change writes again.
    changed_remote_copies: usize,
}

/// Returns whether a change of this property, or of any property if it is `None`, changes the row family's copies
/// although it changes no key.
pub(super) fn changes_copy(schema: &Schema, family: &RowFamily, changed: Option<&str>) -> bool {
    family.is_copy()
        && match changed {
            Some(property) => !family.leaves_out(property),
            None => holds_property_outside_keys(schema, schema.columns, "", family),
        }
}

fn holds_property_outside_keys(
    schema: &Schema,
    columns: &[ColumnSchema],
    prefix: &str,
    family: &RowFamily,
) -> bool {
    columns.iter().any(|column| {
        let name = [prefix, column.name].concat();
        match column.edm {
            None => holds_property_outside_keys(schema, column.nested, &name, family),
            Some(_) => !family.leaves_out(&name) && !is_in_keys(schema, &name),
        }
    })
}

/// Returns whether a key of the entity's rows contains the property.
pub(super) fn is_in_keys(schema: &Schema, property: &str) -> bool {
    let has = |family: &RowFamily| {
        family.partition.parts().chain(family.row.parts()).any(|part| part.field == property)
    };
    schema.families.iter().any(has)
}

impl Counts {
    fn count_rows_of(schema: &Schema, changed: Option<&str>) -> Self {
        let mut counts =
            Self { blobs: schema.blobs.len(), parts: schema.parts.len().max(1), ..Self::default() };
        for family in schema.families {
            let count = match (family.is_copy(), family.is_list(), family.is_remote) {
                (true, _, false) => &mut counts.copies,
                (true, _, true) => &mut counts.remote_copies,
                (_, true, false) => &mut counts.lists,
                (_, true, true) => &mut counts.remote_lists,
                // Primaries are counted in `parts`.
                _ => continue,
            };
            *count += 1;
            counts.reserved += usize::from(family.is_copy() && family.is_remote && family.unique);
            let is_changed = usize::from(changes_copy(schema, family, changed));
            if family.is_remote {
                counts.changed_remote_copies += is_changed
            } else {
                counts.changed_copies += is_changed
            }
        }
        counts
    }

    /// Returns the number of rows in the entity's partition.
    fn rows(self) -> usize {
        self.parts + self.copies + self.lists
    }

    fn remote_rows(self) -> usize {
        self.remote_copies + self.remote_lists
    }

    /// Returns the number of copies that a change without a change of keys writes again.
    fn changed_rows(self) -> usize {
        self.changed_copies + self.changed_remote_copies
    }

    /// Returns the number of reads that look up the old primary before a write by keys alone. A
    /// type with copies, lists or blobs needs one read, or one for each part of a wide entity. Any
    /// other type needs none.
    fn lookup_reads(self) -> usize {
        self.parts * usize::from(self.copies + self.lists + self.remote_rows() + self.blobs > 0)
    }

    /// Returns the requests and operations of a verb. `remote` is the number of remote rows that
    /// the verb concerns, and of blobs that it removes.
    fn verb_cost(
        self,
        verb: &'static str,
        reads: usize,
        operations: usize,
        remote: usize,
    ) -> CostModel {
        // A dirty row names what is open; the fence keeps the partition registered.
        let (outbox, dirty) = if remote > 0 { (2, 1) } else { (0, 0) };
        CostModel {
            verb,
            reads,
            reservations: 0,
            uploads: 0,
            operations: operations + outbox,
            stages: Stages::default(),
            after: remote + dirty,
            removals: 0,
            is_confirmed: false,
        }
    }

    /// Returns the cost of a write that changes no key. It writes every copy that holds a changed property again.
    fn kept(self, verb: &'static str, reads: usize, own_rows: usize) -> CostModel {
        let remote = self.changed_remote_copies;
        let stages = Stages {
            primaries: reads > 0,
            remote_copies: usize::from(remote > 0),
            ..Stages::default()
        };
        self.verb_cost(verb, reads + remote, own_rows + self.changed_copies, remote)
            .after_stages(stages)
    }

    fn deleted(self, verb: &'static str, reads: usize) -> CostModel {
        let is_confirmed = self.remote_rows() > 0;
        let stages = Stages { primaries: reads > 0, ..self.row_stages() };
        let reads = reads + self.lists + self.remote_copies + self.remote_lists;
        CostModel {
            // The dirty row goes with the blobs, or a worker deletes it.
            after: self.remote_rows() + usize::from(self.blobs > 0 && !is_confirmed),
            removals: self.blobs,
            is_confirmed,
            ..self
                .verb_cost(verb, reads, self.rows(), self.remote_rows() + self.blobs)
                .after_stages(stages)
        }
    }

    /// Returns the stages that read lists and remote rows before a write that changes keys.
    fn row_stages(self) -> Stages {
        Stages {
            lists: self.lists > 0,
            remote_lists: self.remote_lists,
            remote_copies: usize::from(self.remote_copies > 0),
            ..Stages::default()
        }
    }

    fn with_reservations(self, cost: CostModel) -> CostModel {
        let claim = usize::from(self.reserved > 0);
        CostModel {
            reservations: claim + self.reserved,
            operations: cost.operations + claim,
            stages: Stages { reserved: self.reserved, ..cost.stages },
            ..cost
        }
    }
}

/// Returns whether a merge of a property has to read the stored row first, although no copy changes.
fn reads_before_merge(schema: &Schema, changed: Option<&str>) -> bool {
    let is_encrypted = |column: &ColumnSchema| column.sealed.is_some();
    schema.sealed
        || schema.older.is_some()
        || schema.shares_keys
        || schema.conditional
        || changed.and_then(|property| schema.column(property)).is_some_and(is_encrypted)
}

/// The verbs that a report shows, in its order.
const REPORTED: [WriteVerb; 7] = [
    WriteVerb::Insert,
    WriteVerb::Replace,
    WriteVerb::ReplaceKeys,
    WriteVerb::PatchAt,
    WriteVerb::Update,
    WriteVerb::Delete,
    WriteVerb::DeleteAt,
];

/// A verb that writes one entity, and what it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    Insert,
    /// No key of a row changes.
    Replace,
    /// The key of each copy and list changes.
    ReplaceKeys,
    /// A field that full copies hold, and no key.
    PatchAt,
    /// No key of a row changes.
    Update,
    /// The entity is there, and no key of a row changes.
    InsertOrReplace,
    /// The entity is there, and no key of a row changes.
    InsertOrMerge,
    Delete,
    DeleteAt,
}

impl WriteVerb {
    /// Returns whether the verb changes some properties, and no key.
    pub(super) const fn keeps_keys(self) -> bool {
        !matches!(self, Self::Insert | Self::ReplaceKeys | Self::Delete | Self::DeleteAt)
    }

    /// Returns the verb in words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Replace => "replace, no key changes",
            Self::ReplaceKeys => "replace, every key changes",
            Self::PatchAt => "patch_at, no key changes",
            Self::Update => "update, no key changes",
            Self::InsertOrReplace => "insert_or_replace, no key changes",
            Self::InsertOrMerge => "insert_or_merge, no key changes",
            Self::Delete => "delete",
            Self::DeleteAt => "delete_at",
        }
    }
}

/// Returns the cost of each verb that a report shows.
pub(crate) fn verb_costs(schema: &Schema) -> Vec<CostModel> {
    REPORTED.iter().map(|verb| write_cost(schema, *verb)).collect()
}

/// Returns the cost of a verb, for an entity whose indexes all have a copy and whose partition is
/// registered already.
pub(crate) fn write_cost(schema: &Schema, verb: WriteVerb) -> CostModel {
    cost_of_change(schema, verb, None)
}

/// Returns the cost of a verb as [`write_cost`] does. A verb that changes no key changes this property alone, or all
/// properties outside keys if it is `None`.
pub(super) fn cost_of_change(schema: &Schema, verb: WriteVerb, changed: Option<&str>) -> CostModel {
    let n = Counts::count_rows_of(schema, changed);
    let name = verb.words();
    match verb {
        WriteVerb::Insert => {
            let stages = Stages { uploads: n.blobs > 0, remote_copies: 0, ..n.row_stages() };
            let reads = n.lists + n.remote_lists;
            let cost = n.verb_cost(name, reads, n.rows(), n.remote_rows()).after_stages(stages);
            CostModel { uploads: n.blobs, ..n.with_reservations(cost) }
        }
        WriteVerb::Replace => n.kept(name, 0, n.parts),
        WriteVerb::ReplaceKeys => CostModel {
            // One row comes and one goes. A worker deletes the dirty row.
            after: 2 * n.remote_rows(),
            is_confirmed: n.remote_rows() > 0,
            ..n.with_reservations(
                n.verb_cost(
                    name,
                    2 * n.lists + n.remote_copies + 2 * n.remote_lists,
                    n.parts + 2 * n.copies + 2 * n.lists,
                    n.remote_rows(),
                )
                .after_stages(n.row_stages()),
            )
        },
        // The merge of a field is of the part that holds it, unless a copy holds the field too.
        WriteVerb::PatchAt if n.changed_rows() == 0 && !reads_before_merge(schema, changed) => {
            n.kept(name, 0, 1)
        }
        WriteVerb::PatchAt | WriteVerb::Update => n.kept(name, n.parts, n.parts),
        WriteVerb::InsertOrReplace => n.kept(name, n.lookup_reads(), n.parts),
        // A merge into a wide entity reads its parts first.
        WriteVerb::InsertOrMerge if n.parts > 1 => n.kept(name, n.parts, n.parts),
        WriteVerb::InsertOrMerge => n.kept(name, n.lookup_reads(), n.parts),
        WriteVerb::Delete => n.deleted(name, 0),
        WriteVerb::DeleteAt => n.deleted(name, n.lookup_reads()),
    }
}

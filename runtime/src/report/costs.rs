//! Computes what each verb costs, from the copies and lists of an entity type.

use super::model::CostModel;
use crate::entity::Schema;

/// The numbers of an entity's copies and lists.
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
}

impl Counts {
    fn count_rows_of(schema: &Schema) -> Self {
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
        }
        counts
    }

    fn remote_rows(self) -> usize {
        self.remote_copies + self.remote_lists
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
            after: remote + dirty,
            removals: 0,
            is_confirmed: false,
        }
    }

    fn with_reservations(self, cost: CostModel) -> CostModel {
        let claim = usize::from(self.reserved > 0);
        CostModel {
            reservations: claim + self.reserved,
            operations: cost.operations + claim,
            ..cost
        }
    }
}

/// Returns the cost of each verb, for an entity whose indexes all have a copy and whose partition is
/// registered already.
pub(super) fn verb_costs(schema: &Schema) -> Vec<CostModel> {
    let n = Counts::count_rows_of(schema);
    let (rows, moved) = (n.parts + n.copies + n.lists, n.parts + 2 * n.copies + 2 * n.lists);
    let is_confirmed = n.remote_rows() > 0;
    let kept = |verb, reads, own_rows| {
        n.verb_cost(verb, reads + n.remote_copies, own_rows + n.copies, n.remote_copies)
    };
    let deleted = |verb, reads| CostModel {
        // The dirty row goes with the blobs, or a worker deletes it.
        after: n.remote_rows() + usize::from(n.blobs > 0 && !is_confirmed),
        removals: n.blobs,
        is_confirmed,
        ..n.verb_cost(verb, reads, rows, n.remote_rows() + n.blobs)
    };
    vec![
        CostModel {
            uploads: n.blobs,
            ..n.with_reservations(n.verb_cost(
                "insert",
                n.lists + n.remote_lists,
                rows,
                n.remote_rows(),
            ))
        },
        kept("replace, no key changes", 0, n.parts),
        CostModel {
            // One row comes and one goes. A worker deletes the dirty row.
            after: 2 * n.remote_rows(),
            is_confirmed,
            ..n.with_reservations(n.verb_cost(
                "replace, every key changes",
                2 * n.lists + n.remote_copies + 2 * n.remote_lists,
                moved,
                n.remote_rows(),
            ))
        },
        // The merge of a field is of the part that holds it, unless a copy holds the field too.
        match n.copies + n.remote_copies > 0 {
            true => kept("patch_at, no key changes", n.parts, n.parts),
            false => kept("patch_at, no key changes", 0, 1),
        },
        kept("update, no key changes", n.parts, n.parts),
        deleted("delete", n.lists + n.remote_copies + n.remote_lists),
        deleted("delete_at", n.lookup_reads() + n.lists + n.remote_copies + n.remote_lists),
    ]
}

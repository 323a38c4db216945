//! Defines what a change of a layout needs.

use std::fmt;

/// The steps that write stored values in a new form.
pub(super) const UPGRADE: &str =
    "raise `version`, keep the earlier struct as `upgrade_from`, and run `table.upgrade_all()`";

/// The steps that encrypt stored values.
pub(super) const REENCRYPT: &str =
    "give the client `PlaintextPolicy::Allow`, run `table.reencrypt()`, then go back to `Reject`";

/// Work that a change of the layout requires on the rows that are stored already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RequiredWork {
    /// Stored rows stay as they are: the change is compatible.
    Nothing,
    /// Stored rows are read by the earlier struct: the type needs a new `version` with `upgrade_from`.
    Version,
    /// Copies or lists have to be written or deleted. Primaries stay as they are.
    Rebuild,
    /// Primaries have to be written again, or open work has to be finished first.
    Migration,
}

impl fmt::Display for RequiredWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nothing => "compatible",
            Self::Version => "needs a version",
            Self::Rebuild => "needs a rebuild",
            Self::Migration => "needs a migration",
        })
    }
}

/// One difference between two layouts, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutChange {
    /// The entity type, with its version if that is not 1.
    pub entity: String,
    /// The difference.
    pub what: String,
    /// The work on stored rows.
    pub needs: RequiredWork,
    /// The steps, with the calls to make.
    pub how: String,
}

impl fmt::Display for LayoutChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entity, what, needs, how } = self;
        write!(f, "{entity}: {what}\n  {needs}: {how}")
    }
}

/// The differences between the layout file and the code that were found so far in one entity type.
#[derive(Debug)]
pub(super) struct EntityTypeChanges {
    entity: String,
    list: Vec<LayoutChange>,
}

impl EntityTypeChanges {
    /// Creates an empty list of layout changes for an entity type.
    pub(super) fn empty_for_type(entity: String) -> Self {
        Self { entity, list: Vec::new() }
    }

    pub(super) fn push(
        &mut self,
        needs: RequiredWork,
        what: impl Into<String>,
        how: impl Into<String>,
    ) {
        let (what, how) = (what.into(), how.into());
        self.list.push(LayoutChange { entity: self.entity.clone(), what, needs, how });
    }

    /// Adds the change of a field that became optional or required. `how_to_keep` tells the user how stored rows
    /// without the field stay readable.
    pub(super) fn push_changed_optionality(
        &mut self,
        field: &str,
        may_be_absent: bool,
        how_to_keep: &str,
    ) {
        if may_be_absent {
            self.push(
                RequiredWork::Nothing,
                format!("{field} may be absent"),
                "deploy all readers before the first writer: programs of the earlier layout cannot read \
                 rows without it",
            )
        } else {
            self.push(
                RequiredWork::Version,
                format!("{field} may no longer be absent"),
                format!("rows without it cannot be read: {how_to_keep}"),
            )
        }
    }

    /// Returns the changes of the entity type as a list.
    pub(super) fn into_layout_changes(self) -> Vec<LayoutChange> {
        self.list
    }
}

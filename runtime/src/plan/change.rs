//! A caller's verb, before and after what has to be known of the stored entity is known.

use std::{fmt, sync::Arc};

use super::{Holders, Tokens, size};
use crate::{
    batch::Operation,
    entity::{EntityRows, Schema},
    error::Result,
    row::Row,
};

/// What a verb does to the rows of one entity.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// The operations on the primary: one, two where its RowKey changes, none where there is
    /// nothing to do.
    pub(crate) primary: Vec<Operation>,
    /// The entity's copies and entries as they are, where they are known to be.
    pub(crate) old: Option<EntityRows>,
    /// The entity's rows as they are to be; `None`: it is deleted, or only its primary changes.
    pub(crate) new: Option<EntityRows>,
    /// The primary as it is to be, where the verb knows all of it.
    pub(crate) row: Option<Row>,
    /// Whom keys that are taken are asked of; `None`: the entity has no copies.
    pub(crate) holders: Option<Holders>,
    /// What is declared of the entity; `None`: nothing.
    pub(crate) schema: Option<&'static Schema>,
}

impl Effect {
    /// An operation on the primary of an entity without copies and lists.
    pub(crate) fn alone(
        schema: Option<&'static Schema>,
        operation: Operation,
        row: Option<Row>,
    ) -> Self {
        Self { primary: vec![operation], old: None, new: None, row, holders: None, schema }
    }

    /// Nothing to do.
    pub(crate) const fn nothing() -> Self {
        Self { primary: Vec::new(), old: None, new: None, row: None, holders: None, schema: None }
    }
}

/// What a verb does, given the primary as it is.
pub(crate) type Plan = Arc<dyn Fn(Option<&Row>) -> Result<Effect> + Send + Sync>;

/// What a verb comes to, given what makes tokens.
pub(crate) type Make = Arc<dyn Fn(&Tokens) -> Result<Change> + Send + Sync>;

/// A caller's verb.
#[derive(Clone)]
pub(crate) enum Change {
    /// Everything is known.
    Ready(Arc<Effect>),
    /// Its keys have tokens, which are made first.
    Keyed(Make),
    /// The primary has to be read first.
    Read {
        /// Its PartitionKey.
        partition_key: String,
        /// Its RowKey.
        row_key: String,
        /// What is declared of it.
        schema: Option<&'static Schema>,
        /// What follows from it.
        plan: Plan,
        /// Whether a primary that changed since the read is read again; else the caller is told.
        repeats: bool,
        /// The rows that the entity has, which may all have to be written.
        rows: usize,
    },
}

impl Change {
    pub(crate) fn ready(effect: Effect) -> Self {
        Self::Ready(Arc::new(effect))
    }

    /// The keys of the entity that it writes, where they are known.
    pub(crate) fn keys(&self) -> (&str, &str) {
        match self {
            Self::Ready(effect) => {
                effect.primary.first().map(|operation| operation.row().keys()).unwrap_or_default()
            }
            Self::Read { partition_key, row_key, .. } => (partition_key, row_key),
            Self::Keyed(_) => ("", ""),
        }
    }

    /// Operations and bytes that it takes at least: what is known before anything is read.
    pub(crate) fn least_size(&self) -> Result<(usize, usize)> {
        let Self::Ready(effect) = self else { return Ok((1, 0)) };
        let (mut operations, mut bytes) = (effect.primary.len(), 0);
        for operation in &effect.primary {
            bytes += size::as_stored(operation, effect.schema, None)?.request_bytes()?;
        }
        if effect.old.is_none()
            && let Some(new) = &effect.new
        {
            operations += new.local_copies.len();
        }
        Ok((operations, bytes))
    }

    /// Operations and bytes that it takes in a transaction, as far as they are known: a change that
    /// reads first is counted as if all of its rows changed, since a group that proves too large
    /// is read again.
    pub(crate) fn group_size(&self) -> Result<(usize, usize)> {
        let effect = match self {
            Self::Ready(effect) => effect,
            Self::Read { rows, .. } => return Ok((*rows, 0)),
            Self::Keyed(_) => return Ok((1, 0)),
        };
        let (mut operations, mut bytes) = self.least_size()?;
        if self.has_remote_rows() {
            operations += effect.primary.len();
        }
        for rows in effect.old.iter().chain(&effect.new) {
            if effect.old.is_some() {
                operations += rows.local_copies.len();
            }
            operations += rows.local_list_entries.len();
            for copy in &rows.local_copies {
                let insert = Operation::insert(copy.row.clone());
                let stored = size::as_stored(&insert, effect.schema, Some(copy.family))?;
                bytes += stored.request_bytes()?;
            }
        }
        Ok((operations, bytes))
    }

    /// Whether it is known to concern rows in other partitions: then a fence goes with it.
    pub(crate) fn has_remote_rows(&self) -> bool {
        match self {
            Self::Ready(effect) => {
                let mut rows = effect.old.iter().chain(&effect.new);
                rows.any(|rows| !rows.remote_copies.is_empty() || !rows.remote_lists.is_empty())
            }
            Self::Read { .. } | Self::Keyed(_) => false,
        }
    }

    /// The rows that it shares with others of its transaction: a fence, and a claim where it takes
    /// unique values elsewhere.
    pub(crate) fn shared_rows(&self) -> usize {
        let Self::Ready(effect) = self else { return 0 };
        let mut copies = effect.old.iter().chain(&effect.new).flat_map(|rows| &rows.remote_copies);
        match copies.any(|copy| copy.family.unique) {
            true => 2,
            false => usize::from(self.has_remote_rows()),
        }
    }

    /// Whether it could change a list, which other entities of the partition share.
    pub(crate) fn may_write_lists(&self) -> bool {
        match self {
            Self::Ready(effect) => {
                effect.old.iter().chain(&effect.new).any(|rows| !rows.local_list_entries.is_empty())
            }
            Self::Read { .. } | Self::Keyed(_) => true,
        }
    }

    /// Whether it reads the primary, and again where that changed meanwhile.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self, Self::Read { repeats: true, .. })
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Ready(_) => "Ready",
            Self::Read { .. } => "Read",
            Self::Keyed(_) => "Keyed",
        };
        f.debug_tuple(kind).field(&self.keys()).finish()
    }
}

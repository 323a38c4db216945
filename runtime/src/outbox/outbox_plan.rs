//! What a transaction records of work in other partitions.

use std::{collections::HashSet, sync::Arc};

use super::{
    claims::Claims, fast_path::FastPath, guard::Guard, registration::fence, state::Outbox,
};
use crate::{
    address::RowAddress,
    batch::{Operation, Written},
    entity::BackgroundWork,
    error::{Error, Result},
    plan::{
        Effect, Role, TransactionPlan,
        outbox::{Fence, dirty_rows_of},
    },
};

/// Registrations of one transaction that may be closed under it.
const REGISTRATIONS: u32 = 8;

/// Rows of the outbox that the caller adds to a transaction.
#[derive(Debug, Default)]
pub(crate) struct ExtraRows {
    /// The partition, where no change tells it.
    pub(crate) partition_key: String,
    pub(crate) operations: Vec<Operation>,
    /// Whether there are messages among them, which a fence has to stand for.
    pub(crate) has_messages: bool,
    /// Where an entity comes from that moves here: its unique values come with it.
    pub(crate) from: Option<RowAddress>,
}

/// The rows of the outbox that go with a transaction.
pub(crate) struct OutboxPlan<'n> {
    table: String,
    extra_rows: &'n ExtraRows,
    commit: FastPath,
    /// Dirty rows that are there already.
    joined: HashSet<usize>,
    fence: Option<Fence>,
    registrations: u32,
    /// Where an entity comes from that moves here.
    from: Option<RowAddress>,
}

impl<'n> OutboxPlan<'n> {
    /// What the effects leave to be done. Rows elsewhere are read here, before the commit.
    pub(crate) async fn of(
        outbox: &Outbox,
        table: &str,
        effects: &[Arc<Effect>],
        extra_rows: &'n ExtraRows,
    ) -> Self {
        let dirty = dirty_rows_of(effects, table);
        if !dirty.is_empty() {
            let schemas = effects.iter().filter_map(|effect| effect.schema);
            schemas.for_each(|schema| outbox.meet(schema));
        }
        Self {
            table: table.to_owned(),
            extra_rows,
            commit: FastPath::prepare(outbox, table, dirty).await,
            joined: HashSet::new(),
            fence: None,
            registrations: 0,
            from: extra_rows.from.clone(),
        }
    }

    /// Whether the effects take keys that have to be claimed.
    pub(crate) fn claims(&self) -> bool {
        !self.commit.wanted_keys().is_empty()
    }

    /// How many operations are recorded beside the effects' own, the claim and the fence included.
    pub(crate) fn operations(&self) -> usize {
        self.commit.dirty().count() + self.extra_rows.operations.len() + 2
    }

    /// Claims the keys that the effects take, and reserves them.
    pub(crate) async fn claim(&mut self, outbox: &Outbox) -> Result<Option<Claims>> {
        Claims::take(outbox, &self.table, &mut self.commit, self.from.clone()).await
    }

    /// The verb whose entity wants a row elsewhere.
    pub(crate) fn verb_of(&self, effects: &[Arc<Effect>], error: &Error) -> Option<usize> {
        let keys = error.keys()?;
        let wants = |effect: &Arc<Effect>| {
            let mut copies = effect.new.iter().flat_map(|rows| &rows.remote_copies);
            copies.any(|copy| copy.row.keys() == keys)
        };
        // The last, where two of the transaction want it.
        effects.iter().rposition(wants)
    }

    /// Adds the rows to a transaction: dirty rows, then the fence.
    pub(crate) async fn record(
        &mut self,
        outbox: &Outbox,
        transaction: &mut TransactionPlan,
        claims: Option<&Claims>,
    ) -> Result<()> {
        self.commit.check(outbox).await?;
        if let Some(redeemed) = claims.map(|claims| claims.redeemed(outbox)).transpose()?.flatten()
        {
            transaction.push_framework_row(Role::Claim, redeemed);
        }
        let mut partition_key = None;
        for (at, dirty) in self.commit.dirty().enumerate() {
            let joined = self.joined.contains(&at) || !outbox.guards.holds(Guard::DirtyInserted);
            transaction.push_framework_row(Role::Dirty(at), dirty.insert(joined)?);
            partition_key = Some(dirty.partition_key.clone());
        }
        for operation in &self.extra_rows.operations {
            transaction.push_framework_row(Role::Note, operation.clone());
            partition_key.get_or_insert_with(|| self.extra_rows.partition_key.clone());
        }
        let Some(partition_key) = partition_key else { return Ok(()) };
        if self.commit.is_empty() && !self.extra_rows.has_messages {
            return Ok(());
        }
        let fence = fence(outbox, &self.table, &partition_key).await?;
        if outbox.guards.holds(Guard::FenceInTransaction) {
            transaction.push_framework_row(Role::Fence, fence.touch(outbox.beat())?);
        }
        self.fence = Some(fence);
        Ok(())
    }

    /// Whether the transaction can be sent again after a row of the outbox was not as it was
    /// thought to be.
    pub(crate) fn goes_on(&mut self, outbox: &Outbox, role: Role) -> bool {
        match role {
            Role::Dirty(at) => self.joined.insert(at),
            Role::Fence => {
                if let Some(closed) = self.fence.take() {
                    outbox.registrations.forget(&self.table, &closed);
                }
                self.registrations += 1;
                self.registrations < REGISTRATIONS
            }
            _ => false,
        }
    }

    /// Begins what can be done at once.
    pub(crate) fn begin(
        mut self,
        outbox: &Arc<Outbox>,
        transaction: &TransactionPlan,
        written: &[Written],
    ) -> BackgroundWork {
        if self.commit.is_empty() {
            return BackgroundWork::default();
        }
        let etag = |row_key: &str| {
            let at = transaction.position(row_key)?;
            written.get(at)?.etag.clone()
        };
        let is_merged = !outbox.guards.holds(Guard::DirtyInserted);
        let versions =
            self.commit.dirty().map(|dirty| (etag(&dirty.primary), etag(&dirty.row_key())));
        let versions: Vec<_> = versions.collect();
        for (at, (version, recorded)) in versions.into_iter().enumerate() {
            let recorded = recorded.filter(|_| is_merged || !self.joined.contains(&at));
            self.commit.committed(at, version, recorded);
        }
        let (commit, most) = (self.commit, outbox.options.background);
        outbox.background.begin(most, commit.finish(outbox.clone()))
    }
}

//! What a transaction records of work in other partitions.

use std::{collections::HashSet, sync::Arc};

use super::{claims::Claims, fast_path::Commit, guard::Guard};
use crate::{
    batch::{Operation, Written},
    entity::BackgroundWork,
    error::{Error, Result},
    plan::{
        Effect, Role, TransactionPlan,
        outbox::{Fence, Place, dirty_rows},
    },
    table::Client,
};

/// Registrations of one transaction that may be closed under it.
const REGISTRATIONS: u32 = 8;

/// Rows of the outbox that the caller adds to a transaction.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The partition, where no change tells it.
    pub(crate) partition_key: String,
    pub(crate) operations: Vec<Operation>,
    /// Whether there are messages among them, which a fence has to stand for.
    pub(crate) has_messages: bool,
    /// Where an entity comes from that moves here: its unique values come with it.
    pub(crate) from: Option<Place>,
}

/// The rows of the outbox that go with a transaction.
pub(crate) struct Work<'n> {
    table: String,
    notes: &'n Notes,
    commit: Commit,
    /// Dirty rows that are there already.
    joined: HashSet<usize>,
    fence: Option<Fence>,
    registrations: u32,
    /// Where an entity comes from that moves here.
    from: Option<Place>,
}

impl<'n> Work<'n> {
    /// What the effects leave to be done. Rows elsewhere are read here, before the commit.
    pub(crate) async fn of(
        client: &Client,
        table: &str,
        effects: &[Arc<Effect>],
        notes: &'n Notes,
    ) -> Self {
        let dirty = dirty_rows(effects, table);
        if !dirty.is_empty() {
            let schemas = effects.iter().filter_map(|effect| effect.schema);
            schemas.for_each(|schema| client.outbox().meet(schema));
        }
        Self {
            table: table.to_owned(),
            notes,
            commit: Commit::prepare(client, table, dirty).await,
            joined: HashSet::new(),
            fence: None,
            registrations: 0,
            from: notes.from.clone(),
        }
    }

    /// Whether the effects take keys that have to be claimed.
    pub(crate) fn claims(&self) -> bool {
        !self.commit.wishes().is_empty()
    }

    /// How many operations are recorded beside the effects' own, the claim and the fence included.
    pub(crate) fn operations(&self) -> usize {
        self.commit.dirty().count() + self.notes.operations.len() + 2
    }

    /// Claims the keys that the effects take, and reserves them.
    pub(crate) async fn claim(&mut self, client: &Client) -> Result<Option<Claims>> {
        Claims::take(client, &self.table, &mut self.commit, self.from.clone()).await
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
        client: &Client,
        transaction: &mut TransactionPlan,
        claims: Option<&Claims>,
    ) -> Result<()> {
        self.commit.check(client)?;
        if let Some(redeemed) = claims.map(|claims| claims.redeemed(client)).transpose()?.flatten()
        {
            transaction.record(Role::Claim, redeemed);
        }
        let mut partition_key = None;
        for (at, dirty) in self.commit.dirty().enumerate() {
            let joined =
                self.joined.contains(&at) || !client.outbox().guards.hold(Guard::DirtyInserted);
            transaction.record(Role::Dirty(at), dirty.recorded(joined)?);
            partition_key = Some(dirty.partition_key.clone());
        }
        for operation in &self.notes.operations {
            transaction.record(Role::Note, operation.clone());
            partition_key.get_or_insert_with(|| self.notes.partition_key.clone());
        }
        let Some(partition_key) = partition_key else { return Ok(()) };
        if self.commit.is_empty() && !self.notes.has_messages {
            return Ok(());
        }
        let outbox = client.outbox();
        let fence = outbox.fence(client, &self.table, &partition_key).await?;
        if outbox.guards.hold(Guard::FenceInTransaction) {
            transaction.record(Role::Fence, fence.touched(outbox.beat())?);
        }
        self.fence = Some(fence);
        Ok(())
    }

    /// Whether the transaction can be sent again after a row of the outbox was not as it was
    /// thought to be.
    pub(crate) fn goes_on(&mut self, client: &Client, role: Role) -> bool {
        match role {
            Role::Dirty(at) => self.joined.insert(at),
            Role::Fence => {
                if let Some(closed) = self.fence.take() {
                    client.outbox().closed(&self.table, &closed);
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
        client: &Client,
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
        let is_merged = !client.outbox().guards.hold(Guard::DirtyInserted);
        let versions =
            self.commit.dirty().map(|dirty| (etag(&dirty.primary), etag(&dirty.row_key())));
        let versions: Vec<_> = versions.collect();
        for (at, (version, recorded)) in versions.into_iter().enumerate() {
            let recorded = recorded.filter(|_| is_merged || !self.joined.contains(&at));
            self.commit.committed(at, version, recorded);
        }
        let (commit, most) = (self.commit, client.outbox().options.background);
        client.outbox().background.begin(most, commit.finish(client.clone()))
    }
}

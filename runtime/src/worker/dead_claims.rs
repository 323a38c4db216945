//! Claims whose writers died: called dead, their reservations given back, and removed when nobody
//! can reserve by them any more.

use std::time::Duration;

use super::{
    partition::{Aged, Partition},
    round::{Round, row_texts},
    state::Worker,
    stats::Visit,
};
use crate::{
    batch::{Condition, Operation},
    error::{Error, Result},
    outbox::{guard::Guard, reservation::settle},
    plan::outbox::{StoredClaim, kill_claim},
    row::ETag,
};

/// What became of a claim.
enum Claim {
    /// Its writer may still be at work; for how long.
    Young(Duration),
    /// It is dead, what it reserved is given back, and it is looked at once more; when.
    Waits(Duration, Option<ETag>),
    Gone,
}

impl Worker {
    /// Looks at the claims of a partition.
    pub(super) async fn claims(&self, partition: &Partition, round: &mut Round, visit: &mut Visit) {
        for aged in &partition.claims {
            visit.meet(aged.age);
            match self.claim(&partition.table, aged).await {
                Ok(Claim::Young(left)) => visit.again_in(left),
                Ok(Claim::Waits(left, version)) => {
                    let place = row_texts(&partition.table, &aged.row);
                    let before = self.memory().looked.insert(place, version.clone());
                    round.moved += u64::from(before != Some(version));
                    visit.again_in(left);
                }
                Ok(Claim::Gone) => {
                    visit.leave(1);
                    self.memory().stats.applied += 1;
                    round.moved += 1;
                }
                Err(error) if error.lost_race() || error.is_contended() => {
                    self.memory().stats.retried += 1;
                    round.raced += 1;
                    visit.again_in(Duration::ZERO);
                }
                Err(error) if error.is_unrecognized_entity() => {
                    visit.leave(1);
                    visit.unknown += 1;
                }
                Err(error) => {
                    visit.again_in(Duration::ZERO);
                    match self.failed(&partition.table, aged, error).await {
                        Ok(gone) => {
                            visit.leave(u64::from(gone));
                            round.moved += 1;
                        }
                        Err(error) => self.failed_for_now(error, round),
                    }
                }
            }
        }
    }

    async fn claim(&self, table: &str, aged: &Aged) -> Result<Claim> {
        let outbox = self.client.outbox();
        let claim = StoredClaim::from_row(&aged.row)?;
        let left = |least: Duration| least.saturating_sub(aged.age.unwrap_or_default());
        let mut version = aged.row.etag();
        let mut wait = left(outbox.options.flight);
        if claim.is_alive {
            let young = left(outbox.options.claim);
            if !young.is_zero() {
                return Ok(Claim::Young(young));
            }
            wait = outbox.options.flight;
            if outbox.guards.holds(Guard::ClaimKilled) {
                let seen = Condition::for_etag(version);
                let operation = kill_claim(aged.row.partition_key(), &claim.id, seen)?;
                version = self.client.store().apply_one(table, operation).await?.etag;
            } else {
                wait = left(outbox.options.claim + outbox.options.flight);
            }
        }
        let is_over = wait.is_zero() || !outbox.guards.holds(Guard::ClaimSecondLook);
        let looked = self.memory().looked.get(&row_texts(table, &aged.row)) == Some(&version);
        if looked && !is_over {
            return Ok(Claim::Waits(wait, version));
        }
        for key in &claim.keys {
            settle(self.client.outbox(), table, aged.row.partition_key(), &claim.id, key).await?;
        }
        if !is_over {
            return Ok(Claim::Waits(wait, version));
        }
        self.remove_claim(table, aged, version).await
    }

    async fn remove_claim(
        &self,
        table: &str,
        aged: &Aged,
        version: Option<ETag>,
    ) -> Result<Claim, Error> {
        let (partition_key, row_key) = aged.row.keys();
        let delete = Operation::delete(partition_key, row_key, Condition::for_etag(version))?;
        match self.client.store().apply_one(table, delete).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Claim::Gone),
        }
    }
}

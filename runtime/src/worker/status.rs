//! Reads the state of the outbox without doing any of its work.

use std::{collections::BTreeMap, time::Duration};

use super::{
    directory::DirectoryPages,
    partition::{OutboxChunk, OutboxRow, PartitionReader},
};
use crate::{
    edm::ValueRef,
    error::Result,
    limits::saturating_u64,
    outbox::{known_types::Named, state::Outbox},
    plan::outbox::{
        CODE, ClaimedKeyAndPrimary, StoredClaim, StoredDirtyRow, StoredMessage, code_in_property,
    },
    row::Row,
    table::Client,
};

/// The maximum number of rows in a status.
const STUCK_ROWS: usize = 100;

/// The open work in the partitions of the directory, read by [`Client::outbox_status`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxStatus {
    /// Partitions in the directory: those with open work, and those that are not closed yet.
    pub partitions: u64,
    /// Dirty rows: primaries whose remote copies or lists may be wrong or are waiting for their second look.
    pub dirty_rows: u64,
    /// Claims on unique values.
    pub claims: u64,
    /// Messages that have not been handled.
    pub messages: u64,
    /// Handled messages that are kept until no worker can repeat their effects.
    pub done_messages: u64,
    /// Rows of unknown kinds or formats, and damaged markers and fences.
    pub unknown: u64,
    /// Rows in the poison table.
    pub poisoned: u64,
    /// The age of the oldest dirty row, claim, or unhandled message. A dirty row whose work is done counts until its
    /// second look.
    pub oldest: Option<Duration>,
    /// Messages and moves without a code, here and in the poison table. You can set
    /// [`Authenticity::Require`](crate::Authenticity::Require) once this is 0 and no queue holds a message without a
    /// code. Queues are not read here.
    pub unsigned: u64,
    /// The number of messages and moves, here and in the poison table, by the id of the key that signed them (16 hex
    /// digits). You can remove a key once none is signed with it. A truncated code or one of an unknown suite counts
    /// under the empty string.
    pub signed_by: BTreeMap<String, u64>,
    /// The first stuck rows, up to 100.
    pub stuck: Vec<StuckRow>,
}

/// An open outbox row that is damaged, that contains an index or a list unknown to this client, or that is a
/// message whose last attempt failed. Workers try such a message again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckRow {
    /// The table of the row.
    pub table: String,
    /// The PartitionKey of the row.
    pub partition_key: String,
    /// The RowKey of the row.
    pub row_key: String,
    /// The time since the row was last written, or `None` if the store reports no time.
    pub age: Option<Duration>,
    /// The reason: an unknown name in the row, or its last error.
    pub reason: String,
}

impl Client {
    /// Reads how much work in other partitions is open, and why rows are stuck. Does none of the work. Costs one
    /// request for each page of the directory, and one or more for each partition in it.
    ///
    /// A row counts as stuck if it is damaged, if it contains an index or a list of a type that this client does not
    /// know, or if it is a message whose handler failed. Open the tables of your types first.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.client().worker().drain().await?;
    /// let status = staff.client().outbox_status().await?;
    /// assert_eq!((status.messages, status.poisoned, status.stuck.len()), (0, 0, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with the first error of the backend.
    pub async fn outbox_status(&self) -> Result<OutboxStatus> {
        let (mut status, _) = self.read_open_work(u64::MAX).await?;
        let poisoned = self.worker().read_poison_table().await?;
        status.poisoned = saturating_u64(poisoned.len());
        for poisoned in poisoned.iter().filter(|poisoned| poisoned.message().is_some()) {
            status.count_signing_key(poisoned.outbox_row());
        }
        Ok(status)
    }

    /// Reads the open work of the first partitions of the directory, at most `most_partitions`. Sends one request for
    /// each page of the directory and one or more for each partition. Also returns whether these were all partitions.
    /// Does not read the poison table.
    pub(crate) async fn read_open_work(
        &self,
        most_partitions: u64,
    ) -> Result<(OutboxStatus, bool)> {
        let mut status = OutboxStatus::default();
        let mut pages = DirectoryPages::from_start(self);
        while let Some(page) = pages.next_page().await? {
            status.unknown += page.damaged;
            for (table, partition_key) in page.markers.keys() {
                if status.partitions >= most_partitions {
                    return Ok((status, false));
                }
                status.partitions += 1;
                let mut reader = PartitionReader::new(self, table, partition_key);
                loop {
                    match reader.next_chunk().await {
                        Ok(Some(chunk)) => status.add_chunk(self.outbox(), &chunk),
                        Ok(None) => break,
                        // The markers of a deleted table are kept until a worker sees them.
                        Err(error) if error.is_table_missing() => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok((status, true))
    }
}

impl OutboxStatus {
    fn add_chunk(&mut self, outbox: &Outbox, partition: &OutboxChunk) {
        let table = &partition.table;
        let damaged_fences = saturating_u64(partition.damaged_fences.len());
        self.unknown += partition.unknown + damaged_fences;
        for row in &partition.dirty {
            self.dirty_rows += 1;
            self.add_open_row(table, row, dirty_obstacle(outbox, table, row));
        }
        for row in &partition.claims {
            self.claims += 1;
            self.add_open_row(table, row, claim_obstacle(outbox, table, row));
        }
        for row in &partition.messages {
            match StoredMessage::from_row(row.row.clone()) {
                // Its work is done, and only its receipts must be kept.
                Ok(message) if message.is_done => self.done_messages += 1,
                message => {
                    self.messages += 1;
                    self.count_signing_key(&row.row);
                    let error = message.err().map(|error| error.to_string());
                    self.add_open_row(table, row, error.or_else(|| last_error(row)));
                }
            }
        }
    }

    /// Counts a message under the key that signed it.
    fn count_signing_key(&mut self, message: &Row) {
        match code_in_property(message, CODE) {
            Ok(None) => self.unsigned += 1,
            code => {
                let code = code.ok().flatten().unwrap_or_default();
                *self.signed_by.entry(key_id(&code)).or_default() += 1;
            }
        }
    }

    /// Includes an open row in `oldest`, the greatest age of open rows. If the row has an obstacle and the list has
    /// room, adds it to the stuck rows.
    fn add_open_row(&mut self, table: &str, row: &OutboxRow, obstacle: Option<String>) {
        // The age includes rows for which the list below has no room.
        self.oldest = self.oldest.max(row.age);
        let Some(reason) = obstacle.filter(|_| self.stuck.len() < STUCK_ROWS) else { return };
        let (partition_key, row_key) = row.row.keys();
        self.stuck.push(StuckRow {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
            age: row.age,
            reason,
        });
    }
}

/// Returns the id of the key that made a code as hex digits, or the empty string for a code of unknown form.
fn key_id(code: &[u8]) -> String {
    // Magic, suite, key id, MAC.
    match code {
        [0xae, 0x6e, 1, rest @ ..] if rest.len() == 40 => {
            rest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
        }
        _ => String::new(),
    }
}

/// Returns why no worker of this program can finish a dirty row, if that is so.
fn dirty_obstacle(outbox: &Outbox, table: &str, row: &OutboxRow) -> Option<String> {
    let dirty = match StoredDirtyRow::from_row(outbox.store.names(), row.row.clone()) {
        Ok(dirty) => dirty,
        Err(error) => return Some(error.to_string()),
    };
    let owner = outbox.store.names().row_at(table, row.row.partition_key(), &dirty.primary);
    let is_unknown = |address: &_| matches!(outbox.named(owner, address), Named::Unknown);
    let unknown = dirty.addresses.iter().find(|address| is_unknown(address));
    unknown.map(|address| unknown_index(&address.index))
}

/// Returns why no worker of this program can finish a claim, if that is so.
fn claim_obstacle(outbox: &Outbox, table: &str, row: &OutboxRow) -> Option<String> {
    let claim = match StoredClaim::from_row(outbox.store.names(), &row.row) {
        Ok(claim) => claim,
        Err(error) => return Some(error.to_string()),
    };
    let is_known = |key: &ClaimedKeyAndPrimary| {
        let owner = outbox.store.names().row_at(table, row.row.partition_key(), &key.primary);
        matches!(outbox.named(owner, &key.address), Named::Copy(_))
    };
    let unknown = claim.keys.iter().find(|key| !is_known(key));
    unknown.map(|key| unknown_index(&key.address.index))
}

fn unknown_index(index: &str) -> String {
    format!("this program does not know `{}`; open the table of its type", index.escape_debug())
}

/// Returns the error of a message's last failure, if it has failed.
fn last_error(row: &OutboxRow) -> Option<String> {
    match row.row.get("Error") {
        Ok(Some(ValueRef::String(error))) => Some(error.to_owned()),
        _ => None,
    }
}

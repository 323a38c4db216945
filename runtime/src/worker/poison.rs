//! Poison: work that failed for good too often, put aside and never lost.

use super::{partition::Aged, round::row_texts, state::Worker};
use crate::{
    backend::Scan,
    batch::{Condition, Operation},
    edm::ValueRef,
    error::{Error, ErrorKind, Result, Retry},
    filter::Filter,
    plan::outbox::{
        StoredDirtyRow, hash128, insert_message,
        reserved_keys::{CLAIM, DIRTY, MESSAGE},
        truncate_error,
    },
    row::{ETag, Row},
};

/// The table of poisoned work.
const TABLE: &str = "EntablePoison";
/// The partition of poisoned work: the version of the format.
const PARTITION: &str = "1";
/// What the properties of the framework are called there; all others are the row's own.
const OWN: [&str; 4] = ["PoisonTable", "PoisonPartition", "PoisonRow", "PoisonError"];

/// What a message that is put back does not keep of its tries.
const TRIED: [&str; 4] = ["Failures", "Delayed", "Leased", "Poison"];

/// Work in other partitions that failed for good.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Poisoned {
    /// The table of the primary.
    pub table: String,
    /// The PartitionKey of the primary, or of the message.
    pub partition_key: String,
    /// The last error.
    pub error: String,
    /// The row of the outbox, as it was.
    open: Row,
    /// Its row in the poison table.
    row: Row,
}

impl Poisoned {
    /// The RowKey of the row of the outbox: of the primary after `~e2_`, of a claim on
    /// unique values, or of the message.
    pub fn row_key(&self) -> &str {
        self.open.row_key()
    }

    /// The name of the message, where it is one.
    pub fn message(&self) -> Option<&str> {
        match self.open.get("Type") {
            Ok(Some(ValueRef::String(name))) if self.row_key().starts_with(MESSAGE) => Some(name),
            _ => None,
        }
    }
}

impl Worker {
    /// Counts a failure; one that will not pass by itself is put aside after some attempts: `true`.
    ///
    /// # Errors
    ///
    /// The failure, where it may pass.
    pub(super) async fn failed(&self, table: &str, aged: &Aged, error: Error) -> Result<bool> {
        if error.retry() != Retry::Never {
            return Err(error);
        }
        let count = {
            let memory = &mut *self.memory();
            let slot = memory.failures.entry(row_texts(table, &aged.row)).or_default();
            if slot.0 != aged.row.etag() {
                *slot = (aged.row.etag(), 0);
            }
            slot.1 += 1;
            slot.1
        };
        if count < self.client.outbox().options.poison_after {
            return Ok(false);
        }
        self.put_aside(table, &aged.row, aged.row.etag(), &error.to_string()).await?;
        let memory = &mut *self.memory();
        memory.failures.remove(&row_texts(table, &aged.row));
        memory.stats.poisoned += 1;
        Ok(true)
    }

    /// Puts work into the poison table, and removes it in the version that one has.
    pub(super) async fn put_aside(
        &self,
        table: &str,
        row: &Row,
        version: Option<ETag>,
        error: &str,
    ) -> Result<()> {
        let (partition_key, row_key) = (row.partition_key(), row.row_key());
        let seen = version.as_ref().map(ETag::to_string).unwrap_or_default();
        let key = hash128(&[table, partition_key, row_key, &seen]);
        let mut poisoned = Row::build(PARTITION, &key);
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            poisoned.put(&String::from_utf8_lossy(name), value);
        }
        for (name, value) in
            OWN.into_iter().zip([table, partition_key, row_key, truncate_error(error)])
        {
            poisoned.put(name, ValueRef::String(value));
        }
        self.poison(Operation::insert(poisoned.finish()?)).await?;
        let seen = Condition::for_etag(version);
        match self
            .client
            .store()
            .apply_one(table, Operation::delete(partition_key, row_key, seen)?)
            .await
        {
            Err(error) if !(error.is_not_found() || error.is_precondition_failed()) => Err(error),
            _ => Ok(()),
        }
    }

    async fn poison(&self, operation: Operation) -> Result<()> {
        match self.client.store().apply_one(TABLE, operation.clone()).await {
            Err(error) if error.is_table_missing() => {
                self.client.create_table_if_not_exists(TABLE).await?;
                self.client.store().apply_one(TABLE, operation).await.map(drop)
            }
            Err(error) if !error.row_exists() => Err(error),
            _ => Ok(()),
        }
    }

    /// The work that was put aside.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn poisoned(&self) -> Result<Vec<Poisoned>> {
        let filter = Filter::eq("PartitionKey", PARTITION);
        let (mut all, mut from) = (Vec::new(), None);
        loop {
            let scan = Scan {
                table: TABLE,
                filter: &filter,
                select: None,
                top: None,
                from: from.as_ref(),
            };
            let page = match self.client.store().scan(scan).await {
                Ok(page) => page,
                Err(error) if error.is_table_missing() => return Ok(all),
                Err(error) => return Err(error),
            };
            for row in page.rows {
                all.push(Poisoned::of(row)?);
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Puts work back that was put aside: rows elsewhere are made what the primary says by then, and a
    /// message is handed over again.
    ///
    /// # Errors
    ///
    /// The backend's; `is_decode` where the poisoned row is damaged.
    pub async fn requeue(&self, poisoned: &Poisoned) -> Result<()> {
        let key = poisoned.row_key();
        let operation = match poisoned.message() {
            _ if poisoned.table.is_empty() => return Err(poisoned.is_damaged()),
            Some(_) => insert_message(&poisoned.open, &poisoned.partition_key)?,
            None if key.starts_with(CLAIM) => Operation::insert(poisoned.open.clone()),
            None if key.starts_with(DIRTY) => {
                StoredDirtyRow::from_row(poisoned.open.clone())?.restore()?
            }
            None => return Err(poisoned.is_damaged()),
        };
        self.put_back(&poisoned.table, operation).await?;
        let seen = Condition::for_etag(poisoned.row.etag());
        let delete = Operation::delete(PARTITION, poisoned.row.row_key(), seen)?;
        match self.client.store().apply_one(TABLE, delete).await {
            Err(error) if !(error.is_not_found() || error.is_precondition_failed()) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Poisoned {
    fn is_damaged(&self) -> Error {
        let (partition_key, row_key) = self.row.keys();
        let message =
            "the poisoned row does not say where it belongs, or what it is: mend it, or delete it";
        let error = Error::new(ErrorKind::Decode, message).in_table(TABLE);
        error.at_keys(partition_key, row_key)
    }

    fn of(row: Row) -> Result<Self> {
        let mut own: [String; 4] = Default::default();
        let mut lacks = None;
        for (name, slot) in OWN.into_iter().zip(&mut own) {
            match row.get(name)? {
                Some(ValueRef::String(text)) => text.clone_into(slot),
                // It is damaged: it is handed out as far as it can be read, and the others with it.
                _ => lacks = Some(name),
            }
        }
        let [table, partition_key, row_key, mut error] = own;
        if let Some(name) = lacks {
            error = format!("the poisoned row lacks the text `{name}`; {error}");
        }
        let mut open = Row::build(&partition_key, &row_key);
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            // A message begins anew.
            let is_own = OWN.iter().any(|own| own.as_bytes() == name);
            if !is_own && !TRIED.iter().any(|tried| tried.as_bytes() == name) {
                open.put(&String::from_utf8_lossy(name), value);
            }
        }
        Ok(Self { table, partition_key, error, open: open.finish()?, row })
    }
}

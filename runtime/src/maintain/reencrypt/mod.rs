//! Sealing rows again: after a change of keys, or where they are still plain.

#[cfg(feature = "legacy-encryption")]
pub(crate) mod legacy;
pub(crate) mod run;

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use crate::{
    entity::{Partition, TableEntity},
    error::{Error, Result},
    page::Cursor,
    seal::KeyId,
    table::Table,
};

/// How far a re-encryption is.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ReencryptProgress {
    /// Rows that were looked at, copies included.
    pub rows: u64,
    /// Rows that were sealed again.
    pub rewritten: u64,
    /// Where [`Reencrypt::resume`] goes on; `None` at the end.
    pub cursor: Option<Cursor>,
}

/// A row that was not sealed again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsealed {
    /// Its PartitionKey.
    pub partition_key: String,
    /// Its RowKey.
    pub row_key: String,
    /// Why.
    pub error: Error,
}

/// What became of a re-encryption.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReencryptReport {
    /// Rows that were looked at, copies included.
    pub rows: u64,
    /// Rows that were sealed again.
    pub rewritten: u64,
    /// Rows that do not open, whose keys cannot be had, or that are too large when sealed: they are as
    /// they were.
    pub failed: Vec<Unsealed>,
}

impl ReencryptReport {
    /// Whether no row was left as it was: then nothing needs the earlier key any more, if every
    /// writer used the new one before this began.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }
}

type OnProgress = Arc<dyn Fn(&ReencryptProgress) + Send + Sync>;

/// What is done to each row.
#[derive(Clone)]
enum What {
    /// Its values are sealed with the keys in use.
    Keys,
    /// It is taken over from another format.
    #[cfg(feature = "legacy-encryption")]
    Legacy(Arc<crate::seal::legacy::LegacyKeys>),
}

/// A re-encryption: made by [`Table::reencrypt`], and begun when it is awaited.
///
/// Every row of the entity, copies included, whose values are sealed with another key than the one
/// in use is sealed again: a merge of these properties in the version that was read, again where
/// another writer was first. It can be stopped at any time and begun again.
#[must_use = "nothing is sealed before it is awaited"]
pub struct Reencrypt<E> {
    table: Table<E>,
    what: What,
    retired: Vec<KeyId>,
    partition: Option<String>,
    page_size: Option<u32>,
    start: Option<Cursor>,
    on_progress: Option<OnProgress>,
}

impl<E> fmt::Debug for Reencrypt<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reencrypt")
            .field("table", &self.table)
            .field("retired", &self.retired)
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

impl<E: TableEntity> Table<E> {
    /// Seals every row of the entity again whose values are not sealed with the keys in use: after
    /// a new key became the primary one in *every* process, after a field became encrypted or was
    /// chosen by `encrypt_if` (under [`PlaintextPolicy::Allow`](crate::store::PlaintextPolicy), which
    /// reads what is plain), after a `pad` was declared otherwise.
    ///
    /// It scans the table; [`retired`](Reencrypt::retired) has the store look for the rows of a key.
    ///
    /// ```ignore
    /// let report = staff.reencrypt().retired(old).on_progress(|p| save(&p.cursor)).await?;
    /// assert!(report.is_complete()); // now the old key can be taken out of the ring
    /// ```
    pub fn reencrypt(&self) -> Reencrypt<E> {
        Reencrypt {
            table: self.clone(),
            what: What::Keys,
            retired: Vec::new(),
            partition: None,
            page_size: None,
            start: None,
            on_progress: None,
        }
    }
}

impl<E: TableEntity> Reencrypt<E> {
    /// Only rows with a declared property that is sealed with that key, which the store finds by a
    /// filter; several calls add keys. What `encrypt_if` chose is found without this only.
    pub fn retired(mut self, key: KeyId) -> Self {
        self.retired.push(key);
        self
    }

    /// Only the rows of one partition.
    pub fn within(self, partition: impl Into<Partition<E>>) -> Self {
        let partition = partition.into().keys().partition.clone().unwrap_or_default();
        Self { partition: Some(partition), ..self }
    }

    /// At most so many rows per page, 1 to 1,000: progress is told after each.
    pub fn page_size(self, rows: u32) -> Self {
        Self { page_size: Some(rows), ..self }
    }

    /// Goes on where an earlier one was.
    pub fn resume(self, cursor: Cursor) -> Self {
        Self { start: Some(cursor), ..self }
    }

    /// Called after every page.
    pub fn on_progress(self, report: impl Fn(&ReencryptProgress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Some(Arc::new(report)), ..self }
    }
}

impl<E: TableEntity> IntoFuture for Reencrypt<E> {
    type Output = Result<ReencryptReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

//! Defines [`BlobLog`], a log as blobs of text.

use std::{fmt, ops::Range, sync::Arc};

use object_store::ObjectStore;
use time::OffsetDateTime;

use super::{
    flush::Flush,
    hour::{LogHour, clamped_ticks},
    name::LogBlobName,
    reader::LogReader,
    source::LogBlobs,
    writer::LogWriter,
};
use crate::{error::Result, random::RandomSource};

/// A log in blobs. Each hour is a folder of blobs, and each blob holds one line per record. Create it with
/// `Client::blob_log`.
///
/// Tables are a poor fit for logs. With one partition per hour, a single partition takes all writes. With one
/// per source, a query for a time span reads all partitions. Blobs are written in large pieces, and a time
/// span takes only a few of them.
///
/// ```
/// # use std::sync::Arc;
/// use entable::{Flush, LogRecord, backend::Memory, object_store::memory::InMemory, prelude::*};
/// use time::macros::datetime;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let blobs = Arc::new(InMemory::new());
/// let client = Client::builder().backend(Memory::new()).blobs(blobs).build()?;
/// let log = client.blob_log("queue");
/// let at = datetime!(2014-07-31 18:05 UTC);
/// assert_eq!(log.name(at, 1), "queue/2014/07/31/1800/000001.log");
///
/// let writer = log.writer(Flush::each());
/// writer.append(LogRecord::new(at, ["error", "disk full"])).await?;
/// writer.append(LogRecord::new(at, ["info", "disk cleared"])).await?;
/// let window = datetime!(2014-07-31 18:04 UTC)..datetime!(2014-07-31 18:06 UTC);
/// let mut errors = log.read(window).filter(|r| r.field(0) == Some("error")).stream();
/// while let Some(record) = errors.try_next().await? {
///     assert_eq!(record.fields(), ["error", "disk full"]);
/// }
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BlobLog {
    source: Arc<LogBlobs>,
}

impl BlobLog {
    pub(crate) fn new(
        store: Option<Arc<dyn ObjectStore>>,
        log: String,
        random: RandomSource,
    ) -> Self {
        Self { source: Arc::new(LogBlobs::new(store, log, random)) }
    }

    /// Returns the name of blob `number` in the hour that contains `at`. Numbers of an hour begin at 1. A time
    /// outside of the years 1 to 9999 gives a name in the nearest hour of these years: the first or the last
    /// one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use entable::{backend::Memory, object_store::memory::InMemory, prelude::*};
    /// # use time::macros::datetime;
    /// # let blobs = Arc::new(InMemory::new());
    /// # let client = Client::builder().backend(Memory::new()).blobs(blobs).build()?;
    /// let log = client.blob_log("web");
    /// let name = log.name(datetime!(2014-07-31 18:05 UTC), 1);
    /// assert_eq!(name, "web/2014/07/31/1800/000001.log");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn name(&self, at: impl Into<OffsetDateTime>, number: u32) -> String {
        self.source.log_blob_name(LogHour::hour_of(clamped_ticks(at.into())), number).to_string()
    }

    /// Parses the name of a blob of any log: the log's name, the hour and the number.
    ///
    /// ```
    /// use entable::BlobLog;
    ///
    /// let name = BlobLog::parse("web/2014/07/31/1800/000001.log")?;
    /// assert_eq!((name.log(), name.number()), ("web", 1));
    /// assert!(BlobLog::parse("photo.jpg").is_err_and(|error| error.is_invalid()));
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if `name` does not have the form of a log blob's name.
    pub fn parse(name: &str) -> Result<LogBlobName> {
        LogBlobName::parse(name)
    }

    /// Returns a new writer, which stores its records when `flush` says. It shares no buffers with other
    /// writers, except its clones. Any number of writers, in any number of processes, may write one log.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use entable::{backend::Memory, object_store::memory::InMemory, prelude::*};
    /// # use time::macros::datetime;
    /// # let blobs = Arc::new(InMemory::new());
    /// # let client = Client::builder().backend(Memory::new()).blobs(blobs).build()?;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let log = client.blob_log("web");
    /// let at = datetime!(2014-07-31 18:05 UTC);
    /// let writer = log.writer(Flush::each());
    /// writer.append(LogRecord::new(at, ["error", "disk full"])).await?;
    /// let hour = datetime!(2014-07-31 18:00 UTC)..datetime!(2014-07-31 19:00 UTC);
    /// let records: Vec<LogRecord> = log.read(hour).stream().try_collect().await?;
    /// assert_eq!(records[0].fields(), ["error", "disk full"]);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn writer(&self, flush: Flush) -> LogWriter {
        LogWriter::new(self.source.clone(), flush)
    }

    /// Returns a reader of the records from the start of the window, included, to its end, excluded. Sends no
    /// request: the requests, and their errors, belong to the reader's stream.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use entable::{backend::Memory, object_store::memory::InMemory, prelude::*};
    /// # use time::macros::datetime;
    /// # let blobs = Arc::new(InMemory::new());
    /// # let client = Client::builder().backend(Memory::new()).blobs(blobs).build()?;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let log = client.blob_log("web");
    /// let at = datetime!(2014-07-31 18:05 UTC);
    /// log.writer(Flush::each()).append(LogRecord::new(at, ["error", "disk full"])).await?;
    /// let before: Vec<LogRecord> = log.read(at - time::Duration::HOUR..at).stream().try_collect().await?;
    /// assert!(before.is_empty(), "the end of a window is not in it");
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn read<T: Into<OffsetDateTime>>(&self, window: Range<T>) -> LogReader {
        LogReader::new(self.source.clone(), window.start.into()..window.end.into())
    }
}

impl fmt::Debug for BlobLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobLog").field("log", &self.source.log).finish_non_exhaustive()
    }
}

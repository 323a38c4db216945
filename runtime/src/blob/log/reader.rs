//! Defines [`LogReader`], which reads the records of a time window.

use std::{fmt, ops::Range, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use time::OffsetDateTime;

use super::{
    hour::{LogFolder, LogWindow},
    name::LogBlobName,
    record::{LineFault, LogRecord, RecordsInText, time_of_first_record, time_of_last_record},
    source::LogBlobs,
};
use crate::error::{Error, ErrorKind, Result};

/// The number of blobs that are asked for their metadata at a time.
const ASKED_AT_ONCE: usize = 8;

/// The most folders that are listed without knowing which years have blobs.
const UNLISTED_FOLDERS: usize = 24;

/// The number of bytes that hold the first record's time, and likely the whole last record.
const EDGE: u64 = 4096;

/// The records that a [`LogReader`] finds.
pub type LogRecords = BoxStream<'static, Result<LogRecord>>;

type Predicate = Arc<dyn Fn(&LogRecord) -> bool + Send + Sync>;

/// Reads the records of a [`BlobLog`](crate::BlobLog) in a time window; made by
/// [`BlobLog::read`](crate::BlobLog::read).
#[derive(Clone)]
pub struct LogReader {
    source: Arc<LogBlobs>,
    window: LogWindow,
    predicates: Vec<Predicate>,
}

/// A line of a log that is not a valid record. It is the [`source`](std::error::Error::source) of the reader's
/// error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of `{blob}`: {fault}")]
pub struct DamagedLine {
    blob: LogBlobName,
    line: u64,
    fault: LineFault,
}

impl DamagedLine {
    /// Returns the name of the blob.
    pub fn blob(&self) -> &LogBlobName {
        &self.blob
    }

    /// Returns the number of the line in the blob; the first is 1.
    pub fn line(&self) -> u64 {
        self.line
    }
}

/// A blob of an hour that the window touches.
struct FoundBlob {
    name: LogBlobName,
    size: u64,
}

impl LogReader {
    pub(super) fn new(source: Arc<LogBlobs>, times: Range<OffsetDateTime>) -> Self {
        Self { source, window: LogWindow::new(times), predicates: Vec::new() }
    }

    /// Keeps only records that pass `predicate`. If you call `filter` several times, a record has to pass every
    /// predicate.
    #[must_use]
    pub fn filter(
        mut self,
        predicate: impl Fn(&LogRecord) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Returns the records as a stream, ordered by hour, then by blob, then by time within the blob. Blobs of
    /// several writers, and of late records, overlap in time.
    ///
    /// A damaged line gives an `is_corrupt` error item with a [`DamagedLine`] as its source. A blob that was
    /// deleted during the read gives an `is_not_found` error item. In both cases, the rest of that blob is
    /// skipped and the next blobs follow. The error of any other request is the last item.
    ///
    /// Costs one list for each whole month, each further whole day and each further hour of the window, and at
    /// most one read of each blob. A window of more than 24 such folders costs one list more, and none for years
    /// without blobs. In an hour that is only
    /// partly in the window, each blob costs one or two more small requests, to find out whether
    /// the blob has to be read.
    pub fn stream(&self) -> LogRecords {
        let (lists, asks, reads) = (self.clone(), self.clone(), self.clone());
        let source = lists.source.clone();
        let found = stream::once(async move { lists.folders_to_list().await })
            .map_ok(|folders| stream::iter(folders).map(Ok))
            .try_flatten()
            .and_then(move |folder| {
                let source = source.clone();
                async move {
                    let found = source.list_blobs_of(folder).await?;
                    let found = found.into_iter().map(|(name, size)| Ok(FoundBlob { name, size }));
                    Ok::<_, Error>(stream::iter(found))
                }
            })
            .try_flatten();
        let needed = found
            .map_ok(move |found| {
                let reader = asks.clone();
                async move { Ok(reader.may_overlap_window(&found).await?.then_some(found.name)) }
            })
            .try_buffered(ASKED_AT_ONCE)
            .try_filter_map(async |name| Ok(name));
        let items = needed.and_then(move |name| {
            let reader = reads.clone();
            async move { Ok(stream::iter(reader.read_blob(&name).await?)) }
        });
        // Ends after the first error of a request, without another request.
        stream::try_unfold(items.boxed(), async |mut items| {
            Ok(items.try_next().await?.map(|found| (found, items)))
        })
        .map(|items| match items {
            Ok(items) => items.boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        })
        .flatten()
        .boxed()
    }

    /// Reads all records.
    ///
    /// # Errors
    ///
    /// The first error of the [stream](Self::stream).
    pub async fn collect(&self) -> Result<Vec<LogRecord>> {
        self.stream().try_collect().await
    }

    /// Returns the folders that may have blobs of the window, in the order of their hours. Lists the years of
    /// the log first if there are many folders.
    async fn folders_to_list(&self) -> Result<Vec<LogFolder>> {
        if self.window.folders().nth(UNLISTED_FOLDERS).is_none() {
            return Ok(self.window.folders().collect());
        }
        let years = self.source.list_years().await?;
        Ok(self.window.folders().filter(|folder| years.contains(&folder.year())).collect())
    }

    /// Returns whether the blob may have records of the window.
    async fn may_overlap_window(&self, found: &FoundBlob) -> Result<bool> {
        if self.window.covers_hour(found.name.hour) {
            return Ok(true);
        }
        // A blob that is gone is reported where it is read.
        let Some(metadata) = self.source.read_blob_metadata(&found.name).await? else {
            return Ok(true);
        };
        let times = match metadata.times {
            Some(times) => Some(times),
            // A small blob is read whole with no more requests than its edges.
            None if found.size <= 2 * EDGE => None,
            None => {
                let edges = self.source.read_both_ends(&found.name, found.size, EDGE).await?;
                edges.and_then(|(first, last)| {
                    time_of_first_record(&first).zip(time_of_last_record(&last))
                })
            }
        };
        Ok(times
            .is_none_or(|(first, last)| first > last || self.window.overlaps_times(first, last)))
    }

    /// Reads the records of a blob that are wanted, up to the first damaged line.
    async fn read_blob(&self, name: &LogBlobName) -> Result<Vec<Result<LogRecord>>> {
        let Some(text) = self.source.read_whole_log_blob(name).await? else {
            let message = format!("the log blob `{name}` was listed but no longer exists");
            return Ok(vec![Err(Error::new(ErrorKind::NotFound, message))]);
        };
        let wanted = RecordsInText::new(&text).filter_map(|found| match found {
            Ok((at, record)) => {
                let is_wanted = self.window.contains_time(at)
                    && self.predicates.iter().all(|predicate| predicate(&record));
                is_wanted.then_some(Ok(record))
            }
            Err((line, fault)) => {
                Some(Err(damaged_line_error(DamagedLine { blob: name.clone(), line, fault })))
            }
        });
        Ok(wanted.collect())
    }
}

fn damaged_line_error(line: DamagedLine) -> Error {
    let message = format!("a damaged log: {line}");
    Error::new(ErrorKind::Corrupt, message).with_source(line)
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("log", &self.source.log)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

//! Sends the requests of one log to the store of blobs.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{
    Attribute, AttributeValue, Attributes, Error as StoreError, GetOptions, ObjectMeta,
    ObjectStore, PutMode, PutOptions, PutPayload, path::Path,
};

use super::{
    buffer::HourLines,
    hour::{LogFolder, LogHour},
    name::{LogBlobName, check_log_name, folder_name},
};
use crate::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    random::RandomSource,
};

/// The metadata of a blob: the time of its first record, of its last one, and the id of its flush.
const START_TIME: &str = "StartTime";
const END_TIME: &str = "EndTime";
const BATCH: &str = "Batch";

/// One log in the store of a client's blobs.
pub(super) struct LogBlobs {
    store: Option<Arc<dyn ObjectStore>>,
    pub(super) log: String,
    pub(super) random: RandomSource,
    /// Whether the store keeps metadata. Unset until its first answer to a put shows it.
    keeps_metadata: OnceLock<bool>,
}

/// The answer to a put that creates a blob.
#[derive(Debug)]
pub(super) enum PutAnswer {
    Stored,
    /// The blob was not written, because a blob of that name exists.
    Taken,
    /// The store did not store the blob, and will not.
    Refused(Error),
    /// The answer was lost: the blob may be stored, now or later.
    Lost(Error),
}

/// The metadata that a flush wrote with a blob.
#[derive(Debug, Default)]
pub(super) struct FlushMetadata {
    /// The times of the first and the last record.
    pub(super) times: Option<(Ticks, Ticks)>,
    /// The random id of the flush, by which a writer recognises its own blob. `None` if the store keeps no metadata.
    pub(super) flush: Option<String>,
}

impl LogBlobs {
    pub(super) fn new(
        store: Option<Arc<dyn ObjectStore>>,
        log: String,
        random: RandomSource,
    ) -> Self {
        Self { store, log, random, keeps_metadata: OnceLock::new() }
    }

    /// Returns the store of blobs.
    ///
    /// # Errors
    ///
    /// `is_unsupported` if the client has none, `is_invalid` if no blob can have the log's name.
    pub(super) fn blob_store(&self) -> Result<&Arc<dyn ObjectStore>> {
        check_log_name(&self.log)?;
        self.store.as_ref().ok_or_else(|| {
            let message = format!(
                "the log `{}` needs a blob store; set one with `Client::builder().blobs(..)`",
                self.log
            );
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    /// Returns the name of a blob of this log.
    pub(super) fn log_blob_name(&self, hour: LogHour, number: u32) -> LogBlobName {
        LogBlobName::new(&self.log, hour, number)
    }

    /// Returns the log's blobs in a folder with their sizes in bytes, ordered by hour and number. Leaves out
    /// blobs whose names a log would not write.
    pub(super) async fn list_blobs_of(&self, folder: LogFolder) -> Result<Vec<(LogBlobName, u64)>> {
        let folder = folder_name(&self.log, folder);
        let found: Result<Vec<ObjectMeta>, _> =
            self.blob_store()?.list(Some(&Path::from(folder.as_str()))).try_collect().await;
        let found = found.map_err(|error| request_error(&folder, "listed", error))?;
        let named = found.into_iter().filter_map(|blob| {
            // Another program has put this blob here: it has no name of a log's blob.
            let name = LogBlobName::parse(blob.location.as_ref()).ok()?;
            Some((name, blob.size))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable_by_key(|(name, _)| (name.hour, name.number()));
        Ok(named)
    }

    /// Returns the years that the log has folders of.
    pub(super) async fn list_years(&self) -> Result<BTreeSet<i32>> {
        let folder = Path::from(self.log.as_str());
        let listed = self.blob_store()?.list_with_delimiter(Some(&folder)).await;
        let listed = listed.map_err(|error| request_error(&self.log, "listed", error))?;
        let folders = listed.common_prefixes.iter();
        Ok(folders.filter_map(|folder| folder.filename()?.parse().ok()).collect())
    }

    /// Stores the lines of an hour (`part`) as the blob number `number` in the hour's folder. Stores nothing and returns
    /// `PutAnswer::Taken` if there is a blob with that number.
    pub(super) async fn create_log_blob(&self, part: &HourLines, number: u32) -> Result<PutAnswer> {
        let name = self.log_blob_name(part.hour, number);
        if self.keeps_metadata.get() != Some(&false) {
            match self.put_log_blob(&name, part, true).await? {
                Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {}
                put => {
                    self.keeps_metadata.get_or_init(|| true);
                    return Ok(self.put_answer(&name, put));
                }
            }
        }
        // A directory refuses metadata, and a store without conditions refuses this put as well.
        let put = self.put_log_blob(&name, part, false).await?;
        if matches!(put, Ok(()) | Err(StoreError::AlreadyExists { .. })) {
            self.keeps_metadata.get_or_init(|| false);
        }
        Ok(self.put_answer(&name, put))
    }

    async fn put_log_blob(
        &self,
        name: &LogBlobName,
        part: &HourLines,
        with_metadata: bool,
    ) -> Result<Result<(), StoreError>> {
        let mut attributes = Attributes::new();
        if with_metadata {
            let texts = [
                (START_TIME, part.first.to_string()),
                (END_TIME, part.last.to_string()),
                (BATCH, part.batch.to_string()),
            ];
            for (key, text) in texts {
                attributes.insert(Attribute::Metadata(key.into()), AttributeValue::from(text));
            }
        }
        let options = PutOptions { mode: PutMode::Create, attributes, ..PutOptions::default() };
        let payload = PutPayload::from(part.text.clone());
        Ok(self.blob_store()?.put_opts(&name.path(), payload, options).await.map(drop))
    }

    fn put_answer(&self, name: &LogBlobName, put: Result<(), StoreError>) -> PutAnswer {
        match put {
            Ok(()) => PutAnswer::Stored,
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                PutAnswer::Taken
            }
            Err(error @ (StoreError::NotImplemented { .. } | StoreError::NotSupported { .. })) => {
                let store = self.store.as_ref().map(ToString::to_string).unwrap_or_default();
                let message = format!(
                    "the blob store `{store}` cannot create a blob only if none exists, which keeps two writers of a \
                     log apart; use a store that can"
                );
                PutAnswer::Refused(Error::new(ErrorKind::Unsupported, message).with_source(error))
            }
            Err(error) => {
                let error = request_error(&name.to_string(), "stored", error);
                if error.kind() == ErrorKind::Backend {
                    PutAnswer::Lost(error)
                } else {
                    PutAnswer::Refused(error)
                }
            }
        }
    }

    /// Reads a blob's metadata, or returns `None` if the blob does not exist.
    pub(super) async fn read_blob_metadata(
        &self,
        name: &LogBlobName,
    ) -> Result<Option<FlushMetadata>> {
        let head = GetOptions { head: true, ..GetOptions::default() };
        let attributes = match self.blob_store()?.get_opts(&name.path(), head).await {
            Ok(answer) => answer.attributes,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(request_error(&name.to_string(), "read", error)),
        };
        let text = |wanted: &str| {
            // Services return names of metadata in lower case.
            let is_wanted = |attribute: &Attribute| match attribute {
                Attribute::Metadata(key) => key.eq_ignore_ascii_case(wanted),
                _ => false,
            };
            let found = attributes.iter().find(|(attribute, _)| is_wanted(attribute));
            found.map(|(_, value)| value.as_ref().to_owned())
        };
        let time = |wanted: &str| text(wanted).and_then(|text| text.parse::<Ticks>().ok());
        let times = time(START_TIME).zip(time(END_TIME)).filter(|(first, last)| first <= last);
        Ok(Some(FlushMetadata { times, flush: text(BATCH) }))
    }

    /// Reads a whole blob, or returns `None` if it does not exist.
    pub(super) async fn read_whole_log_blob(&self, name: &LogBlobName) -> Result<Option<Bytes>> {
        let failed = |error| request_error(&name.to_string(), "read", error);
        match self.blob_store()?.get_opts(&name.path(), GetOptions::default()).await {
            Ok(answer) => answer.bytes().await.map(Some).map_err(failed),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads the first and the last `edge` bytes of a blob of `size` bytes with one request. Returns `None` if
    /// the blob does not exist.
    pub(super) async fn read_both_ends(
        &self,
        name: &LogBlobName,
        size: u64,
        edge: u64,
    ) -> Result<Option<(Bytes, Bytes)>> {
        let ranges = [0..edge.min(size), size.saturating_sub(edge)..size];
        match self.blob_store()?.get_ranges(&name.path(), &ranges).await {
            Ok(parts) => Ok(<[Bytes; 2]>::try_from(parts).ok().map(|[first, last]| (first, last))),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(request_error(&name.to_string(), "read", error)),
        }
    }
}

/// Returns the error for a request about `name` that the store refused or did not answer. `done`
/// completes the message "was not ..", such as `read`. The kind is `NotFound`, `Denied`, `Invalid`
/// or `Unsupported` if the store's error says so, else `Backend`.
fn request_error(name: &str, done: &str, error: StoreError) -> Error {
    let kind = match error {
        StoreError::NotFound { .. } => ErrorKind::NotFound,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            ErrorKind::Denied
        }
        StoreError::InvalidPath { .. } => ErrorKind::Invalid,
        StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => {
            ErrorKind::Unsupported
        }
        _ => ErrorKind::Backend,
    };
    let message = format!("`{name}` was not {done}: the blob store failed");
    Error::new(kind, message).with_source(error)
}

impl fmt::Debug for LogBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogBlobs").field("log", &self.log).finish_non_exhaustive()
    }
}

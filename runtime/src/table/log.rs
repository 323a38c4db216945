//! Logs in the store of the client's blobs.

use super::Client;
use crate::blob::{Blobs, log::BlobLog};

impl Client {
    /// Returns the log with this name in the client's blob store. Sends nothing. If the client has no
    /// `blobs(..)` or the name is invalid, the log's methods fail. A valid name has 1 to 63 characters from
    /// `a` to `z`, digits, `-` and `_`.
    ///
    /// ```
    /// use entable::Client;
    /// use time::macros::datetime;
    ///
    /// let log = Client::memory().blob_log("queue");
    /// let name = log.name(datetime!(2014-07-31 18:05 UTC), 1);
    /// assert_eq!(name, "queue/2014/07/31/1800/000001.log");
    /// ```
    pub fn blob_log(&self, name: impl Into<String>) -> BlobLog {
        let store = self.store();
        let blobs = store.object_blobs().map(Blobs::inner_object_store);
        BlobLog::new(blobs, name.into(), store.random.fork_source())
    }
}

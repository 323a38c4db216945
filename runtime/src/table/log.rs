//! Logs in the store of the client's blobs.

use super::Client;
use crate::blob::{Blobs, log::BlobLog};

impl Client {
    /// Returns the log of that name in the store of the client's blobs. Sends nothing; a client
    /// without `blobs(..)`, and a name that a log cannot have, are errors of the log's methods. A
    /// name has 1 to 63 of the characters `a` to `z`, digits, `-` and `_`.
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

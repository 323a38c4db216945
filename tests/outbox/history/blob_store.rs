//! A blob store with the faults of the simulated table store.

use std::{fmt, sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use entable::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use futures_util::stream::BoxStream;
use tokio::time::sleep;

use super::store::{Fate, Way};

/// One actor's way to the blobs: it dies with the way to the tables.
#[derive(Debug)]
pub(super) struct Tray(pub(super) Way);

fn lost() -> Error {
    Error::Generic { store: "tray", source: "connection lost".into() }
}

impl Tray {
    async fn put_now(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
        note: &str,
    ) -> Result<PutResult> {
        let mode = format!("{:?}", options.mode);
        let put = self.0.shared.blobs.put_opts(location, payload, options).await;
        let outcome = if put.is_ok() { "done" } else { "refused" };
        self.0.say(&format!("blob {location}: {mode} -> {outcome}{note}"));
        put
    }
}

impl fmt::Display for Tray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tray")
    }
}

#[async_trait]
impl ObjectStore for Tray {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        match self.0.fate().await {
            Fate::Refused => Err(lost()),
            Fate::Unanswered => {
                let _ = self.put_now(location, payload, options, ", unanswered").await;
                self.0.answered().await;
                Err(lost())
            }
            Fate::Late => {
                let wait = Duration::from_millis(self.0.shared.draw(29_000));
                let (tray, location) = (Self(self.0.clone()), location.clone());
                tray.0.shared.late.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    sleep(wait).await;
                    let _ = tray.put_now(&location, payload, options, ", late").await;
                    tray.0.shared.late.fetch_sub(1, Ordering::SeqCst);
                });
                Err(lost())
            }
            Fate::Good => {
                let put = self.put_now(location, payload, options, "").await;
                self.0.answered().await;
                put
            }
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.0.fate().await == Fate::Refused {
            return Err(lost());
        }
        let got = self.0.shared.blobs.get_opts(location, options).await;
        self.0.answered().await;
        got
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(lost())
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        panic!("a list is never deleted")
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.shared.blobs.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.shared.blobs.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(lost())
    }
}

//! A blob store with the faults of the simulated table store.

use std::{fmt, sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use entable::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    path::Path,
};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
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
        if put.is_ok() {
            self.0.shared.date(location);
        }
        let outcome = if put.is_ok() { "done" } else { "refused" };
        self.0.say(&format!("blob {location}: {mode} -> {outcome}{note}"));
        put
    }
}

/// A request that changes blobs, other than a put.
#[derive(Debug, Clone)]
enum Change {
    Delete(Path),
    Copy(Path, Path, CopyOptions),
}

impl Tray {
    async fn change(&self, change: Change) -> Result<()> {
        match self.0.fate().await {
            Fate::Refused => Err(lost()),
            Fate::Unanswered => {
                let _ = self.change_now(change, ", unanswered").await;
                self.0.answered().await;
                Err(lost())
            }
            Fate::Late => {
                let wait = Duration::from_millis(self.0.shared.draw(29_000));
                let tray = Self(self.0.clone());
                tray.0.shared.late.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    sleep(wait).await;
                    let _ = tray.change_now(change, ", late").await;
                    tray.0.shared.late.fetch_sub(1, Ordering::SeqCst);
                });
                Err(lost())
            }
            Fate::Good => {
                let changed = self.change_now(change, "").await;
                self.0.answered().await;
                changed
            }
        }
    }

    async fn change_now(&self, change: Change, note: &str) -> Result<()> {
        self.0.say(&format!("blob {change:?}{note}"));
        let shared = &self.0.shared;
        match change {
            Change::Delete(path) => {
                shared.check_removal(&path).await;
                shared.blobs.delete(&path).await
            }
            Change::Copy(from, to, options) => {
                shared.blobs.copy_opts(&from, &to, options).await?;
                shared.date(&to);
                Ok(())
            }
        }
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
        got.map(|mut got| {
            got.meta = self.0.shared.dated(got.meta);
            got
        })
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
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let way = self.0.clone();
        let deleted = paths.then(move |path| {
            let tray = Self(way.clone());
            async move {
                let path = path?;
                assert!(!path.as_ref().ends_with(".jsonl"), "a list is never deleted");
                tray.change(Change::Delete(path.clone())).await?;
                Ok(path)
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let shared = self.0.shared.clone();
        self.0.shared.blobs.list(prefix).map_ok(move |meta| shared.dated(meta)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.shared.blobs.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.change(Change::Copy(from.clone(), to.clone(), options)).await
    }
}

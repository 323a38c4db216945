//! S2: an entity and its blob, kept consistent by messages: the blob before the entity on a write,
//! the entity before the blob on a delete, and a cleaner for what a crash left.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use entable::{
    Blob, Context, ValueRef,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use serde::{Deserialize, Serialize};

use crate::{
    flaky_blobs::Flaky,
    store::{TestResult, on_both},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    /// The name of the blob: another one with each photo, so that none is ever overwritten.
    photo: String,
}

/// A blob that has to be deleted when the entity does not name it any more.
#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "DropPhoto", version = 1)]
struct DropPhoto {
    department: String,
    id: u32,
    photo: String,
}

type Blobs = Arc<dyn ObjectStore>;

fn point(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

/// The blob, then the entity that names it.
async fn add(staff: &Table<Employee>, blobs: &Blobs, id: u32, photo: &str) -> TestResult {
    blobs.put(&name(id, photo), vec![1, 2, 3].into()).await?;
    let one = Employee { department: "Sales".into(), id, photo: photo.to_owned() };
    staff.insert(&one).await?;
    Ok(())
}

/// The entity, and in the same transaction the message that the blob has to go.
async fn remove(staff: &Table<Employee>, id: u32) -> TestResult {
    let one = staff.get(point(id)).await?.ok_or("it is there")?;
    let message = DropPhoto { department: "Sales".into(), id, photo: one.photo.clone() };
    let mut egt = staff.transaction();
    egt.delete(&one)?.emit(&message)?;
    egt.commit().await?;
    Ok(())
}

fn name(id: u32, photo: &str) -> Path {
    format!("Staff/Sales/{id:06}/{photo}").into()
}

/// Deletes the blob, unless the entity names it: again and again without harm.
async fn drop_photo(cx: Context, blobs: Blobs, message: DropPhoto) -> Result<(), BoxError> {
    let owner = cx.client().table::<Employee>().get(point(message.id)).await?;
    if owner.is_some_and(|owner| owner.photo == message.photo) {
        return Ok(());
    }
    match blobs.delete(&name(message.id, &message.photo)).await {
        Err(object_store::Error::NotFound { .. }) => Ok(()),
        done => Ok(done?),
    }
}

/// Deletes what no entity names and is older than any write that is under way.
async fn clean(
    staff: &Table<Employee>,
    blobs: &Blobs,
    grace: Duration,
) -> Result<u32, Box<dyn std::error::Error>> {
    let mut cleaned = 0;
    let all: Vec<_> = blobs.list(Some(&"Staff".into())).try_collect().await?;
    for found in all {
        let age = (time::OffsetDateTime::now_utc().unix_timestamp()
            - found.last_modified.timestamp()) as u64;
        let parts: Vec<String> = found.location.parts().map(|p| p.as_ref().to_owned()).collect();
        let owner = staff.get(point(parts[2].parse()?)).await?;
        let is_named = owner.is_some_and(|owner| owner.photo == parts[3]);
        if !is_named && Duration::from_secs(age) >= grace {
            blobs.delete(&found.location).await?;
            cleaned += 1;
        }
    }
    Ok(cleaned)
}

async fn names(blobs: &Blobs) -> Vec<String> {
    let all: Vec<_> = blobs.list(None).try_collect().await.unwrap();
    let mut names: Vec<String> = all.iter().map(|one| one.location.to_string()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn s02_an_entity_and_its_blob_are_kept_consistent() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let blobs: Blobs = Arc::new(InMemory::new());
        add(&staff, &blobs, 1, "a").await?;
        add(&staff, &blobs, 2, "b").await?;
        // The blob is there before the entity is: whoever fails in between leaves an orphan, and no
        // entity without its blob.
        assert!(add(&staff, &blobs, 1, "late").await.is_err(), "the entity is there already");
        assert_eq!(names(&blobs).await.len(), 3);

        remove(&staff, 1).await?;
        assert!(staff.get(point(1)).await?.is_none());
        assert_eq!(names(&blobs).await.len(), 3, "the blob goes after the entity");
        let keep = blobs.clone();
        let worker = store.client.worker().on(move |cx, message: DropPhoto| {
            let blobs = keep.clone();
            async move { drop_photo(cx, blobs, message).await }
        });
        assert_eq!(worker.drain().await?.poisoned, 0);
        assert_eq!(names(&blobs).await, ["Staff/Sales/000001/late", "Staff/Sales/000002/b"]);

        // Young ones may belong to a write that is under way.
        assert_eq!(clean(&staff, &blobs, Duration::from_secs(3600)).await?, 0);
        assert_eq!(clean(&staff, &blobs, Duration::ZERO).await?, 1);
        assert_eq!(names(&blobs).await, ["Staff/Sales/000002/b"]);
        Ok(())
    })
    .await
}

/// With a queue in between: the entity that names the blob is deleted first, and a message that comes
/// late, or twice, deletes no blob that is named.
#[tokio::test]
async fn s02_a_late_message_deletes_no_blob_that_is_named() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let blobs: Blobs = Arc::new(InMemory::new());
        add(&staff, &blobs, 1, "a").await?;
        let queue = store.client.queue("photos");
        let message = DropPhoto { department: "Sales".into(), id: 1, photo: "a".into() };
        queue.send(&message).await?;
        queue.send(&message).await?;
        let keep = blobs.clone();
        let worker = store.client.worker().queue(&queue).on(move |cx, message: DropPhoto| {
            let blobs = keep.clone();
            async move { drop_photo(cx, blobs, message).await }
        });
        assert_eq!(worker.drain().await?.applied, 2);
        assert_eq!(names(&blobs).await.len(), 1);
        let one = staff.get(point(1)).await?.ok_or("it is there")?;
        staff.delete(&one).await?;
        queue.send(&message).await?;
        queue.send(&message).await?;
        assert_eq!(worker.drain().await?.applied, 4);
        assert!(names(&blobs).await.is_empty());
        Ok(())
    })
    .await
}

/// The entity whose photo the library keeps in a blob.
#[derive(Debug, TableEntity)]
#[table(name = "Members", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Member {
    department: String,
    id: u32,
    #[table(blob)]
    photo: Option<Blob>,
}

fn member(bytes: usize) -> Member {
    Member { department: "Sales".into(), id: 1, photo: Some(Blob::new(vec![7; bytes])) }
}

#[tokio::test]
async fn s01_a_large_value_goes_to_a_blob_whose_name_is_a_property() -> TestResult {
    on_both(async |store| {
        let blobs: Blobs = Arc::new(InMemory::new());
        let builder = Client::builder().backend(store.recorder.clone()).blobs(blobs.clone());
        let members = builder.build()?.table::<Member>();
        store.table::<Member>().await;
        let stored = members.insert(&member(3 << 20)).await?;
        let photo = stored.photo.as_ref().ok_or("it was stored")?;
        let name = photo.name().ok_or("it was uploaded")?;
        assert_eq!(names(&blobs).await, [name]);
        let row = store.other.dynamic("Members").get("Sales", "empid_000001").await?;
        let row = row.ok_or("it is there")?;
        assert_eq!(row.row().get("Photo")?, Some(ValueRef::String(name)));
        assert!(stored.row().service_size()? < 1_000, "the row stays small");
        assert_eq!(members.blob(photo).bytes().await?.len(), 3 << 20);
        members.delete(&stored).await?;
        members.client().wait_for_copies().await;
        assert!(names(&blobs).await.is_empty(), "the blob goes after the row");
        Ok(())
    })
    .await
}

/// The blobs of the library's own field: a failure leaves a blob that no row names, and never a row without
/// its blob.
#[tokio::test]
async fn s02_the_blob_comes_before_its_row_and_goes_after_it() -> TestResult {
    on_both(async |store| {
        let kept: Blobs = Arc::new(InMemory::new());
        let blobs = Flaky::over(kept.clone());
        let builder = Client::builder().backend(store.recorder.clone()).blobs(blobs.clone());
        let members = builder.build()?.table::<Member>();
        store.table::<Member>().await;
        let point = || Member::primary().department("Sales").id(1);

        blobs.is_down.store(true, Ordering::SeqCst);
        assert!(members.insert(&member(100_000)).await.is_err());
        assert!(members.get(point()).await?.is_none(), "no row without its blob");
        blobs.is_down.store(false, Ordering::SeqCst);

        let lost = Error::new(ErrorKind::Backend, "connection lost");
        store.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(lost));
        assert!(members.insert(&member(100_000)).await.is_err());
        assert!(members.get(point()).await?.is_none());

        let count_at_write = || {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let kept = kept.clone();
            store.before_next_write(async move { _ = sender.send(names(&kept).await.len()) });
            receiver
        };
        let orphans = names(&kept).await.len();
        let before_row = count_at_write();
        members.insert(&member(100_000)).await?;
        assert_eq!(before_row.await?, orphans + 1, "the blob is there before its row is written");
        let before_delete = count_at_write();
        members.delete_at(point()).await?;
        assert_eq!(before_delete.await?, orphans + 1, "and until its row is deleted");
        assert!(members.get(point()).await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn s03_a_complete_entity_takes_two_requests() -> TestResult {
    on_both(async |store| {
        let blobs = Flaky::over(Arc::new(InMemory::new()));
        let builder = Client::builder().backend(store.recorder.clone()).blobs(blobs.clone());
        let members = builder.build()?.table::<Member>();
        store.table::<Member>().await;
        store.recorder.clear();
        members.insert(&member(100_000)).await?;
        let point = || Member::primary().department("Sales").id(1);
        let read = members.get(point()).await?.ok_or("it is there")?;
        assert_eq!(store.recorder.take().len(), 2, "one to write the row, one to read it");
        let sent = blobs.take_requests();
        assert!(sent.len() == 1 && sent[0].starts_with("put "), "{sent:?}");
        let photo = read.photo.as_ref().ok_or("it has one")?;
        assert_eq!(members.blob(photo).bytes().await?.len(), 100_000);
        assert_eq!(store.recorder.take().len(), 0, "the blob is read from its own store");
        let sent = blobs.take_requests();
        assert!(sent.len() == 1 && sent[0].starts_with("get "), "{sent:?}");
        Ok(())
    })
    .await
}

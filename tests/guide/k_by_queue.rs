//! K over a queue: "archive employee 456", to another table, to a blob, to a file; with crashes
//! before and after each step.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{
    Batch, Blob, BlobTarget, Queue, SteppedClock, Ticks, Worker, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Embedded, Memory, ReadRequest, Rows, ScanRequest,
        TableNames, TableRequest,
    },
    prelude::*,
    table::Target,
};
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory};
use serde::{Deserialize, Serialize};

use crate::store::{TestResult, on_both};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TableEntity)]
#[table(name = "Current", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "ArchiveEmployee", version = 1)]
struct ArchiveEmployee {
    department: String,
    id: u32,
}

fn point() -> Point<Employee> {
    Employee::primary().department("Sales").id(456)
}

fn jones() -> Employee {
    Employee { department: "Sales".into(), id: 456, last_name: "Jones".into() }
}

fn ask() -> ArchiveEmployee {
    ArchiveEmployee { department: "Sales".into(), id: 456 }
}

/// Blobs in whatever keeps them: memory, a directory, a service.
#[derive(Clone)]
struct Blobs(Arc<dyn ObjectStore>);

impl Blobs {
    async fn get(&self) -> Option<Employee> {
        let found = self.0.get(&"archive/Sales/000456.json".into()).await.ok()?;
        serde_json::from_slice(&found.bytes().await.unwrap()).ok()
    }
}

impl Target<Employee> for Blobs {
    fn put<'a>(&'a self, one: &'a Stored<Employee>) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let path = format!("archive/{}/{:06}.json", one.department, one.id);
            self.0.put(&path.into(), serde_json::to_vec(&**one)?.into()).await?;
            Ok(())
        })
    }
}

/// A worker that archives to that target.
fn worker<T>(client: &Client, queue: &MessageQueue, target: T) -> Worker
where
    T: Target<Employee> + 'static,
{
    let target = Arc::new(target);
    client.worker().lease(LEASE).queue(queue).on(move |cx, message: ArchiveEmployee| {
        let target = target.clone();
        async move {
            let current = cx.client().table::<Employee>();
            let point = Employee::primary().department(&*message.department).id(message.id);
            current.transfer(point, &*target).await?;
            Ok(())
        }
    })
}

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn k04_a_message_goes_only_after_both_steps() -> TestResult {
    on_both(async |store| {
        let current = store.table::<Employee>().await;
        let archive = store.client.table_named::<Employee>("Archive");
        archive.create().await?;
        current.insert(&jones()).await?;
        let queue = store.client.queue("archive");
        queue.send(&ask()).await?;
        store.recorder.clear();
        worker(&store.client, &queue, archive.clone()).drain().await?;
        let requests: Vec<String> = store.requests().iter().map(ToString::to_string).collect();
        let at = |text: &str| {
            let found = requests.iter().position(|request| request.starts_with(text));
            found.unwrap_or_else(|| panic!("{text}: {requests:#?}"))
        };
        // Taken, which hides it; fetched; added; deleted; and only then the message goes.
        let steps = [
            at("apply EntableQueues archive_00: Delete q_"),
            at("read Current (Sales, empid_000456)"),
            at("apply Archive Sales: Insert empid_000456"),
            at("apply Current Sales: Delete empid_000456"),
            requests.iter().rposition(|r| r.starts_with("apply EntableQueues")).unwrap(),
        ];
        assert!(steps.is_sorted() && steps[4] > steps[3], "{requests:#?}");
        assert!(current.get(point()).await?.is_none());
        assert_eq!(archive.get(point()).await?.as_deref(), Some(&jones()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k02_k05_step_4_writes_to_a_table_a_blob_or_a_file() -> TestResult {
    on_both(async |store| {
        let current = store.table::<Employee>().await;
        let queue = store.client.queue("archive");
        let directory = tempfile::tempdir()?;
        let memory = Blobs(Arc::new(InMemory::new()));
        let files = Blobs(Arc::new(LocalFileSystem::new_with_prefix(directory.path())?));
        for blobs in [memory, files] {
            current.insert(&jones()).await?;
            queue.send(&ask()).await?;
            let stats = worker(&store.client, &queue, blobs.clone()).drain().await?;
            assert_eq!((stats.applied, stats.retried), (1, 0));
            assert!(current.get(point()).await?.is_none());
            assert_eq!(blobs.get().await, Some(jones()));
        }
        let text = std::fs::read_to_string(directory.path().join("archive/Sales/000456.json"))?;
        assert!(text.contains("Jones"));
        Ok(())
    })
    .await
}

/// A blob is a target without code of the program, and keeps the row as the service's JSON.
#[tokio::test]
async fn k02_a_folder_of_blobs_is_a_target() -> TestResult {
    on_both(async |store| {
        let current = store.table::<Employee>().await;
        let queue = store.client.queue("archive");
        let blobs = Arc::new(InMemory::new());
        current.insert(&jones()).await?;
        // Delivered twice: the second time there is nothing left to do.
        queue.send(&ask()).await?;
        queue.send(&ask()).await?;
        let target = BlobTarget::new(blobs.clone(), "archive");
        let stats = worker(&store.client, &queue, target).drain().await?;
        assert_eq!((stats.applied, stats.retried), (2, 0));
        assert!(current.get(point()).await?.is_none());
        let name = "archive/Current/Sales/empid_000456.json".into();
        let json: serde_json::Value =
            serde_json::from_slice(&blobs.get(&name).await?.bytes().await?)?;
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        assert_eq!(text("RowKey").as_deref(), Some("empid_000456"));
        assert_eq!(text("LastName").as_deref(), Some("Jones"));
        assert!(text("Timestamp").is_some_and(|time| time.ends_with('Z')));
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Pictured", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Pictured {
    department: String,
    id: u32,
    #[table(blob)]
    photo: Option<Blob>,
}

/// A table and a blob store are left together: the row becomes the service's JSON, its blob a copy.
#[tokio::test]
async fn k02_a_folder_of_blobs_takes_an_entity_with_its_blobs() -> TestResult {
    let (blobs, archive) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    let client = Client::builder().backend(Memory::new()).blobs(blobs.clone()).build()?;
    let pictured = client.table::<Pictured>();
    pictured.create().await?;
    let photo = Some(Blob::new(&b"a photo"[..]));
    let jones = Pictured { department: "Sales".into(), id: 456, photo };
    let stored = pictured.insert(&jones).await?;
    let name = stored.photo.as_ref().and_then(Blob::name).ok_or("it is stored")?;
    let point = Pictured::primary().department("Sales").id(456);
    let target = BlobTarget::new(archive.clone(), "archive");
    assert!(pictured.transfer(point, &target).await?);
    client.wait_for_copies().await;
    let row = archive.get(&"archive/Pictured/Sales/empid_000456.json".into()).await?;
    let json: serde_json::Value = serde_json::from_slice(&row.bytes().await?)?;
    assert_eq!(json["Photo"], name);
    let copy = format!("archive/_blobs/{name}");
    let copy = archive.get(&object_store::path::Path::parse(copy)?).await?;
    assert_eq!(&copy.bytes().await?[..], b"a photo");
    let left = blobs.get(&object_store::path::Path::parse(name)?).await;
    assert!(matches!(left, Err(object_store::Error::NotFound { .. })), "it goes with the row");
    Ok(())
}

/// A change between the steps is not lost: only the state that was put is deleted.
#[tokio::test]
async fn k06_a_change_between_the_steps_is_not_lost() -> TestResult {
    struct Changes(Blobs, Table<Employee>, AtomicU32);
    impl Target<Employee> for Changes {
        fn put<'a>(&'a self, one: &'a Stored<Employee>) -> BoxFuture<'a, Result<(), BoxError>> {
            Box::pin(async move {
                self.0.put(one).await?;
                if self.2.fetch_add(1, Ordering::SeqCst) == 0 {
                    let married = Employee::patch().last_name("Hall".to_owned());
                    self.1.patch_at(point(), married).await?;
                }
                Ok(())
            })
        }
    }
    on_both(async |store| {
        let current = store.table::<Employee>().await;
        current.insert(&jones()).await?;
        let blobs = Blobs(Arc::new(InMemory::new()));
        let changes = Changes(blobs.clone(), store.other.table(), AtomicU32::new(0));
        assert!(current.transfer(point(), &changes).await?);
        assert_eq!(blobs.get().await.map(|one| one.last_name), Some("Hall".to_owned()));
        assert!(current.get(point()).await?.is_none());
        assert!(!current.transfer(point(), &changes).await?, "gone is success");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k08_poison_goes_to_a_place_of_its_own() -> TestResult {
    struct Broken;
    impl Target<Employee> for Broken {
        fn put<'a>(&'a self, _: &'a Stored<Employee>) -> BoxFuture<'a, Result<(), BoxError>> {
            Box::pin(async { Err("the archive is read-only".into()) })
        }
    }
    on_both(async |store| {
        let current = store.table::<Employee>().await;
        current.insert(&jones()).await?;
        let queue = store.client.queue("archive");
        queue.send(&ask()).await?;
        let stats = worker(&store.client, &queue, Broken).drain().await?;
        assert_eq!((stats.poisoned, stats.retried), (1, 4));
        assert!(current.get(point()).await?.is_some());
        let poison = queue.poisoned(10).await?;
        assert_eq!(poison[0].message().as_deref(), Some("ArchiveEmployee"));
        assert!(poison[0].reason().is_some_and(|reason| reason.contains("read-only")));
        queue.requeue(&poison[0]).await?;
        let blobs = Blobs(Arc::new(InMemory::new()));
        worker(&store.client, &queue, blobs.clone()).drain().await?;
        assert_eq!(blobs.get().await, Some(jones()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k11_workers_on_one_queue_lose_and_double_nothing() -> TestResult {
    #[derive(Debug, TableEntity)]
    #[table(name = "Counts", partition_key = "{name}", row_key = "count")]
    struct Count {
        name: String,
        value: i64,
    }
    on_both(async |store| {
        let counts = store.table::<Count>().await;
        let queue = store.client.queue("archive");
        for id in 0..12 {
            queue.send(&ArchiveEmployee { department: "Sales".into(), id }).await?;
        }
        let workers = [1, 2, 3].map(|_| {
            store.other.worker().queue(&queue).on(|cx, message: ArchiveEmployee| async move {
                let counts = cx.client().table::<Count>();
                let name = format!("c{}", message.id);
                let mut egt = counts.transaction();
                match counts.get(Count::primary().name(&*name)).await? {
                    Some(mut count) => {
                        count.value += 1;
                        egt.replace(&count)?;
                    }
                    None => {
                        egt.insert(&Count { name, value: 1 })?;
                    }
                }
                cx.once(egt).await?;
                Ok(())
            })
        });
        let [a, b, c] = &workers;
        let (a, b, c) = tokio::join!(a.drain(), b.drain(), c.drain());
        for done in [a, b, c] {
            done?;
        }
        workers[0].drain().await?;
        let counts = counts.query(Count::scan()).collect().await?;
        let values: Vec<i64> = counts.iter().map(|count| count.value).collect();
        assert_eq!(values, [1; 12]);
        Ok(())
    })
    .await
}

/// A store whose client dies at some write: before it is carried out, or after.
#[derive(Debug)]
struct Dies {
    inner: Arc<dyn Backend>,
    /// Writes to come before that.
    lives: Mutex<Option<u32>>,
    carried_out: bool,
}

impl Backend for Dies {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(
        &'a self,
        request: ReadRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<entable::Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let dies = {
                let mut lives = self.lives.lock().unwrap();
                let dies = *lives == Some(0);
                *lives = lives.map(|lives| lives.saturating_sub(1));
                dies
            };
            if dies && self.carried_out {
                self.inner.apply(batch).await?;
            }
            if dies {
                std::future::pending::<()>().await;
            }
            self.inner.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

/// Value 38: a crash before and after each step; the message comes again when its time is over, and
/// the next worker finishes.
#[tokio::test]
async fn k06_k07_k10_a_crash_at_any_step_ends_in_exactly_one_place() -> TestResult {
    let directory = tempfile::tempdir()?;
    let mut runs = 0;
    for embedded in [false, true] {
        for (write, carried_out) in [(0, false), (0, true), (1, false), (1, true), (2, false)]
            .into_iter()
            .chain([(2, true), (3, false), (3, true), (4, false)])
        {
            let clock = Arc::new(SteppedClock::new(Ticks::new(638_000_000_000_000_000).unwrap()));
            let inner: Arc<dyn Backend> = if embedded {
                let options = Embedded::options().clock(clock.clone());
                Arc::new(options.open(directory.path().join(format!("{runs}.db")))?)
            } else {
                Arc::new(Memory::with_clock(clock.clone()))
            };
            runs += 1;
            crash(inner, &clock, write, carried_out).await?;
        }
    }
    Ok(())
}

async fn crash(
    inner: Arc<dyn Backend>,
    clock: &Arc<SteppedClock>,
    write: u32,
    carried_out: bool,
) -> TestResult {
    let client = |lives| {
        let inner = inner.clone();
        let backend = Dies { inner, lives: Mutex::new(lives), carried_out };
        Client::builder().backend(backend).clock(clock.clone()).build()
    };
    let sound = client(None)?;
    let (current, archive) = (sound.table::<Employee>(), sound.table_named::<Employee>("Archive"));
    current.create().await?;
    archive.create().await?;
    current.insert(&jones()).await?;
    sound.queue("archive").send(&ask()).await?;

    let dying = client(Some(write))?;
    let queue = dying.queue("archive");
    let doomed = worker(&dying, &queue, dying.table_named("Archive"));
    let _ = tokio::time::timeout(Duration::from_millis(100), doomed.drain()).await;
    let both = (current.get(point()).await?.is_some(), archive.get(point()).await?.is_some());
    assert_ne!(both, (false, false), "write {write}, carried out: {carried_out}");
    // Between steps 4 and 5 readers see both.
    if (write, carried_out) == (1, true) {
        assert_eq!(both, (true, true));
    }
    // It is hidden as long as the dead one could have it.
    let queue = sound.queue("archive");
    let hidden = queue.port().receive(1, LEASE).await?;
    assert_eq!(hidden.len(), usize::from((write, carried_out) == (0, false)));
    clock.advance(LEASE + Duration::from_millis(1));
    let next = worker(&sound, &queue, archive.clone());
    next.drain().await?;
    let both = (current.get(point()).await?.is_some(), archive.get(point()).await?.is_some());
    assert_eq!(both, (false, true), "write {write}, carried out: {carried_out}");
    clock.advance(LEASE * 2);
    assert!(queue.port().receive(1, LEASE).await?.is_empty());
    assert!(queue.poisoned(1).await?.is_empty());
    Ok(())
}

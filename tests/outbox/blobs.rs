//! Tests lists in blobs: of a store with conditional replacement, and of a directory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use entable::{
    OutboxOptions,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
    },
    object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
        PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
        limit::LimitStore, local::LocalFileSystem, memory::InMemory, path::Path,
        prefix::PrefixStore,
    },
    prelude::*,
};
use futures_util::{StreamExt, stream::BoxStream};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Crew",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "everywhere", row_key = "name_{last_name}", in_blob)
)]
struct Sailor {
    department: String,
    id: u32,
    last_name: String,
}

fn sailor(department: &str, id: u32, last_name: &str) -> Sailor {
    let (department, last_name) = (department.to_owned(), last_name.to_owned());
    Sailor { department, id, last_name }
}

async fn text(store: &dyn ObjectStore, name: &str) -> String {
    let blob = store.get_opts(&name.into(), GetOptions::default()).await.unwrap();
    String::from_utf8(blob.bytes().await.unwrap().to_vec()).unwrap()
}

async fn is_kept_in(store: Arc<dyn ObjectStore>) {
    let client = Client::builder().backend(Memory::new()).blobs(store.clone()).build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let jones = || Sailor::by_last_name().last_name("Jones");
    assert!(crew.keys(jones()).await.unwrap().is_empty());
    for one in [sailor("Sales", 1, "Jones"), sailor("Finance", 2, "Jones")] {
        crew.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    }
    let found = crew.query(jones()).collect().await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [2, 1], "sorted by their keys");
    let lines = text(&*store, "crew/everywhere/name_!jones.jsonl").await;
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[1..], [r#"["Finance","empid_000002"]"#, r#"["Sales","empid_000001"]"#]);
    assert!(lines[0].starts_with(r#"{"EntityType":"entable.list","Format":1,"Table":"crew","PartitionKey":"everywhere","RowKey":"name_Jones","Beat":""#), "{}", lines[0]);
    for one in found {
        crew.delete(&one).await.unwrap();
        client.wait_for_copies().await;
    }
    assert!(crew.keys(jones()).await.unwrap().is_empty());
    let lines = text(&*store, "crew/everywhere/name_!jones.jsonl").await;
    assert_eq!(lines.lines().count(), 1, "an emptied list stays, as an empty one");
    let worker = client.worker();
    let done = worker.drain().await.unwrap();
    assert_eq!(
        (done.open, done.waiting),
        (0, 0),
        "a blob that is never deleted needs no second look"
    );
}

#[tokio::test]
async fn lists_are_kept_in_blobs_under_versions() {
    is_kept_in(Arc::new(InMemory::new())).await;
}

#[tokio::test]
async fn lists_are_kept_in_a_directory_beside_tables_of_one_process() {
    let directory = tempfile::tempdir().unwrap();
    is_kept_in(Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap())).await;
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    is_kept_in(Arc::new(LimitStore::new(files, 4))).await;
}

#[tokio::test]
async fn a_client_without_blobs_refuses_before_it_writes() {
    let client = Client::memory();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let error = crew.insert(&sailor("Sales", 1, "Jones")).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("blobs(..)"), "{error}");
    assert!(crew.query(Sailor::scan()).collect().await.unwrap().is_empty());
    let error = crew.keys(Sailor::by_last_name().last_name("Jones")).await.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

#[tokio::test]
async fn a_worker_without_blobs_leaves_that_work_alone() {
    let memory = Arc::new(Memory::new());
    let blobs = Arc::new(InMemory::new());
    let options = OutboxOptions::default().background(0);
    let builder = Client::builder().backend(memory.clone()).outbox(options).blobs(blobs);
    let client = builder.build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    crew.insert(&sailor("Sales", 1, "Jones")).await.unwrap();
    let without = Client::builder().backend(memory).build().unwrap();
    let stats = without.worker().with::<Sailor>().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.poisoned), (1, 0));
    assert_eq!(client.worker().drain().await.unwrap().open, 0);
    assert_eq!(crew.keys(Sailor::by_last_name().last_name("Jones")).await.unwrap().len(), 1);
}

/// A store that other processes may write, too.
#[derive(Debug)]
struct Elsewhere(Memory);

impl Backend for Elsewhere {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("far", true)
    }

    fn read<'a>(
        &'a self,
        request: ReadRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<entable::Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.0.scan(request)
    }

    fn apply<'a>(
        &'a self,
        batch: &'a entable::Batch,
    ) -> BoxFuture<'a, Result<Vec<entable::Written>, Error>> {
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

#[test]
fn a_directory_is_refused_beside_tables_of_several_processes() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let builder = Client::builder().backend(Elsewhere(Memory::new())).blobs(blobs);
    let error = builder.build().unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("embedded store"), "{error}");
    let files = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let blobs = Arc::new(PrefixStore::new(files, "lists"));
    let builder = Client::builder().backend(Elsewhere(Memory::new())).blobs(blobs);
    assert!(builder.build().unwrap_err().is_unsupported(), "behind a prefix too");
}

#[tokio::test]
async fn a_directory_of_unknown_type_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let blobs: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(LimitStore::new(files, 1), "a"));
    let builder = Client::builder().backend(Elsewhere(Memory::new())).blobs(blobs);
    let client = builder.build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let error = crew.insert(&sailor("Sales", 1, "Jones")).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("embedded store"), "{error}");
    assert!(crew.query(Sailor::scan()).collect().await.unwrap().is_empty());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A store that counts what is put there, of a type that the crate does not know.
#[derive(Debug, Default)]
struct Counted {
    inner: InMemory,
    puts: AtomicUsize,
    /// Carries out every put, whatever its condition says.
    ignores_conditions: bool,
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counted")
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        if self.ignores_conditions {
            options.mode = PutMode::Overwrite;
        }
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn a_store_of_unknown_type_is_asked_once_whether_it_compares_versions() {
    let blobs = Arc::new(Counted::default());
    let builder = Client::builder().backend(Elsewhere(Memory::new())).blobs(blobs.clone());
    let client = builder.build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    for id in 0..3 {
        let stored = crew.insert(&sailor("Sales", id, "Jones")).await.unwrap();
        stored.wait_for_copies().await.unwrap();
    }
    assert_eq!(blobs.puts.load(Ordering::Relaxed), 1 + 3, "one question, and the three lists");
    let names = blobs.inner.list(None).collect::<Vec<_>>().await;
    assert_eq!(names.len(), 1, "the question leaves nothing behind");
}

#[tokio::test]
async fn a_store_that_ignores_conditions_is_taken_for_one_that_does_not_compare_versions() {
    let heedless = || Arc::new(Counted { ignores_conditions: true, ..Counted::default() });
    let blobs = heedless();
    let builder = Client::builder().backend(Elsewhere(Memory::new())).blobs(blobs.clone());
    let client = builder.build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let error = crew.insert(&sailor("Sales", 1, "Jones")).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("embedded store"), "{error}");
    assert!(crew.query(Sailor::scan()).collect().await.unwrap().is_empty());
    assert_eq!(blobs.inner.list(None).count().await, 0, "the question leaves nothing behind");
    // One process alone compares the versions itself.
    is_kept_in(heedless()).await;
}

#[tokio::test]
async fn writers_in_a_directory_never_overwrite_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::new());
    // Two clients of one process, each with a store of its own over the directory.
    let mut writers = Vec::new();
    for number in 0..2 {
        let blobs = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
        let client = Client::builder().backend(memory.clone()).blobs(blobs).build().unwrap();
        client.table::<Sailor>().create_if_not_exists().await.unwrap();
        writers.extend((0..15).map(|id| {
            let crew = client.table::<Sailor>();
            tokio::spawn(async move {
                let one = sailor(&format!("D{number}"), id, "Jones");
                crew.insert(&one).await.unwrap().wait_for_copies().await
            })
        }));
    }
    for writer in writers {
        let _ = writer.await.unwrap();
    }
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let client = Client::builder().backend(memory).blobs(blobs).build().unwrap();
    let crew = client.table::<Sailor>();
    client.worker().drain().await.unwrap();
    assert_eq!(crew.keys(Sailor::by_last_name().last_name("Jones")).await.unwrap().len(), 30);
}

#[tokio::test]
async fn a_blob_in_a_form_that_is_not_known_is_left_alone() {
    let (memory, blobs) = (Arc::new(Memory::new()), Arc::new(InMemory::new()));
    let client = Client::builder().backend(memory).blobs(blobs.clone()).build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let newer = r#"{"EntityType":"entable.list","Format":2,"Table":"crew","PartitionKey":"everywhere","RowKey":"name_Jones","Beat":""}"#;
    let name = "crew/everywhere/name_!jones.jsonl".into();
    blobs.put_opts(&name, newer.into(), PutOptions::default()).await.unwrap();
    let stored = crew.insert(&sailor("Sales", 1, "Jones")).await.unwrap();
    assert!(stored.wait_for_copies().await.is_err());
    let stats = client.worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.poisoned), (1, 0));
    assert_eq!(text(&*blobs, name.as_ref()).await, newer);
    let error = crew.keys(Sailor::by_last_name().last_name("Jones")).await.unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
}

/// A list without a partition of its own has the partition of the primary, in a blob too.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Cooks",
    partition_key = "{ship}",
    row_key = "cook_{id:06}",
    list(ByDish, row_key = "dish_{dish}", in_blob)
)]
struct Cook {
    ship: String,
    id: u32,
    dish: String,
}

#[tokio::test]
async fn a_list_of_one_partition_may_be_a_blob() {
    let blobs = Arc::new(InMemory::new());
    let client = Client::builder().backend(Memory::new()).blobs(blobs.clone()).build().unwrap();
    let cooks = client.table::<Cook>();
    cooks.create().await.unwrap();
    for (ship, id) in [("Ada", 1), ("Bea", 1)] {
        let cook = Cook { ship: ship.into(), id, dish: "soup".into() };
        cooks.insert(&cook).await.unwrap().wait_for_copies().await.unwrap();
    }
    let of_ada = cooks.keys(Cook::by_dish().ship("Ada").dish("soup")).await.unwrap();
    assert_eq!(of_ada.len(), 1);
    assert!(text(&*blobs, "cooks/!ada/dish_soup.jsonl").await.contains("cook_000001"));
    let error = cooks.query(Cook::by_dish().ship("Ada")).collect().await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("every part"), "{error}");
}

//! Tests copies of blobs between the blob stores of two clients.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use entable::{
    Blob,
    backend::{Embedded, Memory},
    data::CopyBlobsReport,
    object_store::{
        CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
        ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
        PutResult, Result as StoreResult, local::LocalFileSystem, memory::InMemory, path,
    },
    prelude::*,
};
use futures_util::{StreamExt, stream::BoxStream};

use crate::scratch;

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Papers",
    partition_key = "{author}",
    row_key = "paper_{id:04}",
    list(ByYear, partition_key = "all", row_key = "year_{year:04}", in_blob)
)]
struct Paper {
    author: String,
    id: u32,
    year: u32,
    #[table(blob)]
    text: Blob,
}

fn paper(id: u32, bytes: usize) -> Paper {
    let text = Blob::new(vec![u8::try_from(id).unwrap(); bytes]);
    Paper { author: "Don".into(), id, year: 2014, text }
}

/// Papers with the number of bytes of each.
async fn papers(client: &Client, sizes: &[usize]) -> Table<Paper> {
    let papers = client.table::<Paper>();
    papers.create_if_not_exists().await.unwrap();
    for (id, bytes) in sizes.iter().enumerate() {
        papers.insert(&paper(id as u32, *bytes)).await.unwrap();
    }
    client.wait_for_copies().await;
    client.worker().drain().await.unwrap();
    papers
}

/// Reads the papers of the year by the list, and the bytes of their blobs.
async fn sizes(client: &Client) -> Vec<usize> {
    let papers = client.table::<Paper>();
    let found = papers.query(Paper::by_year().year(2014)).collect().await.unwrap();
    let mut sizes = Vec::new();
    for paper in found {
        sizes.push(papers.blob(&paper.text).bytes().await.unwrap().len());
    }
    assert!(papers.check().await.unwrap().is_clean());
    sizes
}

fn counts(report: CopyBlobsReport) -> [u64; 4] {
    [report.copied, report.equal, report.different, report.gone]
}

/// Finds a file below a directory that is larger than `bytes`.
fn find_file(directory: &Path, bytes: u64) -> Option<PathBuf> {
    fs::read_dir(directory).unwrap().find_map(|entry| {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        if found.is_dir() {
            return find_file(&entry.path(), bytes);
        }
        (found.len() > bytes).then(|| entry.path())
    })
}

#[tokio::test]
async fn blobs_come_along_and_only_what_lacks_is_sent_again() {
    const LARGE: usize = 9 << 20;
    let blobs = Arc::new(InMemory::new());
    let source = Client::builder().backend(Memory::new()).blobs(blobs).build().unwrap();
    let staff = papers(&source, &[40_000, LARGE, 50_000]).await;
    let (directory, path) = scratch();
    let folder = directory.path().join("blobs");
    fs::create_dir_all(&folder).unwrap();
    let files = Arc::new(LocalFileSystem::new_with_prefix(&folder).unwrap());
    let builder = Client::builder().backend(Embedded::open(&path).unwrap());
    let target = builder.blobs(files).build().unwrap();
    // Three blobs of rows and a list.
    let compared = source.copy_blobs_to(&target).compare_only().await.unwrap();
    assert_eq!((counts(compared), compared.is_equal()), ([0, 0, 4, 0], false));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    let copy = source.copy_blobs_to(&target);
    let copied = copy.on_progress(move |so_far| into.lock().unwrap().push(so_far)).await.unwrap();
    assert_eq!((counts(copied), copied.is_equal()), ([4, 0, 0, 0], true));
    assert!(copied.bytes > (40_000 + LARGE + 50_000) as u64);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!((seen.len(), seen.last()), (4, Some(&copied)));
    assert!(source.copy_to(&target).await.unwrap().is_equal());
    assert_eq!(sizes(&target).await, [40_000, LARGE, 50_000]);
    // A copy that was interrupted sends the blobs that lack, and lists that have changed.
    fs::remove_file(find_file(&folder, 8 << 20).unwrap()).unwrap();
    staff.insert(&paper(3, 60_000)).await.unwrap();
    source.wait_for_copies().await;
    source.worker().drain().await.unwrap();
    let again = source.copy_blobs_to(&target).await.unwrap();
    assert_eq!(counts(again), [3, 2, 0, 0], "the large one, the new one, the list");
    assert_eq!(counts(source.copy_blobs_to(&target).await.unwrap()), [0, 5, 0, 0]);
    assert!(source.copy_to(&target).await.unwrap().is_equal());
    assert_eq!(sizes(&target).await, [40_000, LARGE, 50_000, 60_000]);
    // The way back finds everything there.
    assert_eq!(counts(target.copy_blobs_to(&source).await.unwrap()), [0, 5, 0, 0]);
    let without = Client::memory();
    assert!(source.copy_blobs_to(&without).await.unwrap_err().is_unsupported());
}

/// The bytes under a name never change, so that only their number is compared. Another program may have copied
/// a part of them.
#[tokio::test]
async fn a_blob_that_was_cut_is_sent_again() {
    let blobs = Arc::new(InMemory::new());
    let source = Client::builder().backend(Memory::new()).blobs(blobs).build().unwrap();
    papers(&source, &[40_000]).await;
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let target = Client::builder().backend(Memory::new()).blobs(files).build().unwrap();
    assert_eq!(counts(source.copy_blobs_to(&target).await.unwrap()), [2, 0, 0, 0]);
    let paper = find_file(directory.path(), 30_000).unwrap();
    fs::File::options().write(true).open(paper).unwrap().set_len(39_999).unwrap();
    let compared = source.copy_blobs_to(&target).compare_only().await.unwrap();
    assert_eq!(counts(compared), [0, 1, 1, 0]);
    assert_eq!(counts(source.copy_blobs_to(&target).await.unwrap()), [1, 1, 0, 0]);
    assert!(source.copy_to(&target).await.unwrap().is_equal());
    assert_eq!(sizes(&target).await, [40_000]);
}

#[tokio::test]
async fn stores_that_name_blobs_in_two_ways_are_refused() {
    let client = |memory: Memory| {
        let blobs = Arc::new(InMemory::new());
        Client::builder().backend(memory).blobs(blobs).build().unwrap()
    };
    let [exact, other] = [Memory::new().case_sensitive_tables(), Memory::new()].map(client);
    for (from, to) in [(&exact, &other), (&other, &exact)] {
        let error = from.copy_blobs_to(to).await.unwrap_err();
        assert!(error.is_unsupported() && error.message().contains("case"), "{error}");
    }
}

/// A store that gives blobs in pieces of `piece` bytes and records each piece that is read.
#[derive(Debug)]
struct InPieces {
    inner: InMemory,
    piece: usize,
    name: char,
    read: Arc<Mutex<String>>,
}

impl fmt::Display for InPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InPieces")
    }
}

#[async_trait]
impl ObjectStore for InPieces {
    async fn put_opts(
        &self,
        path: &path::Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &path::Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &path::Path, options: GetOptions) -> StoreResult<GetResult> {
        let is_head = options.head;
        let mut got = self.inner.get_opts(path, options).await?;
        if is_head {
            return Ok(got);
        }
        let bytes = self.inner.get(path).await?.bytes().await?;
        let starts: Vec<usize> = (0..bytes.len()).step_by(self.piece).collect();
        let (piece, name, read) = (self.piece, self.name, self.read.clone());
        let pieces = futures_util::stream::iter(starts).map(move |start| {
            read.lock().unwrap().push(name);
            Ok(bytes.slice(start..bytes.len().min(start + piece)))
        });
        got.payload = GetResultPayload::Stream(pieces.boxed());
        Ok(got)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<path::Path>>,
    ) -> BoxStream<'static, StoreResult<path::Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&path::Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&path::Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &path::Path,
        to: &path::Path,
        options: CopyOptions,
    ) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A blob of an archived row, which no row of a table points to, may be larger than the memory.
#[tokio::test]
async fn blobs_of_equal_length_are_compared_piece_by_piece() {
    let read = Arc::new(Mutex::new(String::new()));
    let store = |name: char, piece: usize| {
        Arc::new(InPieces { inner: InMemory::new(), piece, name, read: read.clone() })
    };
    // The pieces of the two stores end at different bytes.
    let (here, there) = (store('h', 700), store('t', 1_000));
    let client = |blobs: &Arc<InPieces>| {
        Client::builder().backend(Memory::new()).blobs(blobs.clone()).build().unwrap()
    };
    let (source, target) = (client(&here), client(&there));
    let name = path::Path::from("archive/_blobs/staff/photo");
    let put = async |store: &InPieces, bytes: Vec<u8>| {
        store.inner.put(&name, bytes.into()).await.unwrap();
    };
    let bytes: Vec<u8> = (0..70_000_u32).map(|at| (at % 251) as u8).collect();
    put(&here, bytes.clone()).await;
    put(&there, bytes.clone()).await;
    assert_eq!(counts(source.copy_blobs_to(&target).await.unwrap()), [0, 1, 0, 0]);
    let pieces = std::mem::take(&mut *read.lock().unwrap());
    assert_eq!(pieces.len(), 100 + 70);
    // A few pieces at a time are in memory.
    let (mut ahead, mut most) = (0_i64, 0);
    for piece in pieces.chars() {
        ahead += if piece == 'h' { 700 } else { -1_000 };
        most = most.max(ahead.abs());
    }
    assert!(most <= 2_000, "{most} bytes of one store were read ahead of the other");
    // The last byte counts too, and a difference at the beginning ends the comparison.
    let compare = async || counts(source.copy_blobs_to(&target).compare_only().await.unwrap());
    for (at, most) in [(69_999, 170), (0, 4)] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        put(&there, changed).await;
        assert_eq!(compare().await, [0, 0, 1, 0], "{at}");
        let pieces = std::mem::take(&mut *read.lock().unwrap());
        assert!(pieces.len() <= most, "{at}: {pieces}");
    }
    assert_eq!(counts(source.copy_blobs_to(&target).await.unwrap()), [1, 0, 0, 0]);
    // A blob without bytes is in both stores.
    put(&here, Vec::new()).await;
    put(&there, Vec::new()).await;
    assert_eq!(compare().await, [0, 1, 0, 0]);
}

//! Counts the requests of writes with remote lists, before and after the answer.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use entable::{
    OutboxOptions,
    backend::{Memory, layer::Recorder},
    object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
        PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
        memory::InMemory, path::Path,
    },
    prelude::*,
};
use futures_util::stream::BoxStream;

/// Keeps blobs in memory and counts the requests.
#[derive(Debug, Default)]
pub(crate) struct Counted(InMemory, pub(crate) AtomicUsize);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.put_opts(location, payload, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.get_opts(location, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        // Every caller deletes one blob.
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.copy_opts(from, to, options).await
    }
}

macro_rules! person {
    ($name:ident, $list:meta) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", $list)]
        struct $name {
            department: String,
            id: u32,
            last_name: String,
            age: i32,
        }

        impl $name {
            fn new(id: u32, last_name: &str) -> Self {
                Self { department: "Sales".into(), id, last_name: last_name.into(), age: 30 }
            }

            /// Requests before the answer and after it, by the verb; and whether work is left that
            /// is confirmed later.
            async fn measure() -> Vec<(&'static str, [usize; 2], bool)> {
                let (recorder, blobs) =
                    (Recorder::around(Memory::new()), Arc::new(Counted::default()));
                let builder = Client::builder().backend(recorder.clone());
                let builder = builder.outbox(OutboxOptions::default().copies_before_answer(false));
                let client = builder.blobs(blobs.clone()).build().unwrap();
                let staff = client.table::<Self>();
                staff.create().await.unwrap();
                staff.insert(&Self::new(1, "Cao")).await.unwrap();
                client.wait_for_copies().await;
                let count = || recorder.take().len() + blobs.1.swap(0, Ordering::SeqCst);
                let open = async || {
                    let rows =
                        client.dynamic("Staff").query(Keys::partition("Sales").prefix("~e2_"));
                    let open = rows.collect().await.unwrap().len();
                    count();
                    open
                };
                let mut lines = Vec::new();
                let mut was_open = open().await;
                macro_rules! record {
                    ($verb:literal, $answer:expr) => {{
                        let answer = $answer;
                        let before = count();
                        client.wait_for_copies().await;
                        let after = count();
                        let now_open = open().await;
                        lines.push(($verb, [before, after], now_open > was_open));
                        was_open = now_open;
                        answer
                    }};
                }
                let insert = record!(
                    "`insert`, the first in its list",
                    staff.insert(&Self::new(2, "Jones")).await.unwrap()
                );
                record!(
                    "`insert`, the list is there",
                    staff.insert(&Self::new(3, "Jones")).await.unwrap()
                );
                let mut stored = insert;
                stored.age += 1;
                let mut stored = record!(
                    "`replace`, the list's key stays",
                    staff.replace(&stored).await.unwrap()
                );
                stored.last_name = "Hall".into();
                record!("`replace`, the list's key changes", staff.replace(&stored).await.unwrap());
                let third =
                    staff.get(Self::primary().department("Sales").id(3)).await.unwrap().unwrap();
                count();
                record!("`delete`", staff.delete(&third).await.unwrap());
                let both = [Self::new(10, "Miller"), Self::new(11, "Miller")];
                let mut egt = staff.transaction();
                egt.insert(&both[0]).unwrap().insert(&both[1]).unwrap();
                record!("`Transaction`, two `insert`s into one list", egt.commit().await.unwrap());
                let path = || Self::by_last_name().last_name("Miller");
                record!("`keys`", assert_eq!(staff.keys(path()).await.unwrap().len(), 2));
                record!(
                    "`query`, a list of two",
                    assert_eq!(staff.query(path()).collect().await.unwrap().len(), 2)
                );
                let _ = was_open;
                lines
            }
        }
    };
}

person!(InRows, list(ByLastName, partition_key = "name_{last_name}", row_key = "ids"));
person!(InBlobs, list(ByLastName, partition_key = "names", row_key = "{last_name}", in_blob));

/// The least that the protocol allows: the list is read before the commit, then the commit; then the
/// list is written and the record removed, unless that is confirmed later.
const LEAST: [([usize; 2], [usize; 2]); 8] = [
    ([2, 2], [2, 2]),
    ([2, 2], [2, 2]),
    ([1, 0], [1, 0]),
    ([3, 2], [3, 3]),
    ([2, 1], [2, 2]),
    ([2, 3], [2, 3]),
    ([1, 0], [1, 0]),
    ([3, 0], [3, 0]),
];

/// The section of the docs.
pub(crate) async fn section() -> String {
    let (rows, blobs) = (InRows::measure().await, InBlobs::measure().await);
    let mut text = String::from(
        "\n## With a remote list\n\n\
         Requests before the answer + requests after it, of a write to a partition that the process has written before.\n\
         \"later\": a [worker](glossary.md#worker) confirms the removal from the list, with 3 requests.\n\n\
         | verb | a list in rows | a list in a blob |\n|---|---|---|\n",
    );
    for (((verb, rows, rows_later), (_, blobs, blobs_later)), least) in
        rows.into_iter().zip(blobs).zip(LEAST)
    {
        assert_eq!((rows, blobs), least, "{verb}");
        let cell = |[before, after]: [usize; 2], later| {
            format!("{before} + {after}{}", if later { ", later" } else { "" })
        };
        text.push_str(&format!(
            "| {verb} | {} | {} |\n",
            cell(rows, rows_later),
            cell(blobs, blobs_later)
        ));
    }
    text
}

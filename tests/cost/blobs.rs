//! Counts the requests of fields that are kept in blobs, for their section of `docs/costs.md`.

use std::sync::{Arc, atomic::Ordering};

use entable::{
    Blob, KeyScope, Keyring, OutboxOptions, RootKey,
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use futures_util::{TryStreamExt, stream};

use crate::lists::Counted;

/// A verb, and its requests: to the table and to the blobs before the answer, then after it.
type Line = (&'static str, [usize; 4]);

macro_rules! person {
    ($name:ident, $($photo:meta),*) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
        struct $name {
            department: String,
            id: u32,
            age: i32,
            $(#[$photo])*
            photo: Option<Blob>,
        }

        impl $name {
            fn new(id: u32, photo: Option<Blob>) -> Self {
                Self { department: "Sales".into(), id, age: 30, photo }
            }

            async fn measure() -> Vec<Line> {
                let (recorder, blobs) =
                    (Recorder::around(Memory::new()), Arc::new(Counted::default()));
                let scope = KeyScope::default_scope();
                let keys = Keyring::builder().primary(&scope, &RootKey::from_bytes([1; 32]));
                let builder = Client::builder().backend(recorder.clone()).keys(keys.build().unwrap());
                let builder = builder.outbox(OutboxOptions::default().copies_before_answer(false));
                let client = builder.blobs(blobs.clone()).build().unwrap();
                let staff = client.table::<Self>();
                staff.create().await.unwrap();
                let at = |id| Self::primary().department("Sales").id(id);
                let photo = || Some(Blob::new(vec![7; 100_000]));
                // Registers the partition.
                staff.insert(&Self::new(1, photo())).await.unwrap();
                staff.delete_at(at(1)).await.unwrap();
                client.wait_for_copies().await;
                let count = || [recorder.take().len(), blobs.1.swap(0, Ordering::SeqCst)];
                count();
                let mut lines: Vec<Line> = Vec::new();
                macro_rules! record {
                    ($verb:literal, $answer:expr) => {{
                        // Boxed: all verbs in one future are more than a thread's stack holds.
                        let answer = Box::pin(async { $answer }).await;
                        let [table, in_blobs] = count();
                        client.wait_for_copies().await;
                        let [table_after, in_blobs_after] = count();
                        lines.push(($verb, [table, in_blobs, table_after, in_blobs_after]));
                        answer
                    }};
                }
                let don = record!("`insert`", staff.insert(&Self::new(2, photo())).await.unwrap());
                let mut don = record!("`get`", staff.get(don.point()).await.unwrap().unwrap());
                let reader = staff.blob(don.photo.as_ref().unwrap());
                record!("`blob(..).bytes()`", reader.bytes().await.unwrap());
                record!("`blob(..).range(..)`", reader.range(70_000..70_010).await.unwrap());
                let all = || reader.stream().try_collect::<Vec<_>>();
                record!("`blob(..).stream()`", all().await.unwrap());
                don.age += 1;
                let mut don = record!(
                    "`replace` that keeps the blob",
                    staff.replace(&don).await.unwrap()
                );
                don.photo = photo();
                let don = record!(
                    "`replace` with another blob",
                    staff.replace(&don).await.unwrap()
                );
                let patch = Self::patch().photo(photo().unwrap());
                record!("`patch_at` with another blob", staff.patch_at(at(2), patch).await.unwrap());
                let patch = Self::patch().age(31);
                record!("`patch_at` of another property", staff.patch_at(at(2), patch).await.unwrap());
                let mut ahead = Self::new(3, None);
                let small = stream::iter([Ok(vec![7; 1_000].into())]);
                ahead.photo = Some(record!(
                    "`upload` up to 8 MiB",
                    staff.upload(&ahead, Self::PHOTO, small).await.unwrap()
                ));
                let ahead = record!(
                    "`insert` of what was uploaded",
                    staff.insert(&ahead).await.unwrap()
                );
                let shared = Self::new(4, ahead.photo.clone());
                let shared = record!(
                    "`insert` of another row's blob",
                    staff.insert(&shared).await.unwrap()
                );
                record!("`delete`", staff.delete(&shared).await.unwrap());
                let grace = std::time::Duration::ZERO;
                let swept = record!(
                    "`sweep_blobs` of 2 blobs",
                    staff.sweep_blobs().grace(grace).await.unwrap()
                );
                assert_eq!((swept.kept, swept.removed), (2, 0));
                let _ = don;
                lines
            }
        }
    };
}

person!(Plain, table(blob));
person!(Secret, table(blob, encrypt));

/// Returns the section of `docs/costs.md`.
pub(crate) async fn section() -> String {
    let mut text = String::from(
        "\n## With a value in a blob\n\n\
         Requests before the answer + requests after it, for an entity of one row, in a partition that the process has\n\
         written before. An encrypted blob (`#[table(blob, encrypt)]`) takes as many requests as a plain one.\n\n\
         | verb | to the table | to the blobs |\n|---|---|---|\n",
    );
    let plain = Box::pin(Plain::measure()).await;
    assert_eq!(Box::pin(Secret::measure()).await, plain, "encrypted");
    for (verb, [table, blobs, table_after, blobs_after]) in plain {
        let line = format!("| {verb} | {table} + {table_after} | {blobs} + {blobs_after} |\n");
        text.push_str(&line);
    }
    text
}

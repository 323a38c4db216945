//! Compares the costs that a report prints with the requests that are measured.

use std::sync::Arc;

use entable::{
    Blob, Client, OutboxOptions,
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    object_store::memory::InMemory,
    prelude::*,
};

/// A verb with the requests before its answer, the reads among them, the operations of the transaction,
/// and the requests after the answer.
type Line = (&'static str, [usize; 4]);

struct Store {
    recorder: Recorder,
    client: Client,
    lines: Vec<Line>,
}

impl Store {
    /// Ends a verb. The background begins when the test waits: on one thread nothing else lets it.
    async fn record(&mut self, verb: &'static str) {
        let before = self.recorder.take();
        self.client.wait_for_copies().await;
        let after = self.recorder.take().len();
        let reads = before.iter().filter(|request| !request.is_apply()).count();
        let transaction = before.iter().rfind(|request| request.is_apply());
        let operations = transaction.map_or(0, Request::operations);
        self.lines.push((verb, [before.len(), reads, operations, after]));
    }
}

/// Returns the lines of a report's table of costs.
fn printed(markdown: &str) -> Vec<(String, [usize; 4])> {
    let rows = markdown.lines().skip_while(|line| !line.starts_with("| verb |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let number = |at: usize| cells[at].split(',').next().unwrap().parse::<usize>().unwrap();
            (cells[1].trim_matches('`').to_owned(), [2, 3, 4, 5].map(number))
        })
        .collect()
}

macro_rules! compare {
    ($name:ident $(, $index:meta)*) => { compare!($name; $(, $index)*) };
    // On the heap: together the comparisons are larger than a thread's stack.
    ($name:ident; $($blob:ident)? $(@$part:literal)? $(, $index:meta)*) => { Box::pin(async {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = "Staff",
            partition_key = "dep_{department}",
            row_key = "empid_{id:06}"
            $(, $index)*
        )]
        struct $name {
            department: String,
            id: u32,
            last_name: String,
            city: String,
            email: String,
            $(#[table(part = $part)])?
            age: i32,
            $(#[table(blob)] $blob: Option<Blob>,)?
        }

        let new = |id: u32, name: &str| $name {
            department: "Sales".into(),
            id,
            last_name: name.into(),
            city: name.into(),
            email: format!("{name}{id}@contoso.com"),
            age: 30,
            $($blob: Some(Blob::new(vec![1, 2, 3])),)?
        };
        let at = |id: u32| $name::primary().department("Sales").id(id);
        let recorder = Recorder::around(Memory::new());
        let outbox = OutboxOptions::default().copies_before_answer(false);
        let builder = Client::builder().backend(recorder.clone()).outbox(outbox);
        let client = builder.blobs(Arc::new(InMemory::new())).build().unwrap();
        let staff = client.table::<$name>();
        staff.create().await.unwrap();
        for id in 1..=4 {
            staff.insert(&new(id, "Jones")).await.unwrap();
            staff.insert(&new(id + 10, "Smith")).await.unwrap();
            client.wait_for_copies().await;
        }
        // The first work of the outbox registers the partition, also that of a blob.
        staff.delete_at(at(14)).await.unwrap();
        client.wait_for_copies().await;
        recorder.clear();
        let mut store = Store { recorder, client: client.clone(), lines: Vec::new() };

        let mut stored = staff.insert(&new(5, "Jones")).await.unwrap();
        store.record("insert").await;
        stored.age += 1;
        let mut stored = staff.replace(&stored).await.unwrap();
        store.record("replace, no key changes").await;
        let earlier = (*stored).clone();
        *stored = $name { age: earlier.age, $($blob: earlier.$blob,)? ..new(5, "Smith") };
        staff.replace(&stored).await.unwrap();
        store.record("replace, every key changes").await;
        staff.patch_at(at(1), $name::patch().age(50)).await.unwrap();
        store.record("patch_at, no key changes").await;
        staff
            .update(at(2), |person| {
                person.age += 1;
                Ok(())
            })
            .await
            .unwrap();
        store.record("update, no key changes").await;
        // Nothing is open that names this one.
        let stored = staff.get(at(3)).await.unwrap().unwrap();
        store.recorder.clear();
        staff.delete(&stored).await.unwrap();
        store.record("delete").await;
        staff.delete_at(at(4)).await.unwrap();
        store.record("delete_at").await;

        let printed = printed(&entable::report![$name].markdown());
        let measured: Vec<_> =
            store.lines.iter().map(|(verb, numbers)| ((*verb).to_owned(), *numbers)).collect();
        if printed != measured {
            vec![format!("{}\n  printed  {printed:?}\n  measured {measured:?}", stringify!($name))]
        } else {
            Vec::new()
        }
    }).await };
}

#[tokio::test]
async fn a_report_prints_what_is_measured() {
    let wrong = [
        compare!(Alone),
        compare!(OneCopy, index(ByEmail, row_key = "email_{email:lower}", unique)),
        compare!(
            TwoCopiesOneList,
            index(ByEmail, row_key = "email_{email:lower}", unique),
            index(ByName, row_key = "name_{last_name}_{id:06}"),
            list(ByCity, row_key = "city_{city}")
        ),
        compare!(
            TwoLists,
            list(ByCity, row_key = "city_{city}"),
            list(ByName, row_key = "name_{last_name}")
        ),
        compare!(
            OneRemoteCopy,
            index(ByName, partition_key = "name_{last_name}", row_key = "{department}_{id:06}")
        ),
        compare!(
            TwoRemoteCopies,
            index(ByName, partition_key = "name_{last_name}", row_key = "{department}_{id:06}"),
            index(
                ByCity,
                table = "StaffByCity",
                partition_key = "{city}",
                row_key = "{department}_{id:06}"
            )
        ),
        compare!(
            OneUnique,
            index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
        ),
        compare!(OneRemoteList, list(ByCity, partition_key = "city_{city}", row_key = "ids")),
        compare!(
            Everything,
            index(ByName, row_key = "name_{last_name}_{id:06}"),
            list(ByAll, row_key = "all_{last_name}"),
            index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
            list(ByCity, partition_key = "city_{city}", row_key = "ids")
        ),
    ]
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_report_prints_what_is_measured_of_blobs_and_parts() {
    let wrong = [
        compare!(OneBlob; photo),
        compare!(OneBlobOneCopy; photo, index(ByEmail, row_key = "email_{email:lower}")),
        compare!(TwoParts; @2, wide),
        compare!(
            TwoPartsOneCopy; @2,
            wide,
            index(ByEmail, row_key = "email_{email:lower}", only(last_name, age))
        ),
    ]
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

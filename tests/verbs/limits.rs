//! Tests keys and lists at the service's limits.

use std::ops::Bound;

use entable::{
    backend::{Memory, layer::Recorder},
    entity::ListRows,
    prelude::*,
};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Files",
    partition_key = "{folder}",
    row_key = "file_{name}",
    index(ByOwner, row_key = "owner_{owner}_{name}"),
    list(ByKind, row_key = "kind_{kind}")
)]
struct File {
    folder: String,
    name: String,
    owner: String,
    kind: String,
}

/// A file with a long name, twice as long as JSON: some five hundred of them fill a row of a list.
fn file(number: usize) -> File {
    File {
        folder: "f".into(),
        name: format!("{number:\">440}"),
        owner: "o".into(),
        kind: "text".into(),
    }
}

async fn list_rows(files: &Table<File>) -> Vec<String> {
    let keys = Keys::partition("f").prefix("kind_");
    let rows = files.client().dynamic("Files").query(keys).collect().await.unwrap();
    rows.iter().map(|row| row.row_key().to_owned()).collect()
}

fn text() -> impl Path<Entity = File, View = ListRows> {
    File::by_kind().folder("f").kind("text")
}

#[tokio::test]
async fn a_list_spills_over_and_shrinks_back() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let files = Client::builder().backend(recorder.clone()).build()?.table::<File>();
    files.create().await?;
    files.bulk().insert_all((0..1250).map(file)).await?.into_result()?;
    assert_eq!(list_rows(&files).await, ["kind_text", "kind_text~s0001", "kind_text~s0002"]);
    let keys = files.keys(text()).await?;
    assert_eq!(keys.len(), 1250);
    assert!(keys.iter().zip(0..).all(|(key, at)| key.row_key().ends_with(&format!("\"{at}"))));
    assert!(files.check().await?.is_clean());

    // One more or less is one row of the list beside its head.
    recorder.clear();
    files.insert(&file(1250)).await?;
    assert_eq!(recorder.take().last().unwrap().operations(), 2 + 2);
    let point = |number: usize| File::primary().folder("f").name(file(number).name);
    files.delete_at(point(600)).await?;
    assert_eq!(recorder.take().last().unwrap().operations(), 2 + 2);

    let rest = |from: usize, to: usize| (from..to).filter(|at| *at != 600).map(point);
    files.bulk().delete_all(rest(1050, 1251)).await?.into_result()?;
    files.bulk().delete_all(rest(450, 1050)).await?.into_result()?;
    assert_eq!(list_rows(&files).await, ["kind_text"]);
    assert_eq!(files.keys(text()).await?.len(), 450);
    assert!(files.check().await?.is_clean());
    files.bulk().delete_all(rest(0, 450)).await?.into_result()?;
    assert!(list_rows(&files).await.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_range_of_lists_has_all_ids_of_its_lists_and_no_others() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let files = Client::builder().backend(recorder.clone()).build()?.table::<File>();
    files.create().await?;
    files.bulk().insert_all((0..1250).map(file)).await?.into_result()?;
    files.insert(&File { kind: "zip".into(), ..file(1250) }).await?;
    let lists = || File::by_kind().folder("f");
    // `kind_text~s0001` is above `kind_text` and `kind_texture`, and below `kind_zip`.
    assert_eq!(files.keys(lists().kind_range("a"..="text")).await?.len(), 1250);
    assert_eq!(files.keys(lists().kind_range("a".."texture")).await?.len(), 1250);
    assert_eq!(files.keys(lists().kind_range("a".."text")).await?.len(), 0);
    assert_eq!(files.keys(lists().kind_range("texture"..="zip")).await?.len(), 1);
    let after = (Bound::Excluded("text"), Bound::Unbounded);
    assert_eq!(files.keys(lists().kind_range(after)).await?.len(), 1);
    // Only a list with a spill row outside of the range needs requests of its own.
    for (range, requests) in [("a".."texture", 1 + 3), ("text".."zz", 1)] {
        recorder.clear();
        assert!(files.keys(lists().kind_range(range)).await?.len() >= 1250);
        assert_eq!(recorder.count(), requests, "{recorder}");
    }
    let found = files.query(lists().kind_range("a"..="text")).collect().await?;
    assert_eq!(found.len(), 1250);
    assert!(found.iter().all(|file| file.kind == "text"));
    Ok(())
}

#[tokio::test]
async fn a_copys_key_over_the_limit_writes_nothing() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let files = Client::builder().backend(recorder.clone()).build()?.table::<File>();
    files.create().await?;
    recorder.clear();
    let mut long = file(1);
    long.owner = "o".repeat(100);
    let error = files.insert(&long).await.unwrap_err();
    assert!(error.is_too_large(), "{error}");
    assert!(error.to_string().contains("RowKey"), "{error}");
    assert_eq!(recorder.count(), 0);
    Ok(())
}

//! Tests the copies and lists of wide entities: their rows, requests, checks, repairs and faults.

use std::{future::Future, pin::Pin};

use entable::{
    Condition, ErrorKind, ServiceCode, ValueRef,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    maintain::FindingKind,
    prelude::*,
};

/// Three rows; two copies and a list in the partition, two copies and a list in others.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Files",
    partition_key = "{folder}",
    row_key = "file_{id:06}",
    wide,
    index(ByTitle, row_key = "title_{title}_{id:06}", only(size)),
    index(ByHash, row_key = "hash_{hash}", only(title), unique),
    list(ByOwner, row_key = "owner_{owner}"),
    index(
        ByTitleEverywhere,
        partition_key = "title_{title}",
        row_key = "at_{folder}_{id:06}",
        only(size)
    ),
    index(ByLabel, partition_key = "label_{label}", row_key = "label", only(title), unique),
    list(ByOwnerEverywhere, partition_key = "owner_{owner}", row_key = "files")
)]
pub struct File {
    pub folder: String,
    pub id: u32,
    pub size: i64,
    #[table(part = 2)]
    pub title: String,
    #[table(part = 2, split(2))]
    pub text: String,
    #[table(part = 2)]
    pub hash: String,
    #[table(part = 3)]
    pub owner: String,
    #[table(part = 3)]
    pub label: String,
    #[table(part = 3)]
    pub remark: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = File)]
struct Size {
    id: u32,
    title: String,
    size: i64,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = File)]
struct Title {
    id: u32,
    title: String,
}

fn file(id: u32) -> File {
    File {
        folder: "Sales".into(),
        id,
        size: i64::from(id),
        title: format!("t{id}"),
        text: "text".into(),
        hash: format!("h{id}"),
        owner: "don".into(),
        label: format!("l{id}"),
        remark: None,
    }
}

fn at(id: u32) -> Point<File> {
    File::primary().folder("Sales").id(id)
}

async fn files() -> (Client, Recorder, Table<File>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let files = client.table::<File>();
    files.create().await.unwrap();
    (client, recorder, files)
}

/// Fails unless every copy and list says what the entities say.
async fn all_is_right(files: &Table<File>) {
    files.client().wait_for_copies().await;
    files.client().worker().with::<File>().drain().await.unwrap();
    let report = files.check().await.unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    for found in files.query(File::primary().folder("Sales")).collect().await.unwrap() {
        let sized = File::by_title().folder("Sales").title(found.title.clone()).id(found.id);
        let sized = files.get_as::<Size>(sized).await.unwrap().unwrap();
        assert_eq!((sized.size, &sized.title), (found.size, &found.title));
        let path = File::by_title_everywhere().title(found.title.clone());
        let path = path.folder("Sales").id(found.id);
        assert_eq!(files.get_as::<Size>(path).await.unwrap().unwrap().size, found.size);
        let by_hash = File::by_hash().folder("Sales").hash(found.hash.clone());
        assert_eq!(files.get_as::<Title>(by_hash).await.unwrap().unwrap().title, found.title);
        let by_label = File::by_label().label(found.label.clone());
        assert_eq!(files.get_as::<Title>(by_label).await.unwrap().unwrap().id, found.id);
        let of_owner = File::by_owner().folder("Sales").owner(found.owner.clone());
        let listed = files.query(of_owner).collect().await.unwrap();
        assert!(listed.iter().any(|one| **one == *found), "{listed:?}");
        let of_owner = File::by_owner_everywhere().owner(found.owner.clone());
        let listed = files.query(of_owner).collect().await.unwrap();
        assert!(listed.iter().any(|one| **one == *found), "{listed:?}");
    }
}

async fn keys(client: &Client, partition: &str) -> Vec<String> {
    let rows = client.dynamic("Files").query(Keys::partition(partition).prefix("")).collect().await;
    rows.unwrap().iter().map(|row| row.row_key().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn copies_hold_fields_of_any_part() -> Result<(), Error> {
    let (client, recorder, files) = files().await;
    let mut one = files.insert(&file(1)).await?;
    client.wait_for_copies().await;
    let found = keys(&client, "Sales").await;
    for key in ["file_000001_01", "file_000001_02", "file_000001_03", "hash_h1", "owner_don"] {
        assert!(found.iter().any(|found| found == key), "{key} is not in {found:?}");
    }
    all_is_right(&files).await;
    // A remote copy says which version of each part it follows from.
    let copy = client.dynamic("Files").get("title_t1", "at_Sales_000001").await?.unwrap();
    let version = one.etag().to_string();
    assert_eq!(version.split(' ').count(), 3);
    assert_eq!(copy.row().get("Src")?, Some(ValueRef::String(&version)));

    recorder.clear();
    let by_title = File::by_title().folder("Sales").title("t1").id(1);
    files.get_as::<Size>(by_title).await?.unwrap();
    assert_eq!(recorder.take().len(), 1, "a copy is one row");
    let all = files.query(File::by_title().folder("Sales").title_prefix("t")).select::<Size>();
    assert_eq!(all.collect().await?.len(), 1);
    assert_eq!(recorder.take().len(), 1);
    let big = all.clone().filter(File::SIZE.ge(1)).collect().await?;
    assert_eq!(big.len(), 1, "a copy's filter needs no part");

    // A change of part 2 changes copies of parts 1 and 2.
    one.title = "new".into();
    one.size = 70;
    let one = files.replace(&one).await?;
    all_is_right(&files).await;
    files.patch(&one, File::patch().title("newer").owner("eve")).await?;
    all_is_right(&files).await;
    files.patch_at(at(1), File::patch().label("other")).await?;
    all_is_right(&files).await;
    files
        .update(at(1), |file| {
            file.size += 1;
            file.owner = "don".into();
            Ok(())
        })
        .await?;
    all_is_right(&files).await;
    files.insert_or_merge(&File { remark: Some("r".into()), ..file(1) }).await?;
    files.insert_or_replace(&File { size: 3, ..file(1) }).await?;
    all_is_right(&files).await;
    // One part, which no copy holds: one blind merge.
    recorder.clear();
    files.patch_at(at(1), File::patch().remark("blind")).await?;
    assert_eq!(recorder.take().len(), 1);
    let mut moved = files.replace_any(&File { size: 4, ..file(1) }).await?;
    moved.id = 9;
    files.replace(&moved).await?;
    all_is_right(&files).await;
    assert!(files.get(at(1)).await?.is_none());

    assert!(files.delete_at(at(9)).await?);
    all_is_right(&files).await;
    assert!(!files.delete_at(at(9)).await?);
    let left = client.dynamic("Files").query(Filter::parse("PartitionKey ne ''")?).allow_scan();
    let left: Vec<String> =
        left.collect().await?.iter().map(|row| row.row_key().to_owned()).collect();
    assert!(left.iter().all(|key| !key.starts_with("file_")), "{left:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_taken_is_a_unique_violation() -> Result<(), Error> {
    let (_, _, files) = files().await;
    files.insert(&file(1)).await?;
    let taken = files.insert(&File { hash: "h1".into(), ..file(2) }).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
    assert!(taken.to_string().contains("file_000001_01"), "{taken}");
    let taken = files.insert(&File { label: "l1".into(), ..file(2) }).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
    files.insert(&file(2)).await?;
    let taken = files.patch_at(at(2), File::patch().label("l1")).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
    all_is_right(&files).await;
    // The key is free once its holder gave it up.
    files.patch_at(at(1), File::patch().label("l3").hash("h3")).await?;
    files.patch_at(at(2), File::patch().label("l1").hash("h1")).await?;
    all_is_right(&files).await;
    Ok(())
}

/// A slot that is merged into a part beside the copies stops a verb that saw the entity before.
#[tokio::test(start_paused = true)]
async fn each_part_is_guarded_with_its_copies() -> Result<(), Error> {
    let (_, _, files) = files().await;
    let mut seen = files.insert(&file(1)).await?;
    files.patch_at(at(1), File::patch().remark("meanwhile")).await?;
    seen.title = "old".into();
    assert!(files.replace(&seen).await.unwrap_err().is_precondition_failed());
    assert!(files.delete(&seen).await.unwrap_err().is_precondition_failed());
    all_is_right(&files).await;
    assert_eq!(files.get(at(1)).await?.unwrap().remark.as_deref(), Some("meanwhile"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn damages_are_found_and_mended() -> Result<(), Error> {
    let (client, _, files) = files().await;
    for id in 1..=4 {
        files.insert(&file(id)).await?;
    }
    all_is_right(&files).await;
    let rows = client.dynamic("Files");
    rows.delete("Sales", "title_t1_000001", Condition::Any).await?;
    rows.delete("Sales", "owner_don", Condition::Any).await?;
    let mut stale = rows.get("Sales", "hash_h2").await?.unwrap();
    stale.set("Title", "wrong");
    rows.replace(&stale).await?;
    rows.delete("title_t3", "at_Sales_000003", Condition::Any).await?;
    // All parts of an entity go, its copies stay.
    for part in 1..=3 {
        rows.delete("Sales", &format!("file_000004_{part:02}"), Condition::Any).await?;
    }
    let report = files.check().await?;
    let count = |kind| report.findings.iter().filter(|finding| finding.kind == kind).count();
    assert!(count(FindingKind::Missing) >= 5, "{:?}", report.findings);
    assert_eq!(count(FindingKind::Stale), 1, "{:?}", report.findings);
    assert!(count(FindingKind::Orphan) >= 4, "{:?}", report.findings);
    assert_eq!(report.progress.primaries, 3);
    let before = files.get(at(1)).await?.unwrap();
    assert!(files.check().repair().await? >= 8);
    all_is_right(&files).await;
    // A repair holds the entity to its ETag, part by part.
    assert_ne!(files.get(at(1)).await?.unwrap().etag(), before.etag());
    assert_eq!(files.query(File::primary().folder("Sales")).collect().await?.len(), 3);

    for family in ["title_t1_000001", "title_t2_000002"] {
        rows.delete("Sales", family, Condition::Any).await?;
    }
    assert_eq!(files.rebuild(File::by_title()).await?.written, 2);
    rows.delete("Sales", "owner_don", Condition::Any).await?;
    assert_eq!(files.rebuild(File::by_owner()).await?.written, 3);
    rows.delete("title_t3", "at_Sales_000003", Condition::Any).await?;
    files.rebuild(File::by_title_everywhere()).await?;
    all_is_right(&files).await;
    Ok(())
}

/// An entity without one of its parts says so in a check; once its rows are gone, a repair removes
/// its copies.
#[tokio::test(start_paused = true)]
async fn a_torn_entity_is_named_by_a_check() -> Result<(), Error> {
    let (client, _, files) = files().await;
    files.insert(&file(1)).await?;
    files.insert(&file(2)).await?;
    all_is_right(&files).await;
    let rows = client.dynamic("Files");
    rows.delete("Sales", "file_000001_02", Condition::Any).await?;
    let error = files.check().await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("part 2"), "{error}");
    let refused = files.insert_or_replace(&file(1)).await.unwrap_err();
    assert!(refused.is_corrupt() && refused.to_string().contains("`delete_at`"), "{refused}");
    let refused = files.replace_any(&file(1)).await.unwrap_err();
    assert!(refused.is_corrupt() && refused.to_string().contains("`delete_at`"), "{refused}");
    assert!(files.delete_at(at(1)).await?, "what is left of it");
    assert!(!files.delete_at(at(1)).await?);
    let keys = client.dynamic("Files").query(Keys::partition("Sales")).collect().await?;
    assert!(keys.iter().all(|row| !row.row_key().starts_with("file_000001")));
    assert!(files.check().repair().await? > 0);
    all_is_right(&files).await;
    files.insert(&file(1)).await?;
    all_is_right(&files).await;
    Ok(())
}

/// `delete_at` of an entity with a part of another write deletes the copies that its rows tell, and a
/// repair the others. A part that changes meanwhile is not deleted as it was seen.
#[tokio::test(start_paused = true)]
async fn a_part_of_another_write_is_deleted_with_its_copies() -> Result<(), Error> {
    let (client, recorder, files) = files().await;
    files.insert(&file(1)).await?;
    files.insert(&file(2)).await?;
    let rows = client.dynamic("Files");
    let old = rows.get("Sales", "file_000001_02").await?.unwrap();
    files.replace_any(&file(1)).await?;
    all_is_right(&files).await;
    rows.insert_or_replace(&old).await?;
    assert!(files.get(at(1)).await.unwrap_err().is_corrupt());
    recorder.clear();
    assert!(files.delete_at(at(1)).await?);
    let requests = recorder.take();
    let scans = requests.iter().filter(|one| one.is_scan()).count();
    assert_eq!(scans, 2, "a snapshot that is torn, and one of what is left: {requests:?}");
    all_is_right(&files).await;
    let found = rows.query(Filter::parse("PartitionKey ne ''")?).allow_scan().collect().await?;
    let left = found.iter().map(|row| row.row_key()).filter(|key| !key.starts_with('~'));
    let left: Vec<&str> = left.collect();
    assert!(left.iter().all(|key| !key.contains("000001")), "{left:?}");
    Ok(())
}

/// Pages that end inside an entity show a check the whole entity.
#[tokio::test(start_paused = true)]
async fn a_check_joins_parts_over_pages() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(faults.clone()).build()?;
    let files = client.table::<File>();
    files.create().await?;
    for id in 1..=4 {
        files.insert(&file(id)).await?;
    }
    all_is_right(&files).await;
    for rows in [1, 2, 4, 5] {
        faults.shorten_pages(Some(rows));
        let report = files.check().await?;
        assert!(report.is_clean(), "{rows}: {:?}", report.findings);
        assert_eq!(report.progress.primaries, 4, "{rows}");
    }
    Ok(())
}

/// Moves to another partition and to another table: all parts, copies and lists.
#[tokio::test(start_paused = true)]
async fn an_entity_moves_with_its_copies() -> Result<(), Error> {
    let (client, _, files) = files().await;
    files.insert(&file(1)).await?;
    files.insert(&file(2)).await?;
    files.patch_at(at(1), File::patch().remark("blind")).await?;
    let mut row = client.dynamic("Files").get("Sales", "file_000001_03").await?.unwrap();
    row.set("Note", "of another program");
    client.dynamic("Files").replace(&row).await?;
    let mut stored = files.get(at(1)).await?.unwrap();
    stored.folder = "Marketing".into();
    files.move_to(&stored, &files).await?.wait().await?;
    all_is_right(&files).await;
    assert!(files.get(at(1)).await?.is_none());
    let moved_at = || File::primary().folder("Marketing").id(1);
    let moved = files.get(moved_at()).await?.unwrap();
    let expected = File { folder: "Marketing".into(), remark: Some("blind".into()), ..file(1) };
    assert_eq!(*moved, expected);
    let third = client.dynamic("Files").get("Marketing", "file_000001_03").await?.unwrap();
    assert_eq!(third.str("Note")?, "of another program", "it stays in its part");
    let of = File::by_owner_everywhere().owner("don");
    assert_eq!(files.query(of).collect().await?.len(), 2);

    let archive = client.table_named::<File>("Archive");
    archive.create().await?;
    files.move_to(&moved, &archive).await?.wait().await?;
    client.wait_for_copies().await;
    assert!(files.get(moved_at()).await?.is_none());
    assert_eq!(*archive.get(moved_at()).await?.unwrap(), expected);
    let report = archive.check().await?;
    assert!(report.is_clean(), "{:?}", report.findings);
    all_is_right(&files).await;
    Ok(())
}

/// A move that finds its keys taken leaves the entity as it was, and it can be written again.
#[tokio::test(start_paused = true)]
async fn a_move_to_taken_keys_unlocks_the_entity() -> Result<(), Error> {
    let (_, _, files) = files().await;
    let mut stored = files.insert(&file(1)).await?;
    let other = File { folder: "Marketing".into(), hash: "o".into(), label: "o".into(), ..file(1) };
    files.insert(&other).await?;
    stored.folder = "Marketing".into();
    let moving = files.move_to(&stored, &files).await;
    let refused = match moving {
        Ok(moving) => moving.wait().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(refused.is_conflict(), "{refused}");
    all_is_right(&files).await;
    let mut still = files.get(at(1)).await?.unwrap();
    assert_eq!(*still, file(1));
    still.size = 70;
    files.replace(&still).await?;
    assert!(!files.unlock(at(1)).await?, "it bears no mark");
    all_is_right(&files).await;
    Ok(())
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;
type Act = (&'static str, for<'a> fn(&'a Table<File>) -> Outcome<'a>);

const ACTS: [Act; 8] = [
    ("insert", |files| Box::pin(async { files.insert(&file(2)).await.map(drop) })),
    ("replace", |files| {
        Box::pin(async {
            let mut one = files.get(at(1)).await?.unwrap();
            (one.title, one.owner, one.label) = ("new".into(), "eve".into(), "new".into());
            files.replace(&one).await.map(drop)
        })
    }),
    ("move inside the partition", |files| {
        Box::pin(async {
            let mut one = files.get(at(1)).await?.unwrap();
            one.id = 3;
            files.replace(&one).await.map(drop)
        })
    }),
    ("patch_at", |files| {
        Box::pin(async {
            files.patch_at(at(1), File::patch().title("new").label("new")).await.map(drop)
        })
    }),
    ("update", |files| {
        Box::pin(async {
            let change = |file: &mut File| {
                (file.size, file.owner) = (70, "eve".into());
                Ok(())
            };
            files.update(at(1), change).await.map(drop)
        })
    }),
    ("insert_or_replace", |files| {
        Box::pin(async {
            files.insert_or_replace(&File { title: "n".into(), ..file(1) }).await.map(drop)
        })
    }),
    ("insert_or_merge", |files| {
        Box::pin(async {
            files.insert_or_merge(&File { label: "n".into(), ..file(1) }).await.map(drop)
        })
    }),
    ("delete_at", |files| Box::pin(async { files.delete_at(at(1)).await.map(drop) })),
];

/// Every verb fails at every one of its requests, before and after it was carried out: a worker
/// makes all copies what the entities say, and a failure that says that nothing was done is right.
#[tokio::test(start_paused = true)]
async fn every_verb_fails_at_every_request() -> Result<(), Error> {
    for (name, act) in ACTS {
        for kind in [RequestKind::Read, RequestKind::Scan, RequestKind::Apply] {
            let most = if kind == RequestKind::Scan { 1 } else { 6 };
            for nth in 0..most {
                for after in [false, true] {
                    let faults = FaultInjector::around(Memory::new());
                    let client = Client::builder().backend(faults.clone()).build()?;
                    let files = client.table::<File>();
                    files.create().await?;
                    files.insert(&file(1)).await?;
                    client.wait_for_copies().await;
                    let before = files.get(at(1)).await?.unwrap();
                    let fault = Error::service(ServiceCode::InternalError, "injected");
                    let fault = if after {
                        InjectedFault::After(fault)
                    } else {
                        InjectedFault::Before(fault)
                    };
                    faults.inject(kind, nth, fault);
                    let result = act(&files).await;
                    client.wait_for_copies().await;
                    faults.clear();
                    if let Err(error) = &result
                        && !after
                        && error.kind() != ErrorKind::Ambiguous
                    {
                        let now = files.get(at(1)).await?.unwrap();
                        assert_eq!(*now, *before, "{name} {kind:?} {nth}: {error}");
                    }
                    // A copy that is on its way is right once a worker of a new program was there.
                    drop(client);
                    let client = Client::builder().backend(faults.clone()).build()?;
                    all_is_right(&client.table::<File>()).await;
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_list_with_a_torn_entity_has_the_others() -> Result<(), Error> {
    let (client, _, files) = files().await;
    for id in 1..=3 {
        files.insert(&file(id)).await?;
    }
    client.dynamic("Files").delete_at("Sales", "file_000002_02").await?;
    let ids = |rows: &[Result<Stored<File>, Error>]| {
        rows.iter().map(|row| row.as_ref().ok().map(|row| row.id)).collect::<Vec<_>>()
    };
    let rows =
        files.query(File::by_owner().folder("Sales").owner("don")).results().collect().await?;
    assert_eq!(ids(&rows), [Some(1), None, Some(3)]);
    assert!(rows[1].as_ref().unwrap_err().is_corrupt());
    let everywhere = File::by_owner_everywhere().owner("don");
    let rows = files.query(everywhere).results().collect().await?;
    assert_eq!(ids(&rows), [Some(1), None, Some(3)]);
    Ok(())
}

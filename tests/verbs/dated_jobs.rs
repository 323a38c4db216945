//! Tests jobs that go over all dated tables of an entity: checks, rebuilds, new keys, new versions and
//! bulk updates.

use std::sync::{Arc, Mutex};

use entable::{
    Client, Condition, Cursor, Error, KeyScope, Keyring, RootKey,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    maintain::FindingKind,
    prelude::*,
};
use time::{OffsetDateTime, macros::datetime};

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);
const DAY: time::Duration = time::Duration::DAY;
const DAYS: i32 = 5;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Visits{at:%Y%m%d}",
    partition_key = "{page}",
    row_key = "id_{id:06}",
    index(ByGuest, row_key = "guest_{guest}_{id:06}"),
    index(ByName, partition_key = "name_{guest}", row_key = "page_{page}_{id:06}")
)]
struct Visit {
    page: String,
    id: u32,
    guest: String,
    at: OffsetDateTime,
}

/// The entity of these rows in a program that knows no index yet.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Visits{at:%Y%m%d}",
    partition_key = "{page}",
    row_key = "id_{id:06}",
    entity_type = "Visit"
)]
struct OldVisit {
    page: String,
    id: u32,
    guest: String,
    at: OffsetDateTime,
}

fn visit(day: i32, id: u32) -> Visit {
    let guest = format!("g{}", id % 2);
    Visit { page: format!("p{}", id % 3), id, guest, at: NOON - DAY * day }
}

fn all_visits() -> impl Iterator<Item = Visit> {
    (0..DAYS).flat_map(|day| (0..6).map(move |id| visit(day, id)))
}

fn table_of(day: i32) -> String {
    format!("Visits201407{}", 31 - day)
}

fn recorded() -> (Recorder, Client) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    (recorder, client)
}

/// Five days of visits with their copies, and two tables that are of other names.
async fn filled() -> (Recorder, Client, Table<Visit>) {
    let (recorder, client) = recorded();
    let visits: Table<Visit> = client.table();
    visits.bulk().insert_all(all_visits()).await.unwrap().into_result().unwrap();
    client.wait_for_copies().await;
    client.worker().drain().await.unwrap();
    for other in ["Visits", "Visits2014"] {
        client.create_table(other).await.unwrap();
    }
    recorder.clear();
    (recorder, client, visits)
}

async fn count(visits: &Table<Visit>, day: i32, guest: &str) -> (u64, u64) {
    let at = NOON - DAY * day;
    let mut local = 0;
    for page in ["p0", "p1", "p2"] {
        let path = Visit::by_guest().at_between(at - DAY / 2..at + DAY / 2).page(page).guest(guest);
        local += visits.query(path).count().await.unwrap();
    }
    let remote = Visit::by_name().at_between(at - DAY / 2..at + DAY / 2).guest(guest);
    (local, visits.query(remote).count().await.unwrap())
}

#[tokio::test]
async fn a_check_reads_and_repairs_every_table() {
    let (_, client, visits) = filled().await;
    let clean = visits.check().await.unwrap();
    assert!(clean.is_clean(), "{clean:#}");
    assert_eq!((clean.progress.primaries, clean.progress.partitions), (30, 25));

    for day in [1, 3] {
        let rows = client.dynamic(table_of(day));
        rows.delete("p1", "guest_g1_000001", Condition::Any).await.unwrap();
        rows.delete("name_g0", "page_p2_000002", Condition::Any).await.unwrap();
    }
    tokio::time::pause();
    let report = visits.check().await.unwrap();
    let mut found: Vec<_> =
        report.findings.iter().map(|one| (one.table.as_str(), one.is_remote())).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("Visits20140728", false),
            ("Visits20140728", true),
            ("Visits20140730", false),
            ("Visits20140730", true)
        ]
    );
    assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::Missing));
    assert_eq!(report.repair().await.unwrap(), 4);
    client.worker().drain().await.unwrap();
    assert!(visits.check().await.unwrap().is_clean());

    // As it goes, too.
    client.dynamic(table_of(4)).delete("p0", "guest_g0_000000", Condition::Any).await.unwrap();
    assert_eq!(visits.check().repair().await.unwrap(), 1);
    assert!(visits.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_job_passes_over_a_table_that_is_dropped_meanwhile() {
    for (request, table) in [(0, 0), (1, 2)] {
        let fault = FaultInjector::around(Memory::new());
        let client = Client::builder().backend(fault.clone()).build().unwrap();
        let visits: Table<Visit> = client.table();
        visits.bulk().insert_all(all_visits()).await.unwrap().into_result().unwrap();
        client.wait_for_copies().await;
        client.worker().drain().await.unwrap();
        // The table is gone when its page is asked for, after the tables were listed.
        let gone = Error::service(entable::ServiceCode::TableNotFound, "dropped");
        fault.inject(RequestKind::Scan, request, InjectedFault::Before(gone));
        let report = visits.check().await.unwrap();
        assert!(report.is_clean(), "{report:#}");
        assert!((12..30).contains(&report.progress.primaries), "{report} {table}");
    }
}

#[tokio::test]
async fn a_rebuild_writes_every_table_and_continues_from_any_cursor() {
    let (recorder, client) = recorded();
    let old = all_visits().map(|one| OldVisit {
        page: one.page,
        id: one.id,
        guest: one.guest,
        at: one.at,
    });
    client.bulk().insert_all(old).await.unwrap().into_result().unwrap();
    let visits: Table<Visit> = client.table();
    let cursors = Arc::new(Mutex::new(Vec::new()));
    let saved = cursors.clone();
    let report = visits
        .rebuild(Visit::by_guest())
        .page_size(4)
        .on_progress(move |progress| saved.lock().unwrap().push(progress.cursor.clone()))
        .await
        .unwrap();
    assert!(report.is_complete());
    assert_eq!((report.primaries, report.written), (30, 30));
    let report = visits.rebuild(Visit::by_name()).await.unwrap();
    assert_eq!((report.primaries, report.written), (30, 30));
    client.worker().drain().await.unwrap();
    for day in 0..DAYS {
        assert_eq!(count(&visits, day, "g0").await, (3, 3));
    }
    assert!(visits.check().await.unwrap().is_clean());

    let cursors: Vec<Option<Cursor>> = cursors.lock().unwrap().clone();
    assert_eq!(cursors.len(), 10, "two pages of each table");
    // A cursor in a table that is dropped meanwhile goes on with the next one.
    client.delete_table(&table_of(4)).await.unwrap();
    for (page, cursor) in cursors.iter().enumerate() {
        let Some(cursor) = cursor else {
            assert_eq!(page, 9);
            continue;
        };
        let cursor: Cursor = cursor.to_string().parse().unwrap();
        recorder.clear();
        let report =
            visits.rebuild(Visit::by_guest()).page_size(4).from(cursor.clone()).await.unwrap();
        let pages = page as u64 + 1;
        let left = if page < 2 { 24 } else { 30 - pages / 2 * 6 - pages % 2 * 4 };
        assert_eq!((report.primaries, report.written), (left, 0), "page {page}");
        let other = visits.rebuild(Visit::by_name()).page_size(4).from(cursor).await;
        assert!(other.unwrap_err().is_invalid_cursor());
    }
}

#[tokio::test]
async fn a_bulk_update_of_a_window_writes_each_entity_in_its_table() {
    let (_, client, visits) = filled().await;
    let window = || Visit::primary().at_between(NOON - DAY * 3..NOON + DAY).page("p1");
    let cursors = Arc::new(Mutex::new(Vec::new()));
    let saved = cursors.clone();
    let bulk =
        visits.bulk().on_checkpoint(move |cursor| saved.lock().unwrap().push(cursor.clone()));
    let update = |visit: &mut Visit| {
        visit.guest.push('x');
        Ok(())
    };
    let report = bulk.update_all(visits.query(window()).page_size(1), update).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (8, 0));
    let found = visits.query(window()).collect().await.unwrap();
    assert!(found.len() == 8 && found.iter().all(|visit| visit.guest.ends_with('x')));
    let rest =
        visits.query(Visit::primary().at(NOON - DAY * 4).page("p1")).collect().await.unwrap();
    assert!(rest.len() == 2 && rest.iter().all(|visit| !visit.guest.ends_with('x')));
    client.wait_for_copies().await;
    assert!(visits.check().await.unwrap().is_clean());

    let cursor = cursors.lock().unwrap()[4].clone();
    let query = visits.query(window()).page_size(1);
    let report = visits.bulk().resume(cursor).update_all(query, update).await.unwrap();
    assert!((1..8).contains(&report.done), "{report:?}");
    // Another period is another table.
    let moved = visits.query(window()).page_size(100);
    let report = visits
        .bulk()
        .update_all(moved, |visit| {
            visit.at += DAY;
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!((report.done, report.failed.len()), (0, 8));
    assert!(report.failed[0].error.message().contains("move_to"));
    // A window the wrong way round is told before anything is read.
    let wrong = visits.query(Visit::primary().at_between(NOON..NOON - DAY).page("p1"));
    assert!(visits.bulk().update_all(wrong, update).await.unwrap_err().is_invalid());
}

#[tokio::test]
async fn lost_races_are_made_good_in_the_table_of_their_page() {
    let (_, client, visits) = filled().await;
    let window = Visit::primary().at_between(NOON - DAY * 4..NOON + DAY).page("p1");
    let other = Arc::new(Mutex::new(0));
    let raced = other.clone();
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut receiver = receiver;
    let rows = client.clone();
    // Another writer changes the first entity of each table between its read and its write.
    let writer = tokio::spawn(async move {
        while let Some(at) = receiver.recv().await {
            let visits: Table<Visit> = rows.table();
            let point = Visit::primary().at(at).page("p1").id(1);
            visits.patch_at(point, Visit::patch().guest("rival".to_owned())).await.unwrap();
        }
    });
    let update = move |visit: &mut Visit| {
        if visit.id == 1 && visit.guest != "rival" {
            *raced.lock().unwrap() += 1;
            sender.send(visit.at).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        visit.guest.push('x');
        Ok(())
    };
    let report = visits.bulk().update_all(visits.query(window.clone()), update).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (10, 0), "{report:?}");
    writer.await.unwrap();
    assert_eq!(*other.lock().unwrap(), DAYS);
    let found = visits.query(window).collect().await.unwrap();
    assert_eq!(found.len(), 10);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Notes{at:%Y%m}",
    partition_key = "{user}",
    row_key = "{at:desc}",
    entity_type = "Note"
)]
struct NoteV1 {
    user: String,
    at: OffsetDateTime,
    title: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Notes{at:%Y%m}",
    partition_key = "{user}",
    row_key = "{at:desc}",
    version = 2,
    upgrade_from(NoteV1)
)]
struct Note {
    user: String,
    at: OffsetDateTime,
    text: String,
}

impl From<NoteV1> for Note {
    fn from(NoteV1 { user, at, title }: NoteV1) -> Self {
        Self { user, at, text: title }
    }
}

#[tokio::test]
async fn an_upgrade_rewrites_every_table_and_resumes() {
    let (recorder, client) = recorded();
    let months = || (0..6).map(|month| NOON - DAY * 30 * month);
    let old = months().flat_map(|at| {
        ["ann", "don", "eve"].map(|user| NoteV1 { user: user.into(), at, title: "t".into() })
    });
    client.bulk().insert_all(old).await.unwrap().into_result().unwrap();
    let notes: Table<Note> = client.table();
    let cursors = Arc::new(Mutex::new(Vec::new()));
    let saved = cursors.clone();
    let upgrade = notes.upgrade_all().page_size(2);
    let upgrade = upgrade.on_checkpoint(move |cursor| saved.lock().unwrap().push(cursor.clone()));
    let report = upgrade.await.unwrap();
    assert_eq!((report.done, report.failed.len()), (18, 0));
    assert_eq!(notes.upgrade_all().await.unwrap().done, 0);
    for at in months() {
        let one = notes.get(Note::primary().user("don").at(at)).await.unwrap().unwrap();
        assert_eq!(one.text, "t");
    }
    let rows = client.dynamic("Notes201407").query(Keys::partition("don"));
    let row = rows.first().await.unwrap().unwrap();
    assert_eq!(row.get("EntityType"), Some(&Value::from("Note.v2")));
    let cursors = cursors.lock().unwrap().clone();
    let last = cursors.last().unwrap().to_string().parse().unwrap();
    recorder.clear();
    notes.upgrade_all().page_size(2).resume(last).await.unwrap();
    let scans = recorder.requests().iter().filter(|request| request.is_scan()).count();
    assert_eq!(scans, 1, "the last table alone");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Secrets{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "{at:desc}",
    index(ByKind, partition_key = "kind_{kind}", row_key = "{user}_{at:desc}")
)]
struct Secret {
    user: String,
    at: OffsetDateTime,
    kind: String,
    #[table(encrypt)]
    text: String,
}

fn keys(primary: u8, others: &[u8]) -> Keyring {
    let scope = KeyScope::default_scope();
    let mut keys = Keyring::builder().primary(&scope, &RootKey::from_bytes([primary; 32]));
    for other in others {
        keys = keys.decrypt_only(&scope, &RootKey::from_bytes([*other; 32]));
    }
    keys.build().unwrap()
}

#[tokio::test]
async fn a_new_key_reaches_every_table() {
    let memory = Recorder::around(Memory::new());
    let client_of = |keys| Client::builder().backend(memory.clone()).keys(keys).build().unwrap();
    let before = client_of(keys(1, &[]));
    let secret = |day: i32| Secret {
        user: "don".into(),
        at: NOON - DAY * day,
        kind: "a".into(),
        text: format!("secret {day}"),
    };
    let table: Table<Secret> = before.table();
    table.bulk().insert_all((0..DAYS).map(secret)).await.unwrap().into_result().unwrap();
    before.wait_for_copies().await;
    before.worker().drain().await.unwrap();

    let both = client_of(keys(2, &[1]));
    let table: Table<Secret> = both.table();
    assert_eq!(table.reencrypt().dry_run().await.unwrap().remaining, 10);
    let cursors = Arc::new(Mutex::new(Vec::new()));
    let saved = cursors.clone();
    let report = table
        .reencrypt()
        .page_size(1)
        .on_progress(move |progress| saved.lock().unwrap().push(progress.cursor.clone()))
        .await
        .unwrap();
    assert_eq!((report.rows, report.rewritten), (10, 10));
    assert!(report.is_complete());
    let after = client_of(keys(2, &[]));
    let table: Table<Secret> = after.table();
    let window = Secret::primary().at_between(NOON - DAY * DAYS..NOON + DAY).user("don");
    assert_eq!(table.query(window).collect().await.unwrap().len(), 5);

    // Each cursor reads what is behind it, in this table and the later ones.
    both.delete_table("Secrets20140727").await.unwrap();
    let table: Table<Secret> = both.table();
    let cursors = cursors.lock().unwrap().clone();
    assert!(cursors.last().unwrap().is_none());
    for (page, cursor) in cursors.iter().enumerate().filter(|(_, cursor)| cursor.is_some()) {
        let cursor = cursor.clone().unwrap().to_string().parse().unwrap();
        let report = table.reencrypt().page_size(1).resume(cursor).await.unwrap();
        let left = (9 - page as u64).min(8);
        assert_eq!((report.rows, report.rewritten), (left, 0), "page {page}");
    }
    let stranger: Cursor = {
        let page = table.query(Secret::primary().at_between(NOON..NOON + DAY * 9).user("don"));
        page.page_size(1).page(None).await.unwrap().next.unwrap()
    };
    let other: Table<Visit> = both.table();
    assert!(other.reencrypt().resume(stranger).await.unwrap_err().is_invalid_cursor());
}

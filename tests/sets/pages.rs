//! Counts the requests of pages with rows that are no items, and of pages with unreadable rows.

use entable::{
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, Request, RequestKind},
    },
    prelude::*,
};

use crate::fixture::*;

/// Reviews whose keys lie among those of the notes: no bounds of the keys tell them apart.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "x_{id:06}_n")]
struct Note {
    department: String,
    id: u32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "x_{id:06}_r")]
struct Rating {
    department: String,
    id: u32,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
enum Mixed {
    Note(Note),
    Rating(Rating),
}

fn note(id: u32) -> Note {
    Note { department: "Sales".into(), id }
}

fn rating(id: u32) -> Rating {
    Rating { department: "Sales".into(), id }
}

fn notes() -> Partition<Note> {
    Note::primary().department("Sales").into()
}

fn tops(recorder: &Recorder) -> Vec<Option<u32>> {
    let top = |request: Request| match request {
        Request::Scan { top, .. } => top,
        other => panic!("{other:?}"),
    };
    recorder.take().into_iter().map(top).collect()
}

/// So many notes, each after nine ratings.
async fn one_in_ten(notes: u32) -> (Recorder, Table<Note>) {
    let (recorder, client) = client().await;
    let rows = (0..notes * 10).map(|id| match id % 10 {
        9 => Mixed::Note(note(id)),
        _ => Mixed::Rating(rating(id)),
    });
    client.bulk().insert_all(rows).await.unwrap().into_result().unwrap();
    recorder.clear();
    (recorder, client.table())
}

#[tokio::test]
async fn a_mixed_range_costs_two_requests_and_not_one_for_each_item() -> Result<(), Error> {
    let (recorder, table) = one_in_ten(60).await;
    let all = || table.query(Note::primary().department("Sales"));
    assert_eq!(all().take(50).collect().await?.len(), 50);
    assert_eq!(tops(&recorder), [Some(50), None], "asked once, then for as much as there may be");
    assert_eq!(all().first().await?.unwrap().id, 9);
    assert_eq!(tops(&recorder), [Some(1), None]);
    assert_eq!(all().take(50).page_size(100).collect().await?.len(), 50);
    assert_eq!(
        tops(&recorder),
        [50, 100, 100, 100, 100, 100].map(Some),
        "never above what was asked"
    );
    assert!(all().take(70).collect().await?.len() == 60);
    assert_eq!(tops(&recorder), [Some(70), None]);
    Ok(())
}

#[tokio::test]
async fn a_range_of_one_type_costs_one_request_of_the_items_alone() -> Result<(), Error> {
    let (recorder, client) = client().await;
    client.bulk().insert_all((0..300).map(note)).await?.into_result()?;
    recorder.clear();
    let all = client.table::<Note>().query(Note::primary().department("Sales"));
    assert_eq!(all.clone().take(120).collect().await?.len(), 120);
    assert_eq!(tops(&recorder), [Some(120)]);
    assert_eq!(all.clone().take(120).page_size(50).collect().await?.len(), 120);
    assert_eq!(tops(&recorder), [50, 50, 20].map(Some));
    let set = client.set::<Mixed>("Staff").query(Keys::partition("Sales")).take(7);
    assert_eq!(set.collect().await?.len(), 7);
    assert_eq!(tops(&recorder), [Some(7)]);
    Ok(())
}

#[tokio::test]
async fn a_short_page_of_items_is_no_mixed_page() -> Result<(), Error> {
    let fault = FaultInjector::around(Memory::new());
    let recorder = Recorder::around(fault.clone());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    client.create_table("Staff").await?;
    client.bulk().insert_all((0..30).map(note)).await?.into_result()?;
    recorder.clear();
    fault.inject(RequestKind::Scan, 0, InjectedFault::ShortPage(8));
    fault.inject(RequestKind::Scan, 1, InjectedFault::EmptyPage);
    let all = client.table::<Note>().query(Note::primary().department("Sales")).take(20);
    assert_eq!(all.collect().await?.len(), 20);
    assert_eq!(tops(&recorder), [20, 12, 12].map(Some));
    Ok(())
}

#[tokio::test]
async fn a_cursor_remembers_that_its_range_is_mixed() -> Result<(), Error> {
    let (recorder, table) = one_in_ten(60).await;
    let query = table.query(Note::primary().department("Sales")).take(50);
    let first = query.page(None).await?;
    assert_eq!(first.items.len(), 5);
    let kept: Cursor = first.next.unwrap().to_string().parse()?;
    let second = query.page(Some(kept)).await?;
    assert_eq!((second.items.len(), second.next), (45, None));
    assert_eq!(tops(&recorder), [Some(50), None]);
    Ok(())
}

#[tokio::test]
async fn copies_that_a_set_hides_make_a_range_mixed() -> Result<(), Error> {
    let (recorder, client) = client().await;
    client.bulk().insert_all((0..40).map(employee)).await?.into_result()?;
    recorder.clear();
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).take(30);
    assert_eq!(rows.collect().await?.len(), 30);
    assert_eq!(tops(&recorder), [Some(30), None], "forty copies come first");
    Ok(())
}

/// Five notes, the third of which does not fit its type.
async fn one_bad() -> (Recorder, Client) {
    let (recorder, client) = client().await;
    client.bulk().insert_all((0..5).map(note)).await.unwrap();
    let bad = DynamicEntity::new("Sales", "x_00000two_n").with("EntityType", "Note");
    client.dynamic("Staff").delete_at("Sales", "x_000002_n").await.unwrap();
    client.dynamic("Staff").insert(&bad).await.unwrap();
    recorder.clear();
    (recorder, client)
}

fn ids(rows: &[Result<Stored<Note>, Error>]) -> Vec<Option<u32>> {
    rows.iter().map(|row| row.as_ref().ok().map(|note| note.id)).collect()
}

/// The bad row's key is above those of the digits.
const WITH_THE_BAD: [Option<u32>; 5] = [None, Some(0), Some(1), Some(3), Some(4)];

fn sorted(mut ids: Vec<Option<u32>>) -> Vec<Option<u32>> {
    ids.sort();
    ids
}

#[tokio::test]
async fn a_stream_goes_on_after_a_row_that_cannot_be_read() -> Result<(), Error> {
    let (recorder, client) = one_bad().await;
    let query = client.table::<Note>().query(notes());
    for size in [1, 2, 3, 1000] {
        let rows: Vec<_> = query.clone().page_size(size).stream().collect().await;
        assert_eq!(sorted(ids(&rows)), WITH_THE_BAD, "page size {size}");
        let error = rows.iter().find_map(|row| row.as_ref().err()).unwrap();
        assert!(error.is_decode());
        assert_eq!(error.keys(), Some(("Sales", "x_00000two_n")));
        assert_eq!(error.entity_type(), None);
        assert!(error.to_string().contains("table `Staff`"), "{error}");
    }
    recorder.clear();
    let rows: Vec<_> = query.stream().collect().await;
    assert_eq!((rows.len(), recorder.count()), (5, 1));
    Ok(())
}

#[tokio::test]
async fn collect_and_page_say_the_error_and_results_has_the_others() -> Result<(), Error> {
    let (recorder, client) = one_bad().await;
    let query = client.table::<Note>().query(notes());
    let error = query.collect().await.unwrap_err();
    assert!(error.is_decode());
    assert_eq!(query.page(None).await.unwrap_err().to_string(), error.to_string());
    recorder.clear();
    let rows = query.clone().results().collect().await?;
    assert_eq!(sorted(ids(&rows)), WITH_THE_BAD);
    assert_eq!(recorder.count(), 1);
    let bad = rows.iter().find_map(|row| row.as_ref().err()).unwrap();
    assert_eq!(bad.to_string(), error.to_string());
    let paged = query.results().page_size(4);
    let first = paged.page(None).await?;
    assert_eq!(first.items.len(), 4);
    assert_eq!(paged.page(first.next).await?.items.len(), 1, "a bad page has a next one");
    Ok(())
}

#[tokio::test]
async fn a_bad_row_is_an_item_of_take_and_a_good_one_before_it_is_found() -> Result<(), Error> {
    let (_, client) = one_bad().await;
    let query = client.table::<Note>().query(notes());
    assert_eq!(query.first().await?.unwrap().id, 0);
    let rows: Vec<_> = query.take(3).stream().collect().await;
    assert_eq!(rows.len(), 3);
    let set = client.set::<Mixed>("Staff").query(Keys::partition("Sales"));
    let rows: Vec<_> = set.stream().collect().await;
    assert_eq!(rows.iter().filter(|row| row.is_ok()).count(), 4);
    assert_eq!(rows.iter().find_map(|row| row.as_ref().err()).unwrap().entity_type(), Some("Note"));
    Ok(())
}

#[tokio::test]
async fn a_request_that_fails_ends_the_stream() -> Result<(), Error> {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    client.create_table("Staff").await?;
    client.bulk().insert_all((0..6).map(note)).await?.into_result()?;
    fault.inject(
        RequestKind::Scan,
        1,
        InjectedFault::Before(Error::new(ErrorKind::Backend, "connection lost")),
    );
    let rows: Vec<_> =
        client.table::<Note>().query(notes()).page_size(2).results().stream().collect().await;
    assert_eq!(rows.len(), 3);
    assert!(rows[2].as_ref().unwrap_err().is_backend());
    Ok(())
}

#[tokio::test]
async fn a_list_with_a_bad_entity_has_the_others() -> Result<(), Error> {
    let (_, client) = client().await;
    client.bulk().insert_all((1..=3).map(employee)).await?.into_result()?;
    let dynamic = client.dynamic("Staff");
    let mut bad = dynamic.get("Sales", "empid_000002").await?.unwrap();
    bad.set("Age", "old");
    dynamic.patch(&bad).await?;
    let jones = Employee::by_last_name().department("Sales").last_name("Jones");
    let listed = client.table::<Employee>().query(jones);
    assert!(listed.collect().await.unwrap_err().is_decode());
    let rows: Vec<_> = listed.stream().collect().await;
    let ids: Vec<_> = rows.iter().map(|row| row.as_ref().ok().map(|row| row.id)).collect();
    assert_eq!(ids, [Some(1), None, Some(3)]);
    assert_eq!(listed.results().collect().await?.len(), 3);
    Ok(())
}

//! Tests wide entities: the rows that each verb writes, its requests, queries, torn rows, and faults.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use entable::{
    ErrorKind, ServiceCode, Verb,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counts", partition_key = "{department}", row_key = "{id:06}", wide)]
struct Year {
    department: String,
    id: u32,
    note: Option<String>,
    #[table(series("Day{:03}"))]
    days: [Option<i64>; 365],
}

/// Three rows, of which the last may be empty.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counts", partition_key = "{department}", row_key = "file_{name}", wide)]
struct File {
    department: String,
    name: String,
    size: i64,
    #[table(part = 2)]
    title: String,
    #[table(part = 2, split(2))]
    text: String,
    #[table(part = 3)]
    remark: Option<String>,
}

/// Two of the three rows, declared without a version of its own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Counts",
    partition_key = "{department}",
    row_key = "file_{name}",
    entity_type = "File",
    wide
)]
struct ShortFile {
    department: String,
    name: String,
    size: i64,
    #[table(part = 2)]
    title: String,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = File)]
struct Title {
    name: String,
    title: String,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = File)]
struct Label {
    title: String,
    size: i64,
}

fn year(id: u32) -> Year {
    let mut days = [None; 365];
    days[0] = Some(1);
    days[364] = Some(365);
    Year { department: "Sales".into(), id, note: Some("new".into()), days }
}

fn at(id: u32) -> Point<Year> {
    Year::primary().department("Sales").id(id)
}

fn file(name: &str) -> File {
    File {
        department: "Sales".into(),
        name: name.into(),
        size: 7,
        title: format!("Title of {name}"),
        text: "text".into(),
        remark: None,
    }
}

fn file_at(name: &str) -> Point<File> {
    File::primary().department("Sales").name(name)
}

async fn counts() -> (Client, Recorder, Table<Year>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let years = client.table::<Year>();
    years.create().await.unwrap();
    (client, recorder, years)
}

/// Returns the keys of all rows of the table.
async fn keys(client: &Client) -> Vec<String> {
    let rows = client.dynamic("Counts").query(Keys::partition("Sales")).collect().await.unwrap();
    rows.iter().map(|row| row.row_key().to_owned()).collect()
}

async fn row(client: &Client, row_key: &str) -> Stored<DynamicEntity> {
    client.dynamic("Counts").get("Sales", row_key).await.unwrap().unwrap()
}

/// Returns what the rows of an entity say of the write that wrote all of them.
async fn generations(client: &Client, entity: &str, parts: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in 1..=parts {
        let row = row(client, &format!("{entity}_{part:02}")).await;
        found.insert(row.read::<String>("EntableParts").unwrap());
    }
    found
}

#[tokio::test]
async fn a_year_is_two_rows() -> Result<(), Error> {
    let (client, _, years) = counts().await;
    let written = years.insert(&year(123)).await?;
    assert_eq!(written.row_key(), "000123_01");
    assert_eq!(keys(&client).await, ["000123_01", "000123_02"]);
    let (first, second) = (row(&client, "000123_01").await, row(&client, "000123_02").await);
    assert_eq!(first.read::<String>("EntityType")?, "Year");
    assert_eq!(second.read::<String>("EntityType")?, "Year#02");
    assert_eq!(first.read::<String>("Note")?, "new");
    assert_eq!((first.read::<i64>("Day000")?, second.read::<i64>("Day364")?), (1, 365));
    let generation = generations(&client, "000123", 2).await;
    let [generation] = &Vec::from_iter(generation)[..] else { panic!("one write, one text") };
    let hex = generation.strip_prefix("2_").unwrap();
    assert!(hex.len() == 24 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{generation}");

    let read = years.get(at(123)).await?.unwrap();
    assert_eq!((&*read, read.etag()), (&year(123), written.etag()));
    assert_eq!(read.timestamp(), [first, second].iter().map(|row| row.timestamp()).max().unwrap());
    Ok(())
}

#[tokio::test]
async fn a_series_is_cut_into_equal_pieces() -> Result<(), Error> {
    let (client, _, years) = counts().await;
    let days = std::array::from_fn(|day| Some(i64::try_from(day).unwrap()));
    years.insert(&Year { days, ..year(1) }).await?;
    let count = |row: &Stored<DynamicEntity>| {
        row.properties().iter().filter(|(name, _)| name.starts_with("Day")).count()
    };
    let (first, second) = (row(&client, "000001_01").await, row(&client, "000001_02").await);
    assert_eq!((count(&first), count(&second)), (183, 182));
    assert_eq!((first.read::<i64>("Day182")?, second.read::<i64>("Day183")?), (182, 183));
    assert_eq!(years.get(at(1)).await?.unwrap().days, days);
    Ok(())
}

#[tokio::test]
async fn requests_of_each_verb() -> Result<(), Error> {
    let (_, recorder, years) = counts().await;
    recorder.clear();
    let sent = |reads: usize, operations: &[usize]| {
        let requests = recorder.take();
        let writes: Vec<usize> =
            requests.iter().filter(|one| one.is_apply()).map(|one| one.operations()).collect();
        let found = requests.iter().filter(|one| one.is_read()).count();
        assert_eq!((found, &writes[..]), (reads, operations), "{requests:?}");
        assert_eq!(requests.len(), reads + operations.len(), "{requests:?}");
    };
    let mut one = years.insert(&year(1)).await?;
    sent(0, &[2]);
    years.get(at(1)).await?;
    sent(2, &[]);
    one.note = None;
    let mut one = years.replace(&one).await?;
    sent(0, &[2]);
    one.days[3] = Some(3);
    let one = years.replace(&one).await?;
    sent(0, &[2]);
    years.patch(&one, Year::patch().days(4, 4)).await?;
    sent(0, &[2]);
    years.patch_at(at(1), Year::patch().days(300, 5)).await?;
    sent(0, &[1]);
    // Several parts are read first: a new generation must not make a torn entity look whole.
    years.patch_at(at(1), Year::patch().note("both").days(301, 5)).await?;
    sent(2, &[2]);
    years.patch_at(at(1), Year::patch().remove_days(301)).await?;
    sent(2, &[2]);
    years
        .update(at(1), |year| {
            year.days[5] = Some(6);
            Ok(())
        })
        .await?;
    sent(2, &[2]);
    years.insert_or_merge(&year(1)).await?;
    sent(2, &[2]);
    years.insert_or_replace(&year(1)).await?;
    sent(0, &[2]);
    let one = years.replace_any(&year(1)).await?;
    sent(0, &[2]);
    years.delete(&one).await?;
    sent(0, &[2]);
    years.insert(&year(1)).await?;
    recorder.clear();
    assert!(years.delete_at(at(1)).await?);
    sent(0, &[2]);
    assert!(years.get(at(1)).await?.is_none());
    sent(2, &[]);
    // Whether a part is left is read.
    assert!(!years.delete_at(at(1)).await?);
    sent(2, &[2]);
    Ok(())
}

#[tokio::test]
async fn one_slot_is_one_merge_of_one_property() -> Result<(), Error> {
    let (client, recorder, years) = counts().await;
    years.insert(&year(1)).await?;
    let before = generations(&client, "000001", 2).await;
    recorder.clear();
    years.patch_at(at(1), Year::patch().days(200, 9)).await?;
    let requests = recorder.take();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].verbs(), [Verb::Merge]);
    assert_eq!(row(&client, "000001_02").await.read::<i64>("Day200")?, 9);
    assert_eq!(generations(&client, "000001", 2).await, before, "one row alone is no new write");
    years.patch_at(at(1), Year::patch().days(200, 10).days(1, 10)).await?;
    let after = generations(&client, "000001", 2).await;
    assert!(after.len() == 1 && after.is_disjoint(&before), "{before:?} {after:?}");
    let read = years.get(at(1)).await?.unwrap();
    assert_eq!((read.days[200], read.days[1], read.days[0]), (Some(10), Some(10), Some(1)));
    Ok(())
}

/// A slot that is merged into another part is never overwritten by a verb that saw the entity before.
#[tokio::test]
async fn a_merge_into_part_2_stops_every_guarded_verb() -> Result<(), Error> {
    let (_, _, years) = counts().await;
    for verb in 0..4 {
        let seen = years.insert_or_replace(&year(1)).await?;
        years.patch_at(at(1), Year::patch().days(364, 1000)).await?;
        let result = match verb {
            0 => years.replace(&seen).await.map(drop),
            1 => years.patch(&seen, Year::patch().note("mine")).await.map(drop),
            2 => years.delete(&seen).await,
            _ => {
                let mut seen = seen;
                seen.id = 2;
                years.replace(&seen).await.map(drop)
            }
        };
        assert!(result.unwrap_err().is_precondition_failed(), "verb {verb}");
        assert_eq!(years.get(at(1)).await?.unwrap().days[364], Some(1000));
        assert!(years.get(at(2)).await?.is_none());
    }
    // `update` reads again.
    years
        .update(at(1), |year| {
            year.days[364] = year.days[364].map(|day| day + 1);
            Ok(())
        })
        .await?;
    assert_eq!(years.get(at(1)).await?.unwrap().days[364], Some(1001));
    Ok(())
}

#[tokio::test]
async fn five_writers_of_one_year_lose_nothing() -> Result<(), Error> {
    let (_, _, years) = counts().await;
    years.insert(&year(1)).await?;
    let tasks = (0..50_usize).map(|task| {
        let years = years.clone();
        tokio::spawn(async move {
            let add = move |year: &mut Year| {
                let day = &mut year.days[task % 5 * 90];
                *day = Some(day.unwrap_or_default() + 1);
                Ok(())
            };
            years.update(at(1), add).await.map(drop)
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap()?;
    }
    let days = years.get(at(1)).await?.unwrap().days;
    assert_eq!([0, 90, 180, 270, 360].map(|day| days[day]), [11, 10, 10, 10, 10].map(Some));
    Ok(())
}

#[tokio::test]
async fn parts_hold_their_fields_and_the_last_may_be_empty() -> Result<(), Error> {
    let (client, recorder, _) = counts().await;
    let files: Table<File> = client.table();
    let stored = files.insert(&file("a_b")).await?;
    assert_eq!(stored.row_key(), "file_a~5Fb_01", "a part that ends the key escapes `_`");
    assert_eq!(generations(&client, "file_a~5Fb", 3).await.len(), 1);
    let names = |row: Stored<DynamicEntity>| -> Vec<String> {
        row.properties().iter().map(|(name, _)| name.to_owned()).collect()
    };
    let third = names(row(&client, "file_a~5Fb_03").await);
    assert_eq!(third, ["EntityType", "EntableParts"]);
    let second = names(row(&client, "file_a~5Fb_02").await);
    assert_eq!(second, ["EntityType", "Title", "Text", "Text_2", "EntableParts"]);
    assert_eq!(*files.get(file_at("a_b")).await?.unwrap(), file("a_b"));

    recorder.clear();
    let title = files.get_as::<Title>(file_at("a_b")).await?.unwrap();
    assert_eq!((title.name.as_str(), title.title.as_str()), ("a_b", "Title of a_b"));
    assert_eq!(recorder.take().len(), 1, "the part with its fields");
    let label = files.get_as::<Label>(file_at("a_b")).await?.unwrap();
    assert_eq!((label.title.as_str(), label.size), ("Title of a_b", 7));
    assert_eq!(recorder.take().len(), 2);
    assert!(files.get_as::<Title>(file_at("none")).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_changed_key_moves_all_parts() -> Result<(), Error> {
    let (client, recorder, years) = counts().await;
    let mut stored = years.insert(&year(1)).await?;
    stored.id = 2;
    recorder.clear();
    let moved = years.replace(&stored).await?;
    let requests = recorder.take();
    assert_eq!((requests.len(), requests[0].operations()), (1, 4));
    assert_eq!(keys(&client).await, ["000002_01", "000002_02"]);
    assert_eq!(years.get(at(2)).await?.unwrap().etag(), moved.etag());
    let mut elsewhere = moved;
    elsewhere.department = "Marketing".into();
    years.move_to(&elsewhere, &years).await?.wait().await?;
    let left = keys(&client).await;
    assert!(left.iter().all(|key| key.starts_with('~')), "no part is left: {left:?}");
    let arrived = years.get(Year::primary().department("Marketing").id(2)).await?.unwrap();
    assert_eq!(*arrived, Year { department: "Marketing".into(), ..year(2) });
    Ok(())
}

#[tokio::test]
async fn an_etag_of_one_part_guards_nothing_but_says_so() -> Result<(), Error> {
    let (_, _, years) = counts().await;
    let stored = years.insert(&year(1)).await?;
    assert_eq!(stored.etag().to_string().split(' ').count(), 2);
    let patched = years.patch_at(at(1), Year::patch().days(0, 2)).await?;
    assert!(patched.etag.is_none() && patched.timestamp.is_some());
    let all = years.patch_at(at(1), Year::patch().days(0, 2).days(300, 2)).await?;
    assert_eq!(all.etag.as_ref(), Some(&years.get(at(1)).await?.unwrap().etag()));
    Ok(())
}

#[tokio::test]
async fn queries_join_neighbours() -> Result<(), Error> {
    let (client, recorder, years) = counts().await;
    let files: Table<File> = client.table();
    for id in 1..=7 {
        years.insert(&year(id)).await?;
    }
    for name in ["a", "b", "c"] {
        files.insert(&file(name)).await?;
    }
    let ids = |found: Vec<Stored<Year>>| found.iter().map(|year| year.id).collect::<Vec<_>>();
    let sales = || Year::primary().department("Sales");
    recorder.clear();
    let found = years.query(sales()).collect().await?;
    assert_eq!(recorder.take().len(), 1);
    assert!(found.iter().all(|found| **found == year(found.id)));
    assert_eq!(ids(found), [1, 2, 3, 4, 5, 6, 7]);
    for (range, expected) in [(2..=4, vec![2, 3, 4]), (2..=2, vec![2]), (6..=9, vec![6, 7])] {
        recorder.clear();
        let found = years.query(sales().id_range(range)).collect().await?;
        assert_eq!((ids(found), recorder.take().len()), (expected, 1));
    }
    recorder.clear();
    let above = years.query(sales()).filter(Year::ID.gt(5)).collect().await?;
    // The second row of year 5 is not above it, so that nobody has to ask for its first row.
    assert_eq!((ids(above), recorder.take().len()), (vec![6, 7], 1));
    let one = years.query(sales()).filter(Year::ID.eq(5)).collect().await?;
    assert_eq!(ids(one), [5]);
    let others = years.query(sales()).filter(Year::ID.ne(5)).collect().await?;
    assert_eq!(ids(others), [1, 2, 3, 4, 6, 7]);
    let scanned = years.query(Year::scan()).collect().await?;
    assert_eq!(scanned.len(), 7);
    assert_eq!(years.query(sales()).count().await?, 7);
    assert!(years.query(sales().id_range(7..=9)).exists().await?);
    assert!(!years.query(sales().id_range(8..=9)).exists().await?);

    recorder.clear();
    let first = years.query(sales()).take(3).collect().await?;
    assert_eq!((ids(first), recorder.take().len()), (vec![1, 2, 3], 1));
    assert_eq!(years.query(sales()).first().await?.unwrap().id, 1);
    let found = files.query(File::primary().department("Sales")).collect().await?;
    assert_eq!(found.len(), 3);
    Ok(())
}

/// A page never ends inside an entity, whatever rows are between.
#[tokio::test]
async fn pages_hold_whole_entities() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(faults.clone()).build()?;
    let years = client.table::<Year>();
    years.create().await?;
    for id in 1..=5 {
        years.insert(&year(id)).await?;
    }
    let foreign = client.dynamic("Counts");
    for key in ["000001_01x", "000002", "000003_", "000003_99"] {
        foreign.insert(&DynamicEntity::new("Sales", key).with("EntityType", "Other")).await?;
    }
    let query = years.query(Year::primary().department("Sales"));
    for rows in 1..=14 {
        faults.shorten_pages(Some(rows));
        let all = query.collect().await?;
        assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5], "{rows}");
        assert!(all.iter().all(|found| **found == year(found.id)));
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let page = query.clone().page_size(2).page(cursor).await?;
            assert!(page.items.len() <= 2);
            found.extend(page.items.iter().map(|one| one.id));
            let Some(next) = page.next else { break };
            cursor = Some(next.to_string().parse()?);
        }
        assert_eq!(found, [1, 2, 3, 4, 5], "pages of {rows} rows");
        assert_eq!(query.count().await?, 5);
    }
    Ok(())
}

#[tokio::test]
async fn a_property_is_compared_in_one_part() -> Result<(), Error> {
    let (client, recorder, _) = counts().await;
    let files: Table<File> = client.table();
    for name in ["a", "b"] {
        files.insert(&file(name)).await?;
    }
    let all = || files.query(File::primary().department("Sales"));
    recorder.clear();
    let titled = all().filter(File::TITLE.eq("Title of b"));
    for error in [
        titled.clone().collect().await.unwrap_err(),
        titled.clone().select::<Label>().collect().await.unwrap_err(),
        all().filter(File::SIZE.eq(7)).select::<Title>().collect().await.unwrap_err(),
        all().filter(File::TITLE.eq("x")).filter(File::SIZE.eq(7)).count().await.unwrap_err(),
    ] {
        assert!(error.is_invalid(), "{error}");
        assert!(error.to_string().contains("part "), "{error}");
    }
    assert_eq!(titled.clone().collect().await.unwrap_err().property(), Some("Title"));
    assert!(titled.explain().fault.is_some());
    assert_eq!(recorder.count(), 0, "refused before any request");

    let found = titled.clone().select::<Title>().collect().await?;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].row_key()), ("b", "file_b_01"));
    assert_eq!(recorder.take().len(), 1);
    assert_eq!(titled.count().await?, 1);
    let labels = all().select::<Label>().collect().await?;
    assert_eq!(labels.iter().map(|label| label.size).collect::<Vec<_>>(), [7, 7]);
    let by_name = all().filter(File::NAME.eq("a")).select::<Title>().collect().await?;
    assert_eq!(by_name.len(), 1);
    Ok(())
}

#[tokio::test]
async fn bulk_transactions_and_delete_all_write_whole_entities() -> Result<(), Error> {
    let (client, recorder, years) = counts().await;
    let report = client.bulk().insert_all((1..=60).map(year)).await?;
    assert_eq!((report.done, report.failed.len()), (60, 0));
    assert_eq!(keys(&client).await.len(), 120);
    let mut egt = client.dynamic("Counts").transaction();
    egt.insert(&year(100))?.insert(&file("in"))?;
    egt.commit().await?;
    assert_eq!(*years.get(at(100)).await?.unwrap(), year(100));
    let mut egt = client.dynamic("Counts").transaction();
    for id in 200..250 {
        egt.insert(&year(id))?;
    }
    assert!(egt.insert(&year(250)).unwrap_err().is_too_large(), "102 rows are too many");
    drop(egt);
    years.patch_at(at(3), Year::patch().days(0, 0)).await?;
    recorder.clear();
    let removed =
        years.query(Year::primary().department("Sales").id_range(1..=60)).delete_all().await?;
    assert_eq!((removed.done, removed.failed.len()), (60, 0));
    assert_eq!(keys(&client).await.len(), 5);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counts", partition_key = "{department}", row_key = "note_{id:06}")]
struct Note {
    department: String,
    id: u32,
    text: String,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
#[allow(clippy::large_enum_variant, reason = "a year of slots is large beside a note")]
enum CountRow {
    Year(Year),
    File(File),
    Note(Note),
}

fn note(id: u32) -> Note {
    Note { department: "Sales".into(), id, text: "text".into() }
}

/// A set sees whole entities: at a point, in queries of pages that end anywhere, counted and deleted.
#[tokio::test]
async fn a_set_sees_whole_entities() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(faults.clone()).build()?;
    let years = client.table::<Year>();
    years.create().await?;
    let set = client.set::<CountRow>("Counts");
    for id in 1..=3 {
        set.insert(&CountRow::Year(year(id))).await?;
        set.insert(&CountRow::Note(note(id))).await?;
    }
    set.insert(&CountRow::File(file("a"))).await?;
    let all = set.query(Keys::partition("Sales"));
    for rows in [None, Some(1), Some(2), Some(3), Some(4)] {
        faults.shorten_pages(rows);
        let found = all.collect().await?;
        let values: Vec<CountRow> = found.into_iter().map(Stored::into_inner).collect();
        let expected = (1..=3).map(|id| CountRow::Year(year(id)));
        let expected = expected.chain([CountRow::File(file("a"))]);
        let expected: Vec<CountRow> =
            expected.chain((1..=3).map(|id| CountRow::Note(note(id)))).collect();
        assert_eq!(values, expected, "{rows:?}");
        assert_eq!(all.count().await?, 7, "{rows:?}");
        let range = Keys::partition("Sales").rows("000001_01"..="000002_01");
        assert_eq!(set.query(range).collect().await?.len(), 2, "the keys are those of part 1");
        let years = all.clone().filter(Filter::eq("EntityType", "Year"));
        assert_eq!(years.collect().await?.len(), 3);
        let first = all.clone().take(2).collect().await?;
        assert_eq!(first.len(), 2);
    }
    faults.shorten_pages(None);
    let refused = all.clone().filter(Filter::eq("Note", "new")).collect().await.unwrap_err();
    assert!(refused.is_invalid() && refused.property() == Some("Note"), "{refused}");

    let one = set.get(Keys::point("Sales", "000002_01")).await?.unwrap();
    assert_eq!(
        (&*one, one.etag()),
        (&CountRow::Year(year(2)), years.get(at(2)).await?.unwrap().etag())
    );
    assert!(set.get(Keys::point("Sales", "000002_02")).await?.is_none(), "a part is no entity");
    let mut year_2 = one.narrow::<Year>()?;
    years.patch_at(at(2), Year::patch().days(364, 7)).await?;
    year_2.note = None;
    assert!(years.replace(&year_2).await.unwrap_err().is_precondition_failed());

    client.dynamic("Counts").delete_at("Sales", "000003_02").await?;
    assert!(all.collect().await.unwrap_err().is_corrupt());
    assert_eq!(all.clone().results().collect().await?.iter().filter(|one| one.is_ok()).count(), 6);
    assert!(set.get(Keys::point("Sales", "000003_01")).await.unwrap_err().is_corrupt());
    years.insert_or_replace(&year(3)).await?;
    assert_eq!(all.delete_all().await?.done, 7);
    assert!(keys(&client).await.is_empty());
    Ok(())
}

/// An entity with one row gone, or replaced by one of another write.
#[tokio::test]
async fn a_torn_entity_is_read_again_and_then_corrupt() -> Result<(), Error> {
    let (client, recorder, years) = counts().await;
    let rows = client.dynamic("Counts");
    for part in ["01", "02"] {
        years.insert_or_replace(&year(1)).await?;
        rows.delete_at("Sales", &format!("000001_{part}")).await?;
        recorder.clear();
        let error = years.get(at(1)).await.unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        let number = part.trim_start_matches('0');
        assert!(error.to_string().contains(&format!("part {number} ")), "{error}");
        let requests = recorder.take();
        assert_eq!(requests.iter().filter(|one| one.is_scan()).count(), 1);
        assert_eq!(requests.len(), 3);
        let query = years.query(Year::primary().department("Sales"));
        assert!(query.collect().await.unwrap_err().is_corrupt());
        assert_eq!(query.clone().results().collect().await?.len(), 1);
        // Each of these ends in one write, or none.
        assert!(years.insert(&year(1)).await.unwrap_err().is_conflict());
        assert!(years.update(at(1), |_| Ok(())).await.unwrap_err().is_corrupt());
        assert!(years.delete_at(at(1)).await?, "what is left of it");
        assert_eq!(keys(&client).await, [""; 0]);
    }
    years.insert(&year(1)).await?;
    rows.delete_at("Sales", "000001_02").await?;
    years.replace_any(&year(1)).await?;
    assert_eq!(*years.get(at(1)).await?.unwrap(), year(1));

    // A part of another write.
    let old = row(&client, "000001_02").await;
    years.replace_any(&year(1)).await?;
    rows.insert_or_replace(&old).await?;
    assert!(years.get(at(1)).await.unwrap_err().is_corrupt());
    years.insert_or_replace(&year(1)).await?;
    assert_eq!(*years.get(at(1)).await?.unwrap(), year(1));
    Ok(())
}

/// A part that the type does not declare would be lost with the next write.
#[tokio::test]
async fn parts_of_another_number_are_no_entity() -> Result<(), Error> {
    let (client, _, _) = counts().await;
    client.table::<File>().insert(&file("a")).await?;
    let short = client.table::<ShortFile>();
    let partition = || ShortFile::primary().department("Sales");
    assert!(short.get(partition().name("a")).await.unwrap_err().is_corrupt());
    assert!(short.query(partition()).collect().await.unwrap_err().is_corrupt());
    Ok(())
}

/// A blind merge of one part leaves the generation as it is; a merge of several parts reads first.
#[tokio::test]
async fn no_merge_makes_a_torn_entity_look_whole() -> Result<(), Error> {
    let (client, _, years) = counts().await;
    let rows = client.dynamic("Counts");
    for part in ["01", "02"] {
        years.insert_or_replace(&year(1)).await?;
        let old = row(&client, &format!("000001_{part}")).await;
        years.replace_any(&Year { note: None, ..year(1) }).await?;
        rows.insert_or_replace(&old).await?;
        let before = (row(&client, "000001_01").await, row(&client, "000001_02").await);
        let both = Year::patch().days(0, 7).days(364, 7);
        assert!(years.patch_at(at(1), both).await.unwrap_err().is_corrupt());
        assert!(years.insert_or_merge(&year(1)).await.unwrap_err().is_corrupt());
        let after = (row(&client, "000001_01").await, row(&client, "000001_02").await);
        assert_eq!((before.0.etag(), before.1.etag()), (after.0.etag(), after.1.etag()));
        years.patch_at(at(1), Year::patch().days(0, 7)).await?;
        years.patch_at(at(1), Year::patch().days(364, 7)).await?;
        assert!(years.get(at(1)).await.unwrap_err().is_corrupt());

        rows.delete_at("Sales", &format!("000001_{part}")).await?;
        let both = Year::patch().days(0, 7).days(364, 7);
        assert!(years.patch_at(at(1), both).await.unwrap_err().is_corrupt());
        assert!(years.insert_or_merge(&year(1)).await.unwrap_err().is_corrupt());
        assert_eq!(keys(&client).await.len(), 1);
        assert!(years.delete_at(at(1)).await?);
        let both = Year::patch().days(0, 7).days(364, 7);
        assert!(years.patch_at(at(1), both).await.unwrap_err().is_not_found());
    }
    Ok(())
}

#[tokio::test]
async fn a_row_of_another_type_is_named() -> Result<(), Error> {
    let (client, _, years) = counts().await;
    let other = DynamicEntity::new("Sales", "000009_01").with("EntityType", "Other");
    client.dynamic("Counts").insert(&other).await?;
    assert!(years.get(at(9)).await.unwrap_err().is_unrecognized_entity());
    assert_eq!(years.query(Year::primary().department("Sales")).collect().await?.len(), 0);
    let error = years.get(Point::at("Sales", "000009")).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    Ok(())
}

/// Properties that the struct does not declare stay in their part.
#[tokio::test]
async fn unknown_properties_stay_in_their_part() -> Result<(), Error> {
    let (client, _, years) = counts().await;
    years.insert(&year(1)).await?;
    let rows = client.dynamic("Counts");
    for (key, name) in [("000001_01", "Near"), ("000001_02", "Far")] {
        let mut row = row(&client, key).await;
        row.set(name, key);
        rows.replace(&row).await?;
    }
    let mut stored = years.get(at(1)).await?.unwrap();
    stored.note = None;
    years.replace(&stored).await?;
    years
        .update(at(1), |year| {
            year.days[300] = Some(1);
            Ok(())
        })
        .await?;
    years.patch_at(at(1), Year::patch().remove_days(300)).await?;
    let (first, second) = (row(&client, "000001_01").await, row(&client, "000001_02").await);
    assert_eq!(first.read::<String>("Near")?, "000001_01");
    assert_eq!(second.read::<String>("Far")?, "000001_02");
    assert!(first.get("Far").is_none() && second.get("Near").is_none());
    assert_eq!(generations(&client, "000001", 2).await.len(), 1);
    years.replace_any(&year(1)).await?;
    assert!(row(&client, "000001_02").await.get("Far").is_none());
    Ok(())
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;
type Act = (&'static str, for<'a> fn(&'a Table<Year>) -> Outcome<'a>);

const ACTS: [Act; 10] = [
    ("insert", |years| Box::pin(async { years.insert(&year(2)).await.map(drop) })),
    ("get", |years| Box::pin(async { years.get(at(1)).await.map(drop) })),
    ("replace", |years| {
        Box::pin(async {
            let mut one = years.get(at(1)).await?.unwrap();
            one.days = [Some(2); 365];
            years.replace(&one).await.map(drop)
        })
    }),
    ("patch", |years| {
        Box::pin(async {
            let one = years.get(at(1)).await?.unwrap();
            years.patch(&one, Year::patch().days(0, 2).days(364, 2)).await.map(drop)
        })
    }),
    ("patch_at", |years| {
        Box::pin(async {
            years.patch_at(at(1), Year::patch().days(0, 2).days(364, 2)).await.map(drop)
        })
    }),
    ("update", |years| {
        Box::pin(async {
            let change = |year: &mut Year| {
                year.days[364] = Some(7);
                Ok(())
            };
            years.update(at(1), change).await.map(drop)
        })
    }),
    ("insert_or_replace", |years| {
        Box::pin(async { years.insert_or_replace(&year(2)).await.map(drop) })
    }),
    ("insert_or_merge", |years| {
        Box::pin(async { years.insert_or_merge(&year(1)).await.map(drop) })
    }),
    ("delete_at", |years| Box::pin(async { years.delete_at(at(1)).await.map(drop) })),
    ("query", |years| {
        Box::pin(async {
            years.query(Year::primary().department("Sales")).collect().await.map(drop)
        })
    }),
];

/// Every verb fails at every one of its requests, before and after it was carried out: no entity is
/// ever torn, and a failure that says that nothing was done is right.
#[tokio::test]
async fn every_verb_fails_at_every_request() -> Result<(), Error> {
    for (name, act) in ACTS {
        for kind in [RequestKind::Read, RequestKind::Scan, RequestKind::Apply] {
            for nth in 0..3 {
                for after in [false, true] {
                    let faults = FaultInjector::around(Memory::new());
                    let client = Client::builder().backend(faults.clone()).build()?;
                    let years = client.table::<Year>();
                    years.create().await?;
                    years.insert(&year(1)).await?;
                    let before = years.query(Year::scan()).collect().await?;
                    let fault = Error::service(ServiceCode::InternalError, "injected");
                    faults.inject(
                        kind,
                        nth,
                        if after {
                            InjectedFault::After(fault)
                        } else {
                            InjectedFault::Before(fault)
                        },
                    );
                    let result = act(&years).await;
                    faults.clear();
                    let now = years.query(Year::scan()).collect().await?;
                    if let Err(error) = &result
                        && error.kind() != ErrorKind::Ambiguous
                        && !after
                    {
                        let rows = |found: &[Stored<Year>]| -> Vec<Year> {
                            found.iter().map(|one| (**one).clone()).collect()
                        };
                        assert_eq!(rows(&before), rows(&now), "{name} {kind:?} {nth}: {error}");
                    }
                }
            }
        }
    }
    Ok(())
}

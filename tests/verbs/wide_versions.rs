//! Tests wide entities whose rows an older version wrote, with more parts or with fewer.

use std::{future::Future, pin::Pin};

use entable::{
    Condition, ErrorKind, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    maintain::FindingKind,
    prelude::*,
};

mod old {
    use entable::prelude::*;

    /// Three parts; days 0 to 182 in part 1, the others in part 2.
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Counts",
        partition_key = "{department}",
        row_key = "{id:06}",
        entity_type = "Year",
        wide,
        index(ByNote, row_key = "note_{note}_{id:06}", only(remark))
    )]
    pub struct YearV1 {
        pub department: String,
        pub id: u32,
        pub note: String,
        #[table(series("Day{:03}"))]
        pub days: [Option<i64>; 365],
        #[table(part = 3)]
        pub remark: String,
    }
}

use old::YearV1;

/// Two parts; the days of part 1 are in part 2 too, by other names.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Counts",
    partition_key = "{department}",
    row_key = "{id:06}",
    wide,
    version = 2,
    upgrade_from(YearV1),
    index(ByNote, row_key = "note_{note}_{id:06}", only(total))
)]
struct Year {
    department: String,
    id: u32,
    note: String,
    total: i64,
    #[table(part = 2)]
    remark: Option<String>,
    #[table(part = 2, series("Week{:02}"))]
    weeks: [i64; 53],
}

/// Four parts.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Counts",
    partition_key = "{department}",
    row_key = "{id:06}",
    entity_type = "Year",
    wide,
    version = 3,
    upgrade_from(Year),
    index(ByNote, row_key = "note_{note}_{id:06}", only(total))
)]
struct YearV3 {
    department: String,
    id: u32,
    note: String,
    #[table(part = 2)]
    total: i64,
    #[table(part = 3)]
    remark: Option<String>,
    #[table(part = 4, series("Week{:02}"))]
    weeks: [i64; 53],
}

impl From<YearV1> for Year {
    fn from(old: YearV1) -> Self {
        let mut weeks = [0; 53];
        for (day, count) in old.days.iter().enumerate() {
            weeks[day / 7] += count.unwrap_or_default();
        }
        let total = weeks.iter().sum();
        let YearV1 { department, id, note, remark, .. } = old;
        Self { department, id, note, total, remark: Some(remark), weeks }
    }
}

impl From<Year> for YearV3 {
    fn from(old: Year) -> Self {
        let Year { department, id, note, total, remark, weeks } = old;
        Self { department, id, note, total, remark, weeks }
    }
}

fn first(id: u32) -> YearV1 {
    let mut days = [None; 365];
    (days[0], days[200], days[364]) = (Some(1), Some(10), Some(100));
    let (note, remark) = (format!("n{id}"), "old".into());
    YearV1 { department: "Sales".into(), id, note, days, remark }
}

fn second(id: u32) -> Year {
    first(id).into()
}

fn at(id: u32) -> Point<Year> {
    Year::primary().department("Sales").id(id)
}

/// An entity of version 1.
async fn years() -> (Client, Recorder, Table<Year>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let years = client.table::<Year>();
    years.create().await.unwrap();
    client.table::<YearV1>().insert(&first(1)).await.unwrap();
    recorder.clear();
    (client, recorder, years)
}

/// Returns the RowKeys of the parts in the table.
async fn parts(client: &Client) -> Vec<String> {
    let rows = client.dynamic("Counts").query(Keys::partition("Sales")).collect().await.unwrap();
    let keys = rows.iter().map(|row| row.row_key().to_owned());
    keys.filter(|key| key.starts_with('0')).collect()
}

async fn is_clean(years: &Table<Year>) {
    let report = years.check().await.unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[tokio::test]
async fn an_older_version_is_read_whole() -> Result<(), Error> {
    let (client, recorder, years) = years().await;
    let read = years.get(at(1)).await?.unwrap();
    assert_eq!((&*read, read.total), (&second(1), 111));
    let requests = recorder.take();
    let scans = requests.iter().filter(|one| one.is_scan()).count();
    assert_eq!((scans, requests.len()), (1, 3), "its third part is read with a snapshot");
    assert_eq!(read.etag().to_string().split(' ').count(), 3);
    let found = years.query(Year::primary().department("Sales")).collect().await?;
    assert_eq!((found.len(), &*found[0], found[0].etag()), (1, &second(1), read.etag()));
    assert_eq!(recorder.take().len(), 1);
    // The program of version 1 does not take a row of version 2 for its own.
    years.replace(&read).await?;
    let before = client.table::<YearV1>();
    let point = YearV1::primary().department("Sales").id(1);
    assert!(before.get(point).await.unwrap_err().is_unrecognized_entity());
    let versions = client.table::<YearV3>();
    let newest = versions.get(YearV3::primary().department("Sales").id(1)).await?.unwrap();
    assert_eq!(*newest, YearV3::from(second(1)));
    Ok(())
}

/// The parts that the newer version does not have go in the transaction that replaces the entity, and
/// each part is guarded by its own ETag.
#[tokio::test]
async fn surplus_parts_go_with_the_replacement() -> Result<(), Error> {
    let (client, recorder, years) = years().await;
    let seen = years.get(at(1)).await?.unwrap();
    let before = client.table::<YearV1>();
    let point = YearV1::primary().department("Sales").id(1);
    before.patch_at(point, YearV1::patch().days(0, 2)).await?;
    assert!(years.replace(&seen).await.unwrap_err().is_precondition_failed());
    let mut row = client.dynamic("Counts").get("Sales", "000001_03").await?.unwrap();
    let seen = years.get(at(1)).await?.unwrap();
    row.set("Far", "unknown");
    client.dynamic("Counts").replace(&row).await?;
    let lost = years.replace(&seen).await.unwrap_err();
    assert!(lost.is_precondition_failed(), "a part that the newer version has not: {lost}");
    assert!(years.delete(&seen).await.unwrap_err().is_precondition_failed());
    assert_eq!(parts(&client).await.len(), 3);

    let seen = years.get(at(1)).await?.unwrap();
    recorder.clear();
    let replaced = years.replace(&seen).await?;
    let requests = recorder.take();
    // Two parts and the copy are written, the third part goes.
    assert_eq!((requests.len(), requests[0].operations()), (1, 4));
    assert_eq!(parts(&client).await, ["000001_01", "000001_02"]);
    let read = years.get(at(1)).await?.unwrap();
    assert_eq!((read.etag(), read.total), (replaced.etag(), 112));
    let second_part = client.dynamic("Counts").get("Sales", "000001_02").await?.unwrap();
    assert_eq!(second_part.str("Far")?, "unknown", "no version declares it, so it stays");
    is_clean(&years).await;
    Ok(())
}

#[tokio::test]
async fn a_version_with_more_parts_adds_them() -> Result<(), Error> {
    let (client, _, _) = years().await;
    let newest = client.table::<YearV3>();
    let at = || YearV3::primary().department("Sales").id(1);
    for from in [1, 2] {
        if from == 2 {
            newest.delete_at(at()).await?;
            client.table::<Year>().insert(&second(1)).await?;
        }
        let seen = newest.get(at()).await?.unwrap();
        newest.replace(&seen).await?;
        assert_eq!(parts(&client).await, ["000001_01", "000001_02", "000001_03", "000001_04"]);
        assert_eq!(*newest.get(at()).await?.unwrap(), YearV3::from(second(1)));
        let report = newest.check().await?;
        assert!(report.is_clean(), "{:?}", report.findings);
    }
    Ok(())
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;
type Act = (&'static str, for<'a> fn(&'a Table<Year>) -> Outcome<'a>);

/// Verbs on an entity of version 1, and what is left of it.
const ACTS: [Act; 9] = [
    ("replace", |years| {
        Box::pin(async {
            let mut one = years.get(at(1)).await?.unwrap();
            one.total = 5;
            years.replace(&one).await.map(drop)
        })
    }),
    ("move inside the partition", |years| {
        Box::pin(async {
            let mut one = years.get(at(1)).await?.unwrap();
            (one.id, one.total) = (2, 5);
            years.replace(&one).await.map(drop)
        })
    }),
    ("patch", |years| {
        Box::pin(async {
            let one = years.get(at(1)).await?.unwrap();
            years.patch(&one, Year::patch().total(5)).await.map(drop)
        })
    }),
    ("patch_at", |years| {
        Box::pin(async { years.patch_at(at(1), Year::patch().total(5)).await.map(drop) })
    }),
    ("update", |years| {
        Box::pin(async {
            let change = |year: &mut Year| {
                year.total = 5;
                Ok(())
            };
            years.update(at(1), change).await.map(drop)
        })
    }),
    ("insert_or_replace", |years| {
        Box::pin(async { years.insert_or_replace(&Year { total: 5, ..second(1) }).await.map(drop) })
    }),
    ("insert_or_merge", |years| {
        Box::pin(async { years.insert_or_merge(&Year { total: 5, ..second(1) }).await.map(drop) })
    }),
    ("replace_any", |years| {
        Box::pin(async { years.replace_any(&Year { total: 5, ..second(1) }).await.map(drop) })
    }),
    ("delete_at", |years| Box::pin(async { years.delete_at(at(1)).await.map(drop) })),
];

#[tokio::test]
async fn every_verb_leaves_no_part_of_the_older_version() -> Result<(), Error> {
    for (name, act) in ACTS {
        let (client, _, years) = years().await;
        act(&years).await?;
        let id = if name == "move inside the partition" { 2 } else { 1 };
        let left: Vec<String> = match name {
            "delete_at" => Vec::new(),
            _ => (1..=2).map(|part| format!("{id:06}_{part:02}")).collect(),
        };
        assert_eq!(parts(&client).await, left, "{name}");
        let read = years.get(at(id)).await?.map(Stored::into_inner);
        let expected = (name != "delete_at").then(|| Year { total: 5, ..second(1) });
        let expected = expected.map(|year| Year { id, ..year });
        assert_eq!(read, expected, "{name}");
        is_clean(&years).await;
    }
    Ok(())
}

/// Every verb fails at every one of its requests, before and after it was carried out: the entity is
/// whole in the older version or in the newer one.
#[tokio::test(start_paused = true)]
async fn every_verb_fails_at_every_request() -> Result<(), Error> {
    for (name, act) in ACTS {
        for kind in [RequestKind::Read, RequestKind::Scan, RequestKind::Apply] {
            for nth in 0..4 {
                for after in [false, true] {
                    let faults = FaultInjector::around(Memory::new());
                    let client = Client::builder().backend(faults.clone()).build()?;
                    let years = client.table::<Year>();
                    years.create().await?;
                    client.table::<YearV1>().insert(&first(1)).await?;
                    let fault = Error::service(ServiceCode::InternalError, "injected");
                    let fault = if after {
                        InjectedFault::After(fault)
                    } else {
                        InjectedFault::Before(fault)
                    };
                    faults.inject(kind, nth, fault);
                    let result = act(&years).await;
                    faults.clear();
                    let now = years.query(Year::scan()).collect().await?;
                    if let Err(error) = &result
                        && !after
                        && error.kind() != ErrorKind::Ambiguous
                    {
                        let now: Vec<&Year> = now.iter().map(|one| &**one).collect();
                        assert_eq!(now, [&second(1)], "{name} {kind:?} {nth}: {error}");
                        assert_eq!(parts(&client).await.len(), 3);
                    }
                    is_clean(&years).await;
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn queries_find_both_versions_page_by_page() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(faults.clone()).build()?;
    let years = client.table::<Year>();
    years.create().await?;
    let before = client.table::<YearV1>();
    for id in [1, 3, 5] {
        before.insert(&first(id)).await?;
        years.insert(&second(id + 1)).await?;
    }
    let sales = || Year::primary().department("Sales");
    for rows in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
        faults.shorten_pages(rows);
        for query in [years.query(sales()), years.query(Year::scan())] {
            let found = query.collect().await?;
            assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
            assert!(found.iter().all(|one| **one == second(one.id)), "{rows:?}");
            assert_eq!(query.count().await?, 6, "{rows:?}");
            let three = query.clone().take(3).collect().await?;
            assert_eq!(three.iter().map(|one| one.id).collect::<Vec<_>>(), [1, 2, 3]);
        }
        let range = years.query(sales().id_range(2..=3)).collect().await?;
        assert_eq!(range.iter().map(|one| one.id).collect::<Vec<_>>(), [2, 3], "{rows:?}");
        let above = years.query(sales()).filter(Year::ID.gt(1)).collect().await?;
        assert_eq!(above.len(), 5, "the third part of the first entity is not above it");
    }
    faults.shorten_pages(None);
    // A row of version 1 may have the property in another part.
    let refused = years.query(sales()).filter(Year::TOTAL.ge(5)).collect().await.unwrap_err();
    assert!(refused.is_invalid() && refused.property() == Some("Total"), "{refused}");
    assert!(refused.to_string().contains("upgrade_all"), "{refused}");

    let report = years.upgrade_all().await?;
    assert_eq!((report.done, report.failed.len()), (3, 0));
    assert_eq!(parts(&client).await.len(), 12);
    assert!(years.query(sales()).collect().await?.iter().all(|one| **one == second(one.id)));
    assert_eq!(years.upgrade_all().await?.done, 0);
    is_clean(&years).await;
    assert_eq!(years.query(sales()).delete_all().await?.done, 6);
    assert!(parts(&client).await.is_empty());
    Ok(())
}

#[tokio::test]
async fn damage_beside_an_older_version_is_mended_in_its_form() -> Result<(), Error> {
    let (client, _, years) = years().await;
    years.insert(&second(2)).await?;
    is_clean(&years).await;
    let rows = client.dynamic("Counts");
    rows.delete("Sales", "note_n1_000001", Condition::Any).await?;
    rows.delete("Sales", "note_n2_000002", Condition::Any).await?;
    let report = years.check().await?;
    let missing = |f: &entable::maintain::Finding| f.kind == FindingKind::Missing;
    assert_eq!(report.findings.iter().filter(|found| missing(found)).count(), 2);
    assert_eq!(report.repair().await?, 2);
    is_clean(&years).await;
    let copy = rows.get("Sales", "note_n1_000001").await?.unwrap();
    assert_eq!((copy.entity_type(), copy.str("Remark")?), (Some("Year#ByNote"), "old"));
    assert_eq!(*years.get(at(1)).await?.unwrap(), second(1), "a repair does not tear it");
    assert_eq!(parts(&client).await.len(), 5);
    Ok(())
}

#[tokio::test]
async fn a_torn_entity_of_an_older_version_names_its_part() -> Result<(), Error> {
    let (client, _, years) = years().await;
    let rows = client.dynamic("Counts");
    rows.delete("Sales", "000001_03", Condition::Any).await?;
    let error = years.get(at(1)).await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("part 3 "), "{error}");
    let query = years.query(Year::primary().department("Sales"));
    assert!(query.collect().await.unwrap_err().is_corrupt());
    assert!(years.delete_at(at(1)).await?);
    assert!(parts(&client).await.is_empty());
    assert_eq!(years.check().repair().await?, 1, "the copy, which what was left did not tell");
    // A part that a newer version has not, alone, is no entity.
    years.insert(&second(1)).await?;
    let mut stray = DynamicEntity::new("Sales", "000001_03");
    stray.set("EntityType", "Year#03");
    rows.insert(&stray).await?;
    assert_eq!(*years.get(at(1)).await?.unwrap(), second(1));
    assert_eq!(query.collect().await?.len(), 1);
    Ok(())
}

/// An entity of an older version moves to another partition as it is.
#[tokio::test(start_paused = true)]
async fn an_older_version_moves_as_it_is() -> Result<(), Error> {
    let (client, _, years) = years().await;
    let mut stored = years.get(at(1)).await?.unwrap();
    stored.department = "Marketing".into();
    years.move_to(&stored, &years).await?.wait().await?;
    assert!(parts(&client).await.is_empty());
    let moved = years.get(Year::primary().department("Marketing").id(1)).await?.unwrap();
    assert_eq!(*moved, Year { department: "Marketing".into(), ..second(1) });
    let third = client.dynamic("Counts").get("Marketing", "000001_03").await?;
    assert_eq!(third.unwrap().entity_type(), Some("Year#03"));
    is_clean(&years).await;
    Ok(())
}

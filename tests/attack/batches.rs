//! Tests transactions and bulk writes with hostile input.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    ErrorKind,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

use crate::{Employee, Review, employee, point, staff};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "person_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}")
)]
struct Person {
    department: String,
    id: u32,
    email: String,
}

fn person(id: u32) -> Person {
    Person { department: "Sales".into(), id, email: format!("P{id}@x.com") }
}

#[tokio::test]
async fn a_transaction_has_at_most_a_hundred_operations() -> Result<(), Error> {
    let (client, staff) = staff().await;
    let mut egt = client.transaction();
    for id in 0..100 {
        egt.insert(&employee(id))?;
    }
    let error = egt.insert(&employee(100)).unwrap_err();
    assert!(error.is_too_large() && error.failed_index() == Some(100), "{error}");
    assert_eq!(egt.commit().await?.len(), 100);
    let mut egt = staff.transaction();
    for id in 0..50 {
        egt.insert(&person(id))?;
    }
    let error = egt.insert(&person(50)).unwrap_err();
    assert!(error.is_too_large() && error.to_string().contains("copies"), "{error}");
    egt.commit().await?;
    let report = client.bulk().insert_all((100..200).map(person)).await?;
    assert_eq!((report.done, report.requests), (100, 2));
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_together_is_refused_where_it_is_added() -> Result<(), Error> {
    let (client, staff) = staff().await;
    let mut egt = client.transaction();
    egt.insert(&employee(1))?.insert(&employee(2))?;
    let error = egt.insert_or_replace(&employee(1)).unwrap_err();
    assert_eq!((error.code(), error.failed_index()), (Some("InvalidDuplicateRow"), Some(2)));
    assert!(error.to_string().contains("operations 0 and 2"), "{error}");
    let error = egt.insert(&Employee { department: "Ops".into(), ..employee(3) }).unwrap_err();
    assert_eq!(error.code(), Some("CommandsInBatchActOnDifferentPartitions"));
    assert_eq!(error.keys(), Some(("Ops", "empid_000003")));
    egt.insert(&Review { department: "Sales".into(), id: 1, year: 2014, rating: None })?;
    assert_eq!(egt.len(), 3);
    assert_eq!(egt.commit().await?.len(), 3);
    assert_eq!(client.transaction().commit().await?.len(), 0);
    assert_eq!(staff.transaction().commit().await?.len(), 0);
    let mut egt = client.transaction();
    egt.insert(&employee(10))?.insert(&employee(2))?.insert(&employee(11))?;
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_conflict() && error.failed_index() == Some(1), "{error}");
    assert_eq!(error.keys(), Some(("Sales", "empid_000002")));
    assert!(staff.get(point(10)).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_table_that_was_named_is_the_one_in_the_error() -> Result<(), Error> {
    let archive: Table<Employee> = Client::memory().table_named("Archive");
    archive.create_if_not_exists().await?;
    let mut egt = archive.transaction();
    egt.insert(&employee(1))?;
    let error = egt.insert(&employee(1)).unwrap_err();
    assert_eq!(error.table(), Some("Archive"), "{error}");
    Ok(())
}

#[tokio::test]
async fn bulk_goes_on_past_rows_that_fail() -> Result<(), Error> {
    let (client, staff) = staff().await;
    for id in [5, 50, 150, 151] {
        staff.insert(&employee(id)).await?;
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let rows = (1..=300).map(|id| match id {
        7 => Employee { age: -1, ..employee(id) },
        8 => employee(1_000_000),
        9 | 10 => employee(3),
        _ if id % 3 == 0 => Employee { department: "Ops".into(), ..employee(id) },
        _ => employee(id),
    });
    let report = client
        .bulk()
        .concurrency(3)
        .on_progress({
            let seen = seen.clone();
            move |p| seen.lock().unwrap().push((p.done, p.failed))
        })
        .insert_all(rows)
        .await?;
    let failed: Vec<usize> = report.failed.iter().map(|f| f.index + 1).collect();
    assert_eq!(failed, [5, 7, 8, 10, 50, 151]);
    assert_eq!(report.done, 294);
    let last = *seen.lock().unwrap().last().unwrap();
    assert_eq!(last, (294, 6));
    for failure in &report.failed {
        assert_eq!(failure.error.table(), Some("Staff"));
    }
    let error = report.into_result().unwrap_err();
    assert_eq!(error.failed_index(), Some(4));
    Ok(())
}

#[tokio::test]
async fn progress_tells_of_rows_that_were_never_sent() -> Result<(), Error> {
    let (client, _) = staff().await;
    let last = Arc::new(Mutex::new((0, 0)));
    let seen = last.clone();
    let bulk = client.bulk().on_progress(move |p| *seen.lock().unwrap() = (p.done, p.failed));
    let rows = (1..=300).map(|id| Employee { age: -1, ..employee(id) });
    let report = bulk.insert_all(rows).await?;
    assert_eq!(report.failed.len(), 300);
    assert_eq!(*last.lock().unwrap(), (0, 300));
    Ok(())
}

#[tokio::test]
async fn one_entity_twice_keeps_its_order() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let rows = (0..1000).map(|n| Employee { age: n, ..employee(u32::try_from(n).unwrap() % 7) });
    let report = staff.bulk().concurrency(16).insert_or_replace_all(rows).await?;
    assert_eq!(report.done, 1000);
    for id in 0..7 {
        let age = staff.get(point(id)).await?.unwrap().age;
        assert_eq!(age, (0..1000).rev().find(|n| n % 7 == i32::try_from(id).unwrap()).unwrap());
    }
    Ok(())
}

/// A stream that pauses must not stop what is under way.
#[tokio::test]
async fn writes_under_way_go_on_while_the_stream_waits() -> Result<(), Error> {
    let (client, _) = staff().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let at_pause = Arc::new(Mutex::new(None));
    let rows = futures_like(at_pause.clone(), seen.clone());
    let report = client
        .bulk()
        .on_progress({
            let seen = seen.clone();
            move |p| seen.lock().unwrap().push(p.done)
        })
        .insert_stream(rows)
        .await?;
    assert_eq!(report.done, 150);
    assert_eq!(*at_pause.lock().unwrap(), Some(100), "a full transaction waited for the stream");
    Ok(())
}

fn futures_like(
    at_pause: Arc<Mutex<Option<u64>>>,
    seen: Arc<Mutex<Vec<u64>>>,
) -> impl futures_util::Stream<Item = Employee> {
    futures_util::stream::unfold(1_u32, move |id| {
        let (at_pause, seen) = (at_pause.clone(), seen.clone());
        async move {
            if id == 120 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                *at_pause.lock().unwrap() = seen.lock().unwrap().last().copied();
            }
            (id <= 150).then(|| (employee(id), id + 1))
        }
    })
}

#[tokio::test]
async fn update_all_changes_every_row_once() -> Result<(), Error> {
    let (client, staff) = staff().await;
    staff.bulk().insert_all((0..500).map(|id| Employee { age: 0, ..employee(id) })).await?;
    let other = client.table::<Employee>();
    let mut calls = 0;
    let race = tokio::spawn(async move {
        for id in (0..500).step_by(5) {
            other.patch_at(point(id), Employee::patch().note("raced")).await.unwrap();
        }
    });
    let query = staff.query(Employee::scan()).page_size(50);
    let report = staff
        .bulk()
        .update_all(query, |e| {
            calls += 1;
            if e.id == 77 {
                return Err("not this one".into());
            }
            e.age += 1;
            Ok(())
        })
        .await?;
    race.await.unwrap();
    assert!(calls >= 500);
    assert_eq!((report.done, report.failed.len()), (499, 1));
    assert!(report.failed[0].error.is_rejected());
    let all = staff.query(Employee::scan()).collect().await?;
    assert!(all.iter().all(|e| e.age == i32::from(e.id != 77)));
    assert_eq!(all.iter().filter(|e| e.note.is_some()).count(), 100);
    let points: Vec<Point<Employee>> = (0..600).map(point).collect();
    let report = staff.bulk().delete_all(points).await?;
    assert_eq!((report.done, report.failed.len()), (600, 0));
    Ok(())
}

#[tokio::test]
async fn mixed_partitions_are_one_request_each() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    client.create_table("Staff").await?;
    recorder.clear();
    let rows = (0..200).map(|id| Employee { department: format!("d{}", id % 4), ..employee(id) });
    let report = client.bulk().insert_all(rows).await?;
    assert_eq!((report.done, report.requests, recorder.count()), (200, 4, 4));
    Ok(())
}

async fn people() -> Table<Person> {
    let people = crate::table::<Person>().await;
    people.bulk().insert_all((1..=5).map(person)).await.unwrap();
    people
}

async fn exact(people: &Table<Person>) -> Vec<(u32, String)> {
    let report = people.check().await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    let all = people.query(Person::scan()).collect().await.unwrap();
    for one in &all {
        let found = people.query(Person::by_email().department("Sales").email(&one.email));
        assert_eq!(found.collect().await.unwrap().len(), 1);
    }
    all.iter().map(|p| (p.id, p.email.clone())).collect()
}

#[tokio::test]
async fn two_entities_swap_their_index_keys_in_one_transaction() -> Result<(), Error> {
    let people = people().await;
    let at = |id| Person::primary().department("Sales").id(id);
    let mut one = people.get(at(1)).await?.unwrap();
    let mut two = people.get(at(2)).await?.unwrap();
    std::mem::swap(&mut one.email, &mut two.email);
    let error = people.replace(&one).await.unwrap_err();
    assert!(error.is_unique_violation() && error.index() == Some("ByEmail"), "{error}");
    let mut egt = people.transaction();
    egt.replace(&one)?.replace(&two)?;
    egt.commit().await?;
    assert_eq!(exact(&people).await[0], (1, "P2@x.com".into()));
    let three = people.get(at(3)).await?.unwrap();
    let mut four = people.get(at(4)).await?.unwrap();
    four.email = three.email.clone();
    let mut egt = people.transaction();
    egt.delete(&three)?.replace(&four)?;
    egt.commit().await?;
    assert_eq!(exact(&people).await.len(), 4);
    let mut five = people.get(at(5)).await?.unwrap();
    five.id = 50;
    five.email = "new@x.com".into();
    people.replace(&five).await?;
    people.update(at(50), |p| Ok(p.email = "NEW@X.com".into())).await?;
    assert_eq!(exact(&people).await[3], (50, "NEW@X.com".into()));
    people.patch_at(at(50), Person::patch().email("last@x.com")).await?;
    assert_eq!(exact(&people).await[3], (50, "last@x.com".into()));
    Ok(())
}

#[tokio::test]
async fn bulk_reports_a_taken_index_key_and_writes_the_rest() -> Result<(), Error> {
    let people = people().await;
    let rows = (10..130).map(|id| match id {
        20 => Person { email: "p1@x.com".into(), ..person(20) },
        40 | 41 => Person { email: "same@x.com".into(), ..person(id) },
        _ => person(id),
    });
    let report = people.bulk().insert_all(rows).await?;
    let failed: Vec<usize> = report.failed.iter().map(|f| f.index + 10).collect();
    assert_eq!(failed, [20, 41], "{:?}", report.failed);
    assert!(report.failed.iter().all(|f| f.error.is_unique_violation()));
    assert_eq!(exact(&people).await.len(), 5 + 118);
    let query = people.query(Person::primary().department("Sales")).page_size(10);
    let report =
        people.bulk().update_all(query, |p| Ok(p.email = format!("{}@new.com", p.id / 2))).await?;
    assert!(report.failed.iter().all(|f| f.error.is_unique_violation()));
    assert_eq!(exact(&people).await.len(), 123);
    Ok(())
}

#[tokio::test]
async fn a_write_that_is_dropped_is_whole_or_nothing() -> Result<(), Error> {
    let people = people().await;
    for round in 0..200_u32 {
        let at = Person::primary().department("Sales").id(round % 5 + 1);
        let change = people.update(at, |p| Ok(p.email = format!("r{round}@x.com")));
        let polls = round % 7;
        let mut change = Box::pin(change);
        for _ in 0..polls {
            if futures_util::FutureExt::now_or_never(&mut change).is_some() {
                break;
            }
        }
    }
    assert_eq!(exact(&people).await.len(), 5);
    Ok(())
}

mod moving {
    use entable::prelude::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Moving",
        partition_key = "{department}",
        row_key = "age_{age:03}_{id:06}",
        index(ByLevel, row_key = "level_{level:03}_{id:06}"),
        index(ByRank, partition_key = "rank_{department}", row_key = "{rank:03}_{id:06}_{age:03}"),
        list(ByShift, row_key = "shift_{shift:03}")
    )]
    pub struct Worker {
        pub department: String,
        pub id: u32,
        pub age: i32,
        pub level: u32,
        pub rank: u32,
        pub shift: u32,
        pub writes: u32,
    }

    pub(super) async fn workers(count: u32) -> Result<Table<Worker>, Error> {
        let workers = Client::memory().table::<Worker>();
        workers.create().await?;
        let worker = |id| Worker {
            department: "Sales".into(),
            id,
            age: 30 + i32::try_from(id % 2).unwrap(),
            level: id % 2,
            rank: id % 3,
            shift: id % 3,
            writes: 0,
        };
        workers.bulk().insert_all((0..count).map(worker)).await?.into_result()?;
        workers.client().wait_for_copies().await;
        Ok(workers)
    }
}

/// Changes all workers of a query. No change may come to an entity twice.
async fn changes_once(
    query: impl FnOnce(&Table<moving::Worker>) -> Query<moving::Worker>,
    mut change: impl FnMut(&mut moving::Worker),
) -> Result<(), Error> {
    const COUNT: u32 = 700;
    let workers = moving::workers(COUNT).await?;
    let query = query(&workers).page_size(150);
    let change = |worker: &mut moving::Worker| {
        worker.writes += 1;
        if worker.writes > 1 {
            return Err("changed again".into());
        }
        change(worker);
        Ok(())
    };
    let report = workers.bulk().update_all(query, change).await?;
    assert_eq!(
        (report.done, report.failed.len()),
        (u64::from(COUNT), 0),
        "{:?}",
        report.failed.first()
    );
    workers.client().wait_for_copies().await;
    let all = workers.query(moving::Worker::primary().department("Sales")).collect().await?;
    assert_eq!(all.len(), COUNT as usize);
    assert!(all.iter().all(|worker| worker.writes == 1));
    assert!(workers.check().await?.is_clean());
    Ok(())
}

#[tokio::test]
async fn update_all_finds_no_entity_again_that_it_moved_ahead() -> Result<(), Error> {
    use moving::Worker;
    // By the RowKey itself, a local and a remote copy, and lists.
    let primaries = |table: &Table<Worker>| table.query(Worker::primary().department("Sales"));
    changes_once(primaries, |worker| worker.age += 1).await?;
    changes_once(primaries, |worker| worker.age -= 1).await?;
    let levels = |table: &Table<Worker>| table.query(Worker::by_level().department("Sales"));
    changes_once(levels, |worker| worker.level += 1).await?;
    let ranks = |table: &Table<Worker>| table.query(Worker::by_rank().department("Sales"));
    changes_once(ranks, |worker| worker.rank += 1).await?;
    let shifts = |table: &Table<Worker>| {
        table.query(Worker::by_shift().department("Sales").shift_range(0..=9))
    };
    changes_once(shifts, |worker| worker.shift += 1).await?;
    // Both the copy that is read and the primary.
    let promote = |worker: &mut Worker| {
        (worker.level, worker.age) = (worker.level + 1, worker.age + 5);
    };
    changes_once(levels, promote).await
}

/// Another writer moves an entity ahead twice: before the change that moves it ahead, too, is sent, and after the
/// query has found it again.
#[tokio::test(flavor = "multi_thread")]
async fn update_all_changes_an_entity_once_that_another_writer_moved_ahead() -> Result<(), Error> {
    use moving::Worker;
    let workers = moving::workers(4).await?;
    let point = |id: u32| {
        Worker::primary().department("Sales").age(30 + i32::try_from(id % 2).unwrap()).id(id)
    };
    workers.update(point(2), |worker| Ok(worker.shift = 7)).await?;
    workers.update(point(3), |worker| Ok(worker.shift = 20)).await?;
    let query = workers.query(Worker::by_shift().department("Sales").shift_range(0..=50));
    let mut shifts = Vec::new();
    let change = |worker: &mut Worker| {
        shifts.push(worker.shift);
        (worker.shift, worker.writes) = (worker.shift + 1, worker.writes + 1);
        // The query finds the first worker at both shifts.
        if let Some(shift) = [Some(5), None, Some(30), None][worker.id as usize]
            && shifts.len() < 5
        {
            let first = workers.update(point(0), move |first| Ok(first.shift = shift));
            let now = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| now.block_on(first)).unwrap();
        }
        Ok(())
    };
    let report = workers.bulk().update_all(query.page_size(1), change).await?;
    assert_eq!((report.done, report.failed.len()), (4, 0), "{:?}", report.failed.first());
    let all = workers.query(Worker::primary().department("Sales")).collect().await?;
    let mut stored: Vec<_> = all.iter().map(|one| (one.id, one.shift, one.writes)).collect();
    stored.sort_unstable();
    assert_eq!(stored, [(0, 31, 1), (1, 2, 1), (2, 8, 1), (3, 21, 1)]);
    // The last one is the second attempt at the first worker.
    assert_eq!(shifts, [0, 1, 7, 20, 30]);
    assert!(workers.check().await?.is_clean());
    Ok(())
}

/// A copy in another partition that is still to be deleted leads to an entity that the query finds by its present
/// copy, too: before or after it.
#[tokio::test]
async fn update_all_changes_an_entity_once_that_has_a_stale_copy() -> Result<(), Error> {
    use moving::Worker;
    for rank in [2, 0] {
        let workers = moving::workers(1).await?;
        let point = || Worker::primary().department("Sales").age(30).id(0);
        workers.update(point(), |worker| Ok(worker.rank = 1)).await?;
        workers.client().wait_for_copies().await;
        let rows = workers.client().dynamic("Moving");
        let at_one = rows.query(Keys::partition("rank_Sales")).collect().await?.remove(0);
        workers.update(point(), |worker| Ok(worker.rank = rank)).await?;
        workers.client().wait_for_copies().await;
        rows.insert(&at_one).await?;
        for page_size in [1000, 1] {
            let ranks = workers.query(Worker::by_rank().department("Sales")).page_size(page_size);
            let report = workers.bulk().update_all(ranks, |worker| Ok(worker.writes += 1)).await?;
            assert_eq!((report.done, report.failed.len()), (1, 0), "rank {rank}: {report:?}");
        }
        assert_eq!(workers.get(point()).await?.map(|worker| worker.writes), Some(2), "rank {rank}");
        // The entity that a stale copy ahead shows is refused, the present one is not.
        let refused = usize::from(rank > 1);
        let ranks = workers.query(Worker::by_rank().department("Sales"));
        let report = workers.bulk().update_all(ranks, |worker| match worker.rank {
            1 => Err("not this rank".into()),
            _ => Ok(worker.writes += 1),
        });
        let report = report.await?;
        assert_eq!((report.done, report.failed.len()), (1, refused), "rank {rank}: {report:?}");
    }
    Ok(())
}

/// A change that cannot be written moves nothing to the keys that it asks for.
#[tokio::test]
async fn update_all_changes_an_entity_at_keys_in_another_partition_that_a_change_asks_for()
-> Result<(), Error> {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Transferred",
        partition_key = "{department}",
        row_key = "{id:03}",
        index(ByLevel, partition_key = "level_{level}", row_key = "{department}_{id:03}")
    )]
    struct Clerk {
        department: String,
        id: u32,
        level: u32,
        writes: u32,
    }

    for page_size in [1000, 1] {
        let clerks = Client::memory().table::<Clerk>();
        clerks.create().await?;
        let clerk =
            |department: &str| Clerk { department: department.into(), id: 5, level: 3, writes: 0 };
        clerks.bulk().insert_all(["Sales", "Support"].map(clerk)).await?.into_result()?;
        clerks.client().wait_for_copies().await;
        let query = clerks.query(Clerk::by_level().level(3)).page_size(page_size);
        let change = |clerk: &mut Clerk| {
            (clerk.department, clerk.writes) = ("Support".into(), clerk.writes + 1);
            Ok(())
        };
        let report = clerks.bulk().update_all(query, change).await?;
        let failed: Vec<_> = report.failed.iter().map(|failure| failure.index).collect();
        assert_eq!((report.done, failed), (1, vec![0]), "pages of {page_size}");
        assert!(
            report.failed[0].error.to_string().contains("move_to"),
            "{}",
            report.failed[0].error
        );
        let all = clerks.query(Clerk::scan()).collect().await?;
        let stored: Vec<_> = all.iter().map(|one| (&*one.department, one.writes)).collect();
        assert_eq!(stored, [("Sales", 0), ("Support", 1)]);
    }
    Ok(())
}

mod renamed {
    use entable::prelude::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Numbered", partition_key = "{team}", row_key = "a_{id:02}")]
    pub struct Numbered {
        pub team: String,
        pub id: u32,
        pub writes: u32,
    }

    pub(super) async fn numbered(ids: impl Iterator<Item = u32>) -> Table<Numbered> {
        filled(&Client::memory(), ids).await
    }

    pub(super) async fn filled(client: &Client, ids: impl Iterator<Item = u32>) -> Table<Numbered> {
        let table = client.table::<Numbered>();
        table.create().await.unwrap();
        let one = |id| Numbered { team: "Sales".into(), id, writes: 0 };
        assert!(table.bulk().insert_all(ids.map(one)).await.unwrap().is_complete());
        table
    }

    /// Gives each entity another number. Returns the positions of those that failed, and the
    /// numbers and writes that are stored then.
    pub(super) async fn rename(
        table: &Table<Numbered>,
        page_size: u32,
        number: fn(u32) -> u32,
    ) -> (Vec<usize>, Vec<(u32, u32)>) {
        let query = || table.query(Numbered::primary().team("Sales"));
        let rename = |one: &mut Numbered| {
            (one.id, one.writes) = (number(one.id), one.writes + 1);
            Ok(())
        };
        let bulk = table.bulk();
        let report = bulk.update_all(query().page_size(page_size), rename).await.unwrap();
        for failure in &report.failed {
            assert!(failure.error.is_conflict(), "{}", failure.error);
        }
        let stored = query().collect().await.unwrap();
        let failed: Vec<usize> = report.failed.iter().map(|failure| failure.index).collect();
        assert_eq!(report.done as usize + failed.len(), stored.len());
        (failed, stored.iter().map(|one| (one.id, one.writes)).collect())
    }
}

#[tokio::test]
async fn update_all_changes_an_entity_at_keys_that_another_failed_to_take() {
    use renamed::{numbered, rename};
    // In one page, and each on a page of its own.
    for page_size in [1000, 1] {
        let table = numbered(1..=3).await;
        let expected = (vec![0, 1], vec![(1, 0), (2, 0), (4, 1)]);
        assert_eq!(rename(&table, page_size, |id| id + 1).await, expected, "pages of {page_size}");
        // The entity that went on from 3 to 4 is not changed again.
        let table = numbered([1, 2, 4, 6].into_iter()).await;
        let expected = (vec![0], vec![(1, 0), (3, 1), (5, 1), (7, 1)]);
        assert_eq!(rename(&table, page_size, |id| id + 1).await, expected, "pages of {page_size}");
        // Each leaves the keys that the next one takes.
        let table = numbered(2..=4).await;
        let expected = (vec![], vec![(1, 1), (2, 1), (3, 1)]);
        assert_eq!(rename(&table, page_size, |id| id - 1).await, expected, "pages of {page_size}");
    }
}

/// Another writer changes an entity whose keys the next one asks for.
#[tokio::test(flavor = "multi_thread")]
async fn update_all_changes_an_entity_again_whose_keys_another_failed_to_take() -> Result<(), Error>
{
    use renamed::{Numbered, numbered};
    let table = numbered(1..=3).await;
    let mut calls = 0;
    let change = |one: &mut Numbered| {
        calls += 1;
        if calls == 1 {
            let now = tokio::runtime::Handle::current();
            let other = table
                .patch_at(Numbered::primary().team("Sales").id(1), Numbered::patch().writes(5));
            tokio::task::block_in_place(|| now.block_on(other)).unwrap();
        }
        (one.id, one.writes) = (one.id - 1, one.writes + 1);
        Ok(())
    };
    let query = || table.query(Numbered::primary().team("Sales"));
    let report = table.bulk().update_all(query(), change).await?;
    let failed: Vec<_> = report.failed.iter().map(|failure| failure.index).collect();
    assert_eq!((report.done, failed), (1, vec![1, 2]));
    assert!(report.failed.iter().all(|failure| failure.error.is_conflict()), "{report:?}");
    let all = query().collect().await?;
    let numbers: Vec<_> = all.iter().map(|one| (one.id, one.writes)).collect();
    assert_eq!(numbers, [(0, 6), (2, 0), (3, 0)]);
    Ok(())
}

/// Another writer deletes an entity whose keys the next one takes.
#[tokio::test(flavor = "multi_thread")]
async fn update_all_changes_no_entity_at_the_keys_of_one_that_was_deleted() -> Result<(), Error> {
    use renamed::{Numbered, numbered};
    // The next one comes from behind, and from ahead.
    for (deleted, number, stored) in
        [(1, (|id| id - 1) as fn(u32) -> u32, [1, 2]), (2, |id| id + 1, [2, 4])]
    {
        for page_size in [1000, 1] {
            let table = numbered(1..=3).await;
            let point = Numbered::primary().team("Sales").id(deleted);
            let change = |one: &mut Numbered| {
                if one.id == deleted {
                    let now = tokio::runtime::Handle::current();
                    let delete = table.delete_at(point.clone());
                    tokio::task::block_in_place(|| now.block_on(delete)).unwrap();
                }
                (one.id, one.writes) = (number(one.id), one.writes + 1);
                Ok(())
            };
            let query = || table.query(Numbered::primary().team("Sales"));
            let report = table.bulk().update_all(query().page_size(page_size), change).await?;
            let failed: Vec<_> = report.failed.iter().map(|failure| failure.index).collect();
            assert_eq!((report.done, failed), (2, vec![deleted as usize - 1]), "{deleted}");
            assert!(report.failed[0].error.is_not_found(), "{}", report.failed[0].error);
            let all = query().collect().await?;
            let numbers: Vec<_> = all.iter().map(|one| (one.id, one.writes)).collect();
            assert_eq!(numbers, stored.map(|id| (id, 1)), "{deleted}");
        }
    }
    Ok(())
}

/// An answer is lost, and the keys that the entity was to take have one already.
#[tokio::test]
async fn update_all_changes_an_entity_at_keys_that_a_lost_write_asked_for() -> Result<(), Error> {
    use renamed::{Numbered, filled};
    let lost = || Error::new(ErrorKind::Backend, "the answer was lost");
    // The write was carried out, so that the query finds the entity again; it was not, so that another has the keys.
    for (ids, fault, stored) in [
        ([1, 3, 9], InjectedFault::After(lost()), [(5, 1), (7, 1), (13, 1)]),
        ([1, 3, 5], InjectedFault::Before(lost()), [(1, 0), (7, 1), (9, 1)]),
    ] {
        let injector = FaultInjector::around(Memory::new());
        let client = Client::builder().backend(injector.clone()).build()?;
        let table = filled(&client, ids.into_iter()).await;
        injector.inject(RequestKind::Apply, 0, fault);
        let query = || table.query(Numbered::primary().team("Sales"));
        // Each page is written before the next one is read.
        let bulk = table.bulk().on_checkpoint(|_| ());
        let report = bulk.update_all(query().page_size(1), |one| {
            (one.id, one.writes) = (one.id + 4, one.writes + 1);
            Ok(())
        });
        let report = report.await?;
        assert!(report.failed.iter().all(|failure| failure.error.is_backend()), "{report:?}");
        assert_eq!((report.done, report.failed.len()), (2, 1));
        let all = query().collect().await?;
        assert_eq!(all.iter().map(|one| (one.id, one.writes)).collect::<Vec<_>>(), stored);
        assert_eq!(injector.pending(), 0);
    }
    Ok(())
}

//! Lost answers through the client: every verb, on entities with and without copies, alone, in
//! transactions and in bulk, with every kind of failure at every one of its requests, before and
//! after it was carried out. Nothing is lost, nothing is done twice, no conflict is made up.

use std::{future::Future, pin::Pin, time::Duration};

use entable::{
    ErrorKind, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, RequestKind, RetryPolicy},
    },
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "plain_{id:06}")]
struct Plain {
    department: String,
    id: u32,
    last_name: String,
    age: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    list(ByAge, row_key = "age_{age:03}")
)]
struct Copied {
    department: String,
    id: u32,
    last_name: String,
    age: i32,
}

fn plain(id: u32) -> Plain {
    Plain { department: "Sales".into(), id, last_name: "Jones".into(), age: 34 }
}

fn copied(id: u32) -> Copied {
    Copied { department: "Sales".into(), id, last_name: "Jones".into(), age: 34 }
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// Something that a program does. 1, 2 and 3 are there, 4 and on are not.
struct Act {
    name: &'static str,
    act: for<'a> fn(&'a Client) -> Outcome<'a>,
}

macro_rules! acts {
    ($kind:ident, $new:ident) => {{
        fn point(id: u32) -> Point<$kind> {
            $kind::primary().department("Sales").id(id)
        }
        async fn there(client: &Client, id: u32) -> Result<Stored<$kind>, Error> {
            Ok(client.table::<$kind>().get(point(id)).await?.unwrap())
        }
        macro_rules! act {
            ($name:literal, $client:ident, $body:expr) => {
                Act {
                    name: concat!(stringify!($kind), " ", $name),
                    act: |$client| Box::pin(async move { $body }),
                }
            };
        }
        vec![
            act!("insert", client, { client.table::<$kind>().insert(&$new(4)).await.map(drop) }),
            act!("replace", client, {
                let mut one = there(client, 1).await?;
                (one.age, one.last_name) = (one.age + 1, "Smith".into());
                client.table().replace(&one).await.map(drop)
            }),
            act!("replace_any", client, {
                client.table().replace_any(&$kind { age: 50, ..$new(1) }).await.map(drop)
            }),
            act!("insert_or_replace of a new one", client, {
                client.table().insert_or_replace(&$new(4)).await.map(drop)
            }),
            act!("insert_or_replace", client, {
                client
                    .table()
                    .insert_or_replace(&$kind { last_name: "Smith".into(), ..$new(1) })
                    .await
                    .map(drop)
            }),
            act!("insert_or_merge", client, {
                client.table().insert_or_merge(&$kind { age: 50, ..$new(1) }).await.map(drop)
            }),
            act!("patch", client, {
                client.table::<$kind>().patch_at(point(1), $kind::patch().age(50)).await.map(drop)
            }),
            act!("update", client, {
                let add = |one: &mut $kind| {
                    one.age += 1;
                    Ok(())
                };
                client.table().update(point(1), add).await.map(drop)
            }),
            act!("delete", client, {
                let one = there(client, 1).await?;
                client.table().delete(&one).await
            }),
            act!("delete_at", client, {
                let was_there = client.table::<$kind>().delete_at(point(1)).await?;
                assert!(was_there, "it was there, and this call took it away");
                Ok(())
            }),
            act!("atomic", client, {
                let mut one = there(client, 1).await?;
                let two = there(client, 2).await?;
                one.age += 1;
                let mut egt = client.transaction();
                egt.insert(&$new(4))?.replace(&one)?.delete(&two)?;
                egt.insert_or_replace(&$new(5))?.patch_at(point(3), $kind::patch().age(60))?;
                egt.commit().await.map(drop)
            }),
            act!("bulk insert", client, {
                let new = [$new(4), $new(5), $kind { department: "Other".into(), ..$new(6) }];
                client.bulk().insert_all(new).await?.into_result().map(drop)
            }),
            act!("bulk insert_or_replace", client, {
                let new = [$kind { age: 50, ..$new(1) }, $new(4)];
                client.bulk().insert_or_replace_all(new).await?.into_result().map(drop)
            }),
            act!("bulk delete", client, {
                let gone = [there(client, 1).await?, there(client, 2).await?];
                client.bulk().delete_all(gone).await?.into_result().map(drop)
            }),
            act!("bulk update", client, {
                let staff = client.table::<$kind>();
                let all = staff.query($kind::primary().department("Sales"));
                let add = |one: &mut $kind| {
                    one.age += 1;
                    Ok(())
                };
                client.bulk().update_all(all, add).await?.into_result().map(drop)
            }),
        ]
    }};
}

/// A store behind failures, a program that is patient with them, and one that sees the store.
struct World {
    fault: FaultInjector,
    patient: Client,
    plain: Client,
}

async fn world(ids: bool) -> World {
    let memory = std::sync::Arc::new(Memory::new());
    let plain_client = Client::builder().backend(memory.clone()).build().unwrap();
    plain_client.create_table("Staff").await.unwrap();
    for id in 1..4 {
        plain_client.table().insert(&plain(id)).await.unwrap();
        plain_client.table().insert(&copied(id)).await.unwrap();
    }
    let fault = FaultInjector::around(memory);
    let delay = Duration::from_millis(1);
    let policy = RetryPolicy::new().delays(delay, delay).operation_ids(ids);
    let patient = Client::builder().backend(fault.clone()).retry(policy).build().unwrap();
    World { fault, patient, plain: plain_client }
}

impl World {
    /// Every row, without what differs from run to run.
    async fn rows(&self) -> Vec<String> {
        let all = self.plain.dynamic("Staff").query(Filter::Constant(true)).allow_scan();
        let mut rows = Vec::new();
        for row in all.collect().await.unwrap() {
            let mut properties: Vec<String> = row
                .properties()
                .iter()
                .filter(|(name, _)| *name != "OpId")
                .map(|(name, value)| format!("{name}={value:?}"))
                .collect();
            properties.sort();
            let (partition_key, row_key) = (Stored::partition_key(&row), Stored::row_key(&row));
            rows.push(format!("{partition_key} {row_key} {properties:?}"));
        }
        rows
    }
}

fn failures() -> Vec<(&'static str, Error)> {
    vec![
        ("busy", Error::service(ServiceCode::ServerBusy, "busy")),
        ("timeout", Error::new(ErrorKind::Ambiguous, "no answer within 30 s")),
        ("reset", Error::new(ErrorKind::Backend, "connection reset")),
        ("500", Error::service(ServiceCode::InternalError, "internal error")),
    ]
}

async fn every_failure(acts: Vec<Act>, ids: bool) {
    let mut tried = 0;
    for Act { name, act } in acts {
        let still = world(ids).await;
        let before = still.rows().await;
        act(&still.patient).await.unwrap();
        let after = still.rows().await;
        assert_ne!(before, after, "{name} does something");
        for (kind, error) in failures() {
            for is_after in [false, true] {
                for nth in 0.. {
                    let world = world(ids).await;
                    let error = error.clone();
                    let trouble = if is_after {
                        InjectedFault::After(error)
                    } else {
                        InjectedFault::Before(error)
                    };
                    world.fault.inject(RequestKind::Any, nth, trouble);
                    let outcome = act(&world.patient).await;
                    if world.fault.pending() > 0 {
                        outcome.unwrap();
                        break;
                    }
                    tried += 1;
                    let what = format!("{name}, {kind} at request {nth}, after: {is_after}");
                    let rows = world.rows().await;
                    judge(&what, outcome, &rows, &before, &after);
                }
            }
        }
    }
    assert!(tried > 150, "{tried} failures");
}

fn judge(
    what: &str,
    outcome: Result<(), Error>,
    rows: &[String],
    before: &[String],
    after: &[String],
) {
    match outcome {
        Ok(()) => assert_eq!(rows, after, "{what}: said to be done"),
        Err(error) if error.is_ambiguous() => {
            // Bulk goes on with the other transactions: each is as before or as after.
            let is_bulk = what.contains(" bulk ");
            assert!(is_bulk || rows == before || rows == after, "{what}: torn, {rows:#?}");
        }
        Err(error) => {
            assert!(error.is_throttled() || error.is_backend(), "{what}: {error:?}");
            assert_eq!(rows, before, "{what}: said not to be done");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_survives_every_failure() {
    every_failure(acts!(Plain, plain), false).await;
}

#[tokio::test(start_paused = true)]
async fn every_verb_of_an_entity_with_copies_survives_every_failure() {
    every_failure(acts!(Copied, copied), false).await;
}

#[tokio::test(start_paused = true)]
async fn every_verb_survives_every_failure_with_operation_ids() {
    every_failure(acts!(Plain, plain), true).await;
    every_failure(acts!(Copied, copied), true).await;
}

/// With operation ids nothing but the deletion of a row is left open.
#[tokio::test(start_paused = true)]
async fn operation_ids_leave_no_doubt() {
    let mut all = acts!(Plain, plain);
    all.extend(acts!(Copied, copied));
    for Act { name, act } in all.iter().filter(|act| !act.name.contains("delete")) {
        for (kind, error) in failures() {
            let world = world(true).await;
            world.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error));
            let outcome = act(&world.patient).await;
            assert!(outcome.is_ok(), "{name}, {kind}: {outcome:?}");
        }
    }
}

/// A client with operation ids whose next write loses its answer, and the faults in front of its store.
async fn client_with_ids(memory: &std::sync::Arc<Memory>) -> (Client, FaultInjector) {
    let fault = FaultInjector::around(memory.clone());
    let delay = Duration::from_secs(60);
    let policy = RetryPolicy::new().delays(delay, delay).give_up_after(delay * 10);
    let policy = policy.operation_ids(true);
    (Client::builder().backend(fault.clone()).retry(policy).build().unwrap(), fault)
}

/// Runs a write whose answer is lost, and `other` before the write is judged.
async fn lose_answer<T>(
    fault: &FaultInjector,
    write: impl Future<Output = Result<T, Error>>,
    other: impl Future<Output = ()>,
) -> T {
    let lost = Error::new(ErrorKind::Backend, "connection lost");
    fault.inject(RequestKind::Apply, 0, InjectedFault::After(lost));
    let later = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        other.await;
    };
    tokio::join!(write, later).0.unwrap()
}

/// A merge by a writer without operation ids keeps the id of the write before it.
#[tokio::test(start_paused = true)]
async fn a_merge_after_a_lost_answer_is_not_overwritten() {
    let memory = std::sync::Arc::new(Memory::new());
    let others = Client::builder().backend(memory.clone()).build().unwrap().table::<Plain>();
    others.create().await.unwrap();
    let (client, fault) = client_with_ids(&memory).await;
    let staff = client.table::<Plain>();
    let at = |id| Plain::primary().department("Sales").id(id);
    let one = plain(1);
    let birthday = |id| {
        let others = others.clone();
        async move { drop(others.patch_at(at(id), Plain::patch().age(35)).await.unwrap()) }
    };
    let mut don = lose_answer(&fault, staff.insert(&one), birthday(1)).await;
    don.last_name = "Smith".into();
    let error = staff.replace(&don).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    assert!(staff.patch(&don, Plain::patch().age(20)).await.unwrap_err().is_precondition_failed());
    assert!(staff.delete(&don).await.unwrap_err().is_precondition_failed());
    let mut egt = client.transaction();
    let planned = egt.replace(&don).map(drop);
    let error = match planned {
        Ok(()) => egt.commit().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.is_precondition_failed(), "{error}");
    assert_eq!(others.get(at(1)).await.unwrap().unwrap().age, 35);

    // An update sends the name alone, so that the row looks as written whatever the age is.
    staff.insert(&plain(2)).await.unwrap();
    let rename = staff.update(at(2), |one| Ok(one.last_name = "Smith".into()));
    let renamed = lose_answer(&fault, rename, birthday(2)).await;
    assert_eq!((renamed.age, &*renamed.last_name), (34, "Smith"));
    let error = staff.replace(&renamed).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    let now = others.get(at(2)).await.unwrap().unwrap();
    assert_eq!((now.age, &*now.last_name), (35, "Smith"));

    // Nobody else wrote: the value is good for another write.
    let rename = staff.update(at(2), |one| Ok(one.last_name = "Cao".into()));
    let renamed = lose_answer(&fault, rename, async {}).await;
    staff.replace(&Stored::clone(&renamed)).await.unwrap();
}

/// A move marks its source with the content that it read.
#[tokio::test(start_paused = true)]
async fn a_merge_after_a_lost_answer_is_not_overwritten_by_a_move() {
    let memory = std::sync::Arc::new(Memory::new());
    let others = Client::builder().backend(memory.clone()).build().unwrap().table::<Plain>();
    others.create().await.unwrap();
    let (client, fault) = client_with_ids(&memory).await;
    let staff = client.table::<Plain>();
    let at = || Plain::primary().department("Sales").id(1);
    let birthday = async { drop(others.patch_at(at(), Plain::patch().age(35)).await.unwrap()) };
    let mut don = lose_answer(&fault, staff.insert(&plain(1)), birthday).await;
    don.department = "Marketing".into();
    let error = staff.move_to(&don, &staff).await.map(drop).unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    assert_eq!(others.get(at()).await.unwrap().unwrap().age, 35);

    // As it is read now, it moves.
    let mut don = staff.get(at()).await.unwrap().unwrap();
    don.department = "Marketing".into();
    staff.move_to(&don, &staff).await.unwrap().wait().await.unwrap();
    let there = Plain::primary().department("Marketing").id(1);
    assert_eq!(others.get(there).await.unwrap().unwrap().age, 35);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counts", partition_key = "{department}", row_key = "{id:06}", wide)]
struct Year {
    department: String,
    id: u32,
    #[table(series("Day{:03}"))]
    days: [Option<i64>; 365],
}

/// The other writer's id replaces that of part 2, and part 1 still has the id of the insert.
#[tokio::test(start_paused = true)]
async fn a_slot_written_after_a_lost_answer_is_not_overwritten() {
    let memory = std::sync::Arc::new(Memory::new());
    let (other, _) = client_with_ids(&memory).await;
    let others = other.table::<Year>();
    others.create().await.unwrap();
    let (client, fault) = client_with_ids(&memory).await;
    let counts = client.table::<Year>();
    let at = || Year::primary().department("Sales").id(1);
    let mut days = [None; 365];
    (days[0], days[364]) = (Some(1), Some(2));
    let year = Year { department: "Sales".into(), id: 1, days };
    let count = async {
        others.patch_at(at(), Year::patch().days(364, 7)).await.unwrap();
    };
    let mut stored = lose_answer(&fault, counts.insert(&year), count).await;
    stored.days[0] = Some(3);
    for error in [
        counts.replace(&stored).await.unwrap_err(),
        counts.patch(&stored, Year::patch().days(0, 4)).await.unwrap_err(),
        counts.delete(&stored).await.unwrap_err(),
    ] {
        assert!(error.is_precondition_failed(), "{error}");
    }
    let now = counts.get(at()).await.unwrap().unwrap();
    assert_eq!((now.days[0], now.days[364]), (Some(1), Some(7)));
}

//! Fails every request of every verb, before and after it takes effect; the writer continues as
//! writers do, or dies. Afterwards every value is reserved for its holder, and for nobody else.

use std::{collections::BTreeMap, future::Future, pin::Pin};

use entable::{
    Error, ErrorKind,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use super::{Person, World, person};

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

struct Act {
    name: &'static str,
    act: for<'a> fn(&'a Table<Person>) -> Outcome<'a>,
}

fn point(id: u32) -> Point<Person> {
    Person::primary().department("Sales").id(id)
}

fn badged(id: u32, email: &str, badge: &str) -> Person {
    Person { badge: badge.into(), ..person(id, email) }
}

async fn there(staff: &Table<Person>, id: u32) -> Result<Stored<Person>, Error> {
    staff.get(point(id)).await?.ok_or_else(|| Error::new(ErrorKind::NotFound, "not there"))
}

/// 1 and 2 are there, 3 is not.
fn acts() -> Vec<Act> {
    macro_rules! act {
        ($name:literal, $staff:ident, $body:expr) => {
            Act { name: $name, act: |$staff| Box::pin(async move { $body }) }
        };
    }
    vec![
        act!("insert", s, s.insert(&badged(3, "c@a.com", "b3")).await.map(drop)),
        act!(
            "insert_or_replace",
            s,
            s.insert_or_replace(&badged(1, "c@a.com", "b3")).await.map(drop)
        ),
        act!("insert_or_merge", s, s.insert_or_merge(&person(1, "c@a.com")).await.map(drop)),
        act!("replace_any", s, s.replace_any(&badged(1, "c@a.com", "b3")).await.map(drop)),
        act!("patch", s, s.patch_at(point(1), Person::patch().email("c@a.com")).await.map(drop)),
        act!("update", s, {
            let change = |one: &mut Person| {
                one.email = "c@a.com".into();
                Ok(())
            };
            s.update(point(1), change).await.map(drop)
        }),
        act!("replace", s, {
            let mut one = there(s, 1).await?;
            one.email = "c@a.com".into();
            s.replace(&one).await.map(drop)
        }),
        act!("a new RowKey", s, {
            let mut one = there(s, 1).await?;
            one.id = 3;
            s.replace(&one).await.map(drop)
        }),
        act!("delete", s, {
            let one = there(s, 1).await?;
            s.delete(&one).await
        }),
        act!("delete_at", s, s.delete_at(point(1)).await.map(drop)),
        act!("an exchange", s, {
            let (mut a, mut b) = (there(s, 1).await?, there(s, 2).await?);
            (a.email, b.email) = (b.email.clone(), a.email.clone());
            let mut egt = s.transaction();
            egt.replace(&a)?.replace(&b)?;
            egt.commit().await.map(drop)
        }),
        act!("two at once", s, {
            let mut egt = s.transaction();
            egt.insert(&badged(3, "c@a.com", "b3"))?.insert(&badged(4, "d@a.com", "b4"))?;
            egt.commit().await.map(drop)
        }),
        act!("bulk", s, {
            let people = [badged(3, "c@a.com", "b3"), badged(4, "d@a.com", "b4")];
            s.bulk().insert_all(&people).await?.into_result().map(drop)
        }),
        act!("bulk, of which some exist", s, {
            // 1 and 2 exist, and 4 wants the badge of 1.
            let two = person(2, "b@a.com");
            let people = [badged(3, "c@a.com", "b3"), person(1, "x@a.com"), two];
            let taken = [badged(4, "d@a.com", "b1"), badged(5, "e@a.com", "b5")];
            s.bulk().insert_all(people.iter().chain(&taken)).await?.into_result().map(drop)
        }),
        act!("a violation", s, s.insert(&badged(3, "c@a.com", "b1")).await.map(drop)),
        act!("a move", s, {
            let mut one = there(s, 1).await?;
            one.department = "Marketing".into();
            s.move_to(&one, s).await?.wait().await
        }),
    ]
}

/// The values by owner, as the entities say and as the reservations do.
async fn values(world: &World) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let all = |table, filter| world.client.dynamic(table).query(Filter::parse(filter).unwrap());
    let (mut said, mut reserved) = (BTreeMap::new(), BTreeMap::new());
    let people = all("Staff", "PartitionKey ge 'empid_' and PartitionKey lt 'empid~'");
    for row in people.allow_scan().collect().await.unwrap() {
        if row.row_key().starts_with('~') {
            continue;
        }
        let owner = format!("{} {}", row.partition_key(), row.row_key());
        let mut values = vec![format!("email_{}", row.str("Email").unwrap().to_lowercase())];
        values.extend(row.str("Badge").ok().filter(|badge| *badge != "none").map(str::to_owned));
        for value in values {
            assert_eq!(said.insert(value.clone(), owner.clone()), None, "{value} is of two");
        }
    }
    for (table, filter) in [("Staff", "RowKey eq 'email'"), ("Badges", "RowKey eq 'badge'")] {
        for row in all(table, filter).allow_scan().collect().await.unwrap() {
            assert!(row.get("SrcC").is_none(), "{} is still reserved", row.partition_key());
            let owner = format!("{} {}", row.str("SrcP").unwrap(), row.str("SrcR").unwrap());
            reserved.insert(row.partition_key().to_owned(), owner);
        }
    }
    (said, reserved)
}

async fn world() -> World {
    let world = World::new().await;
    world.staff.insert(&badged(1, "a@a.com", "b1")).await.unwrap();
    world.staff.insert(&badged(2, "b@a.com", "b2")).await.unwrap();
    world.client.wait_for_copies().await;
    world.requests();
    world
}

/// How many requests an act makes.
async fn requests(act: &Act) -> usize {
    let world = world().await;
    let _ = (act.act)(&world.staff).await;
    world.client.wait_for_copies().await;
    world.requests().len()
}

#[tokio::test]
async fn no_value_is_lost_or_had_twice_whatever_fails() {
    for act in acts() {
        for request in 0..requests(&act).await {
            for carried_out in [false, true] {
                let world = world().await;
                let (before, _) = values(&world).await;
                world.requests();
                let lost = Error::new(ErrorKind::Backend, "connection lost");
                let trouble = if carried_out {
                    InjectedFault::After(lost)
                } else {
                    InjectedFault::Before(lost)
                };
                world.fault.inject(RequestKind::Any, request, trouble);
                let done = (act.act)(&world.staff).await;
                world.recover().await;
                let what = format!("{}, request {request}, {carried_out}: {done:?}", act.name);
                let (said, reserved) = values(&world).await;
                assert_eq!(said, reserved, "{what}");
                let open = world.open().await;
                assert!(open.is_empty(), "{what}: {open:?}");
                match done {
                    Ok(()) if act.name != "a violation" => assert_ne!(said, before, "{what}"),
                    // A bulk write reports one of its entities, and the others are written.
                    Err(error)
                        if (error.is_unique_violation() || error.is_conflict())
                            && !act.name.starts_with("bulk") =>
                    {
                        assert_eq!(said, before, "{what}");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The request that finds the value taken gets no answer. The row shows its holder, so nobody has to ask again.
#[tokio::test]
async fn a_taken_value_is_a_violation_although_the_answer_was_lost() {
    let taken = badged(3, "c@a.com", "b1");
    let plain = world().await;
    assert!(plain.staff.insert(&taken).await.unwrap_err().is_unique_violation());
    let requests = plain.requests();
    let asks = |text: &String| text.starts_with("apply Badges b1: Insert");
    let asked = requests.iter().position(asks).expect("the badge is reserved");
    for carried_out in [false, true] {
        let world = world().await;
        let (before, _) = values(&world).await;
        world.requests();
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        let fault =
            if carried_out { InjectedFault::After(lost) } else { InjectedFault::Before(lost) };
        world.fault.inject(RequestKind::Any, asked, fault);
        let error = world.staff.insert(&taken).await.unwrap_err();
        assert!(error.is_unique_violation() && error.index() == Some("ByBadge"), "{error:?}");
        world.recover().await;
        let (said, reserved) = values(&world).await;
        assert_eq!((&said, &said), (&before, &reserved), "{carried_out}");
        assert!(world.open().await.is_empty(), "the claim is cleaned up");
        // The value is free again once its holder is gone.
        world.staff.delete_at(point(1)).await.unwrap();
        world.recover().await;
        world.staff.insert(&taken).await.unwrap();
    }
}

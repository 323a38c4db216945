//! Tests wide entities that expire: part 1 says when, and all parts go together.

use std::time::Duration;

use entable::{
    Value,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};
use time::OffsetDateTime;

use super::expiry::World;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "w_{id:06}",
    wide,
    expires = until,
    index(BySeat, row_key = "seat_{seat:06}", unique, only(until)),
    index(ByCard, partition_key = "card_{card}", row_key = "card", unique, only(until))
)]
struct Cart {
    user: String,
    id: u32,
    until: OffsetDateTime,
    seat: u32,
    card: u32,
    #[table(part = 2)]
    note: String,
    #[table(part = 2)]
    count: i64,
}

#[derive(Debug, Projection)]
#[table(of = Cart)]
struct Note {
    note: String,
}

#[derive(Debug, Projection)]
#[table(of = Cart)]
struct Seat {
    id: u32,
    seat: u32,
}

#[derive(Debug, Projection)]
#[table(of = Cart)]
struct End {
    until: OffsetDateTime,
}

#[derive(Debug, EntitySet)]
enum Item {
    Cart(Cart),
}

const HOUR: Duration = Duration::from_secs(3600);
const WAIT: Duration = Duration::from_secs(6 * 60);

fn cart(world: &World, id: u32, left: Duration) -> Cart {
    let note = format!("note {id}");
    let until = world.now() + left;
    Cart { user: "don".into(), id, until, seat: id, card: id, note, count: 1 }
}

async fn rows(world: &World, partition_key: &str) -> Vec<String> {
    let rows = world.client.dynamic("Sessions").query(Keys::partition(partition_key));
    let rows = rows.collect().await.unwrap();
    let keys = rows.iter().map(|row| row.row_key().to_owned());
    keys.filter(|key| !key.starts_with("~e")).collect()
}

async fn sweep(world: &World) -> u64 {
    world.client.worker().with::<Cart>().drain().await.unwrap().expired
}

fn don() -> impl Path<Entity = Cart, View: FullView> + Clone {
    Cart::primary().user("don")
}

#[tokio::test]
async fn an_update_renews_what_is_over_and_writes_any_part_of_it() {
    let world = World::new().await;
    let carts: Table<Cart> = world.client.table();
    carts.insert(&cart(&world, 1, HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(2 * HOUR);
    let at = Cart::primary().user("don").id(1);
    let counted = carts.update(at.clone(), |cart| {
        cart.count += 1;
        Ok(())
    });
    assert_eq!(counted.await.unwrap().count, 2);
    let until = world.now() + HOUR;
    let renewed = carts.update(at.clone(), |cart| {
        cart.until = until;
        Ok(())
    });
    assert_eq!(renewed.await.unwrap().count, 2);
    world.client.wait_for_copies().await;
    assert_eq!(carts.get(at).await.unwrap().unwrap().count, 2);
    assert!(carts.get_as::<End>(Cart::by_card().card(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn reads_of_any_part_skip_what_is_over() {
    let world = World::new().await;
    let carts: Table<Cart> = world.client.table();
    for (id, hours) in [(1, 1), (2, 3), (3, 1), (4, 3)] {
        carts.insert(&cart(&world, id, HOUR * hours)).await.unwrap();
    }
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR);
    let at = |id| Cart::primary().user("don").id(id);
    world.recorder.clear();
    assert!(carts.get(at(1)).await.unwrap().is_none());
    assert_eq!(world.recorder.take().len(), 2, "one request for each part");
    // The part that is asked for does not say when it is over: part 1 is read beside it.
    assert!(carts.get_as::<Note>(at(1)).await.unwrap().is_none());
    assert_eq!(world.recorder.take().len(), 2);
    assert_eq!(carts.get_as::<Note>(at(2)).await.unwrap().unwrap().note, "note 2");
    assert!(carts.get_as::<Seat>(at(3)).await.unwrap().is_none());
    assert!(carts.get_as::<End>(Cart::by_card().card(3)).await.unwrap().is_none());
    let end = carts.get_as::<End>(Cart::by_card().card(4)).await.unwrap().unwrap();
    assert!(end.until > world.now());

    world.recorder.clear();
    let found = carts.query(don()).collect().await.unwrap();
    assert_eq!(found.iter().map(|cart| cart.id).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(world.recorder.take().len(), 1, "rows of one that is over are not read again");
    assert_eq!(carts.query(don()).select::<Note>().collect().await.unwrap().len(), 2);
    assert_eq!(carts.query(don()).select::<Seat>().collect().await.unwrap().len(), 2);
    assert_eq!(carts.query(don()).count().await.unwrap(), 2);
    assert_eq!(carts.query(don()).first().await.unwrap().unwrap().id, 2);
    assert!(carts.query(don()).exists().await.unwrap());
    assert_eq!(carts.query(Cart::by_seat().user("don")).count().await.unwrap(), 2);
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let page = carts.query(don()).page_size(1).page(cursor).await.unwrap();
        ids.extend(page.items.iter().map(|cart| cart.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(ids, [2, 4]);
    let taken = carts.query(don()).take(1).collect().await.unwrap();
    assert_eq!(taken[0].id, 2);

    // A filter finds rows of one part alone, and part 1 is what says that they are alive.
    let first = || carts.query(don()).filter(Cart::SEAT.ge(1_u32));
    let seats = first().select::<Seat>().collect().await.unwrap();
    assert_eq!(seats.iter().map(|one| (one.id, one.seat)).collect::<Vec<_>>(), [(2, 2), (4, 4)]);
    assert_eq!(first().count().await.unwrap(), 2);
    let second = || carts.query(don()).filter(Cart::COUNT.eq(1_i64));
    for refused in [
        second().select::<Note>().collect().await.map(drop).unwrap_err(),
        second().count().await.map(drop).unwrap_err(),
    ] {
        assert!(refused.is_invalid(), "{refused:?}");
        assert!(refused.message().contains("part 1 holds the time"), "{refused}");
    }

    let set = world.client.set::<Item>("Sessions");
    let items = set.query(Keys::partition("don")).collect().await.unwrap();
    assert_eq!(items.len(), 2);
    assert!(set.get(Keys::point("don", "w_000001_01")).await.unwrap().is_none());
    assert!(set.get(Keys::point("don", "w_000002_01")).await.unwrap().is_some());
    assert_eq!(rows(&world, "don").await.len(), 4 * 3, "`dynamic` sees all");
    assert!(carts.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn an_insert_replaces_all_parts_of_one_that_is_over() {
    let world = World::new().await;
    let carts: Table<Cart> = world.client.table();
    let old = carts.insert(&cart(&world, 1, HOUR)).await.unwrap();
    let alive = carts.insert(&old).await.unwrap_err();
    assert!(alive.is_conflict(), "{alive}");
    // A property that another program wrote into part 2.
    let untyped = world.client.dynamic("Sessions");
    let mut second = untyped.get("don", "w_000001_02").await.unwrap().unwrap();
    second.set("Stray", "x");
    untyped.replace(&second).await.unwrap();
    world.clock.advance(HOUR);
    carts.insert(&cart(&world, 9, HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    let new = Cart { seat: 7, card: 7, note: "new".into(), ..cart(&world, 1, HOUR) };
    carts.insert(&new).await.unwrap();
    world.client.wait_for_copies().await;
    assert_eq!(*carts.get(Cart::primary().user("don").id(1)).await.unwrap().unwrap(), new);
    let second = untyped.get("don", "w_000001_02").await.unwrap().unwrap();
    assert_eq!(second.get("Stray"), None::<&Value>, "nothing of the old entity is kept");

    // A seat in the partition and a card in another one come free with all rows of their holder.
    world.clock.advance(HOUR);
    let seat = Cart { seat: 7, ..cart(&world, 2, HOUR) };
    carts.insert(&seat).await.unwrap();
    let left = rows(&world, "don").await;
    assert!(!left.iter().any(|key| key.starts_with("w_000001")), "{left:?}");
    let card = Cart { user: "ann".into(), card: 9, ..cart(&world, 3, HOUR) };
    carts.insert(&card).await.unwrap();
    let left = rows(&world, "don").await;
    assert!(!left.iter().any(|key| key.starts_with("w_000009")), "{left:?}");
    let taken = Cart { card: 9, ..cart(&world, 4, HOUR) };
    assert!(carts.insert(&taken).await.unwrap_err().is_unique_violation());
    let taken = Cart { seat: 7, ..cart(&world, 5, HOUR) };
    let refused = carts.insert(&taken).await.unwrap_err();
    assert_eq!(refused.holder(), Some(("don", "w_000002_01")), "{refused}");
    // The holder is written by the transaction itself, in a part that does not have the time.
    world.clock.advance(HOUR);
    let mut both = world.client.transaction();
    let count = Cart::patch().count(5_i64);
    both.patch_at(Cart::primary().user("don").id(2), count).unwrap();
    both.insert(&Cart { seat: 7, ..cart(&world, 6, HOUR) }).unwrap();
    assert!(both.commit().await.unwrap_err().is_unique_violation());
    world.client.wait_for_copies().await;
    world.clock.advance(Duration::from_secs(400));
    world.client.worker().drain().await.unwrap();
    assert!(carts.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_sweep_deletes_all_parts_and_a_renewal_of_part_1_wins() {
    let world = World::new().await;
    let carts: Table<Cart> = world.client.table();
    for id in 1..=40 {
        carts.insert(&cart(&world, id, HOUR)).await.unwrap();
    }
    carts.insert(&cart(&world, 41, 9 * HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR);
    let at = |id| Cart::primary().user("don").id(id);
    // Renewed by a merge of part 1 alone; part 2 of another one is written, which renews nothing.
    let until = world.now() + 9 * HOUR;
    carts.patch_at(at(1), Cart::patch().until(until)).await.unwrap();
    carts.patch_at(at(2), Cart::patch().count(7_i64)).await.unwrap();
    // Another program deleted a part: what is left goes too.
    let untyped = world.client.dynamic("Sessions");
    untyped.delete("don", "w_000003_02", Condition::Any).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR + WAIT);
    assert_eq!(sweep(&world).await, 39);
    world.clock.advance(Duration::from_secs(400));
    world.client.worker().drain().await.unwrap();
    // The parts that are left of an entity do not say which copies it had.
    tokio::time::pause();
    assert!(carts.check().repair().await.unwrap() >= 1);
    world.client.worker().drain().await.unwrap();
    let left =
        ["seat_000001", "seat_000041", "w_000001_01", "w_000001_02", "w_000041_01", "w_000041_02"];
    assert_eq!(rows(&world, "don").await, left);
    assert_eq!(rows(&world, "card_2").await, [""; 0]);
    assert!(carts.check().await.unwrap().is_clean());
    world.clock.advance(9 * HOUR);
    assert_eq!(sweep(&world).await, 2);
    assert_eq!(rows(&world, "don").await, [""; 0]);
}

#[tokio::test]
async fn a_renewal_between_the_readings_of_a_sweep_wins() {
    // The readings of the sweep: the markers, the partition, the parts; then its transaction.
    for (kind, nth) in [(RequestKind::Scan, 2), (RequestKind::Apply, 0)] {
        let world = World::new().await;
        let carts: Table<Cart> = world.client.table();
        carts.insert(&cart(&world, 1, HOUR)).await.unwrap();
        world.client.wait_for_copies().await;
        world.clock.advance(2 * HOUR + WAIT);
        let worker = world.client.worker().with::<Cart>();
        // Another client, whose requests no fault meets.
        let other = Client::builder().backend(world.recorder.clone()).clock(world.clock.clone());
        let other: Table<Cart> = other.build().unwrap().table();
        world.fault.inject(kind, nth, InjectedFault::Delay(Duration::from_millis(80)));
        let renew = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let until = Cart::patch().until(world.now() + 9 * HOUR);
            other.patch_at(Cart::primary().user("don").id(1), until).await.unwrap();
        };
        let (swept, ()) = tokio::join!(worker.drain(), renew);
        assert_eq!(swept.unwrap().expired, 0, "{kind:?}");
        assert_eq!(world.fault.pending(), 0, "{kind:?}");
        let kept = carts.get(Cart::primary().user("don").id(1)).await.unwrap().unwrap();
        assert_eq!((kept.note.as_str(), kept.count), ("note 1", 1));
        assert!(carts.check().await.unwrap().is_clean());
    }
}

//! Scenarios of plans: which rows a transaction writes, in which order, and under which conditions.

use entable::{
    OutboxOptions,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use super::client_of;
use crate::{
    fixture::{World, employee},
    hooked::Hooked,
};

/// An entity whose copy and list are in its own partition.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Desks",
    partition_key = "{office}",
    row_key = "desk_{id:06}",
    index(ByPhone, row_key = "phone_{phone}", unique),
    list(ByRoom, row_key = "room_{room}")
)]
pub(super) struct Desk {
    pub(super) office: String,
    pub(super) id: u32,
    pub(super) phone: String,
    pub(super) room: String,
    pub(super) note: String,
}

pub(super) fn desk(id: u32, phone: &str) -> Desk {
    Desk { office: "Kiel".into(), id, phone: phone.into(), room: "A".into(), note: "first".into() }
}

/// The desks of a client that leaves remote copies to workers.
pub(super) async fn desks(world: &World) -> Table<Desk> {
    let client = client_of(world, world.fault.clone(), OutboxOptions::default());
    let desks = client.table::<Desk>();
    drop(desks.create().await);
    desks
}

pub(super) async fn with_phone(desks: &Table<Desk>, phone: &str) -> Option<Stored<Desk>> {
    desks.get(Desk::by_phone().office("Kiel").phone(phone)).await.unwrap()
}

async fn stored(desks: &Table<Desk>, id: u32) -> Stored<Desk> {
    desks.get(Desk::primary().office("Kiel").id(id)).await.unwrap().unwrap()
}

/// An entity that exists is reported as that, not as the holder of its own values.
#[tokio::test(start_paused = true)]
async fn an_existing_entity_is_told_from_a_taken_key() {
    let desks = desks(&World::new().await).await;
    desks.insert(&desk(1, "11")).await.unwrap();
    let error = desks.insert(&desk(1, "11")).await.unwrap_err();
    let is_told = error.code() == Some("EntityAlreadyExists") && !error.is_unique_violation();
    assert!(is_told, "{error}");
}

/// A unique value of the partition has one holder.
#[tokio::test(start_paused = true)]
async fn a_local_value_has_one_holder() {
    let desks = desks(&World::new().await).await;
    desks.insert(&desk(1, "11")).await.unwrap();
    let second = desks.insert(&desk(2, "11")).await;
    assert!(second.is_err_and(|error| error.is_unique_violation()), "two desks have the phone");
}

/// Nothing is found under a key that an entity left.
#[tokio::test(start_paused = true)]
async fn a_key_that_was_left_finds_nothing() {
    let desks = desks(&World::new().await).await;
    let mut one = desks.insert(&desk(1, "11")).await.unwrap();
    one.phone = "12".into();
    desks.replace(&one).await.unwrap();
    assert!(with_phone(&desks, "12").await.is_some());
    assert!(with_phone(&desks, "11").await.is_none(), "the old copy is there");
}

/// A copy has the content of its entity.
#[tokio::test(start_paused = true)]
async fn a_copy_follows_its_entity() {
    let desks = desks(&World::new().await).await;
    let mut one = desks.insert(&desk(1, "11")).await.unwrap();
    one.note = "second".into();
    desks.replace(&one).await.unwrap();
    let note = with_phone(&desks, "11").await.unwrap().note.clone();
    assert!(note == "second", "the copy says {note}");
}

/// Two entities exchange a unique value in one transaction.
#[tokio::test(start_paused = true)]
async fn two_entities_exchange_a_value() {
    let desks = desks(&World::new().await).await;
    let mut one = desks.insert(&desk(1, "11")).await.unwrap();
    let mut two = desks.insert(&desk(2, "12")).await.unwrap();
    (one.phone, two.phone) = ("12".into(), "11".into());
    let mut egt = desks.transaction();
    egt.replace(&one).unwrap().replace(&two).unwrap();
    egt.commit().await.unwrap();
    let holder = with_phone(&desks, "11").await.map(|desk| desk.id);
    assert_eq!(holder, Some(2), "the phone is that of {holder:?}");
}

/// A list has the entities that derive it.
#[tokio::test(start_paused = true)]
async fn a_list_loses_who_left() {
    let desks = desks(&World::new().await).await;
    let mut one = desks.insert(&desk(1, "11")).await.unwrap();
    desks.insert(&desk(2, "12")).await.unwrap();
    one.room = "B".into();
    desks.replace(&one).await.unwrap();
    let room = desks.keys(Desk::by_room().office("Kiel").room("A")).await.unwrap();
    assert_eq!(room.len(), 1, "the room has {room:?}");
}

/// The second of two writers that read one version is refused.
#[tokio::test(start_paused = true)]
async fn a_version_is_replaced_once() {
    let desks = desks(&World::new().await).await;
    desks.insert(&desk(1, "11")).await.unwrap();
    let (mut first, mut second) = (stored(&desks, 1).await, stored(&desks, 1).await);
    first.note = "first writer".into();
    second.note = "second writer".into();
    desks.replace(&first).await.unwrap();
    let late = desks.replace(&second).await;
    assert!(late.is_err_and(|error| error.is_precondition_failed()), "an update is lost");
}

/// The copy under a remote key that an entity left goes.
#[tokio::test(start_paused = true)]
async fn a_remote_copy_that_was_left_goes() {
    let world = World::left_to_workers().await;
    let options = OutboxOptions::default().background(0);
    let client = client_of(&world, world.fault.clone(), options);
    let staff = client.table::<crate::fixture::Employee>();
    let mut one = staff.insert(&employee(1)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    one.email = "other@contoso.com".into();
    staff.replace(&one).await.unwrap();
    for _ in 0..2 {
        world.client.worker().drain().await.unwrap();
        world.later(OutboxOptions::WRITE_DEADLINE);
    }
    let old = world.rows("Staff", "email_jones1@contoso.com").await;
    assert!(old.is_empty(), "the old copy stays: {old:?}");
}

/// One change that fails does not keep the others of its bulk group from being written.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_bulk_group_is_written() {
    let desks = desks(&World::new().await).await;
    desks.insert(&desk(2, "22")).await.unwrap();
    let all = [desk(1, "11"), desk(2, "12"), desk(3, "13")];
    let report = desks.bulk().insert_all(&all).await.unwrap();
    let counts = (report.done, report.failed.len());
    assert_eq!(counts, (2, 1), "{counts:?} are done and failed");
}

/// A bulk group that the store finds too large is written in two halves.
#[tokio::test(start_paused = true)]
async fn both_halves_of_a_bulk_group_are_written() {
    let world = World::new().await;
    let desks = desks(&world).await;
    let large = Error::new(ErrorKind::TooLarge, "the request is too large");
    world.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(large));
    let all: Vec<_> = (1..=4).map(|id| desk(id, &id.to_string())).collect();
    let report = desks.bulk().insert_all(&all).await.unwrap();
    assert!(report.failed.is_empty(), "{report:?}");
    let mut there = 0;
    for id in 1..=4 {
        let at = Desk::primary().office("Kiel").id(id);
        there += u32::from(desks.get(at).await.unwrap().is_some());
    }
    assert_eq!((report.done, there), (4, 4), "{there} of {} are there", report.done);
}

/// An entity that another writer changed while it was rewritten is rewritten from its new version.
#[tokio::test(start_paused = true)]
async fn a_rewrite_that_lost_a_race_is_repeated() {
    let world = World::new().await;
    let direct = desks(&world).await;
    direct.insert(&desk(1, "11")).await.unwrap();
    let other = direct.clone();
    let is_written = |one: &entable::Operation| one.row().row_key() == "desk_000001";
    let store = Hooked::before(world.fault.clone(), is_written, async move {
        let mut one = stored(&other, 1).await;
        one.room = "B".into();
        other.replace(&one).await.unwrap();
    });
    let client = client_of(&world, store, OutboxOptions::default());
    let desks = client.table::<Desk>();
    let query = desks.query(Desk::primary().office("Kiel"));
    let change = |desk: &mut Desk| {
        desk.note = "second".into();
        Ok(())
    };
    let report = desks.bulk().update_all(query, change).await.unwrap();
    assert_eq!(report.done, 1, "{report:?}");
    let one = stored(&direct, 1).await;
    assert_eq!((&*one.note, &*one.room), ("second", "B"), "{one:?}");
}

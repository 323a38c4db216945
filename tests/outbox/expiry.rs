//! Tests entities that expire: what reads skip, what writes renew or replace, what workers sweep.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    Clock, Condition, Operation, SteppedClock, Ticks, Value, Verb,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use time::OffsetDateTime;

use crate::hooked::Hooked;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "s_{id:06}",
    expires = until,
    index(ByDevice, row_key = "d_{device}", unique, only(until)),
    index(ByToken, partition_key = "t_{token}", row_key = "token", unique),
    list(OfPlace, row_key = "place_{place}")
)]
pub(crate) struct Session {
    pub(crate) user: String,
    pub(crate) id: u32,
    pub(crate) device: String,
    pub(crate) token: String,
    pub(crate) place: String,
    pub(crate) until: Option<OffsetDateTime>,
    pub(crate) uses: i32,
}

#[derive(Debug, Projection)]
#[table(of = Session)]
pub(crate) struct Uses {
    pub(crate) uses: i32,
}

/// An entity without copies, whose writes are one request.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "k_{id:06}", expires = until)]
pub(crate) struct Key {
    pub(crate) user: String,
    pub(crate) id: u32,
    pub(crate) until: OffsetDateTime,
    pub(crate) note: Option<String>,
}

/// An entity with two values that are unique across partitions.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "p_{id:06}",
    expires = until,
    index(ByCard, partition_key = "card_{card}", row_key = "card", unique),
    index(ByGate, partition_key = "gate_{gate}", row_key = "gate", unique)
)]
struct Pass {
    user: String,
    id: u32,
    card: u32,
    gate: u32,
    until: OffsetDateTime,
}

/// An entity with a value that is unique in its partition, in two rows.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{hall}",
    row_key = "r_{id:06}",
    expires = until,
    index(BySeat, row_key = "seat_{seat:06}", unique)
)]
struct Reservation {
    hall: String,
    id: u32,
    seat: u32,
    until: OffsetDateTime,
}

/// An entity with an index by the time after which it is over.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{event}",
    row_key = "t_{id:06}",
    expires = until,
    index(ByUntil, row_key = "until_{until}_{id:06}", only(until))
)]
struct Ticket {
    event: String,
    id: u32,
    until: OffsetDateTime,
}

/// A visit before its indexes and its list were declared.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    entity_type = "Visit",
    partition_key = "{user}",
    row_key = "v_{id:06}",
    expires = until
)]
struct EarlierVisit {
    user: String,
    id: u32,
    place: String,
    until: OffsetDateTime,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "v_{id:06}",
    expires = until,
    index(ByUntil, row_key = "until_{until}_{id:06}", only(until)),
    index(ByPlace, partition_key = "place_{place}", row_key = "visit_{user}_{id:06}"),
    list(OfPlace, row_key = "place_{place}")
)]
struct Visit {
    user: String,
    id: u32,
    place: String,
    until: OffsetDateTime,
}

#[derive(Debug, EntitySet)]
pub(crate) enum Row {
    Session(Session),
    Key(Key),
}

const HOUR: Duration = Duration::from_secs(3600);
/// How long after its end a worker takes an hour's markers: a flight, and the error of the clocks.
const WAIT: Duration = Duration::from_secs(6 * 60);

/// A store whose clock is stepped, and clients with clocks of their own.
pub(crate) struct World {
    pub(crate) clock: Arc<SteppedClock>,
    pub(crate) recorder: Recorder,
    pub(crate) fault: FaultInjector,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::ahead_by(Duration::ZERO, Duration::ZERO).await
    }

    /// A store where case counts in names of tables.
    async fn case_sensitive() -> Self {
        Self::around(Memory::case_sensitive_tables, Duration::ZERO, Duration::ZERO).await
    }

    /// A client whose clock is ahead of the store's, or behind.
    async fn ahead_by(ahead: Duration, behind: Duration) -> Self {
        Self::around(|memory| memory, ahead, behind).await
    }

    /// A world around the store that `change` makes of one with a stepped clock.
    async fn around(
        change: impl FnOnce(Memory) -> Memory,
        ahead: Duration,
        behind: Duration,
    ) -> Self {
        let start = Ticks::new(638_000_000_000_000_000).unwrap();
        let clock = Arc::new(SteppedClock::new(start));
        let recorder = Recorder::around(change(Memory::with_clock(clock.clone())));
        let fault = FaultInjector::around(recorder.clone());
        let client = client_of(&fault, &clock, ahead, behind);
        client.table::<Session>().create().await.unwrap();
        recorder.clear();
        Self { clock, recorder, fault, client }
    }

    pub(crate) fn sessions(&self) -> Table<Session> {
        self.client.table()
    }

    pub(crate) fn keys(&self) -> Table<Key> {
        self.client.table()
    }

    pub(crate) fn now(&self) -> OffsetDateTime {
        OffsetDateTime::from(self.clock.now())
    }

    fn key(&self, id: u32, left: Duration) -> Key {
        Key { user: "don".into(), id, until: self.now() + left, note: None }
    }

    fn session(&self, id: u32, left: Duration) -> Session {
        Session {
            user: "don".into(),
            id,
            device: format!("device{id}"),
            token: format!("token{id}"),
            place: "Delft".into(),
            until: Some(self.now() + left),
            uses: 0,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.recorder.take().iter().map(ToString::to_string).collect()
    }

    /// Returns the RowKeys of a partition, the rows that are over included.
    async fn rows(&self, partition_key: &str) -> Vec<String> {
        let rows = self.client.dynamic("Sessions").query(Keys::partition(partition_key));
        rows.collect().await.unwrap().iter().map(|row| row.row_key().to_owned()).collect()
    }

    async fn markers(&self) -> usize {
        let all = self.client.dynamic("EntableExpiry").query(Filter::parse("Table ge ''").unwrap());
        all.allow_scan().collect().await.unwrap().len()
    }

    /// Sweeps as a new worker does, which remembers no sweep.
    async fn sweep(&self) -> u64 {
        self.client.worker().with::<Session>().with::<Key>().drain().await.unwrap().expired
    }
}

/// A clock that shows another time than the store's.
#[derive(Debug)]
struct Apart(Arc<SteppedClock>, i64);

impl Clock for Apart {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.now().get() + self.1).unwrap()
    }
}

fn client_of(
    backend: &FaultInjector,
    clock: &Arc<SteppedClock>,
    ahead: Duration,
    behind: Duration,
) -> Client {
    let ticks = |time: Duration| i64::try_from(time.as_nanos() / 100).unwrap();
    let clock = Apart(clock.clone(), ticks(ahead) - ticks(behind));
    Client::builder().backend(backend.clone()).clock(Arc::new(clock)).seed(7).build().unwrap()
}

fn don() -> impl Path<Entity = Session, View: FullView> + Clone {
    Session::primary().user("don")
}

#[tokio::test]
async fn typed_reads_skip_what_is_over_and_others_see_it() {
    let world = World::new().await;
    let sessions = world.sessions();
    sessions.insert(&world.session(1, HOUR)).await.unwrap();
    sessions.insert(&world.session(2, 2 * HOUR)).await.unwrap();
    sessions.insert(&Session { until: None, ..world.session(3, HOUR) }).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR);

    let at = |id| Session::primary().user("don").id(id);
    assert!(sessions.get(at(1)).await.unwrap().is_none());
    assert!(sessions.get_as::<Uses>(at(1)).await.unwrap().is_none());
    assert_eq!(sessions.get_as::<Uses>(at(2)).await.unwrap().unwrap().uses, 0);
    assert!(sessions.get(Session::by_token().token("token1")).await.unwrap().is_none());
    assert!(sessions.get(Session::by_token().token("token2")).await.unwrap().is_some());

    let ids: Vec<u32> =
        sessions.query(don()).collect().await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(ids, [2, 3]);
    assert_eq!(sessions.query(don()).select::<Uses>().collect().await.unwrap().len(), 2);
    assert_eq!(sessions.query(don()).count().await.unwrap(), 2);
    assert_eq!(sessions.query(don()).first().await.unwrap().unwrap().id, 2);
    assert!(sessions.query(don()).exists().await.unwrap());
    assert_eq!(sessions.query(Session::by_device().user("don")).count().await.unwrap(), 2);
    let listed = sessions.query(Session::of_place().user("don").place("Delft"));
    assert_eq!(listed.collect().await.unwrap().len(), 2);
    assert_eq!(listed.count().await.unwrap(), 2);

    let set = world.client.set::<Row>("Sessions");
    assert_eq!(set.query(Keys::partition("don")).count().await.unwrap(), 2);
    assert_eq!(set.query(Keys::partition("don")).collect().await.unwrap().len(), 2);
    assert!(set.get(Keys::point("don", "s_000001")).await.unwrap().is_none());
    assert!(set.get(Keys::point("don", "s_000002")).await.unwrap().is_some());

    assert!(world.rows("don").await.contains(&"s_000001".to_owned()));
    assert!(sessions.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn pages_end_where_the_rows_end() {
    let world = World::new().await;
    let keys = world.keys();
    for id in 0..20 {
        let left = if id < 15 { HOUR } else { 3 * HOUR };
        keys.insert(&world.key(id, left)).await.unwrap();
    }
    world.clock.advance(HOUR);
    let all = keys.query(Key::primary().user("don"));
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let page = all.clone().page_size(4).page(cursor).await.unwrap();
        ids.extend(page.items.iter().map(|key| key.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(ids, [15, 16, 17, 18, 19]);
    let taken: Vec<u32> =
        all.clone().take(3).collect().await.unwrap().iter().map(|key| key.id).collect();
    assert_eq!(taken, [15, 16, 17]);
    world.recorder.clear();
    assert_eq!(all.first().await.unwrap().unwrap().id, 15);
    assert!(world.requests().len() <= 2, "the second page is not of one row again");
}

#[tokio::test]
async fn a_clock_that_is_hours_off_hides_and_deletes_nothing_alive() {
    for (ahead, behind) in [(5 * HOUR, Duration::ZERO), (Duration::ZERO, 5 * HOUR)] {
        let world = World::ahead_by(ahead, behind).await;
        let keys = world.keys();
        // Before any answer had a date.
        let conflict = {
            keys.insert(&world.key(1, HOUR)).await.unwrap();
            let other = client_of(&world.fault, &world.clock, ahead, behind);
            other.table::<Key>().insert(&world.key(1, HOUR)).await.unwrap_err()
        };
        assert!(conflict.is_conflict(), "{conflict}");
        assert!(keys.get(Key::primary().user("don").id(1)).await.unwrap().is_some());
        assert_eq!(world.sweep().await, 0);

        world.clock.advance(HOUR);
        assert!(keys.get(Key::primary().user("don").id(1)).await.unwrap().is_none());
        world.clock.advance(HOUR + WAIT);
        assert_eq!(world.sweep().await, 1);
        assert_eq!(world.markers().await, 0);
    }
}

#[tokio::test]
async fn writes_do_not_ask_the_time_and_renew() {
    let world = World::new().await;
    let keys = world.keys();
    keys.insert(&world.key(1, HOUR)).await.unwrap();
    keys.insert(&world.key(2, HOUR)).await.unwrap();
    let mut one = keys.get(Key::primary().user("don").id(1)).await.unwrap().unwrap();
    world.clock.advance(2 * HOUR);
    one.until = world.now() + HOUR;
    keys.replace(&one).await.unwrap();
    let until = world.now() + HOUR;
    keys.patch_at(Key::primary().user("don").id(2), Key::patch().until(until)).await.unwrap();
    assert_eq!(keys.query(Key::primary().user("don")).count().await.unwrap(), 2);
    // The markers of the first hour lead to rows that were renewed.
    world.clock.advance(WAIT);
    assert_eq!(world.sweep().await, 0);
    assert_eq!(keys.query(Key::primary().user("don")).count().await.unwrap(), 2);
    world.clock.advance(2 * HOUR);
    assert_eq!(world.sweep().await, 2);
    assert!(world.rows("don").await.is_empty());
}

#[tokio::test]
async fn an_update_reads_what_is_over_and_renews_it() {
    let world = World::new().await;
    let (keys, tickets) = (world.keys(), world.client.table::<Ticket>());
    keys.insert(&world.key(1, HOUR)).await.unwrap();
    let until = world.now() + HOUR;
    tickets.insert(&Ticket { event: "fair".into(), id: 1, until }).await.unwrap();
    world.clock.advance(2 * HOUR);
    let until = world.now() + HOUR;
    let key = Key::primary().user("don").id(1);
    let noted = keys.update(key.clone(), |key| {
        key.note = Some("late".into());
        Ok(())
    });
    assert_eq!(noted.await.unwrap().note.as_deref(), Some("late"));
    assert!(keys.get(key.clone()).await.unwrap().is_none(), "the time is as it was");
    let renewed = keys.update(key.clone(), |key| {
        key.until = until;
        Ok(())
    });
    assert_eq!(renewed.await.unwrap().note.as_deref(), Some("late"));
    assert_eq!(keys.get(key).await.unwrap().unwrap().until, until);

    let ticket = Ticket::primary().event("fair").id(1);
    let renewed = tickets.update(ticket.clone(), |ticket| {
        ticket.until = until;
        Ok(())
    });
    assert_eq!(renewed.await.unwrap().until, until);
    assert!(tickets.get(ticket).await.unwrap().is_some());
    assert_eq!(tickets.query(Ticket::by_until().event("fair")).count().await.unwrap(), 1);
    assert!(tickets.check().await.unwrap().is_clean());
    let error = keys.update(Key::primary().user("don").id(2), |_| Ok(())).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

// A dirty row of the remote index waits for one write deadline.
#[tokio::test(start_paused = true)]
async fn a_rebuild_indexes_what_is_over_so_that_it_is_renewed_with_its_entries_or_swept() {
    let world = World::new().await;
    let earlier: Table<EarlierVisit> = world.client.table();
    // The program that declares the indexes; its worker knows no other form of the type.
    let client = client_of(&world.fault, &world.clock, Duration::ZERO, Duration::ZERO);
    let visits: Table<Visit> = client.table();
    let until = world.now() + HOUR;
    for id in 1..=3 {
        let place = "Delft".to_owned();
        earlier.insert(&EarlierVisit { user: "don".into(), id, place, until }).await.unwrap();
    }
    world.clock.advance(2 * HOUR + WAIT);
    let reports = [
        visits.rebuild(Visit::by_until()).await.unwrap(),
        visits.rebuild(Visit::by_place()).await.unwrap(),
        visits.rebuild(Visit::of_place()).page_size(2).await.unwrap(),
    ];
    assert!(reports.iter().all(|report| report.is_complete() && report.primaries == 3));
    assert_eq!(reports.map(|report| report.written), [3; 3]);
    let at = |id| Visit::primary().user("don").id(id);
    let until = world.now() + HOUR;
    visits.patch_at(at(1), Visit::patch().until(until)).await.unwrap();
    let place = "Delft".to_owned();
    visits.insert(&Visit { user: "don".into(), id: 2, place, until }).await.unwrap();
    let worker = client.worker().with::<Visit>();
    assert_eq!(worker.drain().await.unwrap().expired, 1, "the index leads to what is over");
    let listed = visits.query(Visit::of_place().user("don").place("Delft"));
    let ids: Vec<u32> = listed.collect().await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(visits.query(Visit::by_place().place("Delft")).count().await.unwrap(), 2);
    assert_eq!(world.client.dynamic("Sessions").query(at(3).keys()).count().await.unwrap(), 0);
    client.wait_for_copies().await;
    let report = visits.check().await.unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[tokio::test]
async fn an_insert_replaces_a_row_that_is_over_in_two_more_requests() {
    let world = World::new().await;
    let keys = world.keys();
    let old = Key { note: Some("old".into()), ..world.key(1, HOUR) };
    keys.insert(&old).await.unwrap();
    assert!(keys.insert(&old).await.unwrap_err().is_conflict(), "a row that is alive stays");
    world.clock.advance(HOUR);
    // The hour's marker is there, so that what is counted is the insert alone.
    keys.insert(&world.key(2, HOUR)).await.unwrap();
    world.recorder.clear();
    keys.insert(&world.key(1, HOUR)).await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    let found = keys.get(Key::primary().user("don").id(1)).await.unwrap().unwrap();
    assert_eq!(found.note, None, "nothing of the old row is kept");
}

#[tokio::test]
async fn an_insert_in_a_transaction_replaces_a_row_that_is_over_with_its_copies() {
    let world = World::new().await;
    let sessions = world.sessions();
    sessions.insert(&world.session(1, HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR);
    let renamed = Session { device: "new".into(), token: "new".into(), ..world.session(1, HOUR) };
    let mut egt = sessions.transaction();
    egt.insert(&world.session(2, HOUR)).unwrap().insert(&renamed).unwrap();
    egt.commit().await.unwrap();
    world.client.wait_for_copies().await;
    let rows = world.rows("don").await;
    assert!(!rows.contains(&"d_device1".to_owned()), "{rows:?}");
    assert!(rows.contains(&"d_new".to_owned()), "{rows:?}");
    assert!(sessions.get(Session::by_token().token("new")).await.unwrap().is_some());
    assert_eq!(world.rows("t_token1").await, [""; 0]);
    world.clock.advance(Duration::from_secs(400));
    world.client.worker().drain().await.unwrap();
    assert!(sessions.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn unique_values_of_what_is_over_come_free() {
    let world = World::new().await;
    let sessions = world.sessions();
    sessions.insert(&world.session(1, HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    let local = Session { device: "device1".into(), ..world.session(2, 9 * HOUR) };
    let remote =
        Session { user: "ann".into(), token: "token1".into(), ..world.session(3, 9 * HOUR) };
    for taken in [&local, &remote] {
        assert!(sessions.insert(taken).await.unwrap_err().is_unique_violation());
    }
    world.clock.advance(HOUR);
    sessions.insert(&remote).await.unwrap();
    assert!(!world.rows("don").await.contains(&"s_000001".to_owned()), "its holder is deleted");
    let holder = world.session(4, HOUR);
    sessions.insert(&Session { device: "device4".into(), ..holder }).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR);
    sessions.insert(&Session { device: "device4".into(), ..local }).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(Duration::from_secs(400));
    world.client.worker().drain().await.unwrap();
    assert!(sessions.check().await.unwrap().is_clean());
    let found = sessions.get(Session::by_token().token("token1")).await.unwrap().unwrap();
    assert_eq!(found.user, "ann");
}

#[tokio::test]
async fn an_entity_that_is_over_frees_all_of_its_values_at_once() {
    let world = World::new().await;
    let passes: Table<Pass> = world.client.table();
    let pass = |user: &str, id| Pass {
        user: user.into(),
        id,
        card: 1,
        gate: 1,
        until: world.now() + HOUR,
    };
    for (user, other) in [("don", "ann"), ("ann", "ann")] {
        passes.insert(&pass(user, 1)).await.unwrap();
        let taken = passes.insert(&pass(other, 2)).await.unwrap_err();
        assert!(taken.is_unique_violation());
        // The holder is read with the date, and not deleted.
        assert!(passes.get(Pass::primary().user(user).id(1)).await.unwrap().is_some());
        world.clock.advance(HOUR);
        passes.insert(&pass(other, 2)).await.unwrap();
        world.client.wait_for_copies().await;
        let left = world.rows(user).await;
        assert!(!left.contains(&"p_000001".to_owned()), "{left:?}");
        let held = passes.get(Pass::by_card().card(1)).await.unwrap().unwrap();
        assert_eq!((held.user.as_str(), held.id), (other, 2));
        assert!(passes.get(Pass::by_gate().gate(1)).await.unwrap().is_some());
        world.clock.advance(Duration::from_secs(400));
        world.client.worker().with::<Pass>().drain().await.unwrap();
        assert!(passes.check().await.unwrap().is_clean());
        passes.delete_at(Pass::primary().user(other).id(2)).await.unwrap();
        world.clock.advance(Duration::from_secs(400));
        world.client.worker().with::<Pass>().drain().await.unwrap();
    }
}

fn seat(world: &World, id: u32, seat: u32) -> Reservation {
    Reservation { hall: "A".into(), id, seat, until: world.now() + HOUR }
}

/// Returns the holder of a seat by the index, as it is stored.
async fn seat_row(world: &World, seat: u32) -> Option<String> {
    let reservations: Table<Reservation> = world.client.table();
    let found = reservations.get(Reservation::by_seat().hall("A").seat(seat)).await.unwrap();
    found.map(|copy| format!("r_{:06}", copy.id))
}

#[tokio::test]
async fn a_holder_that_is_over_is_deleted_before_the_insert_that_takes_its_value() {
    let world = World::new().await;
    let reservations: Table<Reservation> = world.client.table();
    for id in 1..=3 {
        reservations.insert(&seat(&world, id, id)).await.unwrap();
    }
    world.clock.advance(HOUR);
    reservations.insert(&seat(&world, 9, 9)).await.unwrap();
    world.recorder.clear();
    reservations.insert(&seat(&world, 4, 1)).await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 5, "{requests:#?}");
    assert!(requests[3].ends_with("Delete r_000001 Delete seat_000001"), "{requests:#?}");
    assert!(requests[4].ends_with("Insert r_000004 Insert seat_000001"), "{requests:#?}");

    // A transaction that is full, and one that writes the holder itself.
    let mut full = world.client.transaction();
    for id in 10..59 {
        full.insert(&seat(&world, id, id)).unwrap();
    }
    full.insert(&seat(&world, 60, 2)).unwrap();
    full.commit().await.unwrap();
    assert_eq!(seat_row(&world, 2).await.as_deref(), Some("r_000060"));
    let holder = Reservation::primary().hall("A").id(3);
    let mut both = world.client.transaction();
    both.patch_at(holder.clone(), Reservation::patch().until(world.now() + HOUR)).unwrap();
    both.insert(&seat(&world, 61, 3)).unwrap();
    let refused = both.commit().await.unwrap_err();
    assert!(refused.is_unique_violation(), "{refused}");
    assert!(world.rows("A").await.contains(&"r_000003".to_owned()));
    assert!(reservations.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_renewal_that_meets_an_insert_keeps_its_value() {
    for delay in [0, 1] {
        let world = World::new().await;
        let reservations: Table<Reservation> = world.client.table();
        reservations.insert(&seat(&world, 1, 1)).await.unwrap();
        world.clock.advance(HOUR);
        reservations.insert(&seat(&world, 9, 9)).await.unwrap();
        // The insert finds its holder over, and is held up before the transaction that deletes it.
        let (kind, nth) = if delay == 0 { (RequestKind::Apply, 1) } else { (RequestKind::Scan, 0) };
        world.fault.inject(kind, nth, InjectedFault::Delay(Duration::from_millis(60)));
        let renewed = Reservation { until: world.now() + 9 * HOUR, ..seat(&world, 1, 1) };
        let other = client_of(
            &FaultInjector::around(world.recorder.clone()),
            &world.clock,
            Duration::ZERO,
            Duration::ZERO,
        );
        let renew = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            other.table::<Reservation>().insert_or_replace(&renewed).await.unwrap();
        };
        let taken = seat(&world, 2, 1);
        let (refused, ()) = tokio::join!(reservations.insert(&taken), renew);
        let refused = refused.unwrap_err();
        assert!(refused.is_unique_violation(), "{refused}");
        assert_eq!(seat_row(&world, 1).await.as_deref(), Some("r_000001"));
        let kept = reservations.get(Reservation::primary().hall("A").id(1)).await.unwrap();
        assert_eq!(kept.unwrap().until, renewed.until);
        assert!(reservations.check().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_worker_ranges_over_an_index_by_the_time() {
    let world = World::new().await;
    let tickets: Table<Ticket> = world.client.table();
    let ticket = |id: u32| Ticket {
        event: "fair".into(),
        id,
        until: world.now() + HOUR * if id.is_multiple_of(10) { 1 } else { 90 },
    };
    tickets.bulk().insert_all((0..300).map(ticket)).await.unwrap().into_result().unwrap();
    world.clock.advance(2 * HOUR + WAIT);
    // Renewed behind the marker: it is not over any more.
    let renewed = Ticket { until: world.now() + HOUR, ..ticket(20) };
    tickets.insert_or_replace(&renewed).await.unwrap();
    world.recorder.clear();
    let swept = world.client.worker().with::<Ticket>().drain().await.unwrap();
    assert_eq!(swept.expired, 29);
    let scans: Vec<String> =
        world.requests().into_iter().filter(|request| request.contains("'fair'")).collect();
    let (ranges, points): (Vec<_>, Vec<_>) = scans.iter().partition(|scan| scan.contains("until_"));
    assert_eq!(ranges.len(), 1, "{scans:#?}");
    assert_eq!(points.len(), 29, "{scans:#?}");
    assert!(points.iter().all(|scan| scan.contains("RowKey eq 't_")), "{scans:#?}");
    assert_eq!(tickets.query(Ticket::primary().event("fair")).count().await.unwrap(), 271);
    assert_eq!(world.rows("fair").await.len(), 2 * 271);
    assert!(tickets.check().await.unwrap().is_clean());
    assert_eq!(world.markers().await, 2, "those of the hours to come");
}

#[tokio::test]
async fn a_marker_is_written_once_for_each_hour_and_partition() {
    let world = World::new().await;
    let keys = world.keys();
    keys.insert(&world.key(0, HOUR)).await.unwrap();
    world.recorder.clear();
    for id in 1..100 {
        keys.insert(&world.key(id, HOUR)).await.unwrap();
    }
    assert_eq!(world.requests().len(), 99, "one request for each write");
    keys.insert(&world.key(100, 2 * HOUR)).await.unwrap();
    assert_eq!(world.requests().len(), 2, "another hour has another marker");
    keys.insert(&Key { user: "ann".into(), ..world.key(0, HOUR) }).await.unwrap();
    assert_eq!(world.requests().len(), 2, "another partition has another marker");
    assert_eq!(world.markers().await, 3);
}

#[tokio::test]
async fn markers_are_few_requests_for_a_write() {
    let world = World::new().await;
    let keys = world.keys();
    // The first write makes the table of the markers.
    keys.insert(&world.key(0, HOUR)).await.unwrap();
    world.recorder.clear();
    let writes = 300;
    for id in 1..=writes {
        world.clock.advance(Duration::from_secs(36));
        keys.insert(&world.key(id, HOUR)).await.unwrap();
    }
    let more = world.requests().len() - writes as usize;
    assert!(more * 100 <= 4 * writes as usize, "{more} requests more for {writes} writes");
}

#[tokio::test]
async fn a_row_that_is_over_when_it_is_written_is_swept_too() {
    let world = World::new().await;
    let keys = world.keys();
    keys.insert(&world.key(1, HOUR)).await.unwrap();
    world.clock.advance(2 * HOUR + WAIT);
    assert_eq!(world.sweep().await, 1);
    // The writer remembers the marker of that hour, which is gone.
    let late = Key { until: world.now() - 2 * HOUR, ..world.key(1, HOUR) };
    keys.insert(&late).await.unwrap();
    assert_eq!(world.markers().await, 1, "a marker of the present hour");
    world.clock.advance(HOUR + WAIT);
    assert_eq!(world.sweep().await, 1);
    assert!(world.rows("don").await.is_empty());
    assert_eq!(world.markers().await, 0);
}

#[tokio::test]
async fn a_renewal_that_meets_the_sweep_wins() {
    let world = World::new().await;
    let keys = world.keys();
    for id in 0..5 {
        keys.insert(&world.key(id, HOUR)).await.unwrap();
    }
    world.clock.advance(2 * HOUR + WAIT);
    let renewed = Key { until: world.now() + HOUR, ..world.key(3, HOUR) };
    let worker = world.client.worker().with::<Key>();
    let (swept, wrote) = tokio::join!(worker.drain(), keys.insert_or_replace(&renewed));
    wrote.unwrap();
    assert!(swept.unwrap().expired >= 4);
    let left = keys.query(Key::primary().user("don")).collect().await.unwrap();
    assert_eq!(left.iter().map(|key| key.id).collect::<Vec<_>>(), [3]);
    assert_eq!(world.markers().await, 1);
}

/// A row that another program changes during its sweep, and that is still over, is found again.
#[tokio::test]
async fn a_row_that_changes_during_its_sweep_keeps_its_marker() {
    let world = World::new().await;
    world.keys().insert(&world.key(1, HOUR)).await.unwrap();
    world.clock.advance(2 * HOUR + WAIT);
    let rows = world.client.dynamic("Sessions");
    let is_deletion =
        |one: &Operation| one.verb() == Verb::Delete && one.row().row_key() == "k_000001";
    let store = Hooked::before(world.fault.clone(), is_deletion, async move {
        let note = DynamicEntity::new("don", "k_000001").with("Note", "read");
        rows.insert_or_merge(&note).await.unwrap();
    });
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    let stats = client.worker().with::<Key>().drain().await.unwrap();
    assert_eq!(stats.expired, 1, "{stats:?}");
    assert_eq!((world.rows("don").await.len(), world.markers().await), (0, 0));
}

#[tokio::test]
async fn a_marker_that_was_written_anew_stays_for_another_sweep() {
    const USERS: usize = 40;
    let world = World::new().await;
    for user in 0..USERS {
        let key = Key { user: format!("user{user}"), ..world.key(1, HOUR) };
        world.keys().insert(&key).await.unwrap();
    }
    world.clock.advance(2 * HOUR + WAIT);
    // Right before a shard's markers are deleted together, one of them changes and another one goes.
    let markers = world.client.dynamic("EntableExpiry");
    let all = markers.query(Filter::parse("Table ge ''").unwrap()).allow_scan();
    let all = all.collect().await.unwrap();
    let shard = |row: &Stored<DynamicEntity>| row.partition_key().to_owned();
    let is_large = |one: &&Stored<DynamicEntity>| {
        all.iter().filter(|other| shard(other) == shard(one)).count() > 2
    };
    let large = shard(all.iter().find(is_large).unwrap());
    let keys: Vec<_> = all.iter().filter(|one| shard(one) == large).collect();
    let (mut changed, gone) = (keys[0].clone(), keys[1].row_key().to_owned());
    let kept = changed.row_key().to_owned();
    let at = large.clone();
    let is_deletion =
        move |one: &Operation| one.verb() == Verb::Delete && one.row().partition_key() == at;
    let store = Hooked::before(world.fault.clone(), is_deletion, async move {
        changed.allow_framework_names();
        markers.replace(&changed).await.unwrap();
        markers.delete(&large, &gone, Condition::Any).await.unwrap();
    });
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    world.recorder.clear();
    let stats = client.worker().with::<Key>().drain().await.unwrap();
    assert_eq!((stats.expired, stats.failures), (USERS as u64, 0), "{stats:?}");
    let deletion = format!("Delete {kept}");
    let sent = world.requests().iter().filter(|request| request.contains(&deletion)).count();
    assert_eq!(sent, 3, "with others, alone, and after one more sweep");
    assert_eq!(world.markers().await, 0);
}

#[tokio::test]
async fn a_row_whose_marker_was_written_after_its_hour_is_not_sent() {
    let is_marker = |one: &Operation| one.row().get("Partition").is_ok_and(|text| text.is_some());
    for (wait, is_sent) in [(Duration::from_secs(1), true), (2 * HOUR, false)] {
        let world = World::new().await;
        let clock = world.clock.clone();
        // The clocks go on while the marker waits for its connection.
        let store = Hooked::before(world.fault.clone(), is_marker, async move {
            clock.advance(wait);
        });
        let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
        let key = world.key(1, Duration::from_secs(120));
        let inserted = client.table::<Key>().insert(&key).await;
        assert_eq!(inserted.is_ok(), is_sent, "{inserted:?}");
        assert!(inserted.is_ok() || inserted.is_err_and(|error| error.is_contended()));
        assert_eq!(world.rows("don").await.len(), usize::from(is_sent));
        // Every row that was written is swept: none outlives its marker.
        world.clock.advance(HOUR + WAIT);
        world.sweep().await;
        assert_eq!((world.rows("don").await.len(), world.markers().await), (0, 0));
    }
}

#[tokio::test]
async fn a_failed_deletion_of_a_holder_is_not_taken_for_the_first_change() {
    let world = World::new().await;
    world.sessions().insert(&world.session(1, HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(HOUR);
    let is_deletion =
        |one: &Operation| one.verb() == Verb::Delete && one.row().keys() == ("don", "s_000001");
    let refused = Error::new(ErrorKind::Denied, "the row is locked").at_operation(0);
    let store = Hooked::before(world.fault.clone(), is_deletion, async {}).failing(refused);
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    let of_ann = |id| Session { user: "ann".into(), ..world.session(id, 9 * HOUR) };
    // The second of the two takes the value of the entity that is over.
    let all = [of_ann(2), Session { token: "token1".into(), ..of_ann(3) }];
    let report = client.bulk().insert_all(&all).await.unwrap();
    let failed: Vec<_> = report.failed.iter().map(|failure| failure.index).collect();
    assert_eq!(
        (report.done, failed),
        (0, vec![0, 1]),
        "an error without a position is that of all"
    );
    assert!(report.failed.iter().all(|failure| failure.error.failed_index().is_none()));
}

#[tokio::test]
async fn a_sweep_deletes_entities_with_their_copies_in_large_groups() {
    let world = World::new().await;
    let sessions = world.sessions();
    for id in 0..60 {
        sessions.insert(&world.session(id, HOUR)).await.unwrap();
    }
    sessions.insert(&world.session(60, 9 * HOUR)).await.unwrap();
    world.client.wait_for_copies().await;
    world.clock.advance(2 * HOUR + WAIT);
    assert_eq!(world.sweep().await, 60);
    world.clock.advance(Duration::from_secs(400));
    world.client.worker().drain().await.unwrap();
    let rows = world.rows("don").await;
    let left: Vec<_> = rows.iter().filter(|key| !key.starts_with("~e")).collect();
    assert_eq!(left, ["d_device60", "place_Delft", "s_000060"]);
    assert_eq!(world.rows("t_token7").await, [""; 0]);
    assert!(sessions.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_worker_that_does_not_know_the_type_leaves_it() {
    let world = World::new().await;
    world.keys().insert(&world.key(1, HOUR)).await.unwrap();
    world.clock.advance(2 * HOUR + WAIT);
    let other = client_of(&world.fault, &world.clock, Duration::ZERO, Duration::ZERO);
    assert_eq!(other.worker().drain().await.unwrap().expired, 0);
    assert_eq!(world.markers().await, 1);
    assert_eq!(other.worker().with::<Key>().drain().await.unwrap().expired, 1);
    assert_eq!(world.markers().await, 0);
}

#[tokio::test]
async fn rows_without_markers_are_found_once_they_are_marked() {
    let world = World::new().await;
    let keys = world.keys();
    let untyped = world.client.dynamic("Sessions");
    for id in 1..=3 {
        let row = DynamicEntity::new("don", format!("k_{id:06}")).with("EntityType", "Key");
        let until = Value::DateTime(Ticks::try_from(world.now() + HOUR).unwrap());
        untyped.insert(&row.with("Until", until)).await.unwrap();
    }
    world.clock.advance(2 * HOUR + WAIT);
    assert_eq!(keys.query(Key::primary().user("don")).count().await.unwrap(), 0);
    assert_eq!(world.sweep().await, 0, "no marker leads there");
    assert_eq!(keys.mark_expiring().await.unwrap(), 3);
    world.clock.advance(HOUR + WAIT);
    assert_eq!(world.sweep().await, 3);
    assert!(world.rows("don").await.is_empty());
}

#[tokio::test]
async fn tables_whose_names_differ_in_case_alone_have_their_own_markers_where_case_counts() {
    for (world, markers) in [(World::new().await, 1), (World::case_sensitive().await, 2)] {
        for (id, name) in [(1, "Sessions"), (2, "sessions")] {
            world.client.create_table_if_not_exists(name).await.unwrap();
            let keys: Table<Key> = world.client.table_named(name);
            keys.insert(&world.key(id, HOUR)).await.unwrap();
        }
        let written = world.markers().await;
        world.clock.advance(2 * HOUR + WAIT);
        assert_eq!((world.sweep().await, written), (2, markers));
        for name in ["Sessions", "sessions"] {
            let left = world.client.dynamic(name).query(Keys::partition("don"));
            assert_eq!(left.count().await.unwrap(), 0, "{name}");
        }
        assert_eq!(world.markers().await, 0);
    }
}

/// A clock that counts how often it is read.
#[derive(Debug)]
struct Counted(Arc<SteppedClock>, AtomicUsize);

impl Clock for Counted {
    fn now(&self) -> Ticks {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.now()
    }
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Plain", partition_key = "{user}", row_key = "{id:06}")]
struct Plain {
    user: String,
    id: u32,
}

#[tokio::test]
async fn scans_read_the_clock_only_where_something_expires() {
    let world = World::new().await;
    let clock = Arc::new(Counted(world.clock.clone(), AtomicUsize::new(0)));
    let client =
        Client::builder().backend(world.fault.clone()).clock(clock.clone()).build().unwrap();
    let plain: Table<Plain> = client.table();
    plain.create().await.unwrap();
    plain.insert(&Plain { user: "don".into(), id: 1 }).await.unwrap();
    let read = || clock.1.swap(0, Ordering::Relaxed);
    let scan = || async {
        read();
        assert_eq!(plain.query(Plain::scan()).count().await.unwrap(), 1);
        read()
    };
    assert_eq!(scan().await, 0);
    let rows = client.set::<Row>("Sessions");
    assert!(scan().await > 0, "the set has members that expire");
    drop(rows);
}

#[tokio::test]
async fn a_copy_between_stores_leaves_the_markers_of_the_target() {
    let (source, target) = (World::new().await, World::new().await);
    source.keys().insert(&source.key(1, HOUR)).await.unwrap();
    let others: Table<Key> = target.client.table_named("OtherKeys");
    others.create().await.unwrap();
    others.insert(&Key { user: "ann".into(), ..target.key(2, HOUR) }).await.unwrap();
    assert_eq!((source.markers().await, target.markers().await), (1, 1));

    let report = source.client.copy_to(&target.client).delete_extra().await.unwrap();
    assert!(report.is_equal(), "{report:?}");
    assert!(report.tables.iter().all(|table| table.table != "EntableExpiry"), "{report:?}");
    assert_eq!(target.markers().await, 1, "that of the other table");
    let refused = source.client.copy_to(&target.client).tables(["EntableExpiry"]).await;
    assert!(refused.unwrap_err().is_invalid());

    // The rows that came are found once they are marked.
    assert_eq!(target.keys().mark_expiring().await.unwrap(), 1);
    target.clock.advance(2 * HOUR + WAIT);
    assert_eq!(target.sweep().await, 2);
    assert!(target.rows("don").await.is_empty());
    assert_eq!(others.query(Key::scan()).count().await.unwrap(), 0);
    assert_eq!(target.markers().await, 0);
}

/// The estimate of the store's time is up to a second ahead, since the dates are cut to seconds.
#[tokio::test]
async fn a_worker_that_is_early_for_an_hour_sweeps_it_a_second_later() {
    let world = World::ahead_by(Duration::from_millis(500), Duration::ZERO).await;
    world.keys().insert(&world.key(1, Duration::from_secs(60))).await.unwrap();
    let past = world.clock.now().get() % 36_000_000_000;
    let left = HOUR - Duration::from_nanos(u64::try_from(past).unwrap() * 100);
    world.clock.advance(left + WAIT - Duration::from_millis(200));
    let worker = world.client.worker().with::<Key>();
    assert_eq!(worker.drain().await.unwrap().expired, 0, "the store's hour is not over");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(worker.drain().await.unwrap().expired, 1);
    assert_eq!(world.markers().await, 0);
}

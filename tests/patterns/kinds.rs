//! What patterns predict for blobs, entities that expire, dated tables, encrypted keys, wide entities and series,
//! and counts.

use entable::{
    Blob, KeyScope, Keyring, RootKey,
    patterns::{self, Pattern},
    prelude::*,
};
use time::{OffsetDateTime, macros::datetime};

use crate::store::Store;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Pictured {
    department: String,
    id: u32,
    age: i32,
    #[table(blob)]
    photo: Option<Blob>,
}

impl Pictured {
    fn new(id: u32) -> Self {
        Self { department: "Sales".into(), id, age: 30, photo: Some(Blob::new(vec![7; 1_000])) }
    }

    fn at(id: u32) -> Point<Self> {
        Self::primary().department("Sales").id(id)
    }
}

#[tokio::test(start_paused = true)]
async fn blobs() {
    let mut store = Store::new(|builder| builder);
    let staff = store.client.table::<Pictured>();
    staff.create().await.unwrap();
    // Registers the partition.
    staff.insert(&Pictured::new(1)).await.unwrap();
    staff.insert(&Pictured::new(2)).await.unwrap();
    staff.delete_at(Pictured::at(1)).await.unwrap();

    store.begin().await;
    staff.insert(&Pictured::new(3)).await.unwrap();
    store.compare("insert", patterns::insert::<Pictured>(), 1).await;
    let mut stored = staff.get(Pictured::at(3)).await.unwrap().unwrap();
    store.compare("get", patterns::get(Pictured::at(3)), 1).await;
    stored.age += 1;
    let stored = staff.replace(&stored).await.unwrap();
    store.compare("replace", patterns::replace::<Pictured>(), 1).await;
    staff.patch_at(Pictured::at(3), Pictured::patch().age(50)).await.unwrap();
    store.compare("patch_at", patterns::patch_at::<Pictured>(), 1).await;
    let grow = |person: &mut Pictured| {
        person.age += 1;
        Ok(())
    };
    let changed = staff.update(Pictured::at(3), grow).await.unwrap();
    store.compare("update", patterns::update::<Pictured>(), 1).await;
    staff.insert_or_replace(&Pictured { age: 1, ..stored.into_inner() }).await.unwrap();
    store.compare("insert_or_replace", patterns::insert_or_replace::<Pictured>(), 1).await;
    let _ = changed;
    let stored = staff.get(Pictured::at(3)).await.unwrap().unwrap();
    store.compare("get", patterns::get(Pictured::at(3)), 1).await;
    staff.delete(&stored).await.unwrap();
    store.compare("delete", patterns::delete::<Pictured>(), 1).await;
    staff.delete_at(Pictured::at(2)).await.unwrap();
    store.compare("delete_at", patterns::delete_at::<Pictured>(), 1).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "s_{id:06}",
    expires = until,
    index(ByDevice, row_key = "d_{device}", unique),
    index(ByToken, partition_key = "t_{token}", row_key = "token", unique),
    list(ByCity, row_key = "city_{city}")
)]
struct Session {
    user: String,
    id: u32,
    device: String,
    token: String,
    city: String,
    age: i32,
    until: OffsetDateTime,
}

fn session(id: u32) -> Session {
    Session {
        user: "don".into(),
        id,
        device: format!("d{id}"),
        token: format!("t{id}"),
        city: "Kiel".into(),
        age: 30,
        until: datetime!(2200-01-01 0:00 UTC),
    }
}

#[tokio::test(start_paused = true)]
async fn entities_that_expire() {
    let mut store = Store::new(|builder| builder);
    let sessions = store.client.table::<Session>();
    sessions.create().await.unwrap();
    // Writes the marker of the hour, and reads the store's time.
    sessions.insert(&session(1)).await.unwrap();
    sessions.insert(&session(2)).await.unwrap();
    let at = |id: u32| Session::primary().user("don").id(id);

    store.begin().await;
    let mut stored = sessions.insert(&session(3)).await.unwrap();
    store.compare("insert", patterns::insert::<Session>(), 1).await;
    stored.age += 1;
    let stored = sessions.replace(&stored).await.unwrap();
    store.compare("replace", patterns::replace::<Session>(), 1).await;
    sessions.get(at(3)).await.unwrap().unwrap();
    store.compare("get", patterns::get(at(3)), 1).await;
    sessions.query(Session::primary().user("don")).collect().await.unwrap();
    store.compare("query", patterns::query(Session::primary().user("don")), 6).await;
    let kiel = || Session::by_city().user("don").city("Kiel");
    assert_eq!(sessions.query(kiel()).count().await.unwrap(), 3);
    store.compare("count of a list", patterns::count(patterns::query(kiel())), 3).await;
    sessions.delete(&stored).await.unwrap();
    store.compare("delete", patterns::delete::<Session>(), 1).await;
    sessions.delete_at(at(1)).await.unwrap();
    store.compare("delete_at", patterns::delete_at::<Session>(), 1).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Visits{at:%Y%m%d%H}",
    partition_key = "{page}",
    row_key = "{at:desc}_{id:04}",
    list(ByGuest, row_key = "guest_{guest}")
)]
struct Visit {
    page: String,
    at: OffsetDateTime,
    id: u16,
    guest: String,
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Hits{at:%Y%m%d%H}", partition_key = "{page}", row_key = "{at:desc}")]
struct Hit {
    page: String,
    at: OffsetDateTime,
}

const START: OffsetDateTime = datetime!(2014-07-31 0:00 UTC);

fn visit(hour: i64, id: u16) -> Visit {
    let at = START + time::Duration::hours(hour);
    Visit { page: "home".into(), at, id, guest: "don".into() }
}

#[tokio::test(start_paused = true)]
async fn dated_tables() {
    let mut store = Store::new(|builder| builder);
    let visits = store.client.table::<Visit>();
    for hour in 0..40 {
        visits.insert(&visit(hour, 1)).await.unwrap();
        visits.insert(&visit(hour, 2)).await.unwrap();
    }
    let path = |hours: i64| {
        Visit::primary().at_between(START..START + time::Duration::hours(hours)).page("home")
    };

    store.begin().await;
    visits.insert(&visit(0, 3)).await.unwrap();
    store.compare("insert", patterns::insert::<Visit>(), 1).await;
    visits.delete_at(Visit::primary().page("home").at(START).id(3)).await.unwrap();
    store.compare("delete_at", patterns::delete_at::<Visit>(), 1).await;
    let at = || Visit::primary().page("home").at(START).id(1);
    visits.get(at()).await.unwrap().unwrap();
    store.compare("get", patterns::get(at()), 1).await;
    for hours in [1, 3, 8, 9, 20] {
        let rows = u64::try_from(hours).unwrap() * 2;
        assert_eq!(visits.query(path(hours)).collect().await.unwrap().len() as u64, rows);
        store.compare(&format!("{hours} tables"), patterns::query(path(hours)), rows).await;
    }
    // Missing tables are asked for too.
    let late = START + time::Duration::hours(38);
    let path = || Visit::primary().at_between(late..late + time::Duration::hours(4)).page("home");
    assert_eq!(visits.query(path()).collect().await.unwrap().len(), 4);
    store.compare("two of four tables", patterns::query(path()), 4).await;
    let hits = store.client.table::<Hit>();
    for hour in 0..6 {
        let at = START + time::Duration::minutes(30 * hour);
        hits.insert(&Hit { page: "home".into(), at }).await.unwrap();
    }
    let path = || Hit::primary().at_between(START..START + time::Duration::hours(3)).page("home");
    let small = |query: Query<Hit>| query.page_size(1);
    store.begin().await;
    assert_eq!(small(hits.query(path())).collect().await.unwrap().len(), 6);
    store.compare("two pages of each table", small(patterns::query(path())), 6).await;
    let path = |hours: i64| {
        Visit::primary().at_between(START..START + time::Duration::hours(hours)).page("home")
    };
    // A query stops in the table where it has taken enough: eight tables were read together.
    let take = |query: Query<Visit>, most| query.take(most);
    for (hours, most) in [(3, 1), (20, 2), (20, 3), (20, 16), (20, 17), (40, 39), (40, 100)] {
        let found = u64::try_from(hours).unwrap() * 2;
        let items = take(visits.query(path(hours)), most).collect().await.unwrap();
        assert_eq!(items.len() as u64, most.min(found));
        let pattern = Pattern::partition_scan(
            &format!("take {most} of {hours} tables"),
            take(patterns::query(path(hours)), most),
        );
        let pattern = pattern.rows(found);
        store.compare_pattern(if hours > 32 { pattern.tables(40) } else { pattern }).await;
    }
    let pages = |query: Query<Hit>| query.page_size(1).take(3);
    let hours = || Hit::primary().at_between(START..START + time::Duration::hours(3)).page("home");
    assert_eq!(pages(hits.query(hours())).collect().await.unwrap().len(), 3);
    store.compare("take of pages", pages(patterns::query(hours())), 6).await;
    let counted = take(visits.query(path(20)), 9).count().await.unwrap();
    assert_eq!(counted, 9);
    let question = patterns::count(take(patterns::query(path(20)), 9));
    store.compare("count of some", question, 40).await;
    // A window of more than 32 tables lists them first.
    assert_eq!(visits.query(path(10_000)).collect().await.unwrap().len(), 80);
    let pattern = Pattern::partition_scan("a year", patterns::query(path(10_000)));
    store.compare_pattern(pattern.rows(80).tables(40)).await;
    assert_eq!(visits.query(path(10_000)).count().await.unwrap(), 80);
    let pattern = patterns::count(patterns::query(path(10_000)));
    store.compare_pattern(Pattern::partition_scan("count", pattern).rows(80).tables(40)).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "{tenant}",
    row_key = "e_{id:04}",
    seal,
    index(BySsn, row_key = "ssn_{ssn:hmac}"),
    list(ByName, row_key = "name_{name:hmac}"),
    index(
        ByCity,
        partition_key = "{city}",
        row_key = "pin_{pin:hmac}_{tenant}_{id:04}",
        only(age)
    ),
    index(ByEmail, partition_key = "mail_{email:hmac}", row_key = "is", unique)
)]
struct Person {
    tenant: String,
    id: u32,
    city: String,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt)]
    pin: i32,
    #[table(encrypt)]
    name: String,
    #[table(encrypt)]
    email: String,
    age: i32,
}

fn person(id: u32, name: &str) -> Person {
    Person {
        tenant: "contoso".into(),
        id,
        city: name.into(),
        ssn: format!("{name}{id}"),
        pin: if name == "Jones" { 1 } else { 2 },
        name: name.into(),
        email: format!("{name}{id}@contoso.com"),
        age: 30,
    }
}

#[tokio::test(start_paused = true)]
async fn encrypted_keys() {
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder().primary(&scope, &RootKey::from_bytes([1; 32])).blind_token_key(
        &scope,
        1,
        &RootKey::from_bytes([2; 32]),
    );
    let mut store = Store::new(|builder| builder.keys(keys.build().unwrap()));
    let people = store.client.table::<Person>();
    people.create().await.unwrap();
    for id in 1..=5 {
        people.insert(&person(id, "Jones")).await.unwrap();
        people.insert(&person(id + 10, "Smith")).await.unwrap();
    }
    let at = |id: u32| Person::primary().tenant("contoso").id(id);

    store.begin().await;
    let mut stored = people.insert(&person(7, "Jones")).await.unwrap();
    store.compare("insert", patterns::insert::<Person>(), 1).await;
    stored.age += 1;
    let mut stored = people.replace(&stored).await.unwrap();
    store.compare("replace", patterns::replace::<Person>(), 1).await;
    *stored = Person { age: stored.age, ..person(7, "Smith") };
    people.replace(&stored).await.unwrap();
    store.compare("replace_keys", patterns::replace_keys::<Person>(), 1).await;
    people.patch_at(at(1), Person::patch().age(50)).await.unwrap();
    store.compare("patch_at", patterns::patch_at::<Person>(), 1).await;
    let path = || Person::by_ssn().tenant("contoso").ssn("Jones2");
    assert_eq!(people.query(path()).collect().await.unwrap().len(), 1);
    store.compare("by ssn", patterns::query(path()), 1).await;
    let path = || Person::by_email().email("Jones2@contoso.com");
    people.get(path()).await.unwrap().unwrap();
    store.compare("by e-mail", patterns::get(path()), 1).await;
    let path = || Person::by_name().tenant("contoso").name("Jones");
    assert_eq!(people.query(path()).collect().await.unwrap().len(), 5);
    store.compare("by name", patterns::query(path()), 5).await;
    let stored = people.get(at(3)).await.unwrap().unwrap();
    store.compare("get", patterns::get(at(3)), 1).await;
    people.delete(&stored).await.unwrap();
    store.compare("delete", patterns::delete::<Person>(), 1).await;
    people.delete_at(at(4)).await.unwrap();
    store.compare("delete_at", patterns::delete_at::<Person>(), 1).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "day_{employee:06}")]
struct Day {
    department: String,
    employee: u32,
    #[table(series("Slot{:03}"))]
    slots: [Option<i64>; 24],
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "year_{employee:06}", wide)]
struct Year {
    department: String,
    employee: u32,
    #[table(series("Slot{:03}"))]
    slots: [Option<i64>; 365],
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Year)]
struct Owner {
    employee: u32,
}

macro_rules! compare_series {
    ($store:ident, $name:ident, $length:literal) => {
        let rows = $store.client.table::<$name>();
        let new =
            |employee| $name { department: "Sales".into(), employee, slots: [Some(1); $length] };
        let at = |employee| $name::primary().department("Sales").employee(employee);
        $store.begin().await;
        rows.insert(&new(1)).await.unwrap();
        $store.compare("insert", patterns::insert::<$name>(), 1).await;
        let mut stored = rows.get(at(1)).await.unwrap().unwrap();
        $store.compare("get", patterns::get(at(1)), 1).await;
        stored.slots[0] = Some(2);
        rows.replace(&stored).await.unwrap();
        $store.compare("replace", patterns::replace::<$name>(), 1).await;
        rows.patch_at(at(1), $name::patch().slots($length - 1, 3)).await.unwrap();
        $store.compare("patch_at", patterns::patch_at::<$name>(), 1).await;
        let add = |entity: &mut $name| {
            entity.slots[$length - 1] = Some(5);
            Ok(())
        };
        rows.update(at(1), add).await.unwrap();
        $store.compare("update", patterns::update::<$name>(), 1).await;
        rows.insert(&new(2)).await.unwrap();
        $store.begin().await;
        let all = rows.query($name::primary().department("Sales"));
        assert_eq!(all.collect().await.unwrap().len(), 2);
        let pattern = || patterns::query($name::primary().department("Sales"));
        $store.compare("a query", pattern(), 2).await;
        assert_eq!(all.count().await.unwrap(), 2);
        $store.compare("a count", patterns::count(pattern()), 2).await;
        rows.delete_at(at(1)).await.unwrap();
        $store.compare("delete_at", patterns::delete_at::<$name>(), 1).await;
        rows.delete_at(at(2)).await.unwrap();
    };
}

#[tokio::test(start_paused = true)]
async fn series_and_wide_entities() {
    let mut store = Store::new(|builder| builder);
    store.client.create_table("Messages").await.unwrap();
    Box::pin(async {
        compare_series!(store, Day, 24);
    })
    .await;
    Box::pin(async {
        compare_series!(store, Year, 365);
        let path = || Year::primary().department("Sales").employee(1);
        let years = store.client.table::<Year>();
        let year = Year { department: "Sales".into(), employee: 1, slots: [None; 365] };
        years.insert(&year).await.unwrap();
        store.begin().await;
        years.get_as::<Owner>(path()).await.unwrap().unwrap();
        store.compare("one part", patterns::get_as::<Owner>(path()), 1).await;
    })
    .await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByCity, row_key = "city_{city}"),
    list(ByTown, partition_key = "town_{city}", row_key = "ids")
)]
struct Citizen {
    department: String,
    id: u32,
    city: String,
}

#[tokio::test(start_paused = true)]
async fn counts_and_long_lists() {
    let mut store = Store::new(|builder| builder);
    let staff = store.client.table::<Citizen>();
    staff.create().await.unwrap();
    for id in 0..40 {
        let citizen = Citizen { department: "Sales".into(), id, city: "Kiel".into() };
        staff.insert(&citizen).await.unwrap();
    }
    let (local, remote) = (
        || Citizen::by_city().department("Sales").city("Kiel"),
        || Citizen::by_town().city("Kiel"),
    );

    store.begin().await;
    assert_eq!(staff.query(local()).collect().await.unwrap().len(), 40);
    store.compare("a list of 40", patterns::query(local()), 40).await;
    assert_eq!(staff.query(local()).count().await.unwrap(), 40);
    store.compare("count of a list", patterns::count(patterns::query(local())), 40).await;
    assert_eq!(staff.query(remote()).count().await.unwrap(), 40);
    store.compare("count of a remote list", patterns::count(patterns::query(remote())), 40).await;
    let all = || Citizen::primary().department("Sales").id_range(..);
    assert_eq!(staff.query(all()).count().await.unwrap(), 40);
    store.compare("count of a range", patterns::count(patterns::query(all())), 40).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

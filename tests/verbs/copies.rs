//! Tests an entity with local copies and a local list.

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

fn is_adult(person: &Person) -> bool {
    person.age >= 18
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByName, row_key = "name_{last_name}_{id:06}", only(first_name)),
    index(Adult, row_key = "adult_{id:06}", when = is_adult),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
pub struct Person {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub last_name: String,
    pub age: i32,
    pub email: String,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Person)]
struct Name {
    id: u32,
    first_name: String,
    last_name: String,
}

pub(crate) fn person(id: u32, last_name: &str) -> Person {
    Person {
        department: "Sales".into(),
        id,
        first_name: "Don".into(),
        last_name: last_name.into(),
        age: 30,
        email: format!("{last_name}{id}@Contoso.com"),
    }
}

async fn staff() -> (Recorder, Table<Person>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Person>();
    staff.create_if_not_exists().await.unwrap();
    recorder.clear();
    (recorder, staff)
}

async fn rows(staff: &Table<Person>) -> Vec<String> {
    let all = staff.client().dynamic("Staff").query(Keys::partition("Sales")).collect().await;
    all.unwrap().iter().map(|row| row.row_key().to_owned()).collect()
}

#[tokio::test]
async fn copies_follow_the_primary() -> Result<(), Error> {
    let (recorder, staff) = staff().await;
    let mut jones = staff.insert(&person(1, "Jones")).await?;
    assert_eq!(
        rows(&staff).await,
        [
            "adult_000001",
            "email_jones1@contoso.com",
            "empid_000001",
            "lastname_Jones",
            "name_Jones_000001"
        ]
    );
    let by_email = staff.get(Person::by_email().department("Sales").email("JONES1@contoso.COM"));
    let by_email = by_email.await?.unwrap();
    assert_eq!(*by_email, *jones);
    assert_eq!(by_email.index(), Some("ByEmail"));
    let name = Person::by_name().department("Sales").last_name("Jones").id(1);
    let name = staff.get_as::<Name>(name).await?.unwrap();
    assert_eq!((name.id, &*name.first_name, &*name.last_name), (1, "Don", "Jones"));
    let names = staff.query(Person::by_name().department("Sales").last_name_prefix("J"));
    assert_eq!(names.select::<Name>().collect().await?.len(), 1);

    jones.last_name = "Smith".into();
    jones.email = "smith@contoso.com".into();
    jones.age = 10;
    recorder.clear();
    let smith = staff.replace(&jones).await?;
    assert_eq!(recorder.count(), 3, "two lists are read: {recorder}");
    assert_eq!(
        rows(&staff).await,
        ["email_smith@contoso.com", "empid_000001", "lastname_Smith", "name_Smith_000001"]
    );
    staff.patch_at(Person::primary().department("Sales").id(1), Person::patch().age(40)).await?;
    assert!(rows(&staff).await.contains(&"adult_000001".to_owned()));
    assert!(staff.delete(&smith).await.unwrap_err().is_precondition_failed());
    staff.delete_at(Person::primary().department("Sales").id(1)).await?;
    assert!(rows(&staff).await.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_taken_key_is_a_unique_violation() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.insert(&person(1, "Jones")).await?;
    let before = rows(&staff).await;
    let mut other = person(2, "Jones");
    other.email = "jones1@CONTOSO.com".into();
    let error = staff.insert(&other).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.index(), Some("ByEmail"));
    assert_eq!(rows(&staff).await, before);
    Ok(())
}

#[tokio::test]
async fn a_list_gives_ids_and_entities() -> Result<(), Error> {
    let (recorder, staff) = staff().await;
    for id in [152, 7, 30] {
        staff.insert(&person(id, "Jones")).await?;
    }
    recorder.clear();
    let jones = || Person::by_last_name().department("Sales").last_name("Jones");
    let ids = staff.keys(jones()).await?;
    let ids: Vec<&str> = ids.iter().map(Point::row_key).collect();
    assert_eq!(ids, ["empid_000152", "empid_000007", "empid_000030"]);
    assert_eq!(recorder.count(), 1);
    recorder.clear();
    let found = staff.query(jones()).collect().await?;
    assert_eq!(found.iter().map(|p| p.id).collect::<Vec<_>>(), [152, 7, 30]);
    assert_eq!(recorder.count(), 4);
    let mut egt = staff.transaction();
    egt.insert(&person(8, "Jones"))?.insert(&person(9, "Jones"))?;
    egt.commit().await?;
    assert_eq!(staff.keys(jones()).await?.len(), 5);
    let report = staff.bulk().insert_all((10..60).map(|id| person(id, "Jones"))).await?;
    assert_eq!((report.done, report.failed.len()), (49, 1), "30 is there already: {report:?}");
    assert_eq!(staff.keys(jones()).await?.len(), 54);
    Ok(())
}

#[tokio::test]
async fn two_entities_swap_their_email() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let mut a = staff.insert(&person(1, "Jones")).await?;
    let mut b = staff.insert(&person(2, "Smith")).await?;
    std::mem::swap(&mut a.email, &mut b.email);
    let mut egt = staff.transaction();
    egt.replace(&a)?.replace(&b)?;
    egt.commit().await?;
    let found = staff.get(Person::by_email().department("Sales").email(b.email.clone())).await?;
    assert_eq!(found.unwrap().id, 2);
    Ok(())
}

#[tokio::test]
async fn a_copy_is_written_through_its_primary() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.insert(&person(1, "Jones")).await?;
    let path = || Person::by_email().department("Sales").email("jones1@contoso.com");
    let stale = staff.get(path()).await?.unwrap();
    let mut fresh = stale.clone();
    fresh.age = 50;
    staff.replace(&fresh).await?;
    assert!(staff.replace(&stale).await.unwrap_err().is_precondition_failed());
    assert_eq!(staff.get(path()).await?.unwrap().age, 50);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Seats",
    partition_key = "{house}",
    row_key = "seat_{id:06}",
    index(ByRoom, row_key = "room_{room}_{id:06}", only()),
    index(ByPlate, row_key = "plate_{plate:lower}", only(), unique)
)]
struct Seat {
    house: String,
    id: u32,
    room: String,
    plate: String,
    notes: Option<String>,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Seat)]
struct SeatKeys {
    house: String,
    id: u32,
}

/// `only()` stores what leads to the primary, and nothing else.
#[tokio::test]
async fn a_copy_of_keys_alone_leads_to_its_primary() -> Result<(), Error> {
    let client = Client::memory();
    let seats = client.table::<Seat>();
    seats.create().await?;
    let of_id = |id: u32| Seat {
        house: "North".into(),
        id,
        room: "12".into(),
        plate: format!("K-{id}"),
        notes: Some("by the window".into()),
    };
    seats.bulk().insert_all((1..=3).map(of_id)).await?.into_result()?;
    let rows = client.dynamic("Seats");
    for (row_key, expected) in
        [("room_12_000002", vec!["EntityType"]), ("plate_k-2", vec!["EntityType", "Id", "Plate"])]
    {
        let row = rows.get("North", row_key).await?.unwrap();
        let mut names: Vec<_> = row.properties().iter().map(|(name, _)| name.to_owned()).collect();
        names.sort();
        assert_eq!(names, expected, "{row_key}");
    }
    let room = Seat::by_room().house("North").room("12");
    let found = seats.query(room).select::<SeatKeys>().collect().await?;
    assert_eq!(found.iter().map(|seat| seat.id).collect::<Vec<_>>(), [1, 2, 3]);
    let plate = Seat::by_plate().house("North").plate("K-3");
    let keys = seats.get_as::<SeatKeys>(plate).await?.unwrap();
    let primary = Seat::primary().house(&*keys.house).id(keys.id);
    assert_eq!(seats.get(primary).await?.unwrap().notes, of_id(3).notes);
    assert!(seats.insert(&Seat { id: 4, ..of_id(3) }).await.unwrap_err().is_unique_violation());
    let report = seats.check().await?;
    assert!(report.is_clean(), "{report:?}");
    Ok(())
}

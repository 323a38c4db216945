//! F: choosing keys, sorting, design for modification.

use entable::{backend::layer::Request, prelude::*};
use time::{Date, Month};

use crate::{
    model::{Employee, Worker, employee, worker},
    store::{TestResult, on_both},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Settings", partition_key = "settings", row_key = "{name}")]
struct Setting {
    name: String,
    value: String,
}

#[tokio::test]
async fn f02_everything_in_one_partition() -> TestResult {
    on_both(async |store| {
        let settings = store.table::<Setting>().await;
        let setting = |name: &str| Setting { name: name.into(), value: "x".into() };
        settings.bulk().insert_all(["b", "a"].map(setting)).await?.into_result()?;
        assert_eq!(store.count(), 1);
        let all = settings.query(Setting::primary()).collect().await?;
        assert_eq!(all.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(settings.get(Setting::primary().name("a")).await?.unwrap().value, "x");
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Devices", partition_key = "{id}", row_key = "device")]
struct Device {
    id: u64,
    name: String,
}

#[tokio::test]
async fn f03_one_entity_for_each_partition() -> TestResult {
    on_both(async |store| {
        let devices = store.table::<Device>().await;
        let device = |id| Device { id, name: "lamp".into() };
        let mut egt = store.client.transaction();
        egt.insert(&device(1))?;
        assert!(egt.insert(&device(2)).unwrap_err().is_invalid());
        egt.commit().await?;
        assert_eq!(devices.get(Device::primary().id(1_u64)).await?.unwrap().name, "lamp");
        Ok(())
    })
    .await
}

/// All three patterns for a lookup by another value, on one struct.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Clerks",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}"),
    index(Everywhere, partition_key = "email_{email:lower}", row_key = "at_{department}_{id:06}"),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
struct Findable {
    department: String,
    id: u32,
    email: String,
    last_name: String,
}

#[tokio::test]
async fn f04_lookups_by_several_criteria_are_attributes_of_one_struct() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&employee(223, "Jones")).await?;
        staff.insert(&employee(224, "Jones")).await?;
        let by_id = staff.get(Employee::primary().department("Sales").id(223)).await?;
        let by_email = Employee::by_email().department("Sales").email("jones223@contoso.com");
        let by_email = staff.get(by_email).await?;
        let by_name = Employee::by_last_name().department("Sales").last_name("Jones");
        let by_name = staff.query(by_name).collect().await?;
        assert_eq!(*by_id.unwrap(), *by_email.unwrap());
        assert_eq!(by_name.iter().map(|e| e.id).collect::<Vec<_>>(), [223, 224]);

        let clerks = store.table::<Findable>().await;
        let (department, email) = ("Sales".to_owned(), "Jo@contoso.com".to_owned());
        let jo = Findable { department, id: 7, email, last_name: "Jones".into() };
        clerks.insert(&jo).await?.wait_for_copies().await?;
        let local = Findable::by_email().department("Sales").email("jo@contoso.com");
        assert_eq!(*clerks.get(local).await?.unwrap(), jo);
        let remote = clerks.query(Findable::everywhere().email("jo@contoso.com"));
        assert_eq!(remote.collect().await?.len(), 1);
        let list = Findable::by_last_name().department("Sales").last_name("Jones");
        assert_eq!(clerks.keys(list).await?.len(), 1);
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    index(ByJoining, row_key = "hired_{hired:%Y%m%d}_{id:06}"),
    index(Newest, row_key = "newest_{hired:desc}_{id:06}", only(last_name))
)]
struct Hired {
    department: String,
    id: u32,
    last_name: String,
    hired: Date,
}

fn hired(id: u32, last_name: &str, year: i32, month: Month, day: u8) -> Hired {
    Hired {
        department: "Sales".into(),
        id,
        last_name: last_name.into(),
        hired: Date::from_calendar_date(year, month, day).unwrap(),
    }
}

fn team() -> [Hired; 4] {
    [
        hired(1, "Kwok", 2014, Month::August, 22),
        hired(2, "Cao", 2013, Month::December, 31),
        hired(3, "Hall", 2014, Month::January, 5),
        hired(4, "Cao", 2014, Month::August, 3),
    ]
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Hired)]
struct Joined {
    id: u32,
    hired: Date,
}

#[tokio::test]
async fn f05_other_sort_orders_are_copies_and_log_tails() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Hired>().await;
        staff.bulk().insert_all(team()).await?.into_result()?;
        let by_name = staff.query(Hired::by_name().department("Sales")).collect().await?;
        assert_eq!(by_name.iter().map(|h| h.id).collect::<Vec<_>>(), [2, 4, 3, 1]);
        let newest = staff.query(Hired::newest().department("Sales")).select::<Joined>().take(2);
        let newest = newest.collect().await?;
        assert_eq!(newest.iter().map(|h| h.id).collect::<Vec<_>>(), [1, 4]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn f06_updates_and_deletes_go_by_key_without_a_search() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().insert_all((1..=3).map(worker)).await?.into_result()?;
        store.requests();
        let point = |id: u32| Worker::primary().department("Sales").id(id);
        staff.patch_at(point(1), Worker::patch().age(40)).await?;
        staff.delete_at(point(2)).await?;
        let requests = store.requests();
        assert_eq!(requests.len(), 2);
        assert!(requests.iter().all(Request::is_apply));
        let mut third = staff.get(point(3)).await?.unwrap();
        third.age = None;
        staff.replace(&third).await?;
        assert!(store.requests().iter().all(|request| !request.is_scan()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn f09_one_point_read_finds_a_compound_key_and_one_query_a_tail() -> TestResult {
    on_both(async |store| {
        let reviews = store.table::<crate::model::Review>().await;
        reviews.insert(&crate::model::review(123, 2012)).await?;
        store.requests();
        let point = crate::model::Review::primary().department("Sales").id(123).year(2012);
        assert!(reviews.get(point).await?.is_some());
        assert_eq!(store.count(), 1);
        let tail = store.table::<Hired>().await;
        tail.bulk().insert_all(team()).await?.into_result()?;
        store.requests();
        let newest = tail.query(Hired::newest().department("Sales")).select::<Joined>();
        assert!(newest.first().await?.is_some());
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn f10_every_pattern_shows_what_it_costs() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let mut costs = Vec::new();
        let point = || Employee::primary().department("Sales").id(1);
        staff.insert(&employee(1, "Jones")).await?;
        costs.push(("insert with a copy and a list", store.count()));
        staff.get(point()).await?;
        costs.push(("by id", store.count()));
        staff.get(Employee::by_email().department("Sales").email("jones1@contoso.com")).await?;
        costs.push(("by e-mail", store.count()));
        let list = || Employee::by_last_name().department("Sales").last_name("Jones");
        staff.keys(list()).await?;
        costs.push(("ids by last name", store.count()));
        staff.query(list()).collect().await?;
        costs.push(("entities by last name", store.count()));
        staff
            .update(point(), |e| {
                e.age += 1;
                Ok(())
            })
            .await?;
        costs.push(("update", store.count()));
        staff.delete_at(point()).await?;
        costs.push(("delete", store.count()));
        let expected = [
            ("insert with a copy and a list", 2),
            ("by id", 1),
            ("by e-mail", 1),
            ("ids by last name", 1),
            ("entities by last name", 2),
            ("update", 2),
            ("delete", 3),
        ];
        assert_eq!(costs, expected);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn f11_sorted_by_name_and_by_joining_date() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Hired>().await;
        staff.bulk().insert_all(team()).await?.into_result()?;
        let by_date = staff.query(Hired::by_joining().department("Sales")).collect().await?;
        assert_eq!(by_date.iter().map(|h| h.id).collect::<Vec<_>>(), [2, 3, 4, 1]);
        assert_eq!(by_date[0].row_key(), "hired_20131231_000002");
        let from = Date::from_calendar_date(2014, Month::August, 1).unwrap();
        let august = staff.query(Hired::by_joining().department("Sales").hired_range(from..));
        assert_eq!(august.explain().class, CostClass::Range);
        assert_eq!(august.collect().await?.iter().map(|h| h.id).collect::<Vec<_>>(), [4, 1]);
        let caos = staff.query(Hired::by_name().department("Sales").last_name("Cao"));
        assert_eq!(caos.collect().await?.iter().map(|h| h.id).collect::<Vec<_>>(), [2, 4]);
        Ok(())
    })
    .await
}

//! A: data model, keys, system properties.

use std::collections::BTreeMap;

use entable::{EdmType, edm::ValueRef, prelude::*};
use time::{Date, Month, OffsetDateTime};
use uuid::Uuid;

use crate::{
    model::{
        Department, Employee, SampleDepartment, SampleEmployee, Worker, at, department, employee,
        sample, sample_department, sample_employees, worker,
    },
    store::{TestResult, on_both},
};

#[test]
fn a01_a_struct_is_an_entity_in_both_directions() -> Result<(), Error> {
    let row = employee(223, "Jones").to_row()?;
    let bag = row.to_bag()?;
    let properties: Vec<(&str, EdmType)> =
        bag.iter().map(|(name, value)| (name, value.edm_type())).collect();
    let expected = [
        ("EntityType", EdmType::String),
        ("FirstName", EdmType::String),
        ("LastName", EdmType::String),
        ("Age", EdmType::Int32),
        ("Email", EdmType::String),
    ];
    assert_eq!(properties, expected);
    assert_eq!((row.partition_key(), row.row_key()), ("Sales", "empid_000223"));
    assert_eq!(Employee::from_row(&row)?, employee(223, "Jones"));
    Ok(())
}

#[tokio::test]
async fn a02_the_same_pair_of_keys_twice_is_a_conflict() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert(&worker(1)).await?;
        let error = staff.insert(&Worker { age: None, ..worker(1) }).await.unwrap_err();
        assert!(error.is_conflict());
        assert_eq!(error.code(), Some("EntityAlreadyExists"));
        assert_eq!(error.keys(), Some(("Sales", "empid_000001")));
        let kept = staff.get(Worker::primary().department("Sales").id(1)).await?.unwrap();
        assert_eq!(*kept, worker(1));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a03_the_timestamp_is_the_stores() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let point = || Worker::primary().department("Sales").id(1);
        let before = OffsetDateTime::now_utc();
        let mut written = staff.insert(&worker(1)).await?;
        assert_eq!(written.timestamp(), None, "the answer to a write does not tell");
        assert_eq!(written.row().get("Timestamp")?, None, "it is never sent");
        let first = staff.get(point()).await?.unwrap().timestamp().unwrap();
        assert!((first - before).abs().whole_seconds() < 60, "{first}");
        written.age = Some(35);
        staff.replace(&written).await?;
        let second = staff.get(point()).await?.unwrap().timestamp().unwrap();
        assert!(second > first);
        let staff = store.client.dynamic("Staff");
        let forged = DynamicEntity::new("Sales", "forged").with("Timestamp", "2014-08-22");
        let error = staff.insert(&forged).await.unwrap_err();
        assert!(error.is_invalid(), "{error:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a04_the_version_comes_with_the_entity_and_guards_its_write() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert(&worker(1)).await?;
        let point = || Worker::primary().department("Sales").id(1);
        let mut mine = staff.get(point()).await?.unwrap();
        let mut theirs = staff.get(point()).await?.unwrap();
        theirs.age = Some(50);
        staff.replace(&theirs).await?;
        mine.age = Some(60);
        assert!(staff.replace(&mine).await.unwrap_err().is_precondition_failed());
        assert!(staff.delete(&mine).await.unwrap_err().is_precondition_failed());
        assert_eq!(staff.get(point()).await?.unwrap().age, Some(50));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a05_every_read_and_write_carries_the_etag() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let point = || Worker::primary().department("Sales").id(1);
        let inserted = staff.insert(&worker(1)).await?;
        let read = staff.get(point()).await?.unwrap();
        assert_eq!(read.etag(), inserted.etag());
        assert!(read.etag().to_string().starts_with("W/\"datetime'"), "{}", read.etag());
        let queried = staff.query(Worker::primary().department("Sales")).first().await?.unwrap();
        assert_eq!(queried.etag(), inserted.etag());
        let patched = staff.patch_at(point(), Worker::patch().age(1)).await?;
        let etag = patched.etag.unwrap();
        assert_ne!(etag, inserted.etag());
        let guard = Condition::Match(etag);
        store.client.dynamic("Staff").delete("Sales", "empid_000001", guard).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a06_four_rows_of_two_types_list_in_key_order() -> TestResult {
    on_both(async |store| {
        sample(&store.client).await?;
        let rows = store.client.dynamic("Sample").query(Filter::Constant(true)).allow_scan();
        let rows = rows.collect().await?;
        let keys: Vec<String> = rows
            .iter()
            .map(|row| format!("{}/{}", Stored::partition_key(row), Stored::row_key(row)))
            .collect();
        let expected =
            ["Marketing/00001", "Marketing/00002", "Marketing/Department", "Sales/00010"];
        assert_eq!(keys, expected);
        let names: Vec<&str> = rows[0]
            .properties()
            .iter()
            .map(|(name, _)| name)
            .filter(|n| *n != "EntityType")
            .collect();
        assert_eq!(names, ["FirstName", "LastName", "Age", "Email"]);
        let employees = store.client.table::<SampleEmployee>();
        for expected in sample_employees() {
            let point = SampleEmployee::primary().department(&expected.department).id(expected.id);
            assert_eq!(*employees.get(point).await?.unwrap(), expected);
        }
        let departments = store.client.table::<SampleDepartment>();
        let marketing = SampleDepartment::primary().department("Marketing");
        let marketing = departments.get(marketing).await?.unwrap();
        assert_eq!(*marketing, sample_department());
        assert!(rows.iter().all(|row| row.timestamp().is_some()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a07_one_table_takes_any_type() -> TestResult {
    on_both(async |store| {
        let client = &store.client;
        client.create_table("Things").await?;
        let workers = client.table_named::<Worker>("Things");
        let departments = client.table_named::<Department>("Things");
        workers.insert(&worker(1)).await?;
        departments.insert(&department("Sales")).await?;
        assert_eq!(workers.query(Worker::scan()).collect().await?.len(), 1);
        assert_eq!(departments.query(Department::scan()).collect().await?.len(), 1);
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Types", partition_key = "types", row_key = "one")]
struct AllTypes {
    text: String,
    small: i32,
    large: i64,
    double: f64,
    flag: bool,
    time: OffsetDateTime,
    guid: Uuid,
    binary: Vec<u8>,
}

#[tokio::test]
async fn a08_rust_types_have_their_edm_types() -> TestResult {
    on_both(async |store| {
        let types = store.table::<AllTypes>().await;
        let all = AllTypes {
            text: "O'Brien \u{1f600}".into(),
            small: i32::MIN,
            large: i64::MAX,
            double: -0.1,
            flag: true,
            time: at("2014-08-22T00:50:32.1234567Z"),
            guid: Uuid::from_u128(0xc9da_6455_213d_42c9_9a79_3e91_49a5_7833),
            binary: vec![0, 255],
        };
        types.insert(&all).await?;
        assert_eq!(*types.get(AllTypes::primary()).await?.unwrap(), all);
        let raw = store.client.dynamic("Types").get("types", "one").await?.unwrap();
        let found: BTreeMap<&str, EdmType> =
            raw.properties().iter().map(|(name, value)| (name, value.edm_type())).collect();
        let expected = BTreeMap::from([
            ("EntityType", EdmType::String),
            ("Text", EdmType::String),
            ("Small", EdmType::Int32),
            ("Large", EdmType::Int64),
            ("Double", EdmType::Double),
            ("Flag", EdmType::Boolean),
            ("Time", EdmType::DateTime),
            ("Guid", EdmType::Guid),
            ("Binary", EdmType::Binary),
        ]);
        assert_eq!(found, expected);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a09_a_value_has_its_type_and_a_wrong_one_is_an_error() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let raw = store.client.dynamic("Staff");
        let entity = |key: &str| {
            DynamicEntity::new("Sales", key).with("EntityType", "Worker").with("LastName", "Jones")
        };
        raw.insert(&entity("empid_000001").with("Age", 34)).await?;
        raw.insert(&entity("empid_000002").with("Age", "thirty-four")).await?;
        let first = raw.get("Sales", "empid_000001").await?.unwrap();
        let second = raw.get("Sales", "empid_000002").await?.unwrap();
        assert_eq!(first.get("Age"), Some(&Value::Int32(34)));
        assert_eq!(second.get("Age"), Some(&Value::String("thirty-four".into())));
        assert_eq!(second.i32("Age").unwrap_err().property(), Some("Age"));

        let error = staff.get(Worker::primary().department("Sales").id(2)).await.unwrap_err();
        assert!(error.is_decode());
        assert_eq!(error.property(), Some("Age"));
        assert_eq!(error.keys(), Some(("Sales", "empid_000002")));
        for part in ["Staff", "Age", "Edm.Int32", "Edm.String"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let query = staff.query(Worker::primary().department("Sales"));
        assert!(query.collect().await.unwrap_err().is_decode());
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Skill {
    name: String,
    years: u8,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "cv_{id:06}")]
struct Cv {
    department: String,
    id: u32,
    #[table(json)]
    skills: Vec<Skill>,
}

#[tokio::test]
async fn a10_complex_data_is_one_json_property() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Cv>().await;
        let skills = vec![Skill { name: "Rust".into(), years: 5 }];
        let cv = Cv { department: "Sales".into(), id: 1, skills };
        staff.insert(&cv).await?;
        let raw = store.client.dynamic("Staff").get("Sales", "cv_000001").await?.unwrap();
        assert_eq!(raw.str("Skills")?, r#"[{"name":"Rust","years":5}]"#);
        let read = staff.get(Cv::primary().department("Sales").id(1)).await?.unwrap();
        assert_eq!(*read, cv);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a11_conditions_on_keys_are_told_from_conditions_on_properties() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<SampleEmployee>().await;
        let sales = || staff.query(SampleEmployee::primary().department("Sales"));
        let by_key = sales().filter(SampleEmployee::ID.eq(10)).explain();
        assert_eq!(by_key.class, CostClass::Point, "{by_key}");
        assert!(by_key.filter.contains("RowKey eq '00010'"), "{by_key}");
        let by_property = sales().filter(SampleEmployee::LAST_NAME.eq("Kwok")).explain();
        assert_eq!(by_property.class, CostClass::PartitionScan, "{by_property}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a12_the_table_is_named_by_the_type_or_by_the_call() -> TestResult {
    on_both(async |store| {
        let client = &store.client;
        let staff = store.table::<Worker>().await;
        assert_eq!(staff.name(), "Staff");
        let archive = client.table_named::<Worker>("Archive");
        assert_eq!(archive.name(), "Archive");
        archive.create().await?;
        archive.insert(&worker(1)).await?;
        assert_eq!(staff.query(Worker::scan()).collect().await?.len(), 0);
        assert_eq!(archive.query(Worker::scan()).collect().await?.len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a14_a_table_goes_in_one_request() -> TestResult {
    on_both(async |store| {
        let staff = store.client.table::<Worker>();
        staff.create().await?;
        assert!(staff.create().await.unwrap_err().is_conflict());
        assert!(!staff.create_if_not_exists().await?);
        staff.bulk().insert_all((1..=300).map(worker)).await?.into_result()?;
        store.requests();
        staff.delete_table().await?;
        assert_eq!(store.count(), 1);
        assert!(staff.delete_table().await.unwrap_err().is_not_found());
        assert!(!staff.delete_table_if_exists().await?);
        let error = staff.insert(&worker(1)).await.unwrap_err();
        assert_eq!(error.code(), Some("TableNotFound"));
        staff.create().await?;
        assert!(staff.query(Worker::scan()).collect().await?.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a15_account_table_and_partition_key_identify_a_partition() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let sales: Partition<Worker> = Worker::primary().department("Sales").into();
        let filter = "(PartitionKey eq 'Sales') and (RowKey ge 'empid_') and (RowKey lt 'empid`')";
        assert_eq!(sales.keys().filter().to_string(), filter);
        let department = |id: u32| ["Sales", "Marketing"][id as usize % 2].to_owned();
        let rows = (0..20).map(|id| Worker { department: department(id), ..worker(id) });
        staff.bulk().insert_all(rows).await?.into_result()?;
        assert_eq!(store.count(), 2, "one transaction for each partition");
        assert_eq!(staff.query(sales.clone()).collect().await?.len(), 10);

        // Another table, and a table of that name in another account, have a "Sales" of their own.
        let former = store.client.table_named::<Worker>("Former");
        let account = Client::memory();
        let elsewhere = account.table::<Worker>();
        for other in [&former, &elsewhere] {
            other.create().await?;
            let jones = Worker { age: Some(60), ..worker(2) };
            other.insert(&jones).await?;
            let found = other.query(sales.clone()).collect().await?;
            assert_eq!(found.iter().map(|row| row.age).collect::<Vec<_>>(), [Some(60)]);
        }
        let here = staff.get(Worker::primary().department("Sales").id(2)).await?.unwrap();
        assert_eq!(here.age, Some(34));
        // So has a transaction: the key that "Staff" holds is free in "Former".
        let taken = || Worker { department: "Sales".into(), ..worker(4) };
        let mut egt = staff.transaction();
        egt.insert(&taken())?;
        assert!(egt.commit().await.unwrap_err().is_conflict());
        let mut egt = former.transaction();
        egt.insert(&taken())?;
        egt.commit().await?;
        assert_eq!(former.query(sales).collect().await?.len(), 2);
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department_name}", row_key = "{employee_id}")]
struct Named {
    department_name: String,
    employee_id: String,
    first_name: String,
    last_name: String,
    age: i32,
    #[table(rename = "EmailAddress")]
    email: String,
}

#[test]
fn a17_the_struct_of_the_query_examples() -> Result<(), Error> {
    let named = Named {
        department_name: "Sales".into(),
        employee_id: "00010".into(),
        first_name: "Ken".into(),
        last_name: "Kwok".into(),
        age: 23,
        email: "kenk@contoso.com".into(),
    };
    let row = named.to_row()?;
    assert_eq!((row.partition_key(), row.row_key()), ("Sales", "00010"));
    let names: Vec<String> = row.to_bag()?.iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["EntityType", "FirstName", "LastName", "Age", "EmailAddress"]);
    assert_eq!(row.get("EmailAddress")?, Some(ValueRef::String("kenk@contoso.com")));
    assert_eq!(Named::EMAIL.name(), "EmailAddress");
    assert_eq!(Named::from_row(&row)?, named);
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
enum Level {
    Error,
    Critical,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Events", partition_key = "{level}", row_key = "{day:%Y%m%d}_{number:05}")]
struct Event {
    level: Level,
    day: Date,
    number: u32,
}

#[test]
fn a18_key_parts_of_other_types_are_written_and_read_back() -> Result<(), Error> {
    let day = Date::from_calendar_date(2014, Month::July, 31).unwrap();
    let event = Event { level: Level::Critical, day, number: 7 };
    let row = event.to_row()?;
    assert_eq!((row.partition_key(), row.row_key()), ("Critical", "20140731_00007"));
    assert_eq!(Event::from_row(&row)?, event);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "Sales", row_key = "{id:08}")]
struct Padded {
    id: u32,
}

#[tokio::test]
async fn a19_numbers_in_keys_are_padded_and_never_cut() -> TestResult {
    on_both(async |store| {
        assert_eq!(Padded { id: 123 }.to_row()?.row_key(), "00000123");
        let staff = store.table::<Padded>().await;
        staff.bulk().insert_all([123, 9, 10].map(|id| Padded { id })).await?.into_result()?;
        let ids: Vec<u32> =
            staff.query(Padded::primary()).collect().await?.iter().map(|p| p.id).collect();
        assert_eq!(ids, [9, 10, 123]);
        store.requests();
        let error = staff.insert(&Padded { id: 100_000_000 }).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains('8'), "{error}");
        assert!(staff.get(Padded::primary().id(100_000_000_u32)).await.unwrap_err().is_invalid());
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{a:05}", row_key = "{b:06}_{at:desc}_{c:02}")]
struct Widths {
    a: u32,
    b: u32,
    at: OffsetDateTime,
    c: u8,
}

#[test]
fn a20_every_part_has_its_own_width() -> Result<(), Error> {
    let widths = Widths { a: 1, b: 223, at: at("2014-08-22T00:50:32Z"), c: 7 };
    let row = widths.to_row()?;
    assert_eq!(row.partition_key(), "00001");
    assert_eq!(row.row_key(), "000223_2519936321679999999_07");
    assert_eq!(Widths::from_row(&row)?, widths);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Users", partition_key = "{user}", row_key = "profile")]
struct Profile {
    user: Uuid,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Users", partition_key = "{user}", row_key = "order_{number:06}")]
struct Order {
    user: Uuid,
    number: u32,
}

#[tokio::test]
async fn a21_a_users_entities_share_a_partition_and_a_transaction() -> TestResult {
    on_both(async |store| {
        store.table::<Profile>().await;
        let user = Uuid::from_u128(7);
        let mut egt = store.client.transaction();
        egt.insert(&Profile { user, name: "Ann".into() })?.insert(&Order { user, number: 1 })?;
        egt.commit().await?;
        assert_eq!(store.count(), 1);
        let keys = store.row_keys("Users", &user.to_string()).await;
        assert_eq!(keys, ["order_000001", "profile"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a22_names_keys_and_dates_are_checked_before_anything_is_sent() -> TestResult {
    on_both(async |store| {
        let client = &store.client;
        store.table::<Worker>().await;
        for (name, code) in [
            ("1st", "InvalidResourceName"),
            ("My-Table", "InvalidResourceName"),
            ("ab", "OutOfRangeInput"),
            ("tables", "InvalidInput"),
        ] {
            let error = client.create_table(name).await.unwrap_err();
            assert_eq!(error.code(), Some(code), "{name}");
        }
        let long = "x".repeat(64);
        assert_eq!(client.create_table(&long).await.unwrap_err().code(), Some("OutOfRangeInput"));
        let staff = client.dynamic("Staff");
        let of = |key: &str| DynamicEntity::new("Sales", key);
        let refused = async |entity: DynamicEntity, code| {
            let error = staff.insert(&entity).await.unwrap_err();
            assert_eq!(error.code(), Some(code), "{error}");
        };
        refused(of("1").with("My-Name", 1), "PropertyNameInvalid").await;
        refused(of("1").with("1st", 1), "PropertyNameInvalid").await;
        refused(of("1").with("x".repeat(256), 1), "PropertyNameTooLong").await;
        for forbidden in ['/', '\\', '#', '?', '\n', '\u{7f}'] {
            refused(of(&format!("a{forbidden}b")), "OutOfRangeInput").await;
        }
        let all = AllTypes {
            text: String::new(),
            small: 0,
            large: 0,
            double: 0.0,
            flag: false,
            time: at("1600-12-31T23:59:59Z"),
            guid: Uuid::nil(),
            binary: Vec::new(),
        };
        let error = client.table_named::<AllTypes>("Staff").insert(&all).await.unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(error.property(), Some("Time"), "{error}");
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

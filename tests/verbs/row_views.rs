//! Tests rows that a query shows in place: the same as those that it collects, read in the same requests.

use entable::{
    ErrorKind, RootKey,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique),
    list(ByName, row_key = "name_{name}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    email: String,
    age: Option<i32>,
    #[table(encrypt)]
    note: String,
}

fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        name: if id.is_multiple_of(2) { "Hall" } else { "Jones" }.into(),
        email: format!("J{id}@contoso.com"),
        age: (!id.is_multiple_of(3)).then_some(34),
        note: format!("note {id}"),
    }
}

fn keyring() -> Keyring {
    Keyring::builder()
        .primary(&KeyScope::default_scope(), &RootKey::from_bytes([1; 32]))
        .build()
        .unwrap()
}

async fn staff() -> (Table<Employee>, Recorder) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).keys(keyring()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    staff.bulk().insert_all((1..=30).map(employee)).await.unwrap().into_result().unwrap();
    (staff, recorder)
}

/// Makes the entity of a row from its columns, the texts borrowed where they can be.
fn entity(row: RowView<'_, Employee>) -> Result<Employee, Error> {
    let text = |text: Option<&str>| text.unwrap_or("missing").to_owned();
    Ok(Employee {
        department: row.get(Employee::DEPARTMENT)?,
        id: row.get(Employee::ID)?,
        name: text(row.text(Employee::NAME)?),
        email: text(row.text(Employee::EMAIL)?),
        age: row.get(Employee::AGE)?,
        note: text(row.text(Employee::NOTE)?),
    })
}

#[tokio::test]
async fn shown_rows_are_the_collected_ones_in_the_same_requests() {
    let (staff, recorder) = staff().await;
    let sales = || staff.query(Employee::primary().department("Sales"));
    let queries = [
        sales(),
        sales().take(7).page_size(3),
        sales().take(0),
        sales().page_size(4).filter(Employee::AGE.ge(30) & Employee::NAME.eq("Hall")),
        staff.query(Employee::primary().department("Sales").id_range(3..9)),
        staff.query(Employee::by_email().department("Sales")).page_size(7),
        staff.query(Employee::by_name().department("Sales").name("Jones")),
        staff.query(Employee::primary().department("None")),
    ];
    for query in queries {
        recorder.clear();
        let collected = query.collect().await.unwrap();
        let requests = recorder.requests().len();
        recorder.clear();
        let (mut shown, mut keys) = (Vec::new(), Vec::new());
        let show = |row: RowView<'_, Employee>| {
            assert_eq!(row.etag().is_some(), row.timestamp().is_some());
            keys.push((row.keys().0.to_owned(), row.keys().1.to_owned(), row.etag().unwrap()));
            shown.push(entity(row)?);
            Ok(())
        };
        let count = query.for_each_ref(show).await.unwrap();
        assert_eq!(recorder.requests().len(), requests, "{query:?}");
        let of_stored = |stored: &Stored<Employee>| {
            (stored.partition_key().to_owned(), stored.row_key().to_owned(), stored.etag())
        };
        assert_eq!(keys, collected.iter().map(of_stored).collect::<Vec<_>>(), "{query:?}");
        assert_eq!(count, u64::try_from(shown.len()).unwrap());
        let collected: Vec<_> = collected.into_iter().map(Stored::into_inner).collect();
        // The path of the index compares in lower case, and its copies have the text as it is.
        assert_eq!(shown, collected, "{query:?}");
    }
}

#[tokio::test]
async fn an_error_of_the_closure_ends_the_query() {
    let (staff, recorder) = staff().await;
    let query = staff.query(Employee::primary().department("Sales")).page_size(5);
    recorder.clear();
    let mut seen = 0;
    let stop = |_: RowView<'_, Employee>| {
        seen += 1;
        if seen < 7 { Ok(()) } else { Err(Error::new(ErrorKind::Rejected, "enough")) }
    };
    let error = query.for_each_ref(stop).await.unwrap_err();
    assert!(error.is_rejected() && error.to_string().contains("enough"), "{error}");
    assert_eq!((seen, recorder.requests().len()), (7, 2));
}

#[tokio::test]
async fn a_row_of_another_type_is_skipped_and_a_wrong_value_is_an_error_where_it_is_read() {
    let (staff, _) = staff().await;
    let rows = staff.client().dynamic("Staff");
    let other = DynamicEntity::new("Sales", "empid_000099").with("EntityType", "Robot");
    rows.insert(&other).await.unwrap();
    let wrong = DynamicEntity::new("Sales", "empid_000000").with("EntityType", "Employee");
    rows.insert(&wrong.with("Name", 7).with("Age", "old")).await.unwrap();
    let query = staff.query(Employee::primary().department("Sales").id_range(0..2));
    assert_eq!(query.for_each_ref(|_| Ok(())).await.unwrap(), 2, "no value is read");
    for read in [
        |row: RowView<'_, Employee>| row.text(Employee::NAME).map(drop),
        |row: RowView<'_, Employee>| row.get(Employee::AGE).map(drop),
    ] {
        let error = query.for_each_ref(read).await.unwrap_err();
        assert!(error.is_decode(), "{error}");
        assert_eq!(error.keys(), Some(("Sales", "empid_000000")));
    }
    let all = staff.query(Employee::primary().department("Sales").id_range(90..));
    assert_eq!(all.for_each_ref(|_| Ok(())).await.unwrap(), 0);
}

#[tokio::test]
async fn the_text_of_a_field_in_the_keys_is_not_taken_for_a_missing_one() {
    let (staff, _) = staff().await;
    let query = staff.query(Employee::primary().department("Sales"));
    let read = |row: RowView<'_, Employee>| row.text(Employee::DEPARTMENT).map(drop);
    let error = query.for_each_ref(read).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("`get`"), "{error}");
}

mod first {
    use entable::prelude::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "{id:06}",
        entity_type = "Worker"
    )]
    pub struct WorkerV1 {
        pub department: String,
        pub id: u32,
    }
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    entity_type = "Worker",
    version = 2,
    upgrade_from(first::WorkerV1)
)]
struct Worker {
    department: String,
    id: u32,
    age: i32,
}

impl From<first::WorkerV1> for Worker {
    fn from(old: first::WorkerV1) -> Self {
        Self { department: old.department, id: old.id, age: 0 }
    }
}

#[tokio::test]
async fn a_row_of_another_version_is_an_error_that_names_the_way_out() {
    let client = Client::memory();
    let old = client.table::<first::WorkerV1>();
    old.create().await.unwrap();
    old.insert(&first::WorkerV1 { department: "Sales".into(), id: 7 }).await.unwrap();
    let query = client.table::<Worker>().query(Worker::primary().department("Sales"));
    assert_eq!(query.collect().await.unwrap()[0].age, 0);
    let error = query.for_each_ref(|_| Ok(())).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("`collect`"), "{error}");
    assert_eq!(error.keys(), Some(("Sales", "000007")));
}

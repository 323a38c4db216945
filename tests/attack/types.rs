//! Tests type names, inference and bounds of derived code.

use std::collections::BTreeMap;

use entable::prelude::*;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::{Contact, Employee, employee, point, staff};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Ints", partition_key = "{a}_{b}_{c}_{d}", row_key = "{e}_{f}_{g}_{h}_{i}")]
pub struct Ints {
    pub a: i8,
    pub b: i16,
    pub c: i32,
    pub d: i64,
    pub e: u8,
    pub f: u16,
    pub g: u32,
    pub h: u64,
    pub i: bool,
    #[table(rename = "Own")]
    pub own: Option<u64>,
    pub x8: i8,
    pub x16: Option<u16>,
    pub x64: i64,
    pub f32: f32,
    pub f64: Option<f64>,
}

#[test]
fn integer_literals_are_inferred_for_every_type() {
    let step = Ints::primary().a(-1).b(-2).c(-3).d(-4);
    let range = step.clone().e(1).f(2).g(3).h_range(100..=199);
    let point = step.e(1).f(2).g(3).h(4).i(true);
    let _: &Range<Ints> = &range;
    let _: &Point<Ints> = &point;
    let _ = Ints::X8.ge(3)
        & Ints::X16.eq(5)
        & Ints::X64.lt(-5)
        & Ints::F32.le(1.5)
        & Ints::F64.gt(2.5)
        & !Ints::H.eq(7)
        & Ints::I.eq(true);
    let _ = Ints::patch().x8(1).x16(2).x64(3).f32(1.0).f64(2.0).remove_f64();
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Texts", partition_key = "{tenant}", row_key = "t_{name}")]
pub struct Texts {
    pub tenant: String,
    pub name: String,
    pub nick: Option<String>,
    pub bytes: Option<Vec<u8>>,
    pub raw: bytes::Bytes,
    pub id: Option<Uuid>,
    pub day: Option<Date>,
    pub at: Option<OffsetDateTime>,
}

#[test]
fn texts_are_given_as_anything_that_is_text() {
    let owned = String::from("x");
    let _ = Texts::primary().tenant("x").name("y");
    let _ = Texts::primary().tenant(&owned).name(&*owned);
    let _ = Texts::primary().tenant(owned.clone()).name_prefix(&owned);
    let _ = Texts::primary().tenant(owned.as_str()).name_prefix(owned.clone());
    let _ = Texts::primary().tenant(format!("{owned}x")).name_range("a".."b");
    let _ = Texts::primary().tenant("x").name_range("a"..);
    let _ = Texts::primary().tenant("x").name_range(owned.clone()..);
    let _ = Texts::primary().tenant("x").name_range(owned.as_str()..);
    let _ = Texts::NICK.eq("x") & Texts::NICK.eq(&owned) & Texts::NICK.ne(owned.clone());
    let _ = Texts::BYTES.eq(vec![1, 2]) & Texts::RAW.eq(bytes::Bytes::from_static(b"x"));
    let _ = Texts::ID.eq(Uuid::nil()) & Texts::AT.ge(OffsetDateTime::UNIX_EPOCH);
    let _ = Texts::patch().nick("x").nick(&owned).nick(owned).remove_nick();
    let _ = Texts::patch().id(Uuid::nil()).day(Date::MIN).bytes(vec![1]);
}

#[derive(Debug)]
enum MyError {
    Table(Error),
    Other(BoxError),
}

impl From<Error> for MyError {
    fn from(error: Error) -> Self {
        Self::Table(error)
    }
}

impl From<BoxError> for MyError {
    fn from(error: BoxError) -> Self {
        Self::Other(error)
    }
}

#[tokio::test]
async fn errors_convert_with_a_question_mark() {
    async fn own() -> Result<(), MyError> {
        let (_, staff) = staff().await;
        staff.insert(&employee(1)).await?;
        staff.insert(&employee(1)).await?;
        Ok(())
    }
    async fn boxed() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        own().await.map_err(|e| match e {
            MyError::Table(e) => BoxError::from(e),
            MyError::Other(e) => e,
        })?;
        Ok(())
    }
    async fn plain() -> Result<(), Box<dyn std::error::Error>> {
        let (_, staff) = staff().await;
        staff.insert(&employee(1)).await?;
        staff
            .update(point(1), |e| {
                e.age = "33".parse::<i32>()?;
                e.note = Some(std::str::from_utf8(b"x")?.to_owned());
                if e.age > 100 {
                    return Err("too old".into());
                }
                Ok(())
            })
            .await?;
        Ok(())
    }
    assert!(matches!(own().await, Err(MyError::Table(e)) if e.is_conflict()));
    assert!(boxed().await.is_err());
    plain().await.unwrap();
}

fn name_of(e: &Employee) -> &str {
    &e.first_name
}

struct Page1 {
    query: Query<Employee, Stored<Employee>>,
    cursor: Option<Cursor>,
}

#[tokio::test]
async fn everything_moves_into_tasks_and_structs() -> Result<(), Error> {
    let (client, staff) = staff().await;
    let rows: Vec<Employee> = (1..=20).map(employee).collect();
    staff.bulk().insert_all(&rows).await?;
    let query = staff
        .query(Employee::primary().department("Sales"))
        .filter(Employee::AGE.ge(30) & !Employee::LAST_NAME.eq("Jones"))
        .page_size(5);
    let task = tokio::spawn({
        let query = query.clone();
        async move {
            let mut found = 0;
            let mut stream = query.stream();
            while let Some(employee) = stream.next().await {
                let employee = employee?;
                found += name_of(&employee).len();
            }
            Ok::<_, Error>(found)
        }
    });
    assert_eq!(task.await.unwrap()?, 60);
    let mut state = Page1 { query, cursor: None };
    let page = state.query.page(state.cursor.take()).await?;
    state.cursor = page.next;
    assert_eq!(state.query.page(state.cursor.clone()).await?.items[0].id, 6);
    let tasks: Vec<_> = (100..140)
        .map(|id| {
            let staff = client.table::<Employee>();
            tokio::spawn(async move {
                staff.insert(&employee(id)).await?;
                staff.update(point(id), |e| Ok(e.age += 1)).await?;
                staff.patch_at(point(id), Employee::patch().salary(1.0)).await?;
                staff.get_many([point(id), point(1)]).await?;
                let mut egt = staff.transaction();
                egt.delete_at(point(id))?.insert_or_replace(&employee(id + 1000))?;
                egt.commit().await?;
                staff.bulk().insert_or_replace_all(vec![employee(id)]).await?;
                staff.query_many([Employee::primary().department("Sales")]).collect().await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap()?;
    }
    Ok(())
}

#[tokio::test]
async fn many_points_from_arrays_vectors_and_iterators() -> Result<(), Error> {
    let (_, staff) = staff().await;
    for id in 1..=3 {
        staff.insert(&employee(id)).await?;
    }
    let array = staff.get_many([point(3), point(9), point(1)]).await?;
    let ids: Vec<_> = array.iter().map(|e| e.as_ref().map(|e| e.id)).collect();
    assert_eq!(ids, [Some(3), None, Some(1)]);
    assert_eq!(staff.get_many(vec![point(1)]).await?.len(), 1);
    assert_eq!(staff.get_many((1..=50).map(point)).await?.iter().flatten().count(), 3);
    assert_eq!(staff.get_many(Vec::<Point<Employee>>::new()).await?.len(), 0);
    let steps: BTreeMap<u32, Point<Employee>> = (1..=2).map(|id| (id, point(id))).collect();
    assert_eq!(staff.get_many(steps.into_values()).await?.len(), 2);
    let contact = staff.get_as::<Contact>(point(2)).await?.unwrap();
    assert_eq!((contact.id, &*contact.department), (2, "Sales"));
    let don: Option<Stored<Employee>> = staff.get(point(2)).await?;
    assert_eq!(don.unwrap().into_inner(), employee(2));
    Ok(())
}

//! Tests that a projection reads rows without a property as the entity reads them.

use entable::prelude::*;

use crate::store::{TestResult, on_both};

fn forty() -> i32 {
    40
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "AbsentStaff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", only(age, hours, tags))
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    #[table(default)]
    age: i32,
    #[table(default = forty)]
    hours: i32,
    #[table(json, default)]
    tags: Vec<String>,
    score: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Employee)]
struct Brief {
    id: u32,
    age: i32,
    hours: i32,
    tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
enum Staff {
    Brief(Brief),
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Employee)]
struct Mail {
    email: String,
}

fn brief(id: u32) -> Brief {
    Brief { id, age: 0, hours: 40, tags: Vec::new() }
}

#[tokio::test]
async fn a_projection_has_the_defaults_of_its_entity() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let rows = store.client.dynamic("AbsentStaff");
        // Rows of a program that knew none of the fields with a default.
        for id in [1_u32, 2] {
            let email = format!("a{id}@x");
            let old = DynamicEntity::new("Sales", format!("empid_{id:06}"))
                .with("EntityType", "Employee")
                .with("Email", email.as_str());
            rows.insert(&old).await?;
            let copy = DynamicEntity::new("Sales", format!("email_{email}"))
                .with("EntityType", "Employee#ByEmail")
                .with("Email", email.as_str())
                .with("Id", i64::from(id));
            rows.insert(&copy).await?;
        }
        let point = Employee::primary().department("Sales").id(1);
        let read = staff.get(point.clone()).await?.unwrap();
        assert_eq!((read.age, read.hours, read.tags.len()), (0, 40, 0));
        assert_eq!(*staff.get_as::<Brief>(point).await?.unwrap(), brief(1));
        let copy = Employee::by_email().department("Sales").email("a2@x");
        assert_eq!(*staff.get_as::<Brief>(copy).await?.unwrap(), brief(2));
        let all = staff.query(Employee::primary().department("Sales")).select::<Brief>();
        let found = all.collect().await?;
        assert_eq!(found.iter().map(|row| (**row).clone()).collect::<Vec<_>>(), [1, 2].map(brief));
        let set = client_set(&store.client, "AbsentStaff").await?;
        assert_eq!(set, [1, 2].map(|id| Staff::Brief(brief(id))));
        let mails = staff.query(Employee::primary().department("Sales")).select::<Mail>();
        assert_eq!(mails.collect().await?.len(), 2);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_projection_refuses_a_row_without_a_property_that_has_no_default() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let old = DynamicEntity::new("Sales", "empid_000001").with("EntityType", "Employee");
        store.client.dynamic("AbsentStaff").insert(&old).await?;
        let point = Employee::primary().department("Sales").id(1);
        let error = staff.get_as::<Mail>(point).await.unwrap_err();
        assert!(error.is_decode() && error.to_string().contains("Email"), "{error}");
        Ok(())
    })
    .await
}

async fn client_set(client: &Client, table: &str) -> Result<Vec<Staff>, Error> {
    let rows = client.set::<Staff>(table).query(Keys::partition("Sales")).collect().await?;
    Ok(rows.into_iter().map(Stored::into_inner).collect())
}

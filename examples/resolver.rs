//! Resolvers: a closure that gets the keys, Timestamp, properties and ETag of each row decides what the row is.
//!
//! A set does this for types that are declared, by their EntityType. A resolver is for rows that need a rule of
//! the program's own, such as old rows that say their type nowhere.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{Bag, Row, prelude::*};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    age: i32,
}

/// What a row of the table is.
#[derive(Debug)]
enum Found {
    Employee(Stored<Employee>),
    /// A row of an older program: only its head count is known.
    Department {
        head_count: i32,
    },
}

/// Makes an employee of keys and properties. `Stored` joins it to the ETag, so that it can be written back.
fn employee(
    partition_key: &str,
    row_key: &str,
    properties: &Bag,
    etag: &ETag,
) -> Result<Found, Error> {
    let mut row = Row::build(partition_key, row_key);
    for (name, value) in properties.iter() {
        row.put(name, value.as_ref());
    }
    let employee = Employee::from_row(&row.finish()?)?;
    Ok(Found::Employee(Stored::under(employee, etag.clone())))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::memory();
    let staff: Table<Employee> = client.table();
    staff.create().await?;
    staff.insert(&Employee { department: "Sales".into(), id: 223, age: 34 }).await?;
    let old = DynamicEntity::new("Sales", "dept").with("HeadCount", 153);
    client.dynamic("Staff").insert(&old).await?;

    // One query for rows of both kinds. The closure also gets the time of the last change.
    let rows = client.dynamic("Staff").query(Keys::partition("Sales"));
    let rows = rows.resolve(|partition_key, row_key, timestamp, properties, etag| {
        println!("{row_key}: changed {}", timestamp.map_or_else(String::new, |at| at.to_string()));
        match properties.get("HeadCount").and_then(Value::as_i32) {
            Some(head_count) => Ok(Found::Department { head_count }),
            None => employee(partition_key, row_key, properties, etag),
        }
    });
    let found = rows.collect().await?;
    println!("{found:?}");
    let [Found::Department { head_count: 153 }, Found::Employee(don)] = found.as_slice() else {
        return Err(format!("a department and an employee, not {found:?}").into());
    };

    // The employee is written back under the ETag of the row that was read.
    let older = don.clone();
    let mut don = don.clone();
    don.age = 35;
    staff.replace(&don).await?;
    let late = staff.replace(&older).await;
    assert!(late.is_err_and(|error| error.is_precondition_failed()), "the row has changed");
    let stored = staff.get(&Employee::primary().department("Sales").id(223)).await?;
    assert_eq!(stored.map(|don| don.age), Some(35));
    Ok(())
}

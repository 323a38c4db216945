//! Finds related rows by one key: an employee and the reviews of every year.
//!
//! The key of a review is the employee's key and the year (a compound key). One read finds the review
//! of a year, and one range of keys finds the reviews of all years, with the employee or without.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}_{year:04}")]
struct Review {
    department: String,
    id: u32,
    year: u16,
    manager_rating: i32,
    peer_rating: i32,
    comments: String,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Review)]
struct Ratings {
    year: u16,
    manager_rating: i32,
    peer_rating: i32,
}

fn review(id: u32, year: u16) -> Review {
    Review {
        department: "Sales".into(),
        id,
        year,
        manager_rating: i32::from(year % 5),
        peer_rating: 4,
        comments: "punctual".into(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    let staff: Table<Employee> = client.table();
    let reviews: Table<Review> = client.table();
    staff.create().await?;

    // Both rows are in one partition: one transaction inserts an employee with the first review, or
    // neither.
    for id in [123, 124] {
        let mut egt = client.transaction();
        let hall = Employee { department: "Sales".into(), id, last_name: "Hall".into() };
        egt.insert(&hall)?.insert(&review(id, 2012))?;
        egt.commit().await?;
    }
    let later = (2013..=2015).flat_map(|year| [review(123, year), review(124, year)]);
    reviews.bulk().insert_all(later).await?.into_result()?;

    // One review takes one read.
    let of_123 = || Review::primary().department("Sales").id(123);
    let of_2012 = of_123().year(2012);
    assert_eq!((of_2012.partition_key(), of_2012.row_key()), ("Sales", "empid_000123_2012"));
    println!("one read: {} / {}", of_2012.partition_key(), of_2012.row_key());
    assert!(reviews.get(of_2012).await?.is_some());

    // All reviews of an employee take one range; the projection fetches only its fields.
    let query = reviews.query(of_123()).select::<Ratings>();
    assert_eq!(
        query.explain().filter,
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')"
    );
    let found = query.collect().await?;
    let years: Vec<u16> = found.iter().map(|ratings| ratings.year).collect();
    println!("one range finds the reviews of {years:?}");
    assert_eq!(years, [2012, 2013, 2014, 2015]);

    // A range of years is a range of keys.
    let some = reviews.query(of_123().year_range(2013..=2014)).collect().await?;
    assert_eq!(some.len(), 2);

    // The employee and its reviews have a common key prefix; a query without a type reads both.
    let keys = Keys::partition("Sales").prefix("empid_000123");
    let rows = client.dynamic("Staff").query(keys).collect().await?;
    let types: Vec<_> = rows.iter().filter_map(|row| row.entity_type()).collect();
    println!("the prefix empid_000123 finds {types:?}");
    assert_eq!(types, ["Employee", "Review", "Review", "Review", "Review"]);

    // A typed query of employees skips the reviews between them.
    let range = Employee::primary().department("Sales").id_range(123..=124);
    let employees = staff.query(range).collect().await?;
    println!("a typed query of the range finds {} employees", employees.len());
    assert_eq!(employees.len(), 2);
    Ok(())
}

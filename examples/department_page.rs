//! Loads a page of a program with one query: a department, its employees, and their reviews.
//!
//! An aggregate is a struct into which all rows of a partition are folded. A required row is a field of
//! its type, an optional row an `Option`. `Stored` also keeps the ETag that a write back needs.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    employees: u32,
}

/// The budget of a department; some departments have none.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "budget")]
struct Budget {
    department: String,
    euros: f64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "review_{id:06}_{year:04}")]
struct Review {
    department: String,
    id: u32,
    year: u32,
    rating: i32,
}

#[derive(Debug, EntitySet)]
struct DepartmentPage {
    #[table(one)]
    department: Stored<Department>,
    #[table(one)]
    budget: Option<Budget>,
    #[table(many)]
    employees: Vec<Employee>,
    #[table(many)]
    reviews: Vec<Review>,
    /// Rows of types that the page does not know, and rows that do not fit their type.
    #[table(other)]
    others: Vec<DynamicEntity>,
}

impl DepartmentPage {
    /// Returns the rating of the employee's newest review.
    fn newest_rating(&self, employee: &Employee) -> Option<i32> {
        let reviews = self.reviews.iter().filter(|review| review.id == employee.id);
        reviews.max_by_key(|review| review.year).map(|review| review.rating)
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let department = || "Sales".to_owned();
    let employee =
        |id, name: &str| Employee { department: department(), id, last_name: name.into() };
    let review = |year, rating| Review { department: department(), id: 2, year, rating };
    let mut egt = client.transaction();
    egt.insert(&Department { name: department(), employees: 2 })?
        .insert(&employee(1, "Hall"))?
        .insert(&employee(2, "Cao"))?
        .insert(&review(2012, 3))?
        .insert(&review(2013, 5))?;
    egt.commit().await?;

    let pages = client.set::<DepartmentPage>("Staff");
    let page = pages.load(Keys::partition("Sales")).await?;
    assert_eq!(page.budget, None);
    assert!(page.others.is_empty());
    let ratings: Vec<_> =
        page.employees.iter().map(|e| (e.last_name.as_str(), page.newest_rating(e))).collect();
    println!("{}: {ratings:?}", page.department.name);
    assert_eq!(ratings, [("Hall", None), ("Cao", Some(5))]);

    // A row that was read as `Stored` is written back under the ETag that was read.
    let mut department = page.department;
    department.employees += 1;
    let mut egt = client.transaction();
    egt.insert(&employee(3, "Kwok"))?.replace(&department)?;
    egt.commit().await?;
    let page = pages.load(Keys::partition("Sales")).await?;
    println!("after a transaction on the page: {} employees", page.employees.len());
    assert_eq!(page.employees.len(), 3);

    // `load` fails with `is_not_found` if the required department is missing.
    let missing = pages.load(Keys::partition("Legal")).await;
    if let Err(error) = &missing {
        println!("Legal: {error}");
    }
    assert!(missing.is_err_and(|error| error.is_not_found()));

    // A row that names a type and does not fit it is delivered in `others`.
    let odd = DynamicEntity::new("Sales", "empid_x").with("EntityType", "Employee");
    client.dynamic("Staff").insert(&odd).await?;
    let page = pages.load(Keys::partition("Sales")).await?;
    println!("{} row does not fit its type", page.others.len());
    assert_eq!((page.employees.len(), page.others.len()), (3, 1));
    Ok(())
}

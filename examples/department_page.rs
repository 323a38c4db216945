//! A page of a program from one query: a department, everyone in it, and their reviews.
//!
//! The rows of a partition are folded into a struct. What has to be there is a field of its type,
//! what may be missing an `Option`; `Stored` keeps what is needed to write the row back.

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    employees: u32,
}

/// Of some departments only.
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
    /// Rows of other programs, and rows that do not fit their type.
    #[table(other)]
    others: Vec<DynamicEntity>,
}

impl DepartmentPage {
    fn rating(&self, employee: &Employee) -> Option<i32> {
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
        page.employees.iter().map(|e| (e.last_name.as_str(), page.rating(e))).collect();
    assert_eq!(ratings, [("Hall", None), ("Cao", Some(5))]);

    // What was read as `Stored` is written back under the version that was read.
    let mut department = page.department;
    department.employees += 1;
    let mut egt = client.transaction();
    egt.insert(&employee(3, "Kwok"))?.replace(&department)?;
    egt.commit().await?;
    assert_eq!(pages.load(Keys::partition("Sales")).await?.employees.len(), 3);

    // A department that is not there has no page.
    let missing = pages.load(Keys::partition("Legal")).await;
    assert!(missing.is_err_and(|error| error.is_not_found()));

    // A row that lies about its type is no employee, and hides none.
    let odd = DynamicEntity::new("Sales", "empid_x").with("EntityType", "Employee");
    client.dynamic("Staff").insert(&odd).await?;
    let page = pages.load(Keys::partition("Sales")).await?;
    assert_eq!((page.employees.len(), page.others.len()), (3, 1));
    Ok(())
}

//! Expresses one-to-many and one-to-one relations: in one partition, across tables, by convention, by
//! reference, and with a copy of the other side's fields.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

/// Fields of a department that each of its employees carries as well.
#[derive(Debug, Clone, PartialEq, Properties)]
struct Office {
    city: String,
    floor: i32,
}

/// The one side of the one-to-many relation.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    employees: u32,
    #[table(flatten)]
    office: Office,
    /// One-to-one by reference: the keys of an employee, stored as two properties.
    #[table(flatten)]
    manager: Option<KeyRef<Employee>>,
}

/// The many side of the one-to-many relation; the PartitionKey links it to its department.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    #[table(flatten)]
    office: Office,
}

/// One-to-one by convention: its key has the fields of the employee's key. A photo is large and rarely
/// needed, so it has a table of its own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Photos", partition_key = "{department}", row_key = "photo_{id:06}")]
struct Photo {
    department: String,
    id: u32,
    jpeg: Vec<u8>,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    for table in ["Staff", "Photos"] {
        client.create_table(table).await?;
    }
    let (staff, departments): (Table<Employee>, Table<Department>) =
        (client.table(), client.table());
    let photos: Table<Photo> = client.table();

    // One-to-many in one partition: the count is right, because one transaction writes all rows.
    let office = Office { city: "Berlin".into(), floor: 4 };
    let employee = |id: u32| Employee {
        department: "Sales".into(),
        id,
        last_name: format!("Jones {id}"),
        office: office.clone(),
    };
    let manager = Some(KeyRef::to(&employee(7))?);
    let sales = Department {
        name: "Sales".into(),
        employees: 90,
        office: office.clone(),
        manager: manager.clone(),
    };
    let mut egt = client.transaction();
    egt.insert(&sales)?;
    for id in 1..=90 {
        egt.insert(&employee(id))?;
    }
    egt.commit().await?;

    println!("inserted a department and {} employees in one transaction", sales.employees);

    // By reference: the reference holds the keys of one more read.
    let Some(sales) = departments.get(Department::primary().name("Sales")).await? else {
        return Err(Error::new(ErrorKind::NotFound, "the department was inserted"));
    };
    let manager = match &sales.manager {
        Some(manager) => staff.get(manager.point()).await?,
        None => None,
    };
    println!("by reference: manager {:?}", manager.as_ref().map(|manager| &manager.last_name));
    assert_eq!(manager.as_ref().map(|manager| manager.id), Some(7));

    // By convention: the key of the photo is made from the employee's. `related` does not compile if the
    // fields of the keys differ.
    if let Some(manager) = &manager {
        let photo = Photo { department: "Sales".into(), id: 7, jpeg: vec![0xff, 0xd8] };
        photos.insert(&photo).await?;
        let found = photos.get(manager.related()).await?;
        println!("by convention: a photo of {:?} bytes", found.as_ref().map(|f| f.jpeg.len()));
        assert_eq!(found.map(Stored::into_inner), Some(photo));
    }

    // The copied office saves readers a second read; a change of it updates every employee.
    let mut sales = sales;
    sales.office.floor = 5;
    let moved = sales.office.clone();
    departments.replace(&sales).await?;
    let everyone = staff.query(Employee::primary().department("Sales")).page_size(40);
    let update = staff.bulk().on_progress(|progress| assert!(progress.done <= 90));
    let report = update.update_all(everyone.clone(), |employee| {
        employee.office = moved.clone();
        Ok(())
    });
    let report = report.await?;
    println!("moved {} employees, requests: {}", report.done, report.requests);
    assert_eq!(report.done, 90);
    let fifth = everyone.filter(Employee::OFFICE.at(Office::FLOOR).eq(5));
    assert_eq!(fifth.collect().await?.len(), 90);
    Ok(())
}

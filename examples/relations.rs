//! One-to-many and one-to-one: in one partition, across tables, by convention, by reference, and
//! with a copy of the other side's data.

use entable::prelude::*;

/// What each employee carries of its department.
#[derive(Debug, Clone, PartialEq, Properties)]
struct Office {
    city: String,
    floor: i32,
}

/// The one side.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    employees: u32,
    #[table(flatten)]
    office: Office,
    /// One-to-one by reference: the keys of an employee.
    #[table(flatten)]
    manager: Option<KeyRef<Employee>>,
}

/// The many side: the link is the PartitionKey.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    #[table(flatten)]
    office: Office,
}

/// One-to-one by convention: the same fields in the key. It is large and rarely needed, so that it
/// has a table of its own.
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

    // One-to-many in one partition: the count is right, because both rows change together.
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

    // By reference: one more read, and the reference says of what.
    let Some(sales) = departments.get(Department::primary().name("Sales")).await? else {
        return Err(Error::new(ErrorKind::NotFound, "the department was inserted"));
    };
    let manager = match &sales.manager {
        Some(manager) => staff.get(manager.point()).await?,
        None => None,
    };
    assert_eq!(manager.as_ref().map(|manager| manager.id), Some(7));

    // By convention: the other key is made of this one. It does not compile where it cannot be.
    if let Some(manager) = &manager {
        let photo = Photo { department: "Sales".into(), id: 7, jpeg: vec![0xff, 0xd8] };
        photos.insert(&photo).await?;
        assert_eq!(photos.get(manager.related()).await?.map(Stored::into_inner), Some(photo));
    }

    // The copy of the office spares a second read, and makes a move an update of everyone.
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
    assert_eq!(report.await?.done, 90);
    let fifth = everyone.filter(Employee::OFFICE.at(Office::FLOOR).eq(5));
    assert_eq!(fifth.collect().await?.len(), 90);
    Ok(())
}

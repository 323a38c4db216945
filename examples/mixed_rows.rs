//! Reads several types with one query, among them an older version and a row of another program.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    employees: u32,
}

/// The first version of an employee, which old rows still have.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee"
)]
struct EmployeeV1 {
    department: String,
    id: u32,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 2,
    upgrade_from(EmployeeV1)
)]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
}

impl From<EmployeeV1> for Employee {
    fn from(old: EmployeeV1) -> Self {
        let (first, last) = old.name.split_once(' ').unwrap_or(("", &old.name));
        Self {
            first_name: first.to_owned(),
            last_name: last.to_owned(),
            department: old.department,
            id: old.id,
        }
    }
}

/// A set: one of several entity types of a table. `other` takes rows of unknown types.
#[derive(Debug, PartialEq, EntitySet)]
enum StaffRow {
    Department(Department),
    Employee(Employee),
    #[table(other)]
    Other(DynamicEntity),
}

/// A department with its employees: an aggregate, into which all rows of a partition are folded.
#[derive(Debug, EntitySet)]
struct Page {
    #[table(one)]
    department: Stored<Department>,
    #[table(many)]
    employees: Vec<Employee>,
    #[table(other)]
    others: Vec<DynamicEntity>,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let old = EmployeeV1 { department: "Sales".into(), id: 1, name: "Don Hall".into() };
    client.table::<EmployeeV1>().insert(&old).await?;
    let note = DynamicEntity::new("Sales", "note").with("EntityType", "Note").with("Text", "hi");
    client.dynamic("Staff").insert(&note).await?;

    // A value of the set is written as the entity that it holds. Entities of one partition can share a
    // transaction.
    let staff = client.set::<StaffRow>("Staff");
    let jun = Employee {
        department: "Sales".into(),
        id: 2,
        first_name: "Jun".into(),
        last_name: "Cao".into(),
    };
    let mut egt = staff.transaction();
    egt.insert(&StaffRow::from(Department { name: "Sales".into(), employees: 2 }))?
        .insert(&StaffRow::from(jun.clone()))?;
    egt.commit().await?;

    // One query returns every type. The row of the old version is converted to the current struct.
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    let don = Employee { id: 1, first_name: "Don".into(), last_name: "Hall".into(), ..jun.clone() };
    let values: Vec<StaffRow> = rows.into_iter().map(Stored::into_inner).collect();
    let expected = [
        StaffRow::Department(Department { name: "Sales".into(), employees: 2 }),
        StaffRow::Employee(don),
        StaffRow::Employee(jun),
        StaffRow::Other(note),
    ];
    values.iter().for_each(|value| println!("{value:?}"));
    assert_eq!(values, expected);

    // The aggregate loads these rows as one struct. A field of type `Stored` can be written back.
    let mut page = client.set::<Page>("Staff").load(Keys::partition("Sales")).await?;
    assert_eq!((page.employees.len(), page.others.len()), (2, 1));
    page.department.employees += 1;
    client.table::<Department>().replace(&page.department).await?;
    println!("as one page: {} employees, {} other row", page.employees.len(), page.others.len());

    // Old rows keep their version until they are written. `upgrade_all` rewrites all of them.
    let employees = client.table::<Employee>();
    assert_eq!(employees.upgrade_all().await?.done, 1);
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await?;
    println!("upgraded: {:?}", row.as_ref().and_then(|row| row.entity_type()));
    assert_eq!(row.as_ref().and_then(|row| row.entity_type()), Some("Employee.v2"));

    // `narrow` converts a row of the set to one member type, or fails and names both types.
    if let Some(row) = staff.get(("Sales", "department")).await? {
        let narrowed = row.narrow::<Employee>();
        if let Err(error) = &narrowed {
            println!("refused: {error}");
        }
        assert!(narrowed.is_err_and(|error| error.is_unrecognized_entity()));
    }
    Ok(())
}

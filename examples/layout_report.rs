//! Writes the layout of three types as one HTML page and as Markdown, and asks what a change of it needs.
//!
//! The page shows rows with example keys, partitions, transactions, copies, every access path with its
//! filter and requests, and the cost of each verb. All of it follows from the types, except the figures of
//! what a store has. Run it with a path to write the page there: `cargo run --example layout_report -- report.html`.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::path::PathBuf;

use entable::{
    layout::{Layout, RequiredWork},
    prelude::*,
};
use time::OffsetDateTime;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    // Found by name, in the transaction of the employee.
    index(ByName, row_key = "name_{last_name}_{id:06}", only(first_name)),
    list(ByCity, row_key = "city_{city}"),
    // Found without knowing the department, and unique in the whole company.
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
    // A table of its own, by the time of arrival.
    index(
        Newest,
        table = "StaffByArrival",
        partition_key = "{since:%Y%m}",
        row_key = "{since:desc}_{department}_{id:06}",
        only(last_name)
    )
)]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    city: String,
    email: String,
    since: OffsetDateTime,
    manager: Option<u32>,
    #[table(encrypt(pad = 64), blind)]
    iban: String,
}

/// In the partition of its employees: one transaction can write both.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "department")]
struct Department {
    department: String,
    #[table(default)]
    head_count: i32,
}

/// A rating of an employee for each quarter of a year.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Reviews", partition_key = "{department}_{id:06}", row_key = "{year:04}")]
struct Review {
    department: String,
    id: u32,
    year: u16,
    #[table(series)]
    ratings: [f64; 4],
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The figures are of a store with two departments; the rest follows from the types.
    let client = Client::memory();
    let departments = client.table::<Department>();
    departments.create().await?;
    for (department, head_count) in [("Sales", 12), ("Marketing", 7)] {
        departments.insert(&Department { department: department.into(), head_count }).await?;
    }
    let report = entable::report![Employee, Department, Review].titled("Staff of Contoso");
    let report = report.measured(&client).await?;
    let page = report.html();
    assert!(page.contains("</svg>") && !page.contains("<script"), "pictures, and no scripts");
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => std::env::temp_dir().join("entable-layout-report.html"),
    };
    std::fs::write(&path, &page)?;
    println!("{} bytes of HTML are in {}", page.len(), path.display());

    let text = report.markdown();
    let is_shown =
        |line: &&str| line.contains("Employee::by_name()") || line.contains("Partitions: ");
    text.lines().filter(is_shown).for_each(|line| println!("{line}"));
    assert!(text.contains("Partitions: 2."), "a partition for each department");
    let point = "(PartitionKey eq 'Sales') and (RowKey eq 'name_Jones_000223')";
    assert!(text.contains(point), "the filter that a lookup by name sends");

    // The layout is a text to check in. Here is an earlier one, without the list of cities.
    let layout = entable::layout![Employee, Department, Review];
    let earlier: Layout = layout
        .to_string()
        .replace("  list ByCity local\n", "")
        .replace("    partition \"{Department}\" -\n    row \"city_{City}\" -\n", "")
        .parse()?;
    let changes = layout.changes_since(&earlier);
    for change in &changes {
        println!("\n{change}");
    }
    assert_eq!(
        changes.iter().map(|change| change.needs).collect::<Vec<_>>(),
        [RequiredWork::Rebuild]
    );
    Ok(())
}

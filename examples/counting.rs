//! Counts: the entities of a query, a total that is kept in the transaction, and a counter that many
//! writers share.
//!
//! The service does not count. `count` reads the keys of all rows, so its cost grows with them. A total
//! that is read often is an entity of its own: it is written in the transaction that inserts or deletes
//! (an entity group transaction), so that it is never wrong. A counter row is hot: each of its writes
//! waits for the one before. Past some hundred writes a second, each writer gets a row of its own.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

/// The department's row, with the number of its employees.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "department")]
struct Department {
    department: String,
    employee_count: i32,
}

/// One of several rows of a counter.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counters", partition_key = "{name}_{writer:02}", row_key = "count")]
struct Counter {
    name: String,
    writer: u32,
    count: i64,
}

fn employee(id: u32) -> Employee {
    Employee { department: "Sales".into(), id, last_name: "Jones".into() }
}

/// Inserts an employee and counts it, both or neither. Another writer of the department may come in
/// between: then the row is read again.
async fn hire(client: &Client, id: u32) -> Result<i32, Error> {
    let departments: Table<Department> = client.table();
    for _ in 0..100 {
        let at = Department::primary().department("Sales");
        let Some(mut sales) = departments.get(at).await? else { break };
        sales.employee_count += 1;
        let mut egt = client.transaction();
        egt.insert(&employee(id))?.replace(&sales)?;
        match egt.commit().await {
            Ok(_) => return Ok(sales.employee_count),
            Err(error) if error.is_precondition_failed() => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::Contended, "other writers were always first"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let staff: Table<Employee> = client.table();
    let departments: Table<Department> = client.table();
    staff.create().await?;
    departments.insert(&Department { department: "Sales".into(), employee_count: 0 }).await?;

    // The total is in the department's row, always exact.
    for id in 1..=20 {
        assert_eq!(hire(&client, id).await?, i32::try_from(id).unwrap_or_default());
    }
    let mut egt = client.transaction();
    egt.insert(&employee(20))?.replace(&departments_row(&departments).await?)?;
    assert!(egt.commit().await.is_err(), "a taken id");
    recorder.clear();
    let total = departments_row(&departments).await?.employee_count;
    println!("kept:    {total} employees, {} request", recorder.take().len());
    assert_eq!(total, 20, "the transaction that failed counted nobody");

    // Any other number is counted when it is asked for: a request for every 1,000 rows.
    staff.bulk().insert_all((100..2_500).map(employee)).await?.into_result()?;
    recorder.clear();
    let all = staff.query(Employee::primary().department("Sales"));
    println!("counted: {} employees, {} requests", all.count().await?, recorder.take().len());
    let smiths = all.clone().filter(Employee::LAST_NAME.eq("Smith"));
    println!("Smiths:  {}, {} request", smiths.exists().await?, recorder.take().len());

    // A query can delete all that it finds, each row under the ETag it was found with.
    let temporary = staff.query(Employee::primary().department("Sales").id_range(100..));
    let report = temporary.delete_all().await?;
    println!("deleted: {} employees in {} transactions", report.done, report.requests);
    assert_eq!((report.done, all.count().await?), (2_400, 20));

    // A counter that many share: eight writers, a row for each, summed when it is read.
    let counters: Table<Counter> = client.table();
    counters.create().await?;
    for writer in 0..8 {
        counters.insert(&Counter { name: "visits".into(), writer, count: 0 }).await?;
    }
    let visits: Vec<_> = (0..200)
        .map(|visit| {
            let counters = counters.clone();
            tokio::spawn(async move {
                let at = Counter::primary().name("visits").writer(visit % 8);
                counters
                    .update(at, |it| {
                        it.count += 1;
                        Ok(())
                    })
                    .await
            })
        })
        .collect();
    for visit in visits {
        visit.await??;
    }
    let paths = (0..8).map(|writer| Counter::primary().name("visits").writer(writer));
    let sum: i64 = counters.get_many(paths).await?.iter().flatten().map(|it| it.count).sum();
    println!("visits:  {sum}");
    assert_eq!(sum, 200);
    let hottest = client.partition_report("Counters").top(1).await?;
    println!("{hottest}");
    assert_eq!(hottest.partitions, 8);
    Ok(())
}

async fn departments_row(departments: &Table<Department>) -> Result<Stored<Department>, Error> {
    let row = departments.get(Department::primary().department("Sales")).await?;
    row.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no department `Sales`"))
}

//! Commands that write and delete rows.

use super::*;

#[test]
fn rows_are_changed() {
    let place = Place::filled();
    let put = |arguments: &[&str], line: &str| {
        let all = [&["put", "staff.db", "Staff"], arguments].concat();
        run_with_input(place.0.path(), &all, line)
    };
    let line = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"000\",\"Name\":\"Jones\"}\n";
    put(&["--mode", "insert"], line).fails(4, "line 1: ");
    assert_eq!(put(&["--mode", "merge"], line).ok(), "1 row written\n");
    let row = place.run(&["--json", "get", "staff.db", "Staff", "Sales", "000"]).json();
    assert_eq!((&row["Name"], &row["Age"]), (&"Jones".into(), &0.into()));
    assert_eq!(put(&[], line).ok(), "1 row written\n");
    let row = place.run(&["--json", "get", "staff.db", "Staff", "Sales", "000"]).json();
    assert!(row.get("Age").is_none());
    put(&[], "\nhello\n").fails(5, "line 2: column 1");
    run_with_input(place.0.path(), &["put", "staff.db", "None"], line)
        .fails(3, "table `None` does not exist");

    let delete =
        |arguments: &[&str]| place.run(&[&["delete", "staff.db", "Staff"], arguments].concat());
    delete(&["Sales", "000"]).fails(2, "--yes");
    delete(&["--yes"]).fails(2, "both keys of a row");
    delete(&["Sales", "000", "--yes", "--if-match", "W/\"x\""]).fails(4, "");
    let etag = row["odata.etag"].as_str().unwrap();
    assert_eq!(delete(&["Sales", "000", "--yes", "--if-match", etag]).ok(), "1 row deleted\n");
    delete(&["Sales", "000", "--yes"]).fails(3, "");
    // A variable that is not set leaves an empty filter, which would be all rows.
    delete(&["--filter", "", "--yes"]).fails(2, "the --filter is empty");
    delete(&["--filter", " ", "--yes"]).fails(2, "the --filter is empty");
    assert_eq!(
        delete(&["--filter", "PartitionKey eq 'Sales'", "--yes"]).ok(),
        "124 rows deleted\n"
    );
    assert_eq!(place.run(&["count", "staff.db", "Staff"]).ok(), "125\n");
    assert_eq!(delete(&["--whole-table", "--yes"]).ok(), "table Staff is deleted\n");
    assert_eq!(place.run(&["tables", "staff.db"]).ok(), "Types\n");
}

#[test]
fn a_table_is_created_once() {
    let place = Place(tempdir().unwrap());
    let create =
        |arguments: &[&str]| place.run(&[&["create", "new.db", "Staff"], arguments].concat());
    assert_eq!(create(&[]).ok(), "table Staff is created\n");
    create(&[]).fails(4, "");
    assert_eq!(create(&["--if-not-exists"]).ok(), "table Staff already exists\n");
    assert_eq!(create(&["--if-not-exists", "--json"]).json()["created"], false);
    assert_eq!(place.run(&["tables", "new.db"]).ok(), "Staff\n");
    place.run(&["create", "new.db", "no-name"]).fails(5, "no-name");
}

#[test]
fn a_dry_run_counts_what_would_be_deleted() {
    let place = Place::filled();
    let delete =
        |arguments: &[&str]| place.run(&[&["delete", "staff.db", "Staff"], arguments].concat());
    let said = delete(&["--partition", "Sales", "--dry-run"]).ok();
    assert_eq!(said, "would delete 125 rows; nothing is deleted\n");
    let said = delete(&["Sales", "000", "--dry-run"]).ok();
    assert_eq!(said, "would delete 1 row; nothing is deleted\n");
    delete(&["Sales", "none", "--dry-run"]).fails(3, "no row with these keys");
    delete(&["Sales", "000", "--dry-run", "--if-match", "W/\"x\""]).fails(4, "has the ETag");
    let said = delete(&["--whole-table", "--dry-run"]).ok();
    assert_eq!(said, "would delete the table and 250 rows; nothing is deleted\n");
    let said = delete(&["--filter", "Age ge 40", "--dry-run", "--json"]).json();
    assert_eq!((&said["would_delete"], &said["dry_run"]), (&50.into(), &true.into()));
    // A dry run wins over a confirmation.
    delete(&["--partition", "Sales", "--dry-run", "--yes"]).ok();
    assert_eq!(place.run(&["count", "staff.db", "Staff"]).ok(), "250\n");
    delete(&["--partition", "Sales"]).fails(2, "--dry-run");
}

#[test]
fn the_rows_of_a_partition_are_deleted() {
    let place = Place::filled();
    let delete = |arguments: &[&str]| {
        place.run(&[&["delete", "staff.db", "Staff", "--yes"], arguments].concat())
    };
    // A variable that is not set would take the whole partition.
    delete(&["--partition", "Sales", "--prefix", ""]).fails(2, "the --prefix is empty");
    delete(&["--prefix", "00"]).fails(2, "--partition");
    delete(&["Sales", "000", "--partition", "Sales"]).fails(2, "cannot be used with");
    assert_eq!(delete(&["--partition", "Sales", "--prefix", "00"]).ok(), "5 rows deleted\n");
    let rest = ["--partition", "Sales", "--filter", "Age lt 20"];
    assert_eq!(delete(&rest).ok(), "45 rows deleted\n");
    assert_eq!(place.run(&["count", "staff.db", "Staff"]).ok(), "200\n");
    assert_eq!(delete(&["--partition", "Sales"]).ok(), "75 rows deleted\n");
}

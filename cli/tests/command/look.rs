//! Commands that read: tables, rows, counts, partitions, layouts.

use super::*;

#[test]
fn rows_are_looked_at() {
    let place = Place::filled();
    assert_eq!(place.run(&["tables", "staff.db"]).ok(), "Staff\nTypes\n");
    assert_eq!(
        place.run(&["--json", "tables", "staff.db"]).json(),
        serde_json::json!(["Staff", "Types"])
    );
    let row = place.run(&["get", "staff.db", "Types", "p", "r3"]).ok();
    assert!(row.contains("Text          Edm.String    \\u{1b}[2J\n"), "{row}");
    assert!(row.contains("Long          Edm.Int64     9223372036854775807\n"), "{row}");
    let row = place.run(&["--json", "get", "staff.db", "Types", "p", "r0"]).json();
    assert_eq!(
        (&row["Long"], &row["Long@odata.type"]),
        (&"9223372036854775807".into(), &"Edm.Int64".into())
    );
    assert!(row["odata.etag"].as_str().unwrap().starts_with("W/\""));
    place.run(&["get", "staff.db", "Types", "p", "none"]).fails(3, "no row with these keys");
    place.run(&["get", "staff.db", "None", "p", "r"]).fails(3, "table");
    assert_eq!(place.run(&["count", "staff.db", "Staff"]).ok(), "250\n");
    let filter = "PartitionKey eq 'Sales' and Age ge 40";
    assert_eq!(place.run(&["count", "staff.db", "Staff", "--filter", filter]).ok(), "25\n");
    let found = place
        .run(&["query", "staff.db", "Staff", "--filter", filter, "--top", "2", "--select", "Age"]);
    assert!(found.err.contains("there may be more"), "{found:?}");
    assert_eq!(
        found.ok(),
        "PartitionKey  RowKey  Age\nSales         040     40\nSales         042     42\n"
    );
    let lines = place.run(&["query", "staff.db", "Staff", "--filter", filter, "--json"]).ok();
    assert_eq!(lines.lines().count(), 25);
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<Json>(line).unwrap()["PartitionKey"] == "Sales")
    );
    let explained =
        place.run(&["query", "staff.db", "Staff", "--filter", "Age ge 40", "--explain"]).ok();
    assert!(explained.starts_with("TableScan of Staff: the store reads every row"), "{explained}");
    place.run(&["query", "staff.db", "Staff", "--filter", "Age gee"]).fails(2, "--filter");
    let csv = place.run(&["query", "staff.db", "Types", "--csv", "--select", "Text,Int"]).ok();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "PartitionKey,RowKey,Int:Edm.Int32,Text:Edm.String");
    assert_eq!(lines[2], "p,r1,-2147483648,'=1+1");
    place.run(&["query", "staff.db", "Types", "--csv", "--json"]).fails(2, "cannot be used with");
    let report = place.run(&["--json", "partitions", "staff.db", "Staff", "--top", "1"]).json();
    assert_eq!((report["rows"].as_u64(), report["top"].as_array().unwrap().len()), (Some(250), 1));
    assert!(place.run(&["lag", "staff.db"]).ok().ends_with("nothing is open\n"));
    assert_eq!(place.run(&["--json", "poison", "list", "staff.db"]).json(), serde_json::json!([]));
}

#[test]
fn a_layout_is_described_and_compared_with_a_store() {
    let place = Place::filled();
    let layout = r#"layout 1
entity "Employee" version 1
  table Staff
  discriminator property EntityType
  primary
    partition "{Department}" -
    row "empid_{Id:06}" 6
  index ByName remote table StaffByName
    partition "{LastName}" -
    row "{Department}_{Id:06}" - 6
  property LastName String
  property Iban String optional encrypted pad 64
"#;
    fs::write(place.path("layout.lock"), layout).unwrap();
    let shown = place.run(&["report", "--layout", "layout.lock", "staff.db"]).ok();
    for line in [
        "## Employee, version 1",
        "| index `ByName`, remote | `StaffByName` | `{LastName}` | `{Department}_{Id:06}` |",
        "| `Iban` | String | optional, encrypted |",
        "Tables that the store lacks: StaffByName",
        "Tables that the layout lacks: Types",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let json = place.run(&["--json", "report", "--layout", "layout.lock"]).json();
    assert_eq!(json["tables"], serde_json::json!(["Staff", "StaffByName"]));
    // In a file case does not count in the names of tables.
    place.with("staff.db", async |client| client.create_table("logins201407").await.unwrap());
    let dated = r#"
entity "Login" version 1
  table Logins{at:%Y%m} by At
  discriminator property EntityType
  primary
    partition "{User}" -
    row "{At:desc}_{Id:03}" 19 3
"#;
    let other_case = layout.replace("table Staff\n", "table STAFF\n") + dated;
    fs::write(place.path("case.lock"), other_case).unwrap();
    let json = place.run(&["--json", "report", "--layout", "case.lock", "staff.db"]).json();
    let (missing, unknown) = (serde_json::json!(["StaffByName"]), serde_json::json!(["Types"]));
    assert_eq!((&json["missing"], &json["unknown"]), (&missing, &unknown));
    fs::write(place.path("other.lock"), "hello").unwrap();
    place.run(&["report", "--layout", "other.lock"]).fails(5, "`other.lock`");
    place.run(&["report", "--layout", "none.lock"]).fails(3, "reading `none.lock`");
}

#[test]
fn rows_of_a_partition_are_looked_at() {
    let place = Place::filled();
    let count =
        |arguments: &[&str]| place.run(&[&["count", "staff.db", "Staff"], arguments].concat()).ok();
    assert_eq!(count(&["--partition", "Sales"]), "125\n");
    assert_eq!(count(&["--partition", "Sales", "--prefix", "00"]), "5\n");
    assert_eq!(count(&["--partition", "Sales", "--filter", "Age eq 0 or Age eq 2"]), "10\n");
    let query =
        |arguments: &[&str]| place.run(&[&["query", "staff.db", "Staff"], arguments].concat());
    let found = query(&["--partition", "Sales", "--prefix", "24", "--select", "Age"]).ok();
    assert_eq!(found.lines().count(), 6, "{found}");
    let explained = query(&["--partition", "Sales", "--prefix", "24", "--explain"]).ok();
    assert!(explained.starts_with("Range of Staff"), "{explained}");
}

#[test]
fn a_filter_that_is_wrong_says_what_to_write() {
    let place = Place::filled();
    let query = |filter: &str| place.run(&["query", "staff.db", "Types", "--filter", filter]);
    query("Int > 5").fails(2, "`>` is `gt` in a filter");
    query("Text = 'a'").fails(2, "`=` is `eq` in a filter");
    query("Text eq \"a\"").fails(2, "single quotes");
    assert!(query("Long eq 9223372036854775807L").ok().contains("r0"));
    let none = query("Int eq 7L");
    assert!(none.err.contains("`Int eq 7`") && none.out.is_empty(), "{none:?}");
    assert!(query("Long eq 7").err.is_empty(), "it is widened to an Int64");
    let other = query("long eq 7L");
    assert!(
        other.err.contains("the property is called `Long`") && other.out.is_empty(),
        "{other:?}"
    );
    assert!(query("Text eq 'none'").err.is_empty());
}

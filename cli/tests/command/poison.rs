//! Work that workers have put aside.

use super::*;

#[test]
fn work_that_was_put_aside_is_shown_and_dropped() {
    let place = Place::filled();
    place.with("staff.db", async |client| {
        client.create_table("EntablePoison").await.unwrap();
        for at in 1..=2 {
            let mut row = DynamicEntity::new("1", format!("row{at}"))
                .with("PoisonTable", "Staff")
                .with("PoisonPartition", "Sales")
                .with("PoisonRow", format!("~e3_{at}"))
                .with("PoisonError", "no such\u{1b}[2J address")
                .with("Type", "Welcome-1")
                .with("Body", "{\"email\":\"a\u{7}@b\"}");
            row.allow_framework_names();
            client.dynamic("EntablePoison").insert(&row).await.unwrap();
        }
    });
    let shown = place.run(&["poison", "show", "staff.db", "1"]).ok();
    for line in [
        "Table: Staff",
        "PartitionKey: Sales",
        "Message: Welcome-1",
        "Error: no such\\u{1b}[2J address",
        "Body: {\"email\":\"a\\u{7}@b\"} (Edm.String)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let json = place.run(&["--json", "poison", "show", "staff.db", "2"]).json();
    assert_eq!((&json["RowKey"], &json["row"]["Type"]), (&"~e3_2".into(), &"Welcome-1".into()));
    place.run(&["poison", "show", "staff.db", "3"]).fails(3, "no position 3");
    place
        .run(&["poison", "drop", "staff.db", "1"])
        .fails(2, "`Welcome-1`, and nothing will ever do it; confirm with --yes");
    let listed = || place.run(&["--json", "poison", "list", "staff.db"]).json();
    assert_eq!(listed().as_array().unwrap().len(), 2);
    place.run(&["poison", "drop", "staff.db", "1", "--yes"]).ok();
    let left = listed();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["RowKey"]), (1, &"~e3_2".into()));
}

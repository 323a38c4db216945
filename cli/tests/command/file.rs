//! Backups, checks and the space of a file.

use super::*;

#[test]
fn a_file_is_backed_up_verified_restored_and_compacted() {
    let place = Place::filled();
    let report = place.run(&["--json", "backup", "staff.db", "monday.db"]).json();
    assert_eq!((&report["tables"], &report["rows"]), (&2.into(), &255.into()));
    place.run(&["backup", "staff.db", "monday.db"]).fails(4, "exists");
    place.run(&["delete", "staff.db", "Staff", "--whole-table", "--yes"]).ok();
    place.run(&["restore", "monday.db", "back.db"]).ok();
    assert_eq!(place.run(&["count", "back.db", "Staff"]).ok(), "250\n");
    assert!(place.run(&["verify", "back.db"]).ok().contains("2 tables, 255 rows"));
    place.run(&["compact", "back.db"]).ok();
    assert_eq!(place.run(&["--json", "verify", "back.db"]).json()["damaged"], 0);
    assert!(place.run(&["verify", "back.db", "--copy"]).ok().contains("2 tables, 255 rows"));
    let verified =
        place.run(&["--json", "verify", "back.db", "--copy", "--keep", "kept.db"]).json();
    assert_eq!((verified["rows"].as_i64(), verified["damaged"].as_i64()), (Some(255), Some(0)));
    assert_eq!(place.run(&["count", "kept.db", "Staff"]).ok(), "250\n");
    place
        .run(&["verify", "back.db", "--copy", "--keep", "kept.db"])
        .fails(4, "the file already exists");
    place.run(&["verify", "back.db", "--keep", "other.db"]).fails(2, "--copy");
    place.run(&["verify", "azure:", "--copy"]).fails(2, "only on files");
    // A file that is no store, and one that a program has open.
    fs::write(place.path("text.db"), "hello").unwrap();
    place.run(&["verify", "text.db", "--copy"]).fails(5, "not an entable store");
    place.run(&["verify", "text.db"]).fails(5, "not an entable store");
    place.with("back.db", async |_| place.run(&["tables", "back.db"]).fails(1, "is already open"));
}

//! Copies between stores.

use super::*;

#[test]
fn stores_are_copied_and_compared() {
    let place = Place::filled();
    let copy =
        |arguments: &[&str]| place.run(&[&["copy", "staff.db", "new.db"], arguments].concat());
    let said = copy(&[]).ok();
    assert!(said.contains("Staff: 250 rows, 250 written, 0 deleted, 0 refused, equal"), "{said}");
    assert!(copy(&[]).ok().contains("Staff: 250 rows, 0 written"));
    place.run(&["delete", "staff.db", "Staff", "Sales", "000", "--yes"]).ok();
    let differs = copy(&["--compare"]).fails(5, "the stores differ");
    assert!(
        differs.out.contains("partition Sales: 124 rows in `staff.db`, 125 rows in `new.db`"),
        "{differs:?}"
    );
    let extra = "`new.db` has 1 row that `staff.db` lacks: a copy with --delete-extra --yes";
    assert!(differs.err.contains(extra), "{differs:?}");
    copy(&[]).fails(5, extra);
    copy(&["--delete-extra"]).fails(2, "--yes");
    assert!(copy(&["--delete-extra", "--yes"]).ok().contains("1 deleted"));
    copy(&["--compare"]).ok();
    place.run(&["copy", "staff.db", "staff.db"]).fails(2, "is both the source and the target");
    place.run(&["copy", "azure:", "azure:"]).fails(2, "is both the source and the target");
    place.run(&["copy", "none.db", "new.db"]).fails(3, "none.db");
    assert!(!place.path("none.db").exists());
}

#[test]
fn a_dry_run_counts_what_a_copy_would_write_and_delete() {
    let place = Place::filled();
    let copy =
        |arguments: &[&str]| place.run(&[&["copy", "staff.db", "new.db"], arguments].concat());
    copy(&["--dry-run"]).fails(3, "new.db");
    copy(&[]).ok();
    let line = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"002\",\"Name\":\"Jones\"}\n";
    run_with_input(place.0.path(), &["put", "new.db", "Staff"], line).ok();
    place.run(&["delete", "staff.db", "Staff", "Sales", "000", "--yes"]).ok();
    place.run(&["delete", "new.db", "Staff", "--partition", "Marketing", "--yes"]).ok();
    let said = copy(&["--dry-run", "--table", "Staff"]).ok();
    assert_eq!(
        said,
        "Staff: 126 rows would be written (125 new, 1 changed), 1 row of the target would stay\n"
    );
    // No confirmation: nothing is deleted.
    let said = copy(&["--dry-run", "--table", "Staff", "--delete-extra"]).ok();
    assert!(said.ends_with(", 1 row would be deleted\n"), "{said}");
    let said = copy(&["--dry-run", "--json"]).json();
    let of = |name: &str| said.pointer(&format!("/tables/0/{name}")).cloned();
    assert_eq!(["missing", "changed", "extra"].map(of), [125, 1, 1].map(|n| Some(n.into())));
    assert_eq!(place.run(&["count", "new.db", "Staff"]).ok(), "125\n", "nothing is written");
    let differs = copy(&["--compare"]).fails(5, "`new.db` lacks 125 rows, and 1 row differ");
    assert!(differs.err.contains("a copy without --compare writes them"), "{differs:?}");
    copy(&["--dry-run", "--compare"]).fails(2, "cannot be used with");
}

#[test]
fn one_partition_is_copied() {
    let place = Place::filled();
    let copy = ["copy", "staff.db", "new.db", "--table", "Staff", "--partition", "Sales"];
    let said = place.run(&[&copy[..], &["--prefix", "00"]].concat()).ok();
    assert!(said.contains("Staff: 5 rows, 5 written"), "{said}");
    let said = place.run(&copy).ok();
    assert!(said.contains("Staff: 125 rows, 120 written"), "{said}");
    place.run(&[&copy[..], &["--delete-extra", "--yes"]].concat()).fails(2, "cannot be used with");
}

/// A disk that is full, as a limit for the size of files: what is done stays, and goes on once there is room.
#[cfg(target_os = "linux")]
#[test]
fn a_target_that_fills_up_goes_on_when_there_is_room() {
    let place = Place(tempdir().unwrap());
    let limited = |arguments: &[&str]| run_limited(place.0.path(), 8192, arguments);
    let text = "x".repeat(10_000);
    let lines: Vec<String> = (0..1_000)
        .map(|key| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key:04}\",\"T\":\"{text}\"}}\n"))
        .collect();
    fs::write(place.path("rows.jsonl"), lines.concat()).unwrap();
    let import = ["import", "full.db", "rows.jsonl", "--table", "Rows"];
    let failed = limited(&import).fails(1, "continue from line ");
    let from = failed.err.split("continue from line ").nth(1).unwrap();
    // Groups that wait together are one commit: none of them may fit.
    let from: String = from.chars().take_while(char::is_ascii_digit).collect();
    place.run(&[&import[..], &["--from-line", &from]].concat()).ok();
    assert_eq!(place.run(&["count", "full.db", "Rows"]).ok(), "1000\n");
    // Lines that were set aside are kept although the import fails.
    fs::write(place.path("more.jsonl"), ["hello\n", &lines.concat()].concat()).unwrap();
    let import = ["import", "more.db", "more.jsonl", "--table", "Rows", "--skip-bad", "aside.txt"];
    limited(&import).fails(1, "continue from line ");
    assert_eq!(place.read("aside.txt"), "hello\n");
    // An export goes on behind its last whole line.
    let export = ["export", "full.db", "out.jsonl", "--table", "Rows"];
    assert!(limited(&export).fails(1, "out.jsonl.").err.contains(".part"));
    assert!(!place.path("out.jsonl").exists());
    place.run(&[&export[..], &["--resume"]].concat()).ok();
    assert_eq!(place.read("out.jsonl"), lines.concat());
    // The next copy writes what lacks; a backup leaves no file that looks like one.
    limited(&["copy", "full.db", "copy.db"]).fails(1, "no space is left");
    assert!(place.run(&["copy", "full.db", "copy.db"]).ok().contains("equal"));
    limited(&["backup", "full.db", "backup.db"]).fails(1, "no space is left");
    assert!(!place.path("backup.db").exists());
    place.run(&["backup", "full.db", "backup.db"]).ok();
}

//! Files that the command creates are private.

use super::*;

/// Rows may be secret, and the directory may be one that others write, such as `/tmp`.
#[test]
fn every_file_for_rows_is_private_and_no_link_is_followed() {
    use std::os::unix::fs::symlink;

    let place = Place::filled();
    let (victim, good) = (place.path("victim"), "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n");
    fs::write(&victim, "precious").unwrap();
    fs::write(place.path("bad.jsonl"), format!("{good}hello\n")).unwrap();
    fs::create_dir(place.path("all")).unwrap();
    for link in ["one.jsonl.part", "all/manifest.json.part", "all/Staff.jsonl.part"] {
        symlink(&victim, place.path(link)).unwrap();
    }
    place.run(&["export", "staff.db", "one.jsonl", "--table", "Staff"]).ok();
    place.run(&["export", "staff.db", "all"]).ok();
    place.run(&["export", "staff.db", "new"]).ok();
    place.run(&["backup", "staff.db", "backup.db"]).ok();
    let import = ["import", "new.db", "bad.jsonl", "--table", "Rows", "--skip-bad"];
    place.run(&[&import[..], &["aside.jsonl"]].concat()).fails(5, "1 line was set aside");
    let names = ["one.jsonl", "all/manifest.json", "all/Staff.jsonl", "aside.jsonl", "backup.db"];
    for name in names.into_iter().chain(["new/manifest.json", "new/Types.jsonl", "new.db"]) {
        assert_eq!(mode(&place.path(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&place.path("new")), 0o700);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");

    // What has a name keeps it, also a link to nowhere.
    symlink(place.path("nowhere"), place.path("dangling")).unwrap();
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    symlink(place.path("nowhere"), place.path("all/manifest.json")).unwrap();
    place.run(&[&import[..], &["dangling"]].concat()).fails(4, "`dangling` exists");
    place.run(&[&import[..], &["victim"]].concat()).fails(4, "`victim` exists");
    place.run(&["export", "staff.db", "dangling", "--table", "Staff"]).fails(4, "exists");
    place.run(&["export", "staff.db", "all", "--resume"]).fails(4, "manifest.json` exists");
    place.run(&["backup", "staff.db", "dangling"]).fails(4, "exists");
    assert!(!place.path("nowhere").exists());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

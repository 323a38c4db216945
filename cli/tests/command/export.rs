//! Exports of a table and of a whole store.

use super::*;

#[test]
fn a_table_of_every_type_goes_out_and_comes_back_byte_for_byte() {
    let place = Place::filled();
    for format in ["jsonl", "csv"] {
        let (first, second) = (format!("first.{format}"), format!("second.{format}"));
        let store = format!("{format}.db");
        let export = |store: &str, to: &str| {
            place
                .run(&["--json", "export", store, to, "--table", "Types", "--format", format])
                .json()
        };
        let out = export("staff.db", &first);
        assert_eq!(out["digest"]["rows"], 5);
        let import = ["--json", "import", &store, &first, "--table", "Types", "--format", format];
        let back = place.run(&import).json();
        assert_eq!(back["digest"], out["digest"]);
        assert_eq!(export(&store, &second)["digest"], out["digest"]);
        assert_eq!(place.read(&first), place.read(&second));
        assert_eq!(place.read(&first).contains('\u{1b}'), format == "csv");
        let table = ["export", "staff.db", "-", "--table", "Types", "--format", format];
        assert_eq!(place.run(&table).ok(), place.read(&first));
        let said = place.run(&[&["--json"][..], &table].concat());
        let summary: Json = serde_json::from_str(&said.err).unwrap();
        assert_eq!(summary["digest"], out["digest"]);
        place.run(&["export", "staff.db", &first, "--table", "Types"]).fails(4, "exists");
    }
    assert!(place.read("first.csv").contains(",'=1+1"));
}

#[test]
fn a_whole_store_goes_through_a_directory() {
    let place = Place::filled();
    // Tables of the outbox stay where they are, as an import refuses them.
    let outbox = ["EntableDirectory", "EntablePoison", "EntableTables", "EntableExpiry"];
    place.with("staff.db", async |client| {
        for table in outbox {
            client.create_table(table).await.unwrap();
        }
    });
    place.run(&["export", "staff.db", "all"]).ok();
    for table in outbox {
        assert!(!place.path(&format!("all/{table}.jsonl")).exists(), "{table}");
    }
    place.run(&["export", "staff.db", "all"]).fails(4, "a complete export");
    place.run(&["import", "new.db", "all"]).ok();
    let compared = place.run(&["--json", "copy", "staff.db", "new.db", "--compare"]).json();
    assert_eq!(compared["equal"], true);
    // An export that was cut goes on.
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    let whole = place.read("all/Staff.jsonl");
    fs::remove_file(place.path("all/Staff.jsonl")).unwrap();
    fs::write(place.part("all/Staff.jsonl"), &whole[..whole.len() / 2]).unwrap();
    place.run(&["export", "staff.db", "all", "--resume"]).ok();
    assert_eq!(place.read("all/Staff.jsonl"), whole);
    // A file that somebody has changed is not what the manifest says.
    let changed = whole.replacen("\"Age\":1", "\"Age\":9", 1);
    fs::write(place.path("all/Staff.jsonl"), changed).unwrap();
    place.run(&["import", "other.db", "all"]).fails(5, "does not match the manifest");
    place.run(&["import", "other.db", "none"]).fails(3, "name a --table");
}

/// New columns may have come since the export was cut, so that an unfinished table begins anew.
#[test]
fn an_export_as_csv_that_was_cut_is_completed_when_it_is_resumed() {
    let place = Place::filled();
    let export = |more: &[&str]| {
        place.run(&[&["export", "staff.db", "all", "--format", "csv"], more].concat())
    };
    export(&[]).ok();
    let (staff, types) = (place.read("all/Staff.csv"), place.read("all/Types.csv"));
    let manifest = place.read("all/manifest.json");
    // The export of the second table was cut, after that of the first.
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    fs::remove_file(place.path("all/Types.csv")).unwrap();
    fs::write(place.part("all/Types.csv"), &types[..types.len() / 2]).unwrap();
    export(&[]).fails(4, "Staff.csv` exists");
    export(&["--resume"]).ok();
    assert_eq!((place.read("all/Staff.csv"), place.read("all/Types.csv")), (staff, types.clone()));
    assert_eq!(place.read("all/manifest.json"), manifest);
    assert_eq!(files(&place.path("all")).len(), 3);
    // So does one table.
    fs::write(place.part("types.csv"), &types[..types.len() / 2]).unwrap();
    let one = ["export", "staff.db", "types.csv", "--table", "Types", "--format", "csv"];
    place.run(&[&one[..], &["--resume"]].concat()).ok();
    assert_eq!(place.read("types.csv"), types);
}

/// A manifest says that its directory is complete, so half of one must not be there.
#[cfg(target_os = "linux")]
#[test]
fn an_export_whose_manifest_does_not_fit_on_the_disk_is_completed_later() {
    let place = Place(tempdir().unwrap());
    place.with("many.db", async |client| {
        for table in 0..20 {
            client.create_table(&format!("Table{table:02}")).await.unwrap();
        }
    });
    run_limited(place.0.path(), 2, &["export", "many.db", "all"]).fails(1, "manifest");
    assert!(place.path("all/Table19.jsonl").exists());
    assert!(!place.path("all/manifest.json").exists());
    place.run(&["export", "many.db", "all", "--resume"]).ok();
    place.run(&["import", "new.db", "all"]).ok();
    assert_eq!(files(&place.path("all")).len(), 21);
}

#[test]
fn the_name_of_a_file_says_its_format() {
    let place = Place::filled();
    place.run(&["export", "staff.db", "one.CSV", "--table", "Types"]).ok();
    assert!(place.read("one.CSV").starts_with("PartitionKey,RowKey,"));
    place.run(&["import", "new.db", "one.CSV", "--table", "Types"]).ok();
    let copy = ["copy", "staff.db", "new.db", "--table", "Types", "--compare"];
    place.run(&copy).ok();
    let named = ["export", "staff.db", "two.csv", "--table", "Types", "--format", "jsonl"];
    place.run(&named).ok();
    assert!(place.read("two.csv").starts_with('{'));
    place.run(&["export", "staff.db", "three.txt", "--table", "Types"]).ok();
    assert!(place.read("three.txt").starts_with('{'));
}

#[test]
fn one_partition_is_exported() {
    let place = Place::filled();
    let export = |name: &str, more: &[&str]| {
        let all = ["export", "staff.db", name, "--table", "Staff", "--partition", "Sales"];
        place.run(&[&all[..], more].concat())
    };
    export("one.jsonl", &[]).ok();
    assert_eq!(place.read("one.jsonl").lines().count(), 125);
    export("two.jsonl", &["--prefix", "00"]).ok();
    assert_eq!(place.read("two.jsonl").lines().count(), 5);
    place.run(&["export", "staff.db", "all", "--partition", "Sales"]).fails(2, "--table");
}

//! Commands that were killed.

use super::*;

#[test]
fn commands_that_were_killed_are_completed_when_they_are_repeated() {
    let place = Place(tempdir().unwrap());
    let line = |id: u32| {
        let text = "x".repeat(40);
        format!(
            "{{\"PartitionKey\":\"p{:02}\",\"RowKey\":\"{id:04}\",\"Text\":\"{text}\"}}\n",
            id / 100
        )
    };
    let rows: String = (0..3000).map(line).collect();
    fs::write(place.path("rows.jsonl"), &rows).unwrap();
    let start = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
        command.current_dir(place.0.path()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // The import waits for the rest of its lines when it is killed.
    let mut import = start(&["import", "staff.db", "-", "--table", "Rows"]);
    let mut input = import.stdin.take().unwrap();
    input.write_all(&rows.as_bytes()[..rows.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    import.kill().unwrap();
    assert!(!import.wait().unwrap().success());
    place.run(&["import", "staff.db", "rows.jsonl", "--table", "Rows"]).ok();
    let killed = |arguments: &[&str]| {
        for after in [20, 100, 250] {
            let mut command = start(arguments);
            std::thread::sleep(Duration::from_millis(after));
            // It may be done already.
            let _ = command.kill();
            command.wait().unwrap();
        }
    };
    killed(&["copy", "staff.db", "new.db"]);
    let said = place.run(&["--json", "copy", "staff.db", "new.db"]).json();
    let rows_of = |side: &str| said["tables"][0][side]["rows"].as_u64();
    assert_eq!((rows_of("source"), rows_of("target")), (Some(3000), Some(3000)), "{said}");
    // A file that is there is complete, whether a killed export has written it or this one.
    killed(&["export", "new.db", "new.jsonl", "--table", "Rows", "--resume"]);
    if !place.path("new.jsonl").exists() {
        place.run(&["export", "new.db", "new.jsonl", "--table", "Rows", "--resume"]).ok();
    }
    assert_eq!(place.read("new.jsonl"), place.read("rows.jsonl"));
    let is_part = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "part");
    assert!(!files(place.0.path()).iter().any(is_part));
    killed(&["backup", "new.db", "backup.db"]);
    if !place.path("backup.db").exists() {
        place.run(&["backup", "new.db", "backup.db"]).ok();
    }
    assert!(place.run(&["verify", "backup.db"]).ok().contains("1 tables, 3000 rows"));
}

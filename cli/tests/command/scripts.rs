//! What scripts rely on: JSON, exit codes, help, and no secret in an argument.

use super::*;

#[test]
fn secrets_are_no_arguments_and_help_says_the_rest() {
    let place = Place(tempdir().unwrap());
    let secret = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0";
    let run = place.run(&["tables", secret]).fails(2, "an argument contains a secret");
    assert!(!run.err.contains("c2VjcmV0"));
    place.run(&["tables", "azure:"]).fails(2, "");
    place.run(&["count"]).fails(2, "Usage");
    place.run(&["nonsense"]).fails(2, "unrecognized subcommand");
    let help = place.run(&["--help"]).ok();
    for part in ["Exit codes", "ENTABLE_CONNECTION_STRING", "partitions", "--json"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(place.run(&["completions", "bash"]).ok().contains("_entable"));
    let script = place.run(&["--json", "completions", "bash"]).json();
    assert!(script["script"].as_str().unwrap().contains("_entable"));
    assert!(place.run(&["man"]).ok().contains(".TH entable 1"));
    let page = place.run(&["man", "poison", "drop"]).ok();
    assert!(page.contains(".TH entable-poison-drop 1") && page.contains("\\-\\-yes"), "{page}");
    assert!(place.run(&["--json", "man", "copy"]).json()["page"].as_str().unwrap().contains(".TH"));
    place.run(&["man", "nonsense"]).fails(2, "`entable` has no command `nonsense`");
}

/// Every command that deletes names what it needs, and a script reads one JSON value of each command.
#[test]
fn each_command_answers_in_json() {
    let place = Place::filled();
    fs::write(place.path("rows.jsonl"), "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n").unwrap();
    for arguments in [
        &["tables", "staff.db"][..],
        &["get", "staff.db", "Types", "p", "r3"],
        &["query", "staff.db", "Types", "--top", "1"],
        &["query", "staff.db", "Types", "--explain"],
        &["count", "staff.db", "Staff"],
        &["put", "staff.db", "Staff", "rows.jsonl"],
        &["delete", "staff.db", "Staff", "p", "1", "--yes"],
        &["delete", "staff.db", "Staff", "--filter", "PartitionKey eq 'none'", "--yes"],
        &["export", "staff.db", "staff.jsonl", "--table", "Staff"],
        &["export", "staff.db", "all"],
        &["import", "new.db", "staff.jsonl", "--table", "Staff"],
        &["import", "other.db", "all"],
        &["copy", "staff.db", "copy.db"],
        &["backup", "staff.db", "monday.db"],
        &["restore", "monday.db", "back.db"],
        &["verify", "staff.db"],
        &["verify", "staff.db", "--copy"],
        &["compact", "staff.db"],
        &["partitions", "staff.db", "Staff"],
        &["lag", "staff.db"],
        &["poison", "list", "staff.db"],
        &["poison", "requeue", "staff.db"],
        &["completions", "zsh"],
        &["man", "get"],
        &["delete", "staff.db", "Staff", "--whole-table", "--yes"],
    ] {
        let run = place.run(&[&["--json"][..], arguments].concat());
        assert!(run.code == 0 && run.err.is_empty(), "{arguments:?}: {run:?}");
        assert!(serde_json::from_str::<Json>(&run.out).is_ok(), "{arguments:?}: {run:?}");
        assert!(!run.out.contains('\u{1b}'), "{arguments:?}: {run:?}");
    }
    for (arguments, code) in [
        (&["poison", "show", "staff.db", "1"][..], 3),
        (&["get", "staff.db"], 2),
        (&["copy", "staff.db", "new.db", "--compare", "--delete-extra"], 2),
        (&["none"], 2),
    ] {
        let failed = place.run(&[&["--json"][..], arguments].concat());
        let said: Json = serde_json::from_str(&failed.err).unwrap();
        assert_eq!((said["error"]["exit"].as_i64(), failed.code), (Some(code.into()), code));
        assert!(failed.out.is_empty() && !failed.err.contains('\u{1b}'), "{failed:?}");
    }
    // Help and the version are answers, not failures.
    assert!(place.run(&["--json", "--version"]).ok().starts_with("entable "));
}

/// A reader such as `head` ends the output early, and the exit code still tells what became of the data.
#[test]
fn a_reader_that_goes_changes_no_exit_code() {
    let place = Place::filled();
    fs::write(place.path("bad.jsonl"), "none\n{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n")
        .unwrap();
    place.run(&["copy", "staff.db", "new.db"]).ok();
    place.run(&["delete", "new.db", "Staff", "Sales", "000", "--yes"]).ok();
    for (arguments, code) in [
        (&["import", "rows.db", "bad.jsonl", "--table", "Rows", "--skip-bad", "aside"][..], 5),
        (&["copy", "staff.db", "new.db", "--compare"], 5),
        (&["copy", "staff.db", "new.db", "--compare", "--json"], 5),
        (&["query", "staff.db", "Staff", "--top", "1000000"], 0),
        (&["query", "staff.db", "Staff", "--csv"], 0),
        (&["get", "staff.db", "Types", "p", "r0"], 0),
        // A file that is cut off is no export.
        (&["export", "staff.db", "-", "--table", "Staff"], 1),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
        command.current_dir(place.0.path()).args(arguments);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(code), "{arguments:?}");
    }
    assert_eq!(place.read("aside"), "none\n");
}

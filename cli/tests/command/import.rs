//! Imports with lines that hold no row.

use super::*;

#[test]
fn bad_lines_are_named_and_set_aside() {
    let place = Place::filled();
    let good = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}";
    fs::write(place.path("bad.jsonl"), format!("{good}\nhello\n{good}\n")).unwrap();
    let import = ["import", "new.db", "bad.jsonl", "--table", "Rows"];
    place.run(&import).fails(5, "`bad.jsonl`, line 2: column 1");
    let failed = place.run(&[&["--json"][..], &import].concat());
    let error: Json = serde_json::from_str(&failed.err).unwrap();
    assert_eq!((&error["error"]["kind"], &error["error"]["exit"]), (&"Invalid".into(), &5.into()));
    let aside = [&import[..], &["--skip-bad", "aside.txt"]].concat();
    let run = place.run(&aside).fails(5, "1 line was set aside");
    assert!(run.err.contains("line 2: column 1"), "{run:?}");
    assert_eq!(place.read("aside.txt"), "hello\n");
    fs::remove_file(place.path("aside.txt")).unwrap();
    let run = place.run(&[&["--json"][..], &aside].concat());
    let said: Vec<Json> = run.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(said[0]["remark"].as_str().unwrap().contains("line 2: column 1"), "{said:?}");
    assert_eq!((&said[1]["error"]["exit"], said.len()), (&5.into(), 2));
    place.run(&aside).fails(4, "aside.txt");
    place.run(&["import", "new.db", "none.jsonl", "--table", "Rows"]).fails(3, "none.jsonl");
    place.run(&[&import[..], &["--from-line", "3"]].concat()).ok();
}

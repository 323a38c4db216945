//! The command `plan`, on the JSON of a plan.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, process::Command};

use entable::prelude::*;

#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

entable::access_patterns! {
    STAFF;
    "by id" point get(Employee::primary().department("Sales").id(223)) at 300/s;
}

#[test]
fn a_plan_is_counted_priced_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("staff.json");
    fs::write(&file, STAFF.plan().to_json()).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
        let done = command.arg("plan").arg(&file).args(arguments).output().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };

    let (code, text) = run(&[]);
    assert_eq!(code, Some(0));
    assert!(text.contains("| by id | get | Point | 1 | 0 | 1 | 1 | exact | 300 | 300 |"), "{text}");
    assert!(!text.contains("**Hot:**"));
    let (_, text) = run(&["--times", "10"]);
    assert!(text.contains("**Hot:** `{department}` of `Staff` gets 3000 entities/s"), "{text}");
    let (_, text) = run(&["--json", "--prices", "1,1,1,1,0"]);
    assert!(text.contains("\"price_per_month\":77760"), "{text}");
    let (code, _) = run(&["--prices", "1,1"]);
    assert_eq!(code, Some(2));
    let path = file.to_str().unwrap();
    let (_, text) = run(&["--compare", path]);
    assert!(text.contains("| hot partitions | 0 | 0 |"), "{text}");
    fs::write(&file, "{}").unwrap();
    assert_eq!(run(&[]).0, Some(5));
}

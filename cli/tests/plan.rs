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

entable::access_patterns! {
    CALM;
    "by id" point get(Employee::primary().department("Sales").id(223)) at 300/s over 4;
    "a department" partition_scan query(Employee::primary().department("Sales")) rows 40 at 5/s over 4;
    "hire" write insert::<Employee>() at 1/s over 4;
    "never" write delete::<Employee>();
}

/// Runs `entable plan` on a plan, and returns the exit code, the output and the errors.
fn run_plan(json: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    fs::write(&file, json).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
    let done = command.arg("plan").arg(&file).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_load_is_simulated_and_shown_beside_what_the_plan_predicts() {
    let plan = CALM.plan().to_json();
    let (code, text, _) = run_plan(&plan, &["--simulate", "--seconds", "20", "--seed", "7"]);
    assert_eq!(code, Some(0), "{text}");
    let expected = "\
# Simulation of CALM

20 s of load on a simulated account, seed 7.

| pattern | calls | requests a call, predicted | requests | refused | ms a call, predicted | mean | 99th percentile |
|---|---|---|---|---|---|---|---|
| by id | 6000 | 1 | 6000 | 0.0 % | 8.0 | 7.8 | 42.0 |
| a department | 100 | 1 | 100 | 0.0 % | 8.0 | 7.8 | 42.0 |
| hire | 20 | 1 | 20 | 0.0 % | 8.0 | 6.8 | 26.0 |
| never | 0 | 1 | 0 | 0.0 % | 8.0 | - | - |

| load a second | predicted | asked | answered | target | refused |
|---|---|---|---|---|---|
| requests of the account | 306 | 306 | 306 | 20000 | 0.0 % |
| entities of `{department}` of `Staff` | 125 | 125 | 125 | 2000 | 0.0 % |
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("A refused request is not tried again"), "{text}");
    // The same seed gives the same figures, another one other times.
    assert_eq!(run_plan(&plan, &["--simulate", "--seconds", "20", "--seed", "7"]).1, text);
    assert_ne!(run_plan(&plan, &["--simulate", "--seconds", "20", "--seed", "8"]).1, text);
    let (_, json, _) = run_plan(&plan, &["--simulate", "--seconds", "20", "--seed", "7", "--json"]);
    for part in [
        "\"calls\":6000",
        "\"predicted\":306.0",
        "\"seed\":7",
        "\"markdown\":\"# Simulation of CALM",
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
}

#[test]
fn a_hot_partition_refuses_requests_and_its_cure_is_named() {
    let (code, text, _) = run_plan(&STAFF.plan().to_json(), &["--simulate", "--times", "10"]);
    assert_eq!(code, Some(0), "{text}");
    let line = |start: &str| {
        let line = text.lines().find(|line| line.starts_with(start)).unwrap();
        line.split('|').map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    };
    let call = line("| by id");
    assert_eq!(call[2..5], ["30000", "1", "30000"], "{text}");
    // 3,000 of 2,000 entities a second: a third is refused.
    let refused: f64 = call[5].trim_end_matches(" %").parse().unwrap();
    assert!((30.0..36.0).contains(&refused), "{text}");
    let load = line("| entities of `{department}` of `Staff`");
    assert_eq!(load[2..4], ["3000", "3000"], "{text}");
    let answered: f64 = load[4].parse().unwrap();
    assert!((1_950.0..2_100.0).contains(&answered), "{text}");
    let cure = "- **Hot:** `{department}` of `Staff` gets 3000 entities/s in one partition and needs 2 partitions: say with \
        `over` how many partitions share the load";
    assert!(text.contains(cure), "{text}");
}

#[test]
fn bad_arguments_of_a_simulation_are_refused_in_words() {
    let plan = STAFF.plan().to_json();
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let (found, _, text) = run_plan(&plan, arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words), "{words} in {text}");
    };
    for seconds in ["0", "-1", "NaN", "inf"] {
        let words = "`--seconds` is a number above 0, such as `--seconds 30`";
        refused(&["--simulate", &format!("--seconds={seconds}")], 2, words);
    }
    refused(&["--seconds", "5"], 2, "--simulate");
    refused(&["--seed", "5"], 2, "--simulate");
    refused(&["--simulate", "--prices", "1,1,1,1,0"], 2, "cannot be used with");
    refused(&["--simulate", "--seed", "x"], 2, "invalid value 'x'");
    refused(
        &["--simulate", "--times", "100000"],
        5,
        "300000000 requests, and 5000000 are the most",
    );
    refused(&["--simulate", "--times", "0"], 5, "nothing to simulate");
    refused(&["--simulate", "--times", "NaN"], 5, "requests");
    let (code, _, text) = run_plan("{}", &["--simulate"]);
    assert_eq!(code, Some(5));
    assert!(text.contains("the text is no plan of patterns"), "{text}");
}

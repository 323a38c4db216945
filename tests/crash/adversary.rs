//! Kills processes that write entities with unique values, copies and lists in other partitions, while
//! workers run beside them: `tests/kill` does it.

use std::process::Command;

use crate::rounds;

#[test]
fn killed_writers_leave_nothing_wrong() {
    let kills = rounds(12, 500);
    let mut run = Command::new(env!("CARGO_BIN_EXE_entable-kill"));
    let run = run.arg(kills.to_string()).env_remove("ENTABLE_AZURITE").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let wrong = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}{wrong}");
    assert!(said.starts_with(&format!("{kills} kills, ")), "{said}");
    println!("{said}");
}

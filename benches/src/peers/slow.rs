//! Durable inserts on slower disks: each sync takes longer, by a library that a child process loads first, so that
//! it is the same for every store.

use std::{path::Path, process::Command};

use super::{
    load::{Load, TASKS},
    output,
    peer::Promise,
    race::Field,
};
use crate::figure::note;

const CHILD: &str = "peers-child-slow";

/// Prints the figures of disks whose syncs take 1 and 5 ms longer.
pub(super) fn run(folder: &Path) {
    let library = folder.join("slow_sync.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/peers/slow_sync.c");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        note("peers.slower disks", "not measured: `cc` made no library");
        return;
    }
    for milliseconds in [1, 5] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([CHILD, &milliseconds.to_string()]).env("LD_PRELOAD", &library);
        child.env("ENTABLE_SYNC_MICROSECONDS", (milliseconds * 1000).to_string());
        assert!(child.status().unwrap().success());
    }
}

/// Says whether this process is one with slower syncs.
pub(super) fn is_child(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|what| what == CHILD)
}

/// Measures in a process with slower syncs.
pub(super) fn child(arguments: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let mut field = Field::open(folder.path(), Promise::Durable, 0);
    field.fill(10_000);
    for (tasks, from) in [(1, ""), (TASKS, ", 64 tasks")] {
        let name = format!("durable insert{from}, syncs {} ms longer", arguments[1]);
        output::print(&field.race(&name, Load::Insert { tasks }));
    }
}

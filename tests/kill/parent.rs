//! The process that starts, kills and looks.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use entable::prelude::*;

use crate::{
    ledger::Ledger,
    model::{Person, Random},
    place::{Place, is_emulator},
    verdict::judge,
};

/// By how many seconds clocks are wrong, at most.
pub(crate) fn skew() -> u64 {
    std::env::var("ENTABLE_KILL_SKEW").map_or(20_000, |skew| skew.parse().unwrap())
}

/// Kills that many processes, and returns what is wrong first.
pub(crate) async fn run(kills: u32) -> Result<(), String> {
    let seed = match std::env::var("ENTABLE_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => u64::from(std::process::id()),
    };
    let folder = std::env::temp_dir().join(format!("entable-kill-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (began, mut random, mut ledger) = (Instant::now(), Random(seed), Ledger::default());
    // One process has an embedded store; the emulator has several at once.
    let at_once = if is_emulator() { 3 } else { 1 };
    let mut ahead = 0;
    prepare(&folder).await.map_err(|error| error.to_string())?;
    let mut killed = 0;
    while killed < kills {
        let children = at_once.min(kills - killed);
        let lines = kill(&folder, children, ahead, &mut random);
        killed += children;
        lines.iter().for_each(|line| ledger.note(line));
        let is_whole = !is_emulator() || killed >= kills || killed % 60 == 0;
        let place = Place::open(&folder, ahead);
        let judged = judge(&place, &mut ledger, is_whole).await;
        judged.map_err(|wrong| format!("after {killed} kills, seed {seed}: {wrong}"))?;
        ahead = place.clock.seconds();
    }
    println!(
        "{killed} kills, {} acknowledged writes, 0 violations, {:?}",
        ledger.acknowledged,
        began.elapsed()
    );
    drop(std::fs::remove_dir_all(folder));
    Ok(())
}

/// Makes the tables: new ones on the emulator too.
async fn prepare(folder: &Path) -> Result<(), Error> {
    let client = Place::open(folder, 0).client(0);
    if is_emulator() {
        for table in ["People", "PeopleByName", "EntableDirectory", "EntablePoison"] {
            drop(client.delete_table(table).await);
        }
    }
    client.table::<Person>().create().await?;
    client.close().await
}

/// Starts processes, kills each at a random time, and returns what they said.
fn kill(folder: &Path, children: u32, ahead: i64, random: &mut Random) -> Vec<String> {
    let listeners = (0..children).map(|number| {
        let (seed, early) = (random.below(u64::MAX), random.below(4) == 0);
        let life = random.below(if is_emulator() { 1_500_000 } else { 600_000 });
        let child = start(folder, number, ahead, seed);
        thread::spawn(move || listen(child, Duration::from_micros(life), early))
    });
    let listeners: Vec<_> = listeners.collect();
    let lines = listeners.into_iter().flat_map(|listener| listener.join().unwrap());
    let lines = lines.collect();
    if is_emulator() {
        // A request that a dead process has sent may still be carried out.
        thread::sleep(Duration::from_millis(300));
    }
    lines
}

fn start(folder: &Path, number: u32, ahead: i64, seed: u64) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.arg("child").arg(folder).args([number.to_string(), ahead.to_string(), seed.to_string()]);
    child.stdout(Stdio::piped()).spawn().unwrap()
}

/// Kills a process after `life`, counted from when it is ready, or from its start if `early`. Returns what
/// it said.
fn listen(mut child: Child, life: Duration, early: bool) -> Vec<String> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    if !early {
        assert!(lines.any(|line| line == "ready ."), "the process ended by itself");
    }
    let reader = thread::spawn(move || lines.collect());
    thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

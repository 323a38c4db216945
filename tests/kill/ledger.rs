//! Knowledge of the parent about each entity, from the lines of the killed processes.

use std::collections::{BTreeMap, BTreeSet};

/// The states that an entity may have, by its mark; 0 stands for an entity that is gone.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    possible: BTreeMap<u32, BTreeSet<i64>>,
    /// How many writes were acknowledged.
    pub(crate) acknowledged: u64,
}

impl Ledger {
    /// Takes note of a line of a process.
    pub(crate) fn note(&mut self, line: &str) {
        // A line that was cut by the kill has no end, and the write that it is about no answer.
        let Some(line) = line.strip_suffix(" .") else { return };
        let words: Vec<&str> = line.split(' ').collect();
        let [what, id, mark] = words[..] else { return };
        let (Ok(id), Ok(mark)) = (id.parse::<u32>(), mark.parse::<i64>()) else { return };
        let possible = self.possible.entry(id).or_insert_with(|| BTreeSet::from([0]));
        match what {
            "try" => {
                possible.insert(mark);
            }
            "yes" => {
                *possible = BTreeSet::from([mark]);
                self.acknowledged += 1;
            }
            // A mark stands for one write, except that of a move, which leaves it as it is.
            "no" if possible.len() > 1 => {
                possible.remove(&mark);
            }
            _ => {}
        }
    }

    /// Compares the states with the entities that were found, by id, and keeps what was found.
    pub(crate) fn compare(&mut self, found: &BTreeMap<u32, i64>) -> Result<(), String> {
        for (id, possible) in &mut self.possible {
            let mark = found.get(id).copied().unwrap_or(0);
            if !possible.contains(&mark) {
                return Err(format!("entity {id} has the mark {mark}, expected {possible:?}"));
            }
            *possible = BTreeSet::from([mark]);
        }
        match found.keys().find(|id| !self.possible.contains_key(id)) {
            Some(id) => Err(format!("nobody wrote the entity {id}")),
            None => Ok(()),
        }
    }
}

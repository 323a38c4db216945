//! The entities of the run, and random numbers.

use entable::prelude::*;

pub(crate) const TEAMS: [&str; 2] = ["east", "west"];

/// An entity with a unique value, a copy and a list, each in another partition or table.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "team_{team}",
    row_key = "{id:06}",
    index(ByEmail, partition_key = "email_{email}", row_key = "email", unique),
    index(ByName, table = "PeopleByName", partition_key = "{name}", row_key = "{team}_{id:06}"),
    list(ByCity, partition_key = "city_{city}", row_key = "ids")
)]
pub(crate) struct Person {
    pub(crate) team: String,
    pub(crate) id: u32,
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) city: String,
    /// Another number with each write.
    pub(crate) mark: i64,
}

impl Person {
    /// An entity with random values: few enough that entities want what others have.
    pub(crate) fn any(team: &str, id: u32, mark: i64, random: &mut Random) -> Self {
        Self {
            team: team.to_owned(),
            id,
            email: format!("e{}", random.below(40)),
            name: format!("n{}", random.below(6)),
            city: format!("c{}", random.below(3)),
            mark,
        }
    }
}

/// A small generator of numbers, so that a run can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

//! The keys of a list elsewhere need none of the primary's: what is in it leads to the primary.

use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    list(ByName, partition_key = "name_{name}", row_key = "ids"),
    list(ByDay, table = "Days", partition_key = "all", row_key = "{name}"),
    list(InBlobs, row_key = "{name}", in_blob)
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

/// Builds the path of each list.
pub fn main() {
    let _ = Person::by_name().name("Jones");
    let _ = Person::in_blobs().department("Sales").name("Jones");
}

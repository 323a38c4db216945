//! Draws the map of patterns: from what a program needs to the pattern's page.

use super::column::{
    Column,
    Words::{Soft, Strong},
};

pub(super) const TITLE: &str = "The patterns of this book by what a program needs";

/// A group of patterns: the need that they share, and each pattern with what it is for.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: [Group; 6] = [
    (
        "Find an entity by another field",
        &[
            ("Index in the partition", "you know the partition"),
            (
                "Index in another partition, unique values",
                "you know only the field, or it is unique",
            ),
            ("Lists of keys", "many entities share the value"),
        ],
    ),
    (
        "Read together, or in an order",
        &[
            ("Compound key", "an entity and its details"),
            ("Denormalisation", "a field of another entity, without a second read"),
            ("Log tail: newest first", "the last rows that were written"),
        ],
    ),
    (
        "Store more than a row holds",
        &[
            ("Data series", "a value for each hour or day"),
            ("Wide entity", "more than 252 properties or 1 MiB"),
            ("Large values", "photos and documents, in blobs"),
        ],
    ),
    (
        "Change several rows",
        &[
            ("Counting", "a total that is always right"),
            ("Eventually consistent transactions", "rows of several partitions"),
        ],
    ),
    (
        "Remove rows",
        &[
            ("Deleting many rows", "all rows of a month at once"),
            ("Soft delete", "hide now, delete later"),
            ("Entities that expire", "each at a time of its own"),
        ],
    ),
    (
        "Write many rows",
        &[
            ("Hot partitions", "writes that meet in one partition"),
            ("Log data", "records that are read rarely, in blobs"),
        ],
    ),
];

pub(super) fn draw(column: &mut Column) {
    for (at, (need, patterns)) in GROUPS.iter().enumerate() {
        if at > 0 {
            column.gap();
        }
        let texts: Vec<_> =
            patterns.iter().map(|(name, purpose)| [Strong(name), Soft(purpose)]).collect();
        let rows: Vec<_> = texts.iter().map(|texts| (false, texts.as_slice())).collect();
        column.partition(&[Strong(need)], &rows, &[]);
    }
}

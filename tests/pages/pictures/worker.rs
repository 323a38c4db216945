//! Draws a round of a worker.

use super::column::{
    Column,
    Words::{Code, Plain, Soft, Strong, Sure},
};

pub(super) const TITLE: &str =
    "A worker finds partitions with open work, finishes the work, and removes what recorded it";

pub(super) fn draw(column: &mut Column) {
    column.partition(
        &[Strong("The directory"), Code("EntableDirectory")],
        &[(false, &[Soft("a marker for each partition that may have open work")])],
        &[],
    );
    column.arrow(&[Plain("1. read the markers, page by page")]);
    column.partition(
        &[Strong("A partition with open work")],
        &[
            (false, &[Code("~e2_.."), Soft("dirty row: copies that may be wrong")]),
            (false, &[Code("~e1_.."), Soft("claim: unique values that are being taken")]),
            (false, &[Code("~e3_.."), Soft("message: for a handler of yours")]),
        ],
        &[],
    );
    column.arrow(&[Plain("2. read its open work, and do what is due")]);
    column.step(&[
        Strong("Dirty row"),
        Plain("Read the copies, then the entity. Make each copy what the entity says now, under the copy's ETag."),
    ]);
    column.gap();
    column.step(&[
        Strong("Claim older than 5 minutes"),
        Plain("Mark it dead, so its transaction can no longer commit. Free the values, or give them to their owner."),
    ]);
    column.gap();
    column.step(&[Strong("Message"), Plain("Verify it, lease it, and call the handler.")]);
    column.arrow(&[Plain("3. remove what is done, under its ETag")]);
    column.step(&[
        Sure("Nothing is open."),
        Plain("Once the partition is idle, delete its fence, then its marker in the directory."),
    ]);
}

//! Draws the patterns that go beyond a row or a partition: values in several properties, rows, partitions, tables or blobs.

use super::column::{
    Column,
    Words::{Code, Plain, Soft, Strong, Sure},
};

pub(super) const DATA_SERIES: &str =
    "A day is one row with a property for each hour: one merge writes a slot, one read gets all";

pub(super) fn draw_data_series(column: &mut Column) {
    column.step(&[Plain("a count for 14 to 15 o'clock")]);
    column.arrow(&[Plain("one merge of one property")]);
    column.partition(
        &[Soft("PartitionKey"), Code("000223")],
        &[(
            true,
            &[
                Code("20140731"),
                Soft("Sent00, Sent01, .. Sent13"),
                Strong("Sent14"),
                Soft("Sent15, .. Sent23"),
            ],
        )],
        &[],
    );
    column.arrow(&[Plain("one point read")]);
    column.step(&[Sure("all 24 hours of the day")]);
}

pub(super) const WIDE: &str =
    "A year is stored as two rows of one partition, written in one transaction";

pub(super) fn draw_wide(column: &mut Column) {
    column.step(&[Plain("a year of 366 counts")]);
    column.arrow(&[Plain("insert: one transaction")]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("000223_2014_01"), Soft("Day000 to Day182")]),
            (true, &[Code("000223_2014_02"), Soft("Day183 to Day365")]),
        ],
        &[
            Plain("A day: one merge of one row."),
            Plain("The year: a point read for each part, at the same time."),
        ],
    );
}

pub(super) const LARGE_VALUES: &str = "The row holds the name, length and hash of a blob, which is uploaded before the row is written";

pub(super) fn draw_large_values(column: &mut Column) {
    column.step(&[Code("staff.insert(&employee)"), Soft("with a photo of 2 MiB")]);
    column.arrow(&[Plain("1. upload")]);
    column.partition(&[Strong("Blobs")], &[(false, &[Soft("the photo, of any size")])], &[]);
    column.arrow(&[Plain("2. write the row")]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[(
            true,
            &[Code("empid_000223"), Soft("Photo: the name of the blob, its length and its hash")],
        )],
        &[Sure("Reading the entity costs no more than before.")],
    );
}

pub(super) const LOG_DATA: &str =
    "Records of an hour are in blobs of one folder, and a time span reads few of them";

pub(super) fn draw_log_data(column: &mut Column) {
    column.step(&[Plain("records of many writers")]);
    column.arrow(&[Plain("a flush writes one blob of many records: after 4 MiB, or after 30 s")]);
    column.partition(
        &[Soft("folder"), Code("2014/07/31/1800")],
        &[
            (false, &[Code("000001.log"), Soft("4 MiB")]),
            (false, &[Code("000002.log"), Soft("4 MiB")]),
            (false, &[Code("000003.log"), Soft("30 s")]),
        ],
        &[],
    );
    column.arrow(&[Plain("read 18:04 to 18:06")]);
    column.step(&[Sure("Reads the blobs of this hour alone, without those outside of the span.")]);
}

pub(super) const MASS_DELETE: &str = "A table for each day is deleted whole with one request";

pub(super) fn draw_mass_delete(column: &mut Column) {
    column.step(&[Code("Logins20140529"), Soft("rows of a day")]);
    column.gap();
    column.step(&[Code("Logins20140530"), Soft("rows of a day")]);
    column.gap();
    column.step(&[Code("Logins20140731"), Soft("new rows")]);
    column.arrow(&[Code("drop_before(..)"), Plain("one request deletes the table of a day")]);
    column.step(&[Code("Logins20140731"), Soft("new rows")]);
    column.text(&[Soft("To delete rows of one table takes a request for every 100 rows.")]);
}

pub(super) const HOT: &str =
    "Writes that follow the clock meet in one partition. Writes that follow the user spread";

pub(super) fn draw_hot(column: &mut Column) {
    column.text(&[Code("partition_key = \"{at:%Y%m%d%H}\"")]);
    for hour in ["2014073116", "2014073117"] {
        column.partition(&[Code(hour)], &[], &[]);
        column.gap();
    }
    column.partition(
        &[Code("2014073118")],
        &[(true, &[Strong("all writes of this hour")])],
        &[Plain("One server carries the load.")],
    );
    column.gap();
    column.text(&[Code("partition_key = \"{department}_{id:06}\"")]);
    for key in ["Sales_000007", "Sales_000123", "Sales_000456"] {
        column.partition(&[Code(key)], &[(true, &[Soft("some writes")])], &[]);
        column.gap();
    }
    column.text(&[Sure("Many servers share the load.")]);
}

pub(super) const MESSAGE: &str =
    "A change and its message in one transaction, the effect and a receipt in another";

pub(super) fn draw_message(column: &mut Column) {
    column.step(&[Code("transaction.commit()")]);
    column.arrow(&[Plain("one transaction")]);
    column.partition(
        &[Strong("The partition of your change")],
        &[
            (true, &[Code("000456"), Soft("the employee")]),
            (false, &[Code("~e3_.."), Soft("the message")]),
        ],
        &[Sure("Both, or neither.")],
    );
    column.late_arrow(&[Plain("a worker calls your handler, perhaps more than once")]);
    column.partition(
        &[Strong("Another partition or table")],
        &[
            (true, &[Code("welcome_000456"), Soft("the effect")]),
            (false, &[Code("~e4_.."), Soft("the receipt")]),
        ],
        &[Sure("The effect happens once.")],
    );
}

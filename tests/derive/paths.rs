//! Tests path builders: the steps that they offer, and the keys that they address.

use entable::{Partition, Path, Range, prelude::*};
use time::{OffsetDateTime, macros::datetime};

use crate::filter;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{kind}_{email:lower}")]
struct Text {
    department: String,
    kind: String,
    email: String,
}

#[test]
fn a_prefix_of_text_bounds_the_row_key() {
    let path = Text::primary().department("Sales").kind_prefix("a_b");
    assert_eq!(
        filter(path.keys()),
        "(PartitionKey eq 'Sales') and (RowKey ge 'a~5Fb') and (RowKey lt 'a~5Fc')"
    );
}

#[test]
fn a_prefix_of_a_lower_part_is_put_in_lower_case() {
    let path = Text::primary().department("Sales").kind("k").email_prefix("Jo");
    assert_eq!(
        filter(path.keys()),
        "(PartitionKey eq 'Sales') and (RowKey ge 'k_jo') and (RowKey lt 'k_jp')"
    );
}

#[test]
fn a_step_with_its_partition_is_a_path_of_every_kind() {
    fn is_path<P: Path<Entity = Text>>(_: &P) {}
    let step = Text::primary().department("Sales");
    is_path(&step);
    let partition: Partition<Text> = step.clone().into();
    let range: Range<Text> = step.clone().kind("k").into();
    assert_eq!(filter(partition.keys()), "PartitionKey eq 'Sales'");
    assert_eq!(
        filter(range.keys()),
        "(PartitionKey eq 'Sales') and (RowKey ge 'k_') and (RowKey lt 'k`')"
    );
}

#[derive(TableEntity)]
#[table(name = "Logs", partition_key = "{host}_{at:%Y%m}", row_key = "{at:desc}")]
struct Log {
    host: String,
    at: OffsetDateTime,
}

const AT: OffsetDateTime = datetime!(2014-08-22 00:50:32 UTC);

#[test]
fn an_exact_value_fixes_all_parts_of_its_field() {
    let point = Log::primary().host("h").at_exact(AT);
    assert_eq!(point.keys().as_point(), Some(("h_201408", "2519936321679999999")));
}

#[test]
fn a_period_fixes_the_coarse_part_and_leaves_the_fine_one_open() {
    let month = Log::primary().host("h").at_period(AT);
    assert_eq!(filter(month.clone().keys()), "PartitionKey eq 'h_201408'");
    let point = month.clone().at_exact(AT);
    assert_eq!(point.keys().as_point(), Some(("h_201408", "2519936321679999999")));
    let since = month.at_range(AT..);
    assert_eq!(
        filter(since.keys()),
        "(PartitionKey eq 'h_201408') and (RowKey le '2519936321679999999')"
    );
}

#[derive(TableEntity)]
#[table(name = "Spread", partition_key = "{id:bucket(4)}", row_key = "{id:06}")]
struct Spread {
    id: u32,
}

#[test]
fn buckets_are_one_path_each() {
    let paths = Spread::primary().id_buckets();
    let partitions: Vec<String> = paths.into_iter().map(|path| filter(path.keys())).collect();
    assert_eq!(
        partitions,
        [
            "PartitionKey eq '0'",
            "PartitionKey eq '1'",
            "PartitionKey eq '2'",
            "PartitionKey eq '3'"
        ]
    );
    let row = Spread { id: 7 }.to_row().unwrap();
    let point = Spread::primary().id(7_u32);
    assert_eq!(point.keys().as_point(), Some((row.partition_key(), row.row_key())));
}

#[test]
fn each_bucket_can_be_bounded_further() {
    let paths = Spread::primary().id_buckets();
    let bounded: Vec<_> = paths.into_iter().map(|path| path.id_range(1..3)).collect();
    assert_eq!(bounded.len(), 4);
    assert_eq!(
        bounded.first().map(|path| filter(path.keys())).as_deref(),
        Some("(PartitionKey eq '0') and (RowKey ge '000001') and (RowKey lt '000003')")
    );
}

#[derive(TableEntity)]
#[table(name = "Fixed", partition_key = "all", row_key = "{id}")]
struct Fixed {
    id: u8,
}

#[test]
fn a_partition_without_parts_is_a_path_at_once() {
    assert_eq!(filter(Fixed::primary().keys()), "PartitionKey eq 'all'");
    let path = Fixed::primary().id_range(..=9);
    assert_eq!(filter(path.keys()), "(PartitionKey eq 'all') and (RowKey le '009')");
}

#[test]
fn a_value_that_does_not_fit_is_returned_by_the_verb() {
    let point = Spread::primary().id(1_234_567_u32);
    let error = point.access().checked_keys().unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.property(), Some("Id"));
}

#[derive(TableEntity)]
#[table(name = "Both", partition_key = "{a}", row_key = "{b}_{a}_{c}")]
struct Both {
    a: u8,
    b: String,
    c: u16,
}

#[test]
fn a_field_of_both_keys_is_given_once() {
    let step = Both::primary().a(1_u8).b("x");
    assert_eq!(
        filter(step.clone().keys()),
        "(PartitionKey eq '001') and (RowKey ge 'x_001') and (RowKey lt 'x_002')"
    );
    assert_eq!(step.c(2_u16).keys().as_point(), Some(("001", "x_001_00002")));
}

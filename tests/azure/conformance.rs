//! Tests the promises of every backend on the emulator and through the retry layer.
//!
//! The emulator is known to differ from the service; each difference is a promise that it has to
//! break, so that the list stays true.

use entable::{
    backend::layer::{Retry, RetryPolicy},
    conformance_suite,
};

use crate::emulator::backend;

conformance_suite!(azurite, optional backend(), differs: [
    // Filters compare as JavaScript does, across types.
    "compare::binary_below_boolean",
    "compare::binary_below_datetime",
    "compare::binary_below_double",
    "compare::binary_below_int32",
    "compare::binary_below_int64",
    "compare::binary_below_string",
    "compare::boolean_below_binary",
    "compare::boolean_below_datetime",
    "compare::boolean_below_guid",
    "compare::boolean_below_int64",
    "compare::datetime_below_boolean",
    "compare::datetime_below_double",
    "compare::datetime_below_int32",
    "compare::datetime_below_int64",
    "compare::double_below_binary",
    "compare::double_below_boolean",
    "compare::double_below_datetime",
    "compare::double_below_guid",
    "compare::double_below_string",
    "compare::double_with_int64",
    "compare::guid_below_binary",
    "compare::guid_below_boolean",
    "compare::guid_below_datetime",
    "compare::guid_below_double",
    "compare::guid_below_int32",
    "compare::guid_below_int64",
    "compare::guid_below_string",
    "compare::int32_below_binary",
    "compare::int32_below_boolean",
    "compare::int32_below_datetime",
    "compare::int32_below_double",
    "compare::int32_below_guid",
    "compare::int32_below_int64",
    "compare::int32_below_string",
    "compare::int64_below_boolean",
    "compare::int64_below_datetime",
    "compare::int64_below_double",
    "compare::int64_below_string",
    "compare::int64_with_int32",
    "compare::string_below_boolean",
    "compare::string_below_datetime",
    "compare::string_below_double",
    "compare::string_below_int32",
    "compare::string_below_int64",
    "filter::keys_against_numbers",
    "filter::mixed_types_under_one_name",
    "filter::negative_numbers",
    // A bare property that is no Boolean matches.
    "filter::bare_other_type",
    // Times are compared in milliseconds.
    "compare::datetime_with_datetime",
    "filter::times_at_full_precision",
    // A row may grow over the limits by a merge.
    "limit::merge_to_too_large",
    "limit::merge_to_too_many_properties",
    // A continuation is the base64 of the next key; others are passed over.
    "page::token_without_row_key",
    // Names of tables are compared and sorted by case.
    "table::list_is_sorted",
    "table::reached_in_any_case",
    // Numbers go through JavaScript, which writes -0 as 0.
    "value::double_negative_zero",
]);

/// A layer that has nothing to do changes nothing: the promises that the emulator keeps.
#[tokio::test]
async fn the_retry_layer_changes_nothing() {
    use entable::conformance::{Setup, batch, condition, crud};
    let Some(backend) = backend() else { return };
    let setup = || Setup::new(Retry::around(backend.clone(), RetryPolicy::new()));
    crud::insert_then_read(&setup().await).await;
    condition::versions_chain(&setup().await).await;
    batch::all_verbs_together(&setup().await).await;
}

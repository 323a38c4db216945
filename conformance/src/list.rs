//! The list of promises, and of the choices where the service promises nothing.

/// Calls a macro with all promises: `topic { promise promise .. } topic { .. }`.
#[macro_export]
macro_rules! for_each_promise {
    ($($then:tt)*) => {
        $($then)*! {
            crud {
                insert_then_read insert_conflict insert_conflict_changes_nothing
                read_missing replace_removes_absent replace_missing merge_keeps_absent
                merge_missing merge_changes_type merge_is_case_sensitive
                insert_or_replace_creates insert_or_replace_replaces insert_or_merge_creates
                insert_or_merge_merges delete_removes delete_missing delete_twice
                insert_after_delete read_without_table query_without_table
                partitions_are_apart keys_are_not_joined writes_report_their_version
                insert_without_table replace_without_table merge_without_table
                insert_or_replace_without_table insert_or_merge_without_table
                delete_without_table
            }
            condition {
                any_version_replaces insert_or_replace_takes_any_version versions_chain version_as_text
                versions_are_unique timestamps_rise written_timestamp versions_differ_across_delete
                reading_keeps_the_version versions_are_per_entity timestamp_is_recent
                replace_matching replace_stale replace_stale_changes_nothing
                replace_missing_is_not_found_first replace_malformed_etag merge_matching
                merge_stale merge_stale_changes_nothing merge_missing_is_not_found_first
                merge_malformed_etag delete_matching delete_stale
                delete_stale_changes_nothing delete_missing_is_not_found_first
                delete_malformed_etag
            }
            value {
                double_nan double_negative_zero datetime_too_early eight_types_in_one_entity
                absent_is_not_stored entity_without_properties string_large
                string_large_non_ascii binary_large boolean_values int32_range int64_range
                int64_beyond_double int64_stays_wide double_range double_stays_double
                double_infinities string_empty string_unicode string_quotes string_lines
                string_controls string_blanks string_lookalikes datetime_first datetime_last
                datetime_resolution datetime_trimmed datetime_before_epoch guid_values
                binary_empty binary_values
            }
            limit {
                most_properties too_many_properties merge_to_too_many_properties
                merge_within_the_properties largest_entity entity_too_large
                entity_too_large_in_text merge_to_too_large string_too_large
                binary_too_large longest_property_name property_name_too_long
                property_names_of_letters property_names_by_case
                property_names_like_the_system property_given_twice keys_are_ordinal
                key_too_long forbidden_keys_under_every_verb property_name_empty
                property_name_leading_digit property_name_with_hyphen
                property_name_with_blank property_name_with_punctuation
                property_name_with_control property_name_private_use property_name_other_number key_empty
                key_with_quotes key_with_blanks key_with_percent key_with_url_characters
                key_with_brackets key_with_signs key_beyond_ascii key_of_four_bytes
                key_longest key_with_slash key_with_backslash key_with_hash
                key_with_question_mark key_with_control key_with_upper_control
            }
            table {
                created_is_listed create_twice create_in_another_case reached_in_any_case
                name_keeps_its_case delete_removes_table delete_in_any_case
                delete_missing_table delete_impossible_table recreated_is_empty
                tables_are_apart list_is_sorted list_of_a_range name_lengths name_with_other_characters
                name_beyond_ascii name_with_leading_digit name_too_short name_too_long
                name_reserved
            }
            order {
                partition_before_row partition_boundary order_across_pages
                order_is_not_by_write rows_ascend partitions_ascend row_numbers_are_text
                partition_numbers_are_text row_capitals_first partition_capitals_first
                row_empty_first partition_empty_first row_prefix_first
                partition_prefix_first row_punctuation partition_punctuation row_non_ascii
                partition_non_ascii row_combining partition_combining row_surrogates
                partition_surrogates
            }
            select {
                query_selects read_selects missing_is_absent none_of_the_selected
                keys_and_version_always_come keys_by_name filter_sees_the_unselected
                selection_is_case_sensitive too_many_names most_names
            }
            page {
                page_of_a_thousand page_ends_at_the_end top_bounds_the_page top_at_the_end
                top_too_large top_counts_matches pages_of_any_size token_names_the_next_row
                token_survives_deletion token_survives_deletion_of_the_rest
                token_is_no_session top_may_change token_without_row_key
                insert_ahead_appears insert_behind_does_not_appear filter_on_every_page
                empty_table token_of_any_key empty_page_with_a_token every_page_empty_once
                short_pages page_reads_the_latest
            }
            compare {
                boolean_with_boolean boolean_below_int32 boolean_below_int64
                boolean_below_double boolean_below_string boolean_below_datetime
                boolean_below_guid boolean_below_binary int32_below_boolean int32_with_int32
                int32_below_int64 int32_below_double int32_below_string int32_below_datetime
                int32_below_guid int32_below_binary int64_below_boolean int64_with_int32
                int64_with_int64 int64_below_double int64_below_string int64_below_datetime
                int64_below_guid int64_below_binary double_below_boolean double_with_int32
                double_with_int64 double_with_double double_below_string
                double_below_datetime double_below_guid double_below_binary
                string_below_boolean string_below_int32 string_below_int64
                string_below_double string_with_string string_below_datetime
                string_below_guid string_below_binary datetime_below_boolean
                datetime_below_int32 datetime_below_int64 datetime_below_double
                datetime_below_string datetime_with_datetime datetime_below_guid
                datetime_below_binary guid_below_boolean guid_below_int32 guid_below_int64
                guid_below_double guid_below_string guid_below_datetime guid_with_guid
                guid_below_binary binary_below_boolean binary_below_int32 binary_below_int64
                binary_below_double binary_below_string binary_below_datetime
                binary_below_guid binary_with_binary
            }
            filter {
                partition_bounds row_bounds_across_partitions keys_by_units
                names_of_every_script
                times_at_full_precision timestamp_equals_itself int64_at_full_precision
                negative_numbers mixed_types_under_one_name missing_eq missing_ne missing_gt
                missing_ge missing_lt missing_le not_missing_eq not_missing_ne
                missing_itself unknown_property bare_boolean not_bare_boolean
                bare_other_type bare_missing boolean_literal constants empty_filter
                constant_on_the_left and_before_or not_before_and not_twice nested quotes
                text_by_case text_order text_prefix property_by_case keys_are_strings
                keys_against_numbers timestamp_is_a_time contradiction keys_in_or
                keys_in_not syntax_errors operators_by_case null_test int32_overflow
                bad_literals one_property_one_constant functions arithmetic
                other_number_in_a_name
            }
            batch {
                hundred_operations hundred_and_first_operation other_partition
                other_partition_by_case same_row_twice same_row_under_two_verbs
                rows_differ_by_case composition_comes_first entity_over_a_limit
                key_out_of_range first_failure_is_named last_failure_undoes_all
                all_verbs_together answers_in_order conditions_in_a_batch single_operation
                batch_without_table below_four_megabytes above_four_megabytes isolated
                conflict_rolls_back missing_replace_rolls_back missing_merge_rolls_back
                missing_delete_rolls_back stale_replace_rolls_back stale_merge_rolls_back
                stale_delete_rolls_back
            }
            concurrent {
                one_winner_for_a_version one_winner_for_an_insert merges_add_up
                counter_loses_nothing versions_of_concurrent_writes
            }
        }
    };
}

/// Calls a macro with all choices, in the form of [`for_each_promise!`](crate::for_each_promise).
#[macro_export]
macro_rules! for_each_choice {
    ($($then:tt)*) => {
        $($then)*! {
            choice {
                key_length forbidden_character_under_every_verb read_of_impossible_keys
                string_length system_names merge_of_nothing malformed_etag_of_a_missing_row
                foreign_etag statuses versions_across_deletes top_of_nothing empty_selection
                page_before_rows_that_do_not_match page_of_many_examined_rows
                page_of_large_rows many_comparisons deep_nesting
                nan_in_a_filter filter_without_text time_literals no_operation
                single_operation_is_named recreate_at_once
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::PROMISES;

    #[test]
    fn every_promise_is_listed_once() {
        let sources = [
            ("batch", include_str!("batch.rs")),
            ("compare", include_str!("compare.rs")),
            ("concurrent", include_str!("concurrent.rs")),
            ("condition", include_str!("condition.rs")),
            ("crud", include_str!("crud.rs")),
            ("filter", include_str!("filter.rs")),
            ("limit", include_str!("limit.rs")),
            ("order", include_str!("order.rs")),
            ("page", include_str!("page.rs")),
            ("select", include_str!("select.rs")),
            ("table", include_str!("table.rs")),
            ("value", include_str!("value.rs")),
        ];
        for (topic, source) in sources {
            let written = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            for promise in written.filter_map(|line| line.split('(').next()) {
                let name = format!("{topic}::{promise}");
                assert!(PROMISES.contains(&name.as_str()), "`{name}` is not in the list");
            }
        }
        let unique: std::collections::HashSet<_> = PROMISES.iter().collect();
        assert_eq!(unique.len(), PROMISES.len());
    }
}

//! Everything of this crate that `entable` and generated code use and that is not for other programs.
//!
//! The modules below re-export items that are not public elsewhere. These items and members are hidden where they are
//! defined:
//!
//! - `DATED_TABLES`, `KeyFault`, `PageLoop`, `RowKeys`, `text_fingerprint`
//! - `AdaptiveRate`: `share_window`
//! - `BlindValue`: `new`, `expose_plaintext`
//! - `Comparison`: `holds_for_out_of_range`
//! - `Cursor`: `as_of`, `at`, `fingerprint`, `is_at_table_start`, `mixed`, `returned`, `table`
//! - `ETag`: `location_read_from`, `with_location_read_from`
//! - `EdmValue`: `VALUES`
//! - `Error`: `at_row`, `concerns_one_entity`, `concerns_one_item`, `concerns_one_row`, `ends_move`,
//!   `is_answer_lost`, `is_certainly_not_executed`, `is_key_withheld`, `is_refused_by_move`, `is_row_missing`,
//!   `is_row_changed_or_gone`, `is_table_being_deleted`, `is_table_missing`, `is_lost_race`, `lost_race_or_table`,
//!   `moving_entity`, `refuses_one_row`, `rejected_by_user_code`, `retry_chance`, `row_exists`, `table_exists`,
//!   `unique_violation`, `with_key_withheld`
//! - `Filter`: `OutOfRange`, `resolve_key_only_comparison`
//! - `Input`: `encode_input`
//! - `InvalidValue`: `contained_key_only_value`, `out_of_range_side`
//! - `KeyWriter`: `begin_part`, `end_bucket_part`, `end_part`, `put`, `put_lower`, `put_zero_padded`
//! - `Keys`: `bounds_row_key`, `fault`, `partition`, `rows`, `whole_table`, `without_row_key_bounds`
//! - `Property`: `COLUMN`, `SLOT_COLUMN`
//! - `Retry`: `retry_non_backend_read`, `retry_non_backend_write`
//! - `Row`: `byte_offset_of_reader`, `encrypted_names`, `has_encrypted_name`, `inherit_encrypted_names_of`,
//!   `location_read_from`, `properties_from_offset`, `sorted_properties`, `with_encrypted_names`, `without_keys`
//! - `RowBuilder`: `reserve_bytes`
//! - `RowFamily`: `has_dated_tables`, `leaves_out`, `of_copy`, `of_list`, `of_primary`, `part_restoring`,
//!   `table_given_primary_table`
//! - `SimulatedAccount`: `answer`
//! - `Template`: `each_part_text`, `find_blind_tokens`, `has_tokens`, `is_last_segment`, `key_prefix_before`,
//!   `key_prefix_through`, `part_text`, `replace_placeholders`, `template_spelling_of_key`,
//!   `terminator_char_of_part`, `token_fields`
//! - `TemplatePart`: `is_period_of`
//!
//! None of them follows the rules of versions. `tests/policy` compares the list with the sources.

pub mod address {
    pub use crate::address::{Names, RowAddress, RowAt, TableName};
}
pub mod backend {
    pub mod layer {
        pub use crate::backend::layer::{
            adaptive_rate::SharedWindow,
            retry::is_read_worth_repeating,
            span_fields::{error_code_or_kind, record_count_in_span, record_failure_in_span},
            verb_counts::{VerbCounts, count_request},
        };
    }
}
pub mod batch {
    pub use crate::batch::operation::is_unreserved_url_byte;
}
pub mod edm {
    pub use crate::edm::json::{json_from_edm, json_text, readable_json_text};
}
pub mod error {
    pub use crate::error::{facts::RetryChance, printable::is_printable};
}
pub mod key {
    pub use crate::key::{
        draft::KeyDraft,
        hash::stable_hash,
        successor::text_successor,
        template::table_given_primary_table,
        token::{TOKEN_PLACEHOLDER, equals_with_tokens},
    };
}
pub mod limits {
    pub use crate::limits::{
        saturating_i32, saturating_i64, saturating_u32, saturating_u64, saturating_usize,
    };
}
pub mod metering {
    pub use crate::metering::{Metering, RequestOutcome, count_cache_lookup};
}
pub mod private_file {
    pub use crate::private_file::NewFileName;
}
pub mod random {
    pub use crate::random::RandomSource;
}
pub mod row {
    pub mod json {
        pub use crate::row::json::{
            encode::{JsonRow, text_of_not_finite},
            members::EntityMembers,
            seeds::NameSeed,
            time::{parse_etag, parse_usual_form},
        };
    }
    pub use crate::row::{
        OPERATION_ID, compact_row::property_name_from_utf8, error_with_row_keys, is_operation_id,
        read::corrupt_row_error,
    };
}
pub mod single_flight {
    pub use crate::single_flight::{FlightSlot, SingleFlight};
}
pub mod timers {
    pub use crate::timers::{instant_after, poll_until_instant, sleep, timeout};
}
pub mod turn {
    pub use crate::turn::{HeldTurn, LONGEST_STALL, Turn, TurnTaker};
}

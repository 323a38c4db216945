//! Everything of this crate that `entable` uses and that is not for other programs.
//!
//! These items follow no rules of versions. `tests/policy` compares the list with the sources.

pub mod access {
    pub use crate::access::{KeyFault, RowKeys};
}
pub mod address {
    pub use crate::address::{Names, RowAddress, RowAt, TableName};
}
pub mod backend {
    pub mod layer {
        pub use crate::backend::layer::{
            adaptive_rate::SharedWindow,
            observe::{error_code_or_kind, record_count_in_span, record_failure_in_span},
            retry::is_read_worth_repeating,
            verb_counts::{VerbCounts, count_request},
        };
    }
    pub mod page_bounds {
        pub use crate::backend::page_bounds::{PageRoom, checked_page_size};
    }
    pub mod row_rules {
        pub use crate::backend::row_rules::{
            check_not_empty, check_read_keys, entity_missing_error, name_operation_in_error,
            next_write_time, resulting_row, select_properties, table_missing_error, written_answer,
        };
    }
    pub mod scan_range {
        pub use crate::backend::scan_range::ScanRange;
    }
    pub use crate::backend::port::{no_backups_error, no_snapshots_error};
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
pub mod filter {
    pub use crate::filter::eval::compare_utf16;
}
pub mod guard {
    pub use crate::guard::{ActiveGuards, Guard};
}
pub mod key {
    pub use crate::key::{
        draft::KeyDraft,
        hash::stable_hash,
        order::{BOUNDARY, sort_key_from_key_bytes},
        successor::text_successor,
        template::table_given_primary_table,
        token::{TOKEN_PLACEHOLDER, equals_with_tokens},
    };
}
pub mod limits {
    pub use crate::limits::{
        DATED_TABLES, saturating_i32, saturating_i64, saturating_u32, saturating_u64,
        saturating_usize,
    };
}
pub mod metering {
    pub use crate::metering::{Metering, RequestOutcome, count_cache_lookup};
}
pub mod page {
    pub use crate::page::{PageLoop, text_fingerprint};
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
        read::corrupt_row_error, row_bytes::RowBytes,
    };
}
pub mod single_flight {
    pub use crate::single_flight::{FlightSlot, SingleFlight};
}
pub mod timers {
    pub use crate::timers::{instant_after, poll_until_instant, sleep, timeout};
}
pub mod turn {
    pub use crate::turn::{LONGEST_STALL, Turn, TurnTaker};
}

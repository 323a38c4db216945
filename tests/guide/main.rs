//! The design guide, row by row: a test for each row that code can meet, named by the row's ID, on
//! the store in memory, on the one in a file, and on the emulator that ENTABLE_AZURITE names.
//! `docs/guide.md` says where the other rows are met.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::unit_arg
)]

mod a_data_model;
mod b_transactions;
mod c_limits;
mod d_guidelines;
mod e_queries;
mod f_keys;
#[path = "../contract/flaky_blobs.rs"]
mod flaky_blobs;
mod g_encryption;
#[cfg(feature = "azure-wire")]
mod key_range_gate;
mod i_intra_partition_index;
mod j_inter_partition_index;
mod k_by_queue;
mod k_eventual;
mod l_by_queue;
mod latency;
mod l_remote_lists;
mod l_index_entities;
mod model;
mod n_compound_key;
mod o_log_tail;
mod p_mass_delete;
mod q_data_series;
mod r_wide_entities;
mod s_blobs;
mod store;
mod t_hot_partitions;
mod u_log_data;
mod guide_page;
mod v_retrieving;
mod w_modifying;
#[cfg(feature = "azure-wire")]
mod y_signatures;
mod z_parallel;

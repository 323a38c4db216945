//! The binaries and tests of this package are in the folders beside this one.

/// The examples of the derives, whose own package has no entable to run them with.
#[cfg(doctest)]
mod examples_of_derives {
    #[doc = include_str!("../../macros/docs/edm_enum.md")]
    struct EdmEnum;
    #[doc = include_str!("../../macros/docs/entity_set.md")]
    struct EntitySet;
    #[doc = include_str!("../../macros/docs/key_part.md")]
    struct KeyPart;
    #[doc = include_str!("../../macros/docs/message.md")]
    struct Message;
    #[doc = include_str!("../../macros/docs/projection.md")]
    struct Projection;
    #[doc = include_str!("../../macros/docs/properties.md")]
    struct Properties;
    #[doc = include_str!("../../macros/docs/table_entity.md")]
    struct TableEntity;
}

/// Runs the samples of the README and of the book as tests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../README.md")]
    mod readme {}
    #[doc = include_str!("../../docs/first-program.md")]
    mod first_program {}
    #[doc = include_str!("../../docs/choosing-keys.md")]
    mod choosing_keys {}
    #[doc = include_str!("../../docs/design.md")]
    mod design {}
    #[doc = include_str!("../../docs/attributes.md")]
    mod attributes {}
    #[doc = include_str!("../../docs/paths.md")]
    mod paths {}
    #[doc = include_str!("../../docs/filters.md")]
    mod filters {}
    #[doc = include_str!("../../docs/mixed-rows.md")]
    mod mixed_rows {}
    #[doc = include_str!("../../docs/performance.md")]
    mod performance {}
    #[doc = include_str!("../../docs/encryption.md")]
    mod encryption {}
    #[doc = include_str!("../../docs/operating.md")]
    mod operating {}
    #[cfg(feature = "azure")]
    #[doc = include_str!("../../docs/azure-setup.md")]
    mod azure_setup {}
    #[doc = include_str!("../../docs/report.md")]
    mod report {}
    #[doc = include_str!("../../docs/layout.md")]
    mod layout {}
    #[doc = include_str!("../../docs/http.md")]
    mod http {}
    #[doc = include_str!("../../docs/testing.md")]
    mod testing {}
    #[doc = include_str!("../../docs/moving.md")]
    mod moving {}
    #[doc = include_str!("../../docs/from-dotnet.md")]
    mod from_dotnet {}
    #[doc = include_str!("../../docs/from-cloudtable.md")]
    mod from_cloudtable {}
    #[doc = include_str!("../../docs/troubleshooting.md")]
    mod troubleshooting {}
    #[doc = include_str!("../../docs/patterns/local-index.md")]
    mod local_index {}
    #[doc = include_str!("../../docs/patterns/remote-index.md")]
    mod remote_index {}
    #[doc = include_str!("../../docs/patterns/eventual-transactions.md")]
    mod eventual_transactions {}
    #[doc = include_str!("../../docs/patterns/lists.md")]
    mod lists {}
    #[doc = include_str!("../../docs/patterns/denormalisation.md")]
    mod denormalisation {}
    #[doc = include_str!("../../docs/patterns/compound-key.md")]
    mod compound_key {}
    #[doc = include_str!("../../docs/patterns/data-series.md")]
    mod data_series {}
    #[doc = include_str!("../../docs/patterns/wide.md")]
    mod wide {}
    #[doc = include_str!("../../docs/patterns/large-values.md")]
    mod large_values {}
    #[doc = include_str!("../../docs/patterns/counting.md")]
    mod counting {}
    #[doc = include_str!("../../docs/patterns/log-tail.md")]
    mod log_tail {}
    #[doc = include_str!("../../docs/patterns/log-data.md")]
    mod log_data {}
    #[doc = include_str!("../../docs/patterns/mass-delete.md")]
    mod mass_delete {}
    #[doc = include_str!("../../docs/patterns/soft-delete.md")]
    mod soft_delete {}
    #[doc = include_str!("../../docs/who-reads-my-table.md")]
    mod who_reads_my_table {}
    #[doc = include_str!("../../docs/patterns/expiry.md")]
    mod expiry {}
    #[doc = include_str!("../../docs/patterns/hot-partitions.md")]
    mod hot_partitions {}
}

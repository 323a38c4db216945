//! Defines sets of entities, what `#[derive(EntitySet)]` implements, and how a row finds its type.

mod forms;
mod markers;
mod members;
mod entity_set;
mod aggregate;
mod derived;

pub use aggregate::{Aggregate, ManyField, OneField, PartitionFold};
pub use derived::{
    assert_members_apart, assert_older, assert_same_type, assert_types_apart, declared_table_of,
    projection_schema, read_projection,
};
pub use entity_set::{EntitySet, OtherRow, Set, SetMember, Variant, read_matched, resolve_row};
pub(crate) use entity_set::{ResolvedRow, resolve_item};
pub use forms::{KeyForm, count_key_forms, sort_key_forms};
pub use markers::{TypeMarker, build_marker_table, marker_table_len};
pub(super) use members::const_str_eq;
pub use members::{
    Members, RowMatch, have_same_entity_type, members_may_collide, same_discriminator,
};

//! Sets of entities: what `#[derive(EntitySet)]` implements, and how the type of a row is found.

pub(crate) mod forms;
pub(crate) mod markers;
pub(crate) mod members;
pub(crate) mod entity_set;
pub(crate) mod aggregate;
pub(crate) mod derived;

pub use aggregate::Aggregate;
pub use entity_set::{EntitySet, OtherRow, SetMember, SetMembers, Variant};
pub(crate) use entity_set::{ResolvedRow, read_matched, read_set_item};
pub use members::Members;
pub(crate) use members::const_str_eq;
pub(crate) use members::{
    RowMatch, copies_may_collide, have_same_discriminator_value, have_same_entity_type,
    members_may_collide,
};

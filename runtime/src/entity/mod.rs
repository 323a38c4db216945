//! Defines what the derives implement for entities, and the types that generated code uses.

mod kind;
mod message;
mod untyped_path;
mod pending;
mod row_kind;
mod rows;
mod encode_rows;
mod schema;
mod names;
mod properties;
mod column;
mod patch;
mod sealed;
mod stored;
mod view;
mod path;
mod projection;
mod table_entity;
mod unknown;
mod dynamic;
mod reference;
mod version;
pub mod set;
mod related;

pub use column::{Column, Flattened, Flattens, Predicate, ReadColumn, ReadPart, SystemValue};
pub use dynamic::DynamicEntity;
pub use encode_rows::{EncodeRows, primary_row, rows_with};
pub use kind::{Blind, Comparable, Encrypted, EqComparable, Json, Plain};
pub use message::{Message, MessageBody};
pub use names::assert_flattened;
pub use patch::Patch;
pub use path::{Partition, Path, PathBuilder, PathStep, Point, Range, Scan};
pub(crate) use pending::BackgroundWork;
pub use projection::Projection;
pub use properties::{
    Properties, PropertyWriter, finish_json, finish_property, keep_extra, read_json,
    read_properties, read_property,
};
pub use reference::KeyRef;
pub(crate) use related::{can_derive_keys, derive_keys};
pub(crate) use row_kind::{LIST_MARKER, RowKind, RowVersion, SPILL, head_row_key};
pub use rows::{CopyRow, EntityRows, ListEntry, RemoteList};
pub(crate) use schema::CopyFamily;
pub use schema::{
    ColumnEncryption, ColumnSchema, Discriminator, Recognition, Schema, TokenProperty,
};
pub use sealed::SEAL;
pub(crate) use sealed::SealedColumn;
pub use set::{Aggregate, EntitySet, Set, SetMember, Variant};
pub use stored::Stored;
pub use table_entity::{FromRow, TableEntity};
pub(crate) use unknown::{Unknown, lossy};
pub use untyped_path::{Access, PathDraft};
pub use version::{
    UpgradeFrom, current_form, owner_in_any_version, owner_of_older, rows_of_any_version,
    rows_of_older, upgrade_older,
};
pub(crate) use version::{read_any_version, read_other_version};
pub use view::{
    FullCopy, FullView, HeldBy, HoldsField, ListRows, PartialCopy, PrimaryRow, ReadableAs, View,
};

//! Entities: the traits that the derives implement, the paths to rows, columns, patches, sets, and [`Stored`], a value
//! with its row. Items that only generated code needs are public only in `__private`.

mod framework;
mod kind;
mod message;
pub(crate) mod untyped_path;
mod pending;
pub(crate) mod row_kind;
mod rows;
pub(crate) mod encode_rows;
mod schema;
pub(crate) mod dated;
mod expiry;
mod needs;
pub(crate) mod names;
pub(crate) mod properties;
mod predicate;
pub(crate) mod column;
mod column_conditions;
mod flattened;
pub(crate) mod several_properties;
pub(crate) mod series;
pub(crate) mod split;
pub(crate) mod blob;
mod patch;
mod sealed;
mod stored;
mod view;
pub(crate) mod path;
pub(crate) mod into_point;
pub(crate) mod projection;
mod table_entity;
mod under;
pub(crate) mod validate;
mod unknown;
mod dynamic;
mod reference;
pub(crate) mod version;
pub mod set;
pub(crate) mod home;
mod related;
mod unreadable;

pub use blob::column::BlobColumn;
pub(crate) use blob::points_to;
pub use blob::{Blob, BlobField, BlobFieldValue, BlobNames};
pub use column::{Column, ReadColumn, SystemValue};
pub use dynamic::DynamicEntity;
pub use flattened::{Flattened, FlattenedField, InnerColumn};
pub use framework::SEAL;
pub(crate) use framework::{
    MOVED_BY, MOVED_VALUE, MOVING, RESERVED, TYPE_NAME, is_framework_property, is_move_property,
};
pub use into_point::IntoPoint;
pub(crate) use into_point::own_row;
pub use kind::{Blind, Comparable, Encrypted, EqComparable, InBlob, Json, Plain};
pub(crate) use message::message_body;
pub use message::{Message, MessageBody};
pub(crate) use needs::Needs;
pub use patch::Patch;
pub use path::{AnyPath, Partition, Path, PathBuilder, Point, Range, Scan};
pub(crate) use pending::BackgroundWork;
pub use predicate::Predicate;
pub use projection::Projection;
pub use properties::{Properties, PropertyWriter};
pub(crate) use properties::{
    decode_json_field, finish_property, read_json_field, read_properties, read_property,
};
pub use reference::KeyRef;
pub(crate) use related::{can_derive_keys, derive_keys};
pub(crate) use row_kind::{LIST_MARKER, RowKind, RowVersion, SPILL, head_row_key};
pub use rows::{CopyRow, EntityRows, ListEntry, RemoteListKeys};
pub(crate) use schema::CopyAndPrimaryFamily;
#[doc(hidden)]
pub use schema::has_property;
pub use schema::{
    ColumnEncryption, ColumnSchema, Discriminator, Recognition, Schema, SeriesSchema, TokenProperty,
};
pub(crate) use sealed::SealedColumn;
pub use series::Series;
pub use set::{Aggregate, EntitySet, SetMember, SetMembers, Variant};
pub use split::{SplitColumn, SplitValue, TextOrBytes};
pub(crate) use stored::RowSource;
pub use stored::Stored;
pub(crate) use stored::etag_if_unchanged;
pub use table_entity::{FromRow, TableEntity};
pub(crate) use unknown::{UnknownProperties, lossy_write_error};
pub(crate) use untyped_path::PathDraft;
pub use untyped_path::UntypedPath;
pub use version::UpgradeFrom;
pub(crate) use version::{read_any_version, read_other_version};
pub use view::{
    FieldNamed, FullCopy, FullRow, FullView, HoldsField, HoldsProjection, ListRows, ListView,
    PartialCopy, PrimaryRow, ProjectionHeldBy, View, WritableView,
};

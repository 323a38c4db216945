//! Builds PartitionKeys and RowKeys from templates, and reads their parts back.
//!
//! A template consists of literal text and parts, such as `empid_{id:06}`. The parts can always be read back from a
//! key: fixed-width parts are written unchanged, and every other part is escaped so the literal after it cannot occur
//! inside it. `docs/key-encoding.md` specifies the format.

mod escape;
pub(crate) mod order;
mod part;
pub(crate) mod hash;
mod integer;
mod date;
pub(crate) mod successor;
pub(crate) mod template;
mod collide;
mod text;
mod time;
pub(crate) mod token;
mod walk;
mod write;
pub(crate) mod draft;
#[cfg(feature = "chrono")]
mod with_chrono;
#[cfg(feature = "jiff")]
mod with_jiff;

pub use collide::{families_may_collide, templates_may_collide};
pub use date::{
    DatePart, Resolution, date_width, decode_date, decode_period, encode_date,
    encode_ticks_in_form, resolution_of,
};
pub use escape::{escape, unescape};
pub use hash::{bucket, bucket_width, encode_bucket, push_bucket};
pub(crate) use hash::{fnv1a, stable_hash};
pub(crate) use order::{BOUNDARY, push_sort_key};
pub use order::{decode_sort_key, encode_sort_key, keys_of_sort_key, sort_key_from_key_bytes};
pub use part::{Descending, FixedWidth, KeyPart, Ordered, PrefixInput, RangeInput, TextPart};
pub use successor::successor;
pub(crate) use successor::text_successor;
pub use template::{
    DecodeText, EncodeValue, FamilyKind, Form, LeftOutStruct, PartCodec, RowFamily, Segment,
    Template, TemplatePart,
};
pub use text::lower;
pub use token::{TOKEN_WIDTH, push_token_placeholder};
pub use write::KeyWriter;

//! Keys: how the parts of a template become a PartitionKey or RowKey and come back.
//!
//! A template is literal text and parts (`empid_{id:06}`). Its key is injective: fixed-width parts
//! stand as they are, every other part is escaped so that the literal after it cannot occur in it.
//! The format is written down in `docs/key-encoding.md`.

mod collide;
mod date;
mod escape;
mod hash;
mod integer;
mod order;
mod part;
mod successor;
mod template;
mod text;
mod time;
#[cfg_attr(not(feature = "encrypt"), allow(dead_code, reason = "used where rows are sealed"))]
mod token;
mod walk;
mod write;
#[cfg(feature = "chrono")]
mod with_chrono;

pub use collide::{families_meet, templates_meet};
pub use date::{
    DatePart, Resolution, date_width, decode_date, decode_period, encode_date, encode_ticks,
    resolution_of,
};
pub use escape::{escape, unescape};
pub(crate) use hash::stable_hash;
pub use hash::{bucket, bucket_width, encode_bucket, push_bucket};
pub(crate) use order::{BOUNDARY, order_of, put_order};
pub use order::{decode_order, encode_order};
pub use part::{Descending, FixedWidth, KeyPart, Ordered, PrefixInput, RangeInput, TextPart};
pub use successor::successor;
pub use template::{EncodeValue, Family, FamilyKind, Form, Part, Segment, Template};
pub use text::lower;
pub(crate) use token::{HELD, is_same_but_held};
pub use token::{TOKEN_WIDTH, hold_token};
pub use write::KeyWriter;

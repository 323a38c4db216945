//! Access paths: keys that are given step by step, and what they address.

use std::{fmt, marker::PhantomData, ops::Bound};

use super::{Projection, TableEntity};
use crate::{
    access::Keys,
    edm::InvalidValue,
    error::Result,
    key::{Family, Segment, Template, escape, lower, successor},
};

/// The rows of an entity that a path leads to: the primary, a full copy, a partial copy.
pub trait View: 'static {}

/// Rows that hold the whole entity, so that it can be read from them.
#[diagnostic::on_unimplemented(
    message = "this path leads to partial copies",
    note = "a partial copy does not hold every field: use `get_as::<P>` or `select::<P>` with a projection of the fields that it has"
)]
pub trait FullView: View {}

/// The entity's own rows.
#[derive(Debug, Clone, Copy)]
pub struct PrimaryRow;

impl View for PrimaryRow {}
impl FullView for PrimaryRow {}

/// Copies that hold the whole entity.
#[derive(Debug, Clone, Copy)]
pub struct FullCopy;

impl View for FullCopy {}
impl FullView for FullCopy {}

/// Copies that hold some of the entity's fields; `M` says which.
#[derive(Debug, Clone, Copy)]
pub struct PartialCopy<M>(PhantomData<fn() -> M>);

impl<M: 'static> View for PartialCopy<M> {}

/// Index entities: one row, the ids of many entities.
#[derive(Debug, Clone, Copy)]
pub struct ListRows;

impl View for ListRows {}

/// A partial copy that holds a field; `FIELD` is a fingerprint of the field's name.
#[diagnostic::on_unimplemented(
    message = "the copies of this index do not hold a field of the projection",
    note = "add the field to `only(..)` of the index, or read the entity through another path"
)]
pub trait Holds<const FIELD: u64> {}

/// A projection whose fields a partial copy holds.
#[diagnostic::on_unimplemented(
    message = "the copies of this index do not hold every field of `{Self}`",
    note = "add the missing field to `only(..)` of the index, or read the entity through another path"
)]
pub trait Within<M> {}

/// Rows that a projection can be read from.
#[diagnostic::on_unimplemented(
    message = "`{P}` cannot be read through this path",
    note = "a partial copy does not hold every field; a list holds ids"
)]
pub trait ReadableAs<P>: View {}

impl<P: Projection> ReadableAs<P> for PrimaryRow {}
impl<P: Projection> ReadableAs<P> for FullCopy {}
impl<P: Projection + Within<M>, M: 'static> ReadableAs<P> for PartialCopy<M> {}

/// A path to some of an entity's rows: what the path builders return as soon as it addresses
/// something.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not address anything yet",
    note = "give the fields of the PartitionKey first; `E::scan()` is the only way to a table scan"
)]
pub trait Path: Sized {
    /// The entity.
    type Entity: TableEntity;
    /// Which of its rows.
    type View: View;

    /// The path without its type.
    fn access(self) -> Access;

    /// The keys that it addresses.
    fn keys(self) -> Keys {
        self.access().keys
    }
}

/// A path without its type: which family of rows, and which keys of it.
#[derive(Debug, Clone)]
pub struct Access {
    pub(crate) family: Option<&'static Family>,
    pub(crate) keys: Keys,
    pub(crate) parts: Vec<Option<String>>,
    pub(crate) fault: Option<(&'static str, InvalidValue)>,
}

impl Access {
    /// The keys, where every value fits its part.
    ///
    /// # Errors
    ///
    /// `is_invalid`, naming the field, for the first value that does not.
    pub fn checked(&self) -> Result<&Keys> {
        match &self.fault {
            None => Ok(&self.keys),
            Some((field, invalid)) => Err(invalid.clone().on_write(field)),
        }
    }

    /// Both keys, for a path to one row.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large` for keys that cannot be.
    pub fn point(&self) -> Result<(&str, &str)> {
        let (partition_key, row_key) = self.checked()?.as_point().unwrap_or_default();
        crate::limits::check_key("PartitionKey", partition_key)?;
        crate::limits::check_key("RowKey", row_key)?;
        Ok((partition_key, row_key))
    }
}

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $(
            $(#[$doc])*
            pub struct $name<E, V = PrimaryRow> {
                access: Access,
                of: PhantomData<fn() -> (E, V)>,
            }

            impl<E, V> $name<E, V> {
                /// The path that a builder has gathered.
                #[doc(hidden)]
                pub fn from_draft(draft: Draft) -> Self {
                    Self { access: draft.into_access(), of: PhantomData }
                }

                /// The keys that it addresses.
                pub fn keys(&self) -> &Keys {
                    &self.access.keys
                }
            }

            impl<E, V> Clone for $name<E, V> {
                fn clone(&self) -> Self {
                    Self { access: self.access.clone(), of: PhantomData }
                }
            }

            impl<E, V> fmt::Debug for $name<E, V> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_tuple(stringify!($name)).field(&self.access.keys).finish()
                }
            }

            impl<E: TableEntity, V: View> Path for $name<E, V> {
                type Entity = E;
                type View = V;

                fn access(self) -> Access {
                    self.access
                }
            }
        )*
    };
}

paths! {
    /// One row: both of its keys are known.
    Point
    /// Rows of one partition whose RowKeys are bounded.
    Range
    /// One partition.
    Partition
}

impl<E: TableEntity> Point<E> {
    /// The primary row with these keys.
    pub fn at(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        let keys = Keys::point(partition_key, row_key);
        let family = E::SCHEMA.families.first();
        let access = Access { family, keys, parts: Vec::new(), fault: None };
        Self { access, of: PhantomData }
    }
}

impl<E, V> Point<E, V> {
    /// The PartitionKey.
    pub fn partition_key(&self) -> &str {
        self.access.keys.as_point().unwrap_or_default().0
    }

    /// The RowKey.
    pub fn row_key(&self) -> &str {
        self.access.keys.as_point().unwrap_or_default().1
    }

    pub(crate) fn as_access(&self) -> &Access {
        &self.access
    }
}

/// Every entity of a type, in all partitions of its table.
pub struct Scan<E>(PhantomData<fn() -> E>);

impl<E> Scan<E> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<E> Clone for Scan<E> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Scan<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scan")
    }
}

impl<E: TableEntity> Path for Scan<E> {
    type Entity = E;
    type View = PrimaryRow;

    fn access(self) -> Access {
        Access {
            family: E::SCHEMA.families.first(),
            keys: Keys::everything(),
            parts: Vec::new(),
            fault: None,
        }
    }
}

/// The keys that a path builder has gathered so far. Builders never fail: the first value that does
/// not fit is kept, and the verb returns it.
#[derive(Debug, Clone)]
pub struct Draft {
    family: &'static Family,
    /// The text of each part as it stands in the key: the PartitionKey's parts, then the RowKey's.
    parts: Vec<Option<String>>,
    /// Bounds of the first RowKey part that has no text.
    bounds: Option<(Bound<String>, Bound<String>)>,
    fault: Option<(&'static str, InvalidValue)>,
}

/// What a bound of a part reaches to in the key.
type Encode<'a, T> = &'a dyn Fn(&T, &mut String) -> Result<(), InvalidValue>;

impl Draft {
    /// Nothing given yet.
    pub fn new(family: &'static Family) -> Self {
        let parts = family.partition.parts().chain(family.row.parts()).map(|_| None).collect();
        Self { family, parts, bounds: None, fault: None }
    }

    fn partition_parts(&self) -> usize {
        self.family.partition.parts().count()
    }

    /// The template that holds a part, and the part's place in it.
    fn place(&self, part: usize) -> (&'static Template, usize) {
        let family: &'static Family = self.family;
        match part.checked_sub(self.partition_parts()) {
            None => (&family.partition, part),
            Some(part) => (&family.row, part),
        }
    }

    fn encode(
        &mut self,
        part: usize,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Option<String> {
        let (template, at) = self.place(part);
        match template.encode_part(at, encode) {
            Ok(text) => Some(text),
            Err(invalid) => {
                let field = template.parts().nth(at).map_or("", |part| part.field);
                self.fault.get_or_insert((field, invalid));
                None
            }
        }
    }

    /// Fixes a part; parts are counted through the PartitionKey and on through the RowKey.
    #[must_use]
    pub fn fix(
        mut self,
        part: usize,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        // A part that cannot be written stands as empty text, so that the path keeps its class.
        let text = self.encode(part, encode).unwrap_or_default();
        if let Some(slot) = self.parts.get_mut(part) {
            *slot = Some(text);
        }
        self
    }

    /// Bounds a part whose keys sort as its values do.
    #[must_use]
    pub fn between<T>(
        mut self,
        part: usize,
        bounds: (Bound<T>, Bound<T>),
        encode: Encode<'_, T>,
    ) -> Self {
        let mut text = |bound: Bound<T>| match bound {
            Bound::Included(value) => {
                Bound::Included(self.encode(part, |out| encode(&value, out)).unwrap_or_default())
            }
            Bound::Excluded(value) => {
                Bound::Excluded(self.encode(part, |out| encode(&value, out)).unwrap_or_default())
            }
            Bound::Unbounded => Bound::Unbounded,
        };
        let bounds = (text(bounds.0), text(bounds.1));
        self.bounds = Some(self.row_bounds(part, bounds));
        self
    }

    /// Bounds a part that is written in descending order.
    #[must_use]
    pub fn between_descending<T>(
        self,
        part: usize,
        (lower, upper): (Bound<T>, Bound<T>),
        encode: Encode<'_, T>,
    ) -> Self {
        self.between(part, (upper, lower), encode)
    }

    /// Bounds a text part by a prefix, in lower case where the part is.
    #[must_use]
    pub fn starting_with(mut self, part: usize, prefix: &str, lower_case: bool) -> Self {
        let (template, at) = self.place(part);
        let mut text = String::new();
        if lower_case {
            lower(prefix, &mut text);
        } else {
            text.push_str(prefix);
        }
        let text = escape(&text, template.terminator_of_part(at));
        let whole = [self.row_prefix(), text].concat();
        self.bounds = Some((Bound::Included(whole.clone()), above(&whole)));
        self
    }

    /// Bounds of a part as bounds of the RowKey.
    fn row_bounds(
        &self,
        part: usize,
        (lower, upper): (Bound<String>, Bound<String>),
    ) -> (Bound<String>, Bound<String>) {
        let (template, at) = self.place(part);
        let last = template.ends_with_part(at);
        let prefix = self.row_prefix();
        let whole = |text: String| [prefix.as_str(), &text].concat();
        let lower = match lower {
            Bound::Included(text) => Bound::Included(whole(text)),
            Bound::Excluded(text) if last => Bound::Excluded(whole(text)),
            Bound::Excluded(text) => match successor(&whole(text)) {
                Some(next) => Bound::Included(next),
                None => Bound::Unbounded,
            },
            Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
            Bound::Unbounded => Bound::Included(prefix.clone()),
        };
        let upper = match upper {
            Bound::Included(text) if last => Bound::Included(whole(text)),
            Bound::Included(text) => above(&whole(text)),
            Bound::Excluded(text) => Bound::Excluded(whole(text)),
            Bound::Unbounded => above(&prefix),
        };
        (lower, upper)
    }

    /// The text that every key of the path begins with: literals and fixed parts. A literal after
    /// the last fixed part is left out where the part has a fixed width: the part alone is exact.
    fn row_prefix(&self) -> String {
        let parts = self.parts.get(self.partition_parts()..).unwrap_or_default();
        prefix_of(&self.family.row, parts)
    }

    fn into_access(self) -> Access {
        let split = self.partition_parts();
        let partition =
            prefix_of(&self.family.partition, self.parts.get(..split).unwrap_or_default());
        let rows = self.parts.get(split..).unwrap_or_default();
        let keys = Keys::partition(partition);
        let keys = match self.bounds {
            Some((lower, upper)) => Keys { lower, upper, ..keys },
            None if rows.iter().all(Option::is_some) => keys.row(prefix_of(&self.family.row, rows)),
            None => {
                let exact = exact_prefix_of(&self.family.row, rows);
                keys.prefix(exact)
            }
        };
        Access { family: Some(self.family), keys, parts: self.parts, fault: self.fault }
    }
}

/// Literals and fixed parts up to the first part without text.
fn prefix_of(template: &Template, parts: &[Option<String>]) -> String {
    let mut texts = parts.iter();
    let mut prefix = String::new();
    for segment in template.segments {
        match segment {
            Segment::Literal(text) => prefix.push_str(text),
            Segment::Part(_) => match texts.next() {
                Some(Some(text)) => prefix.push_str(text),
                _ => break,
            },
        }
    }
    prefix
}

/// The same, without the literal after a last fixed part of fixed width: what the design guide
/// writes (`ge 'empid_000123'`, not `ge 'empid_000123_'`).
fn exact_prefix_of(template: &Template, parts: &[Option<String>]) -> String {
    let prefix = prefix_of(template, parts);
    let fixed = parts.iter().take_while(|part| part.is_some()).count();
    let Some(last) = fixed.checked_sub(1) else { return prefix };
    let Some(at) = template.segment_of_part(last) else { return prefix };
    match (template.segments.get(at), template.segments.get(at + 1)) {
        (Some(Segment::Part(part)), Some(Segment::Literal(text))) if part.width.is_some() => {
            prefix.strip_suffix(text).map(str::to_owned).unwrap_or(prefix)
        }
        _ => prefix,
    }
}

fn above(prefix: &str) -> Bound<String> {
    successor(prefix).map_or(Bound::Unbounded, Bound::Excluded)
}

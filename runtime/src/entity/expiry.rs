//! Decides which rows have expired, by the time in the field of `expires = field`.

use super::{RowKind, RowVersion, Schema, set::Members};
use crate::{
    edm::{Ticks, Value, ValueRef},
    filter::{Comparison, Filter},
    key::{Form, RowFamily, Segment, successor},
    row::Row,
};

impl Schema {
    /// Returns whether entities of the type can expire in any version.
    pub(crate) fn can_expire(&'static self) -> bool {
        self.versions().any(|version| version.expires.is_some())
    }

    /// Iterates over the properties that hold the time of expiry in any version, each once.
    pub(crate) fn expiry_properties(&'static self) -> impl Iterator<Item = &'static str> {
        let newer = |version: &Schema, name| {
            let mut newer = self.versions().take_while(|one| one.version > version.version);
            newer.any(|one| one.expires == Some(name))
        };
        self.versions()
            .filter_map(move |version| version.expires.filter(|name| !newer(version, name)))
    }

    /// Returns when a primary or copy of the type expires, according to the version that wrote it. Returns `None`
    /// if it never expires or its version is unknown, for any other row (a list, a later part, a row of another
    /// type), and for a row that cannot be classified. `expected` is the row's most likely row family.
    pub(crate) fn expiry_of(
        &'static self,
        row: &Row,
        expected: Option<&'static RowFamily>,
    ) -> Option<Ticks> {
        if !self.can_expire() {
            return None;
        }
        // A row that cannot be classified is left to the reader, which reports it.
        match self.row_kind_of(row, expected).ok()? {
            RowKind::Primary(RowVersion::Known(version))
            | RowKind::Copy(_, RowVersion::Known(version)) => version.expiry_in_this_version(row),
            _ => None,
        }
    }

    /// Returns when a primary of the type expires. Returns `None` for a primary that never expires or has an unknown
    /// version, and for any other row.
    pub(crate) fn expiry_of_primary(&'static self, row: &Row) -> Option<Ticks> {
        match self.version_of_primary(row).ok()?? {
            RowVersion::Known(version) => version.expiry_in_this_version(row),
            RowVersion::Unknown(_) => None,
        }
    }

    /// Returns whether a row is a primary of the type that has expired at `date`. Returns `false` for a primary that
    /// never expires or has an unknown version, and for any other row.
    pub(crate) fn is_primary_expired(&'static self, row: &Row, date: Ticks) -> bool {
        self.expiry_of_primary(row).is_some_and(|expiry| expiry <= date)
    }

    /// Returns the filter for rows whose time of expiry, in any version, compares with `time` as `comparison`
    /// requires. The filter matches nothing if no version of the type expires.
    pub(crate) fn expiry_comparison_filter(
        &'static self,
        comparison: Comparison,
        time: Ticks,
    ) -> Filter {
        let each = self
            .expiry_properties()
            .map(|name| Filter::compare(name, comparison, Value::DateTime(time)));
        each.reduce(|one, other| one | other).unwrap_or(Filter::Constant(false))
    }

    /// Returns the local, unconditional index whose RowKeys begin with the time of expiry, such as
    /// `index(ByUntil, row_key = "until_{until}_{id}")`. Returns `None` unless every version that expires has this
    /// index with equal key templates, and for entities with blind tokens in their keys.
    pub(crate) fn expiry_index(&'static self) -> Option<&'static RowFamily> {
        let index_of = |version: &'static Schema| {
            let (property, families) = (version.expires?, version.families);
            families.iter().find(|family| {
                let is_local_copy = family.is_copy() && !family.is_remote && !family.conditional;
                is_local_copy && begins_with(family, property)
            })
        };
        // Blind tokens are excluded: a copy's owner must be found without the blind token key.
        let index = index_of(self).filter(|_| !self.has_key_tokens())?;
        let is_index = |family: &RowFamily| {
            family.row.text == index.row.text && family.partition.text == index.partition.text
        };
        let mut expiring = self.versions().filter(|version| version.expires.is_some());
        expiring.all(|version| index_of(version).is_some_and(is_index)).then_some(index)
    }

    /// Returns the filter for the RowKeys of an [`expiry_index`](Self::expiry_index) that begin with `time` or
    /// an earlier time. Returns `None` if keys cannot represent `time`.
    pub(crate) fn expiry_range(index: &RowFamily, time: Ticks) -> Option<Filter> {
        // The index passed `begins_with`: its first part is the time, after at most one literal.
        let part = index.row.parts().next()?;
        let encode =
            |out: &mut String| (part.codec.encode)(part.form, ValueRef::DateTime(time), out);
        let text = index.row.encode_part(0, encode).ok()?;
        let first = index.row.literal_prefix();
        // Include keys that begin with this very time. The page's date decides about each row.
        let end = successor(&[first, text.as_str()].concat())?;
        Some(Filter::ge("RowKey", first) & Filter::lt("RowKey", end))
    }

    /// Returns when a row of this version expires.
    pub(crate) fn expiry_in_this_version(&self, row: &Row) -> Option<Ticks> {
        match row.get(self.expires?) {
            Ok(Some(ValueRef::DateTime(time))) => Some(time),
            _ => None,
        }
    }
}

/// Returns whether the family's RowKeys begin with a property, in plain or date form, after at most one
/// literal. The rows are then sorted by the property.
fn begins_with(family: &RowFamily, property: &str) -> bool {
    let ([Segment::Literal(_), Segment::Part(part), ..] | [Segment::Part(part), ..]) =
        family.row.segments
    else {
        return false;
    };
    // Other forms do not increase with the time: `desc` decreases, and a bucket is a hash.
    part.field == property && matches!(part.form, Form::Plain | Form::Date(_))
}

impl Members {
    /// Returns whether entities of any type in the set can expire.
    pub(crate) fn can_expire(&self) -> bool {
        self.schemas().iter().any(|schema| schema.can_expire())
    }

    /// Returns when a row of a member expires, according to the version that wrote the row.
    pub(crate) fn expiry_of(&self, row: &Row) -> Option<Ticks> {
        if !self.can_expire() {
            return None;
        }
        let matched = self.match_row(row).ok()??;
        let schema: &'static Schema = self.schemas().get(matched.member_index()).copied()?;
        let mut versions = schema.versions();
        versions.find(|version| version.version == matched.version())?.expiry_in_this_version(row)
    }
}

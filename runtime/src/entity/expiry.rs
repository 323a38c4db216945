//! Tells which rows are over: the time in their `expires = field` has passed.

use super::{RowKind, RowVersion, Schema, set::Members};
use crate::{
    edm::{Ticks, Value, ValueRef},
    filter::{Comparison, Filter},
    key::Family,
    row::Row,
};

impl Schema {
    /// Returns whether entities of the type, in some version, say when they are over.
    pub(crate) fn can_expire(&'static self) -> bool {
        self.versions().any(|version| version.expires.is_some())
    }

    /// Iterates over the properties that say in some version when a row is over, each once.
    pub(crate) fn expiry_properties(&'static self) -> impl Iterator<Item = &'static str> {
        let newer = |version: &Schema, name| {
            let mut newer = self.versions().take_while(|one| one.version > version.version);
            newer.any(|one| one.expires == Some(name))
        };
        self.versions()
            .filter_map(move |version| version.expires.filter(|name| !newer(version, name)))
    }

    /// Returns the time after which a row of the type is over, by the version that wrote the row.
    /// `None` for a row that stays, and for one of another type.
    pub(crate) fn expiry_of(
        &'static self,
        row: &Row,
        expected: Option<&'static Family>,
    ) -> Option<Ticks> {
        if !self.can_expire() {
            return None;
        }
        // A row that cannot be told is left to the reader, who reports it.
        match self.kind_of(row, expected).ok()? {
            RowKind::Primary(RowVersion::Known(version))
            | RowKind::Copy(_, RowVersion::Known(version)) => version.expiry_in(row),
            _ => None,
        }
    }

    /// Returns the time after which a primary of the type is over. `None` for a primary that stays or is
    /// of an unknown version, and for any other row.
    pub(crate) fn expiry_of_primary(&'static self, row: &Row) -> Option<Ticks> {
        match self.kind_of(row, self.primary().ok()).ok()? {
            RowKind::Primary(RowVersion::Known(version)) => version.expiry_in(row),
            _ => None,
        }
    }

    /// Returns the filter for rows whose time of expiry compares with `time`. It selects nothing if
    /// entities of the type stay.
    pub(crate) fn expiry_filter(&'static self, comparison: Comparison, time: Ticks) -> Filter {
        let each = self
            .expiry_properties()
            .map(|name| Filter::compare(name, comparison, Value::DateTime(time)));
        each.reduce(|one, other| one | other).unwrap_or(Filter::Constant(false))
    }

    /// Returns the time after which a row of this version is over.
    pub(crate) fn expiry_in(&self, row: &Row) -> Option<Ticks> {
        match row.get(self.expires?) {
            Ok(Some(ValueRef::DateTime(time))) => Some(time),
            _ => None,
        }
    }
}

impl Members {
    /// Returns whether entities of a member say when they are over.
    pub(crate) fn can_expire(&self) -> bool {
        self.schemas().iter().any(|schema| schema.can_expire())
    }

    /// Returns the time after which a row of a member is over, by the version that wrote the row.
    pub(crate) fn expiry_of(&self, row: &Row) -> Option<Ticks> {
        if !self.can_expire() {
            return None;
        }
        let matched = self.match_row(row).ok()??;
        let schema: &'static Schema = self.schemas().get(matched.member()).copied()?;
        let mut versions = schema.versions();
        versions.find(|version| version.version == matched.version())?.expiry_in(row)
    }
}

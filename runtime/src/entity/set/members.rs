//! Determines which member of a set a row belongs to. A member is one of the entity types in the set.

use super::{forms, forms::KeyForm, markers, markers::TypeMarker};
use crate::{
    edm::{EdmType, ValueRef},
    entity::{Discriminator, RESERVED, Schema, TYPE_NAME, framework::framework_type_of},
    error::{Error, ErrorKind, Result},
    key::{RowFamily, families_may_collide},
    row::Row,
};

/// The members of a set, with the tables for finding a row's member.
#[derive(Debug)]
pub struct Members {
    set: &'static str,
    schemas: &'static [&'static Schema],
    /// The discriminator property of the first member. Empty if the member is recognised by its keys.
    first_asked: &'static str,
    markers: &'static [TypeMarker],
    forms: &'static [KeyForm],
}

/// The member and row family that a row belongs to, and the version that wrote the row.
#[derive(Debug, Clone, Copy)]
pub struct RowMatch {
    member: usize,
    version: u32,
    /// The byte offset in the row from which [`Row::properties_from_offset`] reads the properties. It is the end of the
    /// discriminator if `match_row` found that as the first property, otherwise 0.
    pub(super) from: u32,
    family: &'static RowFamily,
}

impl RowMatch {
    /// Returns the index of the member in the set.
    pub fn member_index(&self) -> usize {
        self.member
    }

    /// Returns the version that wrote the row.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the row family, as declared by the version of the type that wrote the row.
    pub fn family(&self) -> &'static RowFamily {
        self.family
    }

    pub(super) fn is_primary(&self) -> bool {
        self.family.is_primary()
    }

    pub(super) fn type_marker_of_row(&self) -> &'static str {
        self.family.marker
    }
}

impl Members {
    /// Creates the members of the set named `set`, in declaration order.
    pub const fn new(
        set: &'static str,
        schemas: &'static [&'static Schema],
        markers: &'static [TypeMarker],
        forms: &'static [KeyForm],
    ) -> Self {
        let first_asked = match schemas {
            [first, ..] => match first.type_property() {
                Some(name) => name,
                None => "",
            },
            [] => "",
        };
        Self { set, schemas, first_asked, markers, forms }
    }

    /// Returns the name of the set.
    pub fn set_name(&self) -> &'static str {
        self.set
    }

    /// Returns the schemas of the members, in declaration order.
    pub const fn schemas(&self) -> &'static [&'static Schema] {
        self.schemas
    }

    /// Returns the name of the member that a row belongs to.
    pub(crate) fn member_name_of(&self, matched: &RowMatch) -> &'static str {
        self.schemas.get(matched.member).map_or(self.set, |schema| schema.entity)
    }

    /// Returns the table of the first member. Rows that do not belong to a member are also written there.
    pub fn table(&self) -> &'static str {
        self.schemas.first().map_or("", |schema| schema.table)
    }

    /// Returns the properties that every query must select: the properties for recognising a row's type, and the
    /// properties with the time of expiry.
    pub fn always_selected_columns(&self) -> Vec<String> {
        let schemas: &'static [&'static Schema] = self.schemas;
        let expiry = schemas.iter().flat_map(|schema| schema.expiry_properties());
        let mut names: Vec<String> = Vec::new();
        for name in [TYPE_NAME].into_iter().chain(self.discriminator_properties()).chain(expiry) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Iterates over the discriminator properties of the members, each once.
    pub(crate) fn discriminator_properties(&self) -> impl Iterator<Item = &'static str> {
        let mut seen: Vec<&'static str> = Vec::new();
        let schemas: &'static [&'static Schema] = self.schemas;
        schemas.iter().filter_map(|schema| schema.type_property()).filter(move |name| {
            let is_new = !seen.contains(name);
            if is_new {
                seen.push(name);
            }
            is_new
        })
    }

    /// Finds the member that a row belongs to by its discriminator, or else by its keys. Returns `None` if it does
    /// not belong to any.
    #[inline]
    pub(crate) fn match_row(&self, row: &Row) -> Result<Option<RowMatch>> {
        // Derived code writes the discriminator first.
        let mut properties = row.properties();
        if let Some((name, EdmType::String, text)) = properties.next_undecoded()?
            && markers::are_short_texts_equal(name, self.first_asked.as_bytes())
            && let Some(marker) = markers::find_marker(self.markers, text)
            && marker.asked == 0
            && let Some(family) = marker.family
        {
            let TypeMarker { member, version, .. } = *marker;
            return Ok(Some(RowMatch {
                member,
                version,
                from: row.byte_offset_of_reader(&properties),
                family,
            }));
        }
        self.search_all(row)
    }

    /// Finds the member of a row whose first property is not its discriminator. Other programs may write such rows.
    fn search_all(&self, row: &Row) -> Result<Option<RowMatch>> {
        let mut asked = "";
        for (at, schema) in self.schemas.iter().enumerate() {
            let Some(name) = schema.type_property() else { continue };
            if name == asked {
                continue;
            }
            // It is enough to skip direct repetitions. A later one matches no marker, because markers contain the
            // first member with the property.
            asked = name;
            if let Some(ValueRef::String(text)) = row.get(name)?
                && let Some(matched) = self.match_by_marker(at, text)
            {
                return Ok(Some(matched));
            }
        }
        Ok(self.match_by_keys(row))
    }

    fn match_by_marker(&self, asked: usize, text: &str) -> Option<RowMatch> {
        let marker = match markers::find_marker(self.markers, text.as_bytes()) {
            Some(marker) => marker,
            None => self.find_first_version(text)?,
        };
        let TypeMarker { member, version, .. } = *marker;
        (marker.asked == asked).then_some(RowMatch {
            member,
            version,
            from: 0,
            family: marker.family?,
        })
    }

    #[cold]
    fn find_first_version(&self, text: &str) -> Option<&'static TypeMarker> {
        let marker = markers::find_marker(self.markers, marker_of_first_version(text)?.as_bytes())?;
        (marker.version == 1).then_some(marker)
    }

    /// Finds the member of a row by its keys, among the members without a discriminator property. Also returns
    /// `None` for a row of the library.
    fn match_by_keys(&self, row: &Row) -> Option<RowMatch> {
        let KeyForm { member, version, family, .. } = *forms::find_key_form(self.forms, row)?;
        Some(RowMatch { member, version, from: 0, family: family? }).filter(|_| !is_framework(row))
    }

    /// Returns whether a member is stored as several rows.
    pub(crate) fn has_wide(&self) -> bool {
        self.schemas.iter().any(|schema| schema.is_wide())
    }

    /// Returns the wide member that a row belongs to as a part of an entity, with the member's index in the set.
    /// Returns `None` if the row is not such a part.
    pub(crate) fn wide_member_of(&self, row: &Row) -> Option<(usize, &'static Schema)> {
        let schemas: &'static [&'static Schema] = self.schemas;
        let wide = schemas.iter().copied().enumerate().filter(|(_, schema)| schema.is_wide());
        let mut wide = wide
            .filter_map(|(at, schema)| Some((at, schema, row.get(schema.type_property()?).ok()??)));
        let is_part = |(_, schema, marker): &(usize, &'static Schema, ValueRef<'_>)| {
            let mut parts = schema.versions().flat_map(|version| version.parts);
            parts.any(|part| *marker == ValueRef::String(part))
        };
        wide.find(is_part).map(|(at, schema, _)| (at, schema))
    }

    /// Returns whether a set skips a row that does not belong to a member. It skips framework rows, and copies
    /// unless `copies` is set.
    pub(crate) fn skips_unmatched_row(&self, row: &Row, copies: bool) -> Result<bool> {
        if is_framework(row) {
            return Ok(true);
        }
        if copies {
            return Ok(false);
        }
        let mut names = self.discriminator_properties();
        Ok(names
            .any(|name| matches!(row.get(name), Ok(Some(ValueRef::String(text))) if is_copy(text))))
    }

    /// Returns the error for a row that does not belong to a member.
    pub fn unrecognized_error(&self, row: &Row) -> Error {
        let mut error = None;
        for name in self.discriminator_properties() {
            let (message, found) = match row.get(name) {
                Err(error) => return error.at_keys(row.partition_key(), row.row_key()),
                Ok(None) => continue,
                Ok(Some(ValueRef::String(text))) => (self.unknown_type(text), Some(text)),
                Ok(Some(other)) => (
                    format!(
                        "unrecognized entity: expected the type's name, found {}",
                        other.edm_type()
                    ),
                    None,
                ),
            };
            let unknown = Error::new(ErrorKind::UnrecognizedEntity, message).in_property(name);
            error = Some(match found {
                Some(found) => unknown.of_type(found),
                None => unknown,
            });
            // A row has its type in one property, so the first one that exists decides.
            break;
        }
        let error = error.unwrap_or_else(|| {
            let message = format!(
                "unrecognized entity: the row does not say its type, and its keys fit no member of `{}`",
                self.set
            );
            Error::new(ErrorKind::UnrecognizedEntity, message)
        });
        error.at_keys(row.partition_key(), row.row_key())
    }

    fn unknown_type(&self, text: &str) -> String {
        let newer =
            self.schemas.iter().find_map(|schema| Some((schema, schema.version_of_marker(text)?)));
        match newer {
            Some((schema, version)) => schema.unknown_version_error(version).message().to_owned(),
            None => format!(
                "unrecognized entity: `{}` is not a member of `{}`",
                text.escape_debug(),
                self.set
            ),
        }
    }
}

/// Rewrites `Employee.v1` to `Employee`, because version 1 is written without a number. Returns
/// `None` for any other text.
fn marker_of_first_version(marker: &str) -> Option<String> {
    let (first, copy) = marker.split_at(marker.find('#').unwrap_or(marker.len()));
    Some([first.strip_suffix(".v1")?, copy].concat())
}

/// Returns whether a discriminator has the form of a copy's, such as `Employee#ByEmail`: a type, `#`, and the name
/// of an index, which is a Rust identifier.
fn is_copy(marker: &str) -> bool {
    marker.split_once('#').is_some_and(|(entity, index)| {
        !entity.is_empty()
            && index.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && index.chars().all(|c| c == '_' || c.is_alphanumeric())
    })
}

/// Returns whether a row belongs to the framework, by its keys or its EntityType.
fn is_framework(row: &Row) -> bool {
    row.row_key().starts_with(RESERVED)
        || row.partition_key().starts_with(RESERVED)
        || matches!(framework_type_of(row), Ok(Some(_)))
}

/// Returns whether rows of two entities, in any of their versions, can have equal keys.
pub(crate) const fn members_may_collide(a: &Schema, b: &Schema) -> bool {
    rows_may_collide(a, b, true)
}

/// Returns whether a copy or a part of one entity can have the key of a row of the other, in any of their versions.
/// Copies are written over whatever is stored, and such a row would be lost.
pub(crate) const fn copies_may_collide(a: &Schema, b: &Schema) -> bool {
    rows_may_collide(a, b, false)
}

/// Returns whether rows of two entities, in any of their versions, can have equal keys. Compares two primaries only if
/// `primaries` is set.
const fn rows_may_collide(a: &Schema, b: &Schema, primaries: bool) -> bool {
    let mut older_a = Some(a);
    while let Some(a) = older_a {
        let mut older_b = Some(b);
        while let Some(b) = older_b {
            if any_keys_meet(a.families, b.families, primaries)
                || any_keys_meet(parts_of(a), b.families, true)
                || any_keys_meet(a.families, parts_of(b), true)
            {
                return true;
            }
            older_b = b.older;
        }
        older_a = a.older;
    }
    false
}

/// Returns the row family of all parts of a wide entity, or none if the entity is not wide.
const fn parts_of(schema: &Schema) -> &[RowFamily] {
    match schema.part_rows {
        Some(parts) => std::slice::from_ref(parts),
        None => &[],
    }
}

const fn any_keys_meet(a: &[RowFamily], b: &[RowFamily], primaries: bool) -> bool {
    let mut rest_a = a;
    while let [first_a, after_a @ ..] = rest_a {
        let mut rest_b = b;
        while let [first_b, after_b @ ..] = rest_b {
            let counts = primaries || !first_a.is_primary() || !first_b.is_primary();
            if counts && families_may_collide(first_a, first_b) {
                return true;
            }
            rest_b = after_b;
        }
        rest_a = after_a;
    }
    false
}

/// Returns whether rows of two entities have the same EntityType, even in different discriminator properties.
/// Entities that are recognised by their keys never do.
pub(crate) const fn have_same_entity_type(a: &Schema, b: &Schema) -> bool {
    match (a.discriminator, b.discriminator) {
        (Discriminator::Property(_), Discriminator::Property(_)) => {
            const_str_eq(a.entity_type, b.entity_type)
        }
        _ => false,
    }
}

/// Returns whether two schemas have the same EntityType, regardless of version, in the same discriminator property,
/// as all versions of a type must have.
pub(crate) const fn have_same_discriminator_value(a: &Schema, b: &Schema) -> bool {
    match (a.discriminator, b.discriminator) {
        (Discriminator::Property(first), Discriminator::Property(second)) => {
            const_str_eq(first, second) && const_str_eq(a.entity_type, b.entity_type)
        }
        _ => false,
    }
}

pub(crate) const fn const_str_eq(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
        if *first_a != *first_b {
            return false;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.is_empty() && b.is_empty()
}

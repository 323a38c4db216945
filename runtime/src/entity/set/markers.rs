//! Recognises rows by their discriminator. The compiler fills a hash table with all discriminator values of a set,
//! so the number of members does not slow down the search.

#![allow(clippy::indexing_slicing, reason = "evaluated by the compiler only")]

use super::const_str_eq;
use crate::{
    entity::{Discriminator, Schema},
    key::RowFamily,
};

/// The discriminator value of one row family of a member, in one version.
#[derive(Debug, Clone, Copy)]
pub struct TypeMarker {
    /// The value, such as `Employee`, `Employee#ByEmail` or `Employee.v2`.
    pub(super) text: &'static str,
    /// The last bytes of the value as a number, which is compared first.
    key: u64,
    /// Index of the member in the set.
    pub(super) member: usize,
    /// Identifies the discriminator property, which can differ between members, by the index of the first member that
    /// uses it. A row is looked up once for each property, and must not match the marker of a member that uses another
    /// one.
    pub(super) asked: usize,
    pub(super) version: u32,
    pub(super) family: Option<&'static RowFamily>,
}

impl TypeMarker {
    const NONE: Self = Self { text: "", key: 0, member: 0, asked: 0, version: 0, family: None };
}

const fn has_marker(schema: &Schema, family: &RowFamily) -> bool {
    matches!(schema.discriminator, Discriminator::Property(_)) && family.is_primary_or_copy()
}

/// Returns the number of slots of the hash table, more than half of which stay free.
pub const fn marker_hash_table_len(members: &[&Schema]) -> usize {
    (2 * count_markers(members) + 1).next_power_of_two()
}

/// Returns the number of discriminator values of all members, including older versions and copies.
const fn count_markers(members: &[&Schema]) -> usize {
    let mut count = 0;
    let mut member = 0;
    while member < members.len() {
        let mut version = Some(members[member]);
        while let Some(schema) = version {
            let mut family = 0;
            while family < schema.families.len() {
                count += has_marker(schema, &schema.families[family]) as usize;
                family += 1;
            }
            version = schema.older;
        }
        member += 1;
    }
    count
}

/// Builds the hash table of discriminator values. Each value is in the first free slot from its hash on.
pub const fn build_marker_table<const SLOTS: usize>(
    members: &[&'static Schema],
) -> [TypeMarker; SLOTS] {
    let mut markers = [TypeMarker::NONE; SLOTS];
    let mut member = 0;
    while member < members.len() {
        let mut version = Some(members[member]);
        while let Some(schema) = version {
            let mut at = 0;
            while at < schema.families.len() {
                let family = &schema.families[at];
                if has_marker(schema, family) {
                    let text = family.marker;
                    let (key, version) = (search_key_of_text(text.as_bytes()), schema.version);
                    let (asked, family) =
                        (first_member_with_property(members, schema), Some(family));
                    let marker = TypeMarker { text, key, member, asked, version, family };
                    let mut slot = slot_of_search_key(key, SLOTS);
                    while markers[slot].family.is_some() {
                        slot = (slot + 1) & (SLOTS - 1);
                    }
                    markers[slot] = marker;
                }
                at += 1;
            }
            version = schema.older;
        }
        member += 1;
    }
    markers
}

/// Returns the index of the first member whose rows store their type in the same property as the rows of `schema`.
/// Returns the number of members if those rows are recognised by their keys.
const fn first_member_with_property(members: &[&Schema], schema: &Schema) -> usize {
    let Discriminator::Property(name) = schema.discriminator else { return members.len() };
    let mut at = 0;
    while at < members.len() {
        if let Discriminator::Property(other) = members[at].discriminator
            && const_str_eq(name, other)
        {
            return at;
        }
        at += 1;
    }
    at
}

/// Combines the last bytes of a text and its length into one number.
#[inline]
const fn search_key_of_text(bytes: &[u8]) -> u64 {
    // Values of one type have the same beginning (`Employee`, `Employee.v2`, `Employee#ByEmail`) and different
    // ends.
    let end = match bytes.last_chunk::<8>() {
        Some(end) => u64::from_le_bytes(*end),
        None => {
            let (mut end, mut rest) = (0, bytes);
            while let [first, after @ ..] = rest {
                end = end << 8 | *first as u64;
                rest = after;
            }
            end
        }
    };
    end.rotate_left(8) ^ bytes.len() as u64
}

/// Returns the slot where the search for a key begins, in a table whose size is a power of two.
#[inline]
const fn slot_of_search_key(key: u64, slots: usize) -> usize {
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize & (slots - 1)
}

/// Finds the type marker with the text `text`, a row's discriminator value, in the hash table `markers`.
#[inline]
pub(super) fn find_marker(
    markers: &'static [TypeMarker],
    text: &[u8],
) -> Option<&'static TypeMarker> {
    let key = search_key_of_text(text);
    let mut slot = slot_of_search_key(key, markers.len().max(1));
    loop {
        let marker = markers.get(slot)?;
        // The text of a free slot is empty and equals an empty value, so the family is checked too.
        if marker.key == key
            && are_short_texts_equal(marker.text.as_bytes(), text)
            && marker.family.is_some()
        {
            return Some(marker);
        }
        // More than half of the slots are free, so the search reaches one and ends.
        marker.family?;
        slot = (slot + 1) & (markers.len() - 1);
    }
}

/// Returns whether two texts are equal. Compares texts of 8 to 16 bytes without a function call.
#[inline]
pub(super) fn are_short_texts_equal(a: &[u8], b: &[u8]) -> bool {
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        // Two chunks of 8 bytes, which may overlap, cover every text of 8 to 16 bytes.
        (Some(first), Some(other)) if a.len() <= 16 => {
            a.len() == b.len() && first == other && a.last_chunk::<8>() == b.last_chunk()
        }
        _ => a == b,
    }
}

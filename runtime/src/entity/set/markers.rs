//! The values of discriminators that a set knows, sorted by the compiler, so that a row finds its
//! type by a binary search and a jump.

#![allow(clippy::indexing_slicing, reason = "evaluated by the compiler only")]

use super::same_text;
use crate::{
    entity::{Discriminator, Schema},
    key::{Family, FamilyKind},
};

/// The discriminator of one kind of rows of one member.
#[derive(Debug, Clone, Copy)]
pub struct Marker {
    /// The value: `Employee`, `Employee#ByEmail`, `Employee.v2`.
    pub(super) text: &'static str,
    /// The end of the text as a number: what the search compares.
    key: u64,
    /// The member, by its place in the set.
    pub(super) member: usize,
    /// The first member whose rows say their type in the same property.
    pub(super) asked: usize,
    pub(super) version: u32,
    pub(super) family: Option<&'static Family>,
}

impl Marker {
    const NONE: Self = Self { text: "", key: 0, member: 0, asked: 0, version: 0, family: None };
}

const fn has_marker(schema: &Schema, family: &Family) -> bool {
    matches!(schema.discriminator, Discriminator::Property(_))
        && !matches!(family.kind, FamilyKind::List)
}

/// How many discriminators the members have, older versions and copies included.
pub const fn count_markers(members: &[&Schema]) -> usize {
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

/// The discriminators of the members, sorted.
pub const fn sorted_markers<const COUNT: usize>(members: &[&'static Schema]) -> [Marker; COUNT] {
    let mut markers = [Marker::NONE; COUNT];
    let mut count = 0;
    let mut member = 0;
    while member < members.len() {
        let mut version = Some(members[member]);
        while let Some(schema) = version {
            let mut at = 0;
            while at < schema.families.len() {
                let family = &schema.families[at];
                if has_marker(schema, family) {
                    let text = family.marker;
                    let (key, version) = (key_of(text.as_bytes()), schema.version);
                    let (asked, family) = (first_asked(members, schema), Some(family));
                    let marker = Marker { text, key, member, asked, version, family };
                    insert(&mut markers, count, marker);
                    count += 1;
                }
                at += 1;
            }
            version = schema.older;
        }
        member += 1;
    }
    markers
}

/// The first member with the same discriminator.
const fn first_asked(members: &[&Schema], schema: &Schema) -> usize {
    let Discriminator::Property(name) = schema.discriminator else { return members.len() };
    let mut at = 0;
    while at < members.len() {
        if let Discriminator::Property(other) = members[at].discriminator
            && same_text(name, other)
        {
            return at;
        }
        at += 1;
    }
    at
}

/// Puts a marker where it belongs among the `count` that are there.
const fn insert(markers: &mut [Marker], count: usize, marker: Marker) {
    let mut at = count;
    while at > 0 && marker.key < markers[at - 1].key {
        markers[at] = markers[at - 1];
        at -= 1;
    }
    markers[at] = marker;
}

/// The last bytes of a text and its length, in one number.
#[inline]
const fn key_of(bytes: &[u8]) -> u64 {
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

/// The marker of that text. Texts may share a key: these stand side by side.
#[inline]
pub(super) fn find(markers: &'static [Marker], text: &[u8]) -> Option<&'static Marker> {
    let key = key_of(text);
    let from = markers.partition_point(|marker| marker.key < key);
    let mut found = markers.iter().skip(from).take_while(|marker| marker.key == key);
    found.find(|marker| is_text(marker, text))
}

/// Whether a marker with the same key is the text: the key has its last eight bytes.
#[inline]
fn is_text(marker: &Marker, text: &[u8]) -> bool {
    let marker = marker.text.as_bytes();
    marker.len() == text.len()
        && match text.len() {
            0..=8 => true,
            9..=16 => marker.first_chunk::<8>() == text.first_chunk::<8>(),
            _ => marker == text,
        }
}

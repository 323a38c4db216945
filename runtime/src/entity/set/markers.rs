//! The values of discriminators that a set knows, sorted by the compiler, so that a row finds its
//! type by a binary search and a jump.

#![allow(clippy::indexing_slicing, reason = "evaluated by the compiler only")]

use crate::{
    entity::{Discriminator, Schema},
    key::{Family, FamilyKind},
};

/// The discriminator of one kind of rows of one member.
#[derive(Debug, Clone, Copy)]
pub struct Marker {
    /// The value: `Employee`, `Employee#ByEmail`, `Employee.v2`.
    pub(super) text: &'static str,
    /// The member, by its place in the set.
    pub(super) member: usize,
    pub(super) version: u32,
    pub(super) family: Option<&'static Family>,
}

impl Marker {
    const NONE: Self = Self { text: "", member: 0, version: 0, family: None };
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
                    let marker =
                        Marker { text, member, version: schema.version, family: Some(family) };
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

/// Puts a marker where it belongs among the `count` that are there.
const fn insert(markers: &mut [Marker], count: usize, marker: Marker) {
    let mut at = count;
    while at > 0 && is_before(marker.text, markers[at - 1].text) {
        markers[at] = markers[at - 1];
        at -= 1;
    }
    markers[at] = marker;
}

/// Shorter texts first: most comparisons of a search are then of two numbers.
const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return a.len() < b.len();
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    false
}

/// The marker of that text.
pub(super) fn find(markers: &'static [Marker], text: &str) -> Option<&'static Marker> {
    let key = (text.len(), text);
    let at = markers.binary_search_by(|marker| (marker.text.len(), marker.text).cmp(&key)).ok()?;
    markers.get(at)
}

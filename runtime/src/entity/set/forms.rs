//! The forms of the keys that say a row's type, sorted by the compiler by what they begin with, so
//! that a row finds its form by a binary search.

#![allow(clippy::indexing_slicing, reason = "evaluated by the compiler only")]

use crate::{
    entity::{Discriminator, Schema},
    key::Family,
    row::Row,
};

/// The keys of one kind of rows of one member, which says its type by them.
#[derive(Debug, Clone, Copy)]
pub struct KeyForm {
    /// What its RowKeys begin with.
    prefix: &'static str,
    /// The member, by its place in the set.
    pub(super) member: usize,
    pub(super) version: u32,
    pub(super) family: Option<&'static Family>,
    /// The form before it that begins alike: with the same text, or with less of it.
    before: Option<usize>,
}

impl KeyForm {
    const NONE: Self = Self { prefix: "", member: 0, version: 0, family: None, before: None };
}

/// How many forms the members have that are told apart by their keys.
pub const fn count_forms(members: &[&Schema]) -> usize {
    let mut count = 0;
    let mut member = 0;
    while member < members.len() {
        if matches!(members[member].discriminator, Discriminator::RowKey) {
            count += members[member].families.len();
        }
        member += 1;
    }
    count
}

/// The forms of the members that are told apart by their keys, sorted.
pub const fn sorted_forms<const COUNT: usize>(members: &[&'static Schema]) -> [KeyForm; COUNT] {
    let mut forms = [KeyForm::NONE; COUNT];
    let mut count = 0;
    let mut member = 0;
    while member < members.len() {
        let schema = members[member];
        let mut at = 0;
        while matches!(schema.discriminator, Discriminator::RowKey) && at < schema.families.len() {
            let family = &schema.families[at];
            let (prefix, version) = (family.row.literal_prefix(), schema.version);
            let form = KeyForm { prefix, member, version, family: Some(family), before: None };
            insert(&mut forms, count, form);
            count += 1;
            at += 1;
        }
        member += 1;
    }
    let mut at = 0;
    while at < COUNT {
        forms[at].before = form_before(&forms, at);
        at += 1;
    }
    forms
}

/// Puts a form where it belongs among the `count` that are there.
const fn insert(forms: &mut [KeyForm], count: usize, form: KeyForm) {
    let mut at = count;
    while at > 0 && is_less(form.prefix.as_bytes(), forms[at - 1].prefix.as_bytes()) {
        forms[at] = forms[at - 1];
        at -= 1;
    }
    forms[at] = form;
}

const fn form_before(forms: &[KeyForm], at: usize) -> Option<usize> {
    let mut before = at;
    while before > 0 {
        before -= 1;
        if begins_with(forms[at].prefix.as_bytes(), forms[before].prefix.as_bytes()) {
            return Some(before);
        }
    }
    None
}

const fn is_less(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

const fn begins_with(text: &[u8], prefix: &[u8]) -> bool {
    let mut at = 0;
    while at < prefix.len() {
        if at >= text.len() || text[at] != prefix[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The form of a row's keys. The families of a set are apart, so that the first one that fits is
/// the only one.
///
/// Whatever a key begins with stands before it, and all texts between the two begin with it too:
/// the last form that is not above the key leads to every one that the key may have.
pub(super) fn find(forms: &'static [KeyForm], row: &Row) -> Option<&'static KeyForm> {
    let row_key = row.row_key();
    let mut at = forms.partition_point(|form| form.prefix <= row_key).checked_sub(1);
    while let Some(form) = at.and_then(|at| forms.get(at)) {
        let fits = |family: &Family| {
            row_key.starts_with(form.prefix)
                && family.row.matches(row_key)
                && family.partition.matches(row.partition_key())
        };
        if form.family.is_some_and(fits) {
            return Some(form);
        }
        at = form.before;
    }
    None
}

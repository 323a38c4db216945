//! Recognises rows by the form of their keys, for members of a set without a discriminator property. The compiler
//! sorts the forms by the literal at the beginning of RowKeys, which allows a binary search.

#![allow(clippy::indexing_slicing, reason = "evaluated by the compiler only")]

use crate::{
    entity::{Discriminator, Schema},
    key::RowFamily,
    row::Row,
};

/// The key form of one row family of a member whose rows are recognised by their keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyForm {
    /// The literal at the beginning of the row family's RowKeys.
    prefix: &'static str,
    /// Index of the member in the set.
    pub(super) member: usize,
    pub(super) version: u32,
    pub(super) family: Option<&'static RowFamily>,
    /// Index of the closest earlier form whose prefix is a prefix of this form's prefix.
    before: Option<usize>,
}

impl KeyForm {
    const NONE: Self = Self { prefix: "", member: 0, version: 0, family: None, before: None };
}

/// Returns the number of key forms of all members that are recognised by their keys.
pub const fn count_key_forms(members: &[&Schema]) -> usize {
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

/// Returns the key forms of all members that are recognised by their keys, sorted by prefix.
pub const fn key_forms_by_prefix<const COUNT: usize>(
    members: &[&'static Schema],
) -> [KeyForm; COUNT] {
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
        forms[at].before = key_form_before(&forms, at);
        at += 1;
    }
    forms
}

/// Inserts a form at its sorted position among the first `count`.
const fn insert(forms: &mut [KeyForm], count: usize, form: KeyForm) {
    // An insertion sort, because the sort of slices cannot run in a constant.
    let mut at = count;
    while at > 0 && is_less(form.prefix.as_bytes(), forms[at - 1].prefix.as_bytes()) {
        forms[at] = forms[at - 1];
        at -= 1;
    }
    forms[at] = form;
}

const fn key_form_before(forms: &[KeyForm], at: usize) -> Option<usize> {
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

/// Finds the form of a row's keys. The row families of a set never share a key, so at most one form matches.
///
/// Forms are sorted by prefix. The search starts at the last form whose prefix is not above the RowKey, and
/// continues through `KeyForm::before`, the closest earlier form whose prefix is a prefix of the current one. It
/// checks every form that can match: any prefix of the RowKey sorts before all longer ones, and all forms in
/// between begin with it.
pub(super) fn find_key_form(forms: &'static [KeyForm], row: &Row) -> Option<&'static KeyForm> {
    let row_key = row.row_key();
    let mut at = forms.partition_point(|form| form.prefix <= row_key).checked_sub(1);
    while let Some(form) = at.and_then(|at| forms.get(at)) {
        let fits = |family: &RowFamily| {
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

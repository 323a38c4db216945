//! Checks sets of entities.

use std::collections::HashMap;

use syn::spanned::Spanned;

use crate::{
    errors::Errors,
    model::{EntitySet, Member, RowsPerMember, Shape},
    names,
};

/// Reports two members of the same type, because a row could belong to either.
pub(super) fn report_equal_member_types(set: &EntitySet, errors: &mut Errors) {
    let mut seen = HashMap::new();
    for member in &set.members {
        let ty = names::source_text(&member.ty);
        if let Some(first) = seen.insert(ty.clone(), &member.ident) {
            let message = format!(
                "members `{first}` and `{}` have the same type `{ty}`: remove one of them",
                member.ident
            );
            errors.add_at(member.span, message);
        }
    }
}

/// Reports fields of a struct whose type cannot hold the number of rows that the field takes, if the type's name shows
/// this. The compiler checks other fields.
pub(super) fn check_field_types(set: &EntitySet, errors: &mut Errors) {
    if set.shape != Shape::Struct {
        return;
    }
    let members = set.members.iter().map(|member| (member, wrong_member_type(member)));
    let other = set.other.iter().map(|other| (other, wrong_other_type(other)));
    for (member, message) in members.chain(other) {
        if let Some(message) = message {
            errors.add_at(member.ty.span(), message);
        }
    }
}

/// Returns what is wrong with the type of a `one` or `many` field.
fn wrong_member_type(member: &Member) -> Option<String> {
    let name = names::ident_text(&member.ident);
    let inner = names::source_text(names::first_argument_type(&member.ty)?);
    let is = |container| names::is_named_one_of(&member.ty, &[container]);
    let setting = match member.count {
        RowsPerMember::One => "one",
        RowsPerMember::Many => "many",
    };
    match member.count {
        _ if is("Box") => Some(format!(
            "the type of `{name}` is a `Box`, which a field of a struct does not need: write `{inner}`"
        )),
        RowsPerMember::One if is("Vec") => Some(format!(
            "`{setting}` cannot be used on `{name}`, whose type is `Vec`: write `#[table(many)]` to take all rows of the type, or use `{inner}` or `Option<{inner}>` to take one row"
        )),
        RowsPerMember::Many if is("Option") => Some(format!(
            "`{setting}` cannot be used on `{name}`, whose type is `Option`: use `Vec<{inner}>` to take all rows of the type, or write `#[table(one)]` to take one row"
        )),
        RowsPerMember::One | RowsPerMember::Many => None,
    }
}

/// Returns what is wrong with the type of an `other` field.
fn wrong_other_type(other: &Member) -> Option<String> {
    let name = names::ident_text(&other.ident);
    let is_one = names::is_named_one_of(&other.ty, &["DynamicEntity", "Option", "Box"]);
    let found = names::source_text(&other.ty);
    is_one.then(|| {
        format!("`other` cannot be used on `{name}`, whose type is `{found}`: use `Vec<DynamicEntity>`, because there can be any number of other rows")
    })
}

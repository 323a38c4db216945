//! Describes a type with `#[derive(EntitySet)]`: an enum with one variant per entity type, or a struct
//! that gathers the rows of a partition.

use proc_macro2::{Ident, Span};
use syn::{Data, DataEnum, DeriveInput, Fields, Path, Type, spanned::Spanned};

use super::{named_fields, refuse_generics, runtime_path};
use crate::{
    attr::{AggregateFieldAttr, MemberAttr, SetAttr},
    errors::Errors,
    names,
};

/// A set of entity types whose rows share a table.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) ident: Ident,
    pub(crate) runtime: Path,
    pub(crate) shape: Shape,
    pub(crate) members: Vec<Member>,
    /// The member marked `other`: it takes the rows of unknown types.
    pub(crate) other: Option<Member>,
}

/// Tells whether the item with `#[derive(EntitySet)]` is an enum or a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An enum: each row becomes a value of it.
    Enum,
    /// A struct: all rows of a partition become one value of it.
    Struct,
}

/// A variant of the enum or a field of the struct, for rows of one entity type.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) count: RowsPerMember,
}

/// The number of rows that a field of the struct takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsPerMember {
    /// One row; for an `Option` also none.
    One,
    /// All rows of the type.
    Many,
}

impl Set {
    /// Reads the enum or struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "EntitySet", errors);
        let attr = SetAttr::read(&input.attrs, errors);
        let (shape, all) = match &input.data {
            Data::Enum(data) => (Shape::Enum, read_variants(data, &input.ident, errors)),
            _ => (Shape::Struct, read_fields(input, errors)),
        };
        let mut members = Vec::new();
        let mut other = None;
        for (member, is_other) in all {
            if !is_other {
                members.push(member);
            } else if other.is_none() {
                other = Some(member);
            } else {
                errors.add_at(member.ident.span(), "a second `other`, expected one");
            }
        }
        if members.is_empty() {
            errors.add_unless_incomplete(
                input.ident.span(),
                "expected a set with members, found none",
            );
        }
        Self {
            ident: input.ident.clone(),
            runtime: runtime_path(&attr.runtime, input, errors),
            shape,
            members,
            other,
        }
    }
}

/// Returns the variants of the enum, each with `true` if it is marked `other`.
fn read_variants(data: &DataEnum, this: &Ident, errors: &mut Errors) -> Vec<(Member, bool)> {
    let mut members = Vec::new();
    for variant in &data.variants {
        let attr = MemberAttr::read(&variant.attrs, errors);
        // A set is not called empty for the variants that are refused.
        let mut wrong = |span: Span| {
            let name = &variant.ident;
            let message = format!("expected a variant with one entity, write `{name}({name})`");
            errors.add_unreadable(syn::Error::new(span, message));
        };
        let field = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first(),
            Fields::Unit => {
                wrong(variant.ident.span());
                None
            }
            fields => {
                wrong(fields.span());
                None
            }
        };
        members.extend(field.map(|field| {
            let ty = names::replace_self_type(&field.ty, this);
            (
                Member { ident: variant.ident.clone(), ty, count: RowsPerMember::One },
                attr.other.is_set(),
            )
        }));
    }
    members
}

/// Returns the fields of the struct, each with `true` if it is marked `other`.
fn read_fields(input: &DeriveInput, errors: &mut Errors) -> Vec<(Member, bool)> {
    let mut members = Vec::new();
    for field in named_fields(input, errors) {
        let Some(ident) = field.ident else { continue };
        let attr = AggregateFieldAttr::read(&field.attrs, ident.span(), errors);
        let count = if attr.one.is_set() { RowsPerMember::One } else { RowsPerMember::Many };
        let ty = names::replace_self_type(&field.ty, &input.ident);
        members.push((Member { ident, ty, count }, attr.other.is_set()));
    }
    members
}

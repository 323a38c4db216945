//! A type with `#[derive(EntitySet)]`: an enum with one variant per entity type, or a struct that folds the rows of a
//! partition.

use proc_macro2::{Ident, Span};
use syn::{Data, DataEnum, DeriveInput, Fields, Type, spanned::Spanned};

use super::{CodeBlock, named_fields, refuse_generics};
use crate::{
    attr::{self, AggregateFieldAttr, MemberAttr, SetAttr},
    errors::Errors,
    names,
};

/// A set of entity types whose rows share a table.
#[derive(Debug)]
pub(crate) struct EntitySet {
    pub(crate) ident: Ident,
    pub(crate) block: CodeBlock,
    pub(crate) shape: Shape,
    /// Whether primaries of two members may have the same key, from `allow(same_keys)`.
    pub(crate) same_keys: bool,
    pub(crate) members: Vec<Member>,
    /// The member marked `other`, which takes rows of unknown types.
    pub(crate) other: Option<Member>,
}

/// Whether the item with `#[derive(EntitySet)]` is an enum or a struct.
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
    /// The span of the variant's or field's name, for messages.
    pub(crate) span: Span,
    /// The type of the variant or field. For a variant with a `Box`, the type in it.
    pub(crate) ty: Type,
    /// Whether the variant holds a `Box` of the type.
    pub(crate) is_boxed: bool,
    pub(crate) count: RowsPerMember,
}

/// The number of rows that a field of the struct takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsPerMember {
    /// One row. For an `Option`, one or none.
    One,
    /// All rows of the type.
    Many,
}

impl Member {
    fn new(name: &Ident, ty: Type, count: RowsPerMember) -> Self {
        Self {
            ident: names::generated_ident_of(name),
            span: name.span(),
            ty,
            is_boxed: false,
            count,
        }
    }

    /// Returns the member of a variant, which may hold the entity in a `Box`.
    fn of_variant(name: &Ident, ty: Type) -> Self {
        let is_box = names::is_named_one_of(&ty, &["Box"]);
        match is_box.then(|| names::first_argument_type(&ty).cloned()).flatten() {
            Some(inner) if names::last_segment(&inner).is_some() => {
                Self { is_boxed: true, ..Self::new(name, inner, RowsPerMember::One) }
            }
            _ => Self::new(name, ty, RowsPerMember::One),
        }
    }
}

impl EntitySet {
    /// Reads the enum or struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "EntitySet", errors);
        let attr = SetAttr::read(&input.attrs, errors);
        let (shape, all) = match &input.data {
            Data::Enum(data) => (Shape::Enum, read_variants(data, &input.ident, errors)),
            _ => (Shape::Struct, read_fields(input, errors)),
        };
        // A field without a setting was reported, and may be a member.
        let has_refused = match &input.data {
            Data::Struct(data) => all.len() < data.fields.len(),
            Data::Enum(_) | Data::Union(_) => false,
        };
        let mut members = Vec::new();
        let mut other = None;
        for (member, is_other) in all {
            if !is_other {
                members.push(member);
            } else if other.is_none() {
                other = Some(member);
            } else {
                errors
                    .add_at(member.span, "a set can have only one `other`, and this is the second");
            }
        }
        if members.is_empty() && !has_refused {
            errors.add_unless_incomplete(input.ident.span(), "a set needs at least one member");
        }
        Self {
            ident: names::generated_ident_of(&input.ident),
            block: CodeBlock::new(&attr.runtime, input, errors),
            shape,
            same_keys: attr.same_keys.is_set(),
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
        // Refused variants do not make the set count as empty.
        let mut wrong = |span: Span, found: &str| {
            let name = &variant.ident;
            let message = if attr.other.is_set() {
                format!(
                    "`other` takes the rows of every other type, so it needs exactly one field, found {found}: write `{name}(DynamicEntity)`"
                )
            } else {
                format!(
                    "a variant needs exactly one field, the entity it holds, found {found}: write `{name}(Employee)` with your entity type"
                )
            };
            errors.add_unreadable(syn::Error::new(span, message));
        };
        let field = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first(),
            Fields::Unit => {
                wrong(variant.ident.span(), "a unit variant");
                None
            }
            fields => {
                let found = match fields {
                    Fields::Named(_) => "named fields".to_owned(),
                    fields => format!("{} fields", fields.len()),
                };
                wrong(fields.span(), &found);
                None
            }
        };
        for field in &variant.fields {
            let hint = "write `#[table(other)]` on the variant";
            attr::refuse_settings(&field.attrs, "the field of a variant", hint, errors);
        }
        members.extend(field.map(|field| {
            let ty = names::replace_self_type(&field.ty, this);
            (Member::of_variant(&variant.ident, ty), attr.other.is_set())
        }));
    }
    members
}

/// Returns the fields of the struct, each with `true` if it is marked `other`.
fn read_fields(input: &DeriveInput, errors: &mut Errors) -> Vec<(Member, bool)> {
    let mut members = Vec::new();
    for field in named_fields(input, errors) {
        let Some(ident) = field.ident else { continue };
        let Some(attr) = AggregateFieldAttr::read(&field.attrs, ident.span(), errors) else {
            continue;
        };
        let count = if attr.one.is_set() { RowsPerMember::One } else { RowsPerMember::Many };
        let ty = names::replace_self_type(&field.ty, &input.ident);
        members.push((Member::new(&ident, ty, count), attr.other.is_set()));
    }
    members
}

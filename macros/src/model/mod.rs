//! Second stage: determines what the attributes mean. Fills in defaults and resolves names.

mod code_block;
mod dated;
mod edm_enum;
mod entity;
mod field;
mod key;
mod message;
mod newtype;
mod projection;
mod properties;
pub(crate) mod series;
mod set;

use proc_macro2::Span;
use syn::{Data, DeriveInput, Fields, spanned::Spanned};

pub(crate) use self::{
    code_block::CodeBlock,
    dated::{DatedTableName, is_table_name_template},
    edm_enum::EdmEnum,
    entity::Entity,
    field::{AbsenceRule, Field, Storage},
    key::{FamilyKind, KeyTemplate, RowFamily, Segment, TemplatePart},
    message::Message,
    newtype::Newtype,
    projection::Projection,
    properties::Properties,
    set::{EntitySet, Member, RowsPerMember, Shape},
};
use crate::errors::Errors;

/// Returns the fields of a struct with named fields. Reports any other type and returns no fields. Missing fields
/// are then not reported, because the type is at fault.
fn named_fields(input: &DeriveInput, errors: &mut Errors) -> Vec<syn::Field> {
    let wrong = |what: &str, span: Span| {
        let message = format!("expected a struct with named fields, found {what}");
        Err(syn::Error::new(span, message))
    };
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().cloned().collect()),
            Fields::Unnamed(fields) => wrong("a tuple struct", fields.span()),
            Fields::Unit => wrong("a unit struct", input.ident.span()),
        },
        Data::Enum(data) => wrong("an enum", data.enum_token.span),
        Data::Union(data) => wrong("a union", data.union_token.span),
    };
    fields.unwrap_or_else(|error| {
        errors.add_unreadable(error);
        Vec::new()
    })
}

/// Reports type parameters and lifetimes, because a row holds owned values of known types.
fn refuse_generics(input: &DeriveInput, derive: &str, errors: &mut Errors) {
    if !input.generics.params.is_empty() {
        errors.add_at(
            input.generics.params.span(),
            format!(
                "`{derive}` does not support generic types: write a type without parameters that owns its values"
            ),
        );
    }
}

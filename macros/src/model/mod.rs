//! Second stage: finds out what the attributes mean. Fills in defaults and looks up names.

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

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, Path, spanned::Spanned};

pub(crate) use self::{
    dated::{Dated, is_template},
    edm_enum::EdmEnum,
    entity::Entity,
    field::{Absent, Field, Storage},
    key::{Family, FamilyKind, Key, Part, Segment},
    message::Message,
    newtype::Newtype,
    projection::Projection,
    properties::Properties,
    set::{Count, Member, Set, Shape},
};
use crate::{errors::Errors, manifest, slot::Slot};

/// Returns the path of the crate `entable`: `::entable` unless `crate = ".."` names another. Reports a
/// package that calls the crate otherwise and does not say so.
fn runtime(given: &Slot<Path>, input: &DeriveInput, errors: &mut Errors) -> Path {
    if let Some(path) = given.get() {
        return path.clone();
    }
    let name = manifest::other_name_of_entable().filter(|_| !given.is_set());
    let Some(name) = name.and_then(|name| syn::parse_str::<Ident>(name).ok()) else {
        return syn::parse_quote!(::entable);
    };
    let message =
        format!("this package calls entable `{name}`: write `#[table(crate = \"{name}\")]`");
    errors.missing(input.ident.span(), message);
    syn::parse_quote!(::#name)
}

/// Returns the fields of a struct with named fields. Reports any other type, alone: what else may seem
/// missing follows from it.
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
        errors.unreadable(error);
        Vec::new()
    })
}

/// Reports type parameters and lifetimes: a row holds owned values of known types.
fn refuse_generics(input: &DeriveInput, derive: &str, errors: &mut Errors) {
    if !input.generics.params.is_empty() {
        errors.at(
            input.generics.params.span(),
            format!(
                "`{derive}` is for types without parameters: rows hold owned values of known types"
            ),
        );
    }
}

//! Describes a struct with `#[derive(KeyPart)]`.

use proc_macro2::Ident;
use syn::{Data, DeriveInput, Fields, Member, Type, spanned::Spanned};

use super::{CodeBlock, refuse_generics};
use crate::{
    attr::{self, CrateAttr},
    errors::Errors,
    names,
};

/// A struct with one field, stored like the field. Use it for an id with its own type.
#[derive(Debug)]
pub(crate) struct Newtype {
    pub(crate) ident: Ident,
    pub(crate) block: CodeBlock,
    /// The field's name or number, and its type. `None` if the type is not a struct with exactly one field.
    pub(crate) field: Option<(Member, Type)>,
}

impl Newtype {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "KeyPart", errors);
        let attr = CrateAttr::read(&input.attrs, errors);
        Self {
            ident: names::generated_ident_of(&input.ident),
            block: CodeBlock::new(&attr.runtime, input, errors),
            field: only_field(input, errors),
        }
    }
}

/// Returns the field of the struct. Reports any other number of fields, and unions.
fn only_field(input: &DeriveInput, errors: &mut Errors) -> Option<(Member, Type)> {
    let (span, found) = match &input.data {
        Data::Struct(data) => match (data.fields.iter().next(), data.fields.len()) {
            (Some(field), 1) => {
                let hint = "the key template chooses the form, such as `{id:06}`";
                attr::refuse_settings(&field.attrs, "the field of a `KeyPart`", hint, errors);
                let member = match data.fields.members().next()? {
                    Member::Named(name) => Member::Named(names::generated_ident_of(&name)),
                    unnamed => unnamed,
                };
                return Some((member, names::replace_self_type(&field.ty, &input.ident)));
            }
            (_, count) => match &data.fields {
                Fields::Unit => (input.ident.span(), "no field".to_owned()),
                fields => (fields.span(), format!("{count} fields")),
            },
        },
        Data::Union(data) => (data.union_token.span, "a union".to_owned()),
        Data::Enum(data) => (data.enum_token.span, "an enum".to_owned()),
    };
    let message = format!(
        "a part of a key must be one value: expected a struct with one field or an enum without fields, found {found}"
    );
    errors.add_at(span, message);
    None
}

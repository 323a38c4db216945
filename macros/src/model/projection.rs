//! Describes a struct with `#[derive(Projection)]`.

use proc_macro2::{Ident, Span};
use syn::{DeriveInput, Path, Type};

use super::{CodeBlock, named_fields, refuse_generics};
use crate::{
    attr::{self, ProjectionAttr},
    errors::Errors,
    names,
};

/// A struct that reads some of an entity's fields.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) ident: Ident,
    pub(crate) block: CodeBlock,
    pub(crate) of: Option<Path>,
    pub(crate) fields: Vec<ProjectedField>,
}

/// A field of a projection, read from the entity's column of the same name.
#[derive(Debug)]
pub(crate) struct ProjectedField {
    pub(crate) ident: Ident,
    /// The span of the field's name, for messages.
    pub(crate) span: Span,
    pub(crate) ty: Type,
    /// The name of the column constant on the entity.
    pub(crate) constant: Ident,
}

impl Projection {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "Projection", errors);
        // Check the shape first: if it is wrong, nothing else counts as missing.
        let named = named_fields(input, errors);
        let attr = ProjectionAttr::read(&input.attrs, &input.ident, errors);
        let mut fields = Vec::new();
        for field in named {
            let hint = "the entity determines how the field is stored";
            attr::refuse_settings(&field.attrs, "a field of a projection", hint, errors);
            fields.extend(field.ident.map(|ident| ProjectedField {
                constant: names::column_constant_name(&ident),
                ty: names::replace_self_type(&field.ty, &input.ident),
                ident: names::generated_ident_of(&ident),
                span: ident.span(),
            }));
        }
        Self {
            ident: names::generated_ident_of(&input.ident),
            block: CodeBlock::new(&attr.runtime, input, errors),
            of: attr.of.get().cloned(),
            fields,
        }
    }
}

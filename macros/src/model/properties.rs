//! Describes a struct with `#[derive(Properties)]`.

use proc_macro2::Ident;
use syn::DeriveInput;

use super::{CodeBlock, Field, named_fields, refuse_generics};
use crate::{
    attr::{FieldAttr, PropertiesAttr},
    errors::Errors,
    names::{self, Case},
};

/// A struct whose fields become properties of the entities that it is flattened into.
#[derive(Debug)]
pub(crate) struct Properties {
    pub(crate) ident: Ident,
    pub(crate) block: CodeBlock,
    pub(crate) fields: Vec<Field>,
}

impl Properties {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "Properties", errors);
        let attr = PropertiesAttr::read(&input.attrs, errors);
        let case = attr.rename_all.get().copied().unwrap_or(Case::Pascal);
        let mut fields = Vec::new();
        for field in named_fields(input, errors) {
            let attr = FieldAttr::read_properties_field(&field.attrs, errors);
            fields.extend(Field::new(&field, attr, case, &input.ident));
        }
        if attr.rename_all.is_unreadable() {
            fields.iter_mut().for_each(Field::mark_case_unknown);
        }
        Self {
            ident: names::generated_ident_of(&input.ident),
            block: CodeBlock::new(&attr.runtime, input, errors),
            fields,
        }
    }
}

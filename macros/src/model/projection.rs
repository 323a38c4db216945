//! Describes a struct with `#[derive(Projection)]`.

use proc_macro2::Ident;
use syn::{DeriveInput, Path, Type};

use super::{named_fields, refuse_generics, runtime_path};
use crate::{
    attr::{FieldAttr, ProjectionAttr},
    errors::Errors,
    names,
};

/// A struct that reads some of an entity's fields.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) ident: Ident,
    pub(crate) runtime: Path,
    pub(crate) of: Option<Path>,
    pub(crate) fields: Vec<ProjectedField>,
}

/// A field of a projection, read from the entity's column of the same name.
#[derive(Debug)]
pub(crate) struct ProjectedField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name of the column constant on the entity.
    pub(crate) constant: Ident,
}

impl Projection {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "Projection", errors);
        // The shape first: if it is wrong, nothing else is missing.
        let named = named_fields(input, errors);
        let attr = ProjectionAttr::read(&input.attrs, &input.ident, errors);
        let mut fields = Vec::new();
        for field in named {
            FieldAttr::refuse_projection_field_attributes(&field.attrs, errors);
            fields.extend(field.ident.map(|ident| ProjectedField {
                constant: names::column_constant_name(&ident),
                ty: names::replace_self_type(&field.ty, &input.ident),
                ident,
            }));
        }
        Self {
            ident: input.ident.clone(),
            runtime: runtime_path(&attr.runtime, input, errors),
            of: attr.of.get().cloned(),
            fields,
        }
    }
}

//! Describes an enum with `#[derive(EdmEnum)]` or `#[derive(KeyPart)]`.

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, LitStr, spanned::Spanned};

use super::{CodeBlock, refuse_generics};
use crate::{
    attr::{EnumAttr, VariantAttr},
    errors::Errors,
    names::{self, Case},
};

/// An enum whose values are stored as text.
#[derive(Debug)]
pub(crate) struct EdmEnum {
    pub(crate) ident: Ident,
    pub(crate) block: CodeBlock,
    pub(crate) variants: Vec<Variant>,
    /// Whether `rename_all` is given but could not be read.
    pub(crate) is_case_lost: bool,
}

/// A variant and the text that represents it.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) ident: Ident,
    /// The text that is stored for the variant.
    pub(crate) text: String,
    /// The span of `rename = ".."`, or else of the variant.
    pub(crate) span: Span,
    /// Whether `rename` is given but could not be read.
    pub(crate) is_text_lost: bool,
}

impl EdmEnum {
    /// Reads an enum and its attributes for the derive named `derive`. Reports mistakes to `errors`.
    pub(crate) fn new(input: &DeriveInput, derive: &str, errors: &mut Errors) -> Self {
        refuse_generics(input, derive, errors);
        let attr = EnumAttr::read(&input.attrs, errors);
        let case = attr.rename_all.get().copied().unwrap_or(Case::Verbatim);
        Self {
            ident: names::generated_ident_of(&input.ident),
            block: CodeBlock::new(&attr.runtime, input, errors),
            variants: read_variants(input, case, errors),
            is_case_lost: attr.rename_all.is_unreadable(),
        }
    }
}

fn read_variants(input: &DeriveInput, case: Case, errors: &mut Errors) -> Vec<Variant> {
    let data = match &input.data {
        Data::Enum(data) => data,
        Data::Struct(data) => {
            errors.add_at(data.struct_token.span, "expected an enum, found a struct");
            return Vec::new();
        }
        Data::Union(data) => {
            errors.add_at(data.union_token.span, "expected an enum, found a union");
            return Vec::new();
        }
    };
    if data.variants.is_empty() {
        errors.add_at(input.ident.span(), "expected an enum with variants, found none");
    }
    let mut variants = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            errors.add_at(
                variant.fields.span(),
                "expected a variant without fields: only the name of a variant is stored",
            );
        }
        let attr = VariantAttr::read(&variant.attrs, errors);
        variants.push(Variant {
            text: match attr.rename.get() {
                Some(rename) => rename.value(),
                None => case.convert_name(&names::ident_text(&variant.ident)),
            },
            span: attr.rename.get().map_or_else(|| variant.ident.span(), LitStr::span),
            is_text_lost: attr.rename.is_unreadable(),
            ident: names::generated_ident_of(&variant.ident),
        });
    }
    variants
}

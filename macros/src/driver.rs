//! Runs the stages of each derive: attributes, model, checks, code. If there are mistakes, emits them together with
//! impls that do nothing, to avoid further messages about uses of the type.

use proc_macro2::TokenStream;
use syn::{Data, DeriveInput};

use crate::{check, emit, errors::Errors, model};

/// Parses the input of a derive and returns the result of `expand`.
pub(crate) fn parse_and_expand(
    input: proc_macro::TokenStream,
    expand: fn(&DeriveInput) -> TokenStream,
) -> proc_macro::TokenStream {
    match syn::parse::<DeriveInput>(input) {
        Ok(input) => expand(&input).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Expands `#[derive(TableEntity)]`.
pub(crate) fn expand_table_entity(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let entity = model::Entity::new(input, &mut errors);
    check::check_entity(&entity, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_entity(&entity),
        || emit::fallback::emit_empty_entity(input, &entity),
    )
}

/// Expands `#[derive(Properties)]`.
pub(crate) fn expand_properties(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let properties = model::Properties::new(input, &mut errors);
    check::check_properties(&properties, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_properties(&properties),
        || emit::fallback::emit_empty_properties(input, &properties),
    )
}

/// Expands `#[derive(EdmEnum)]`.
pub(crate) fn expand_edm_enum(input: &DeriveInput) -> TokenStream {
    expand_text_enum(input, "EdmEnum")
}

/// Expands `#[derive(KeyPart)]`: an enum like `EdmEnum`, a struct through its single field.
pub(crate) fn expand_key_part(input: &DeriveInput) -> TokenStream {
    if matches!(input.data, Data::Enum(_)) {
        return expand_text_enum(input, "KeyPart");
    }
    let mut errors = Errors::default();
    let newtype = model::Newtype::new(input, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_key_part(&newtype),
        || emit::fallback::emit_empty_key_part(input, &newtype),
    )
}

fn expand_text_enum(input: &DeriveInput, derive: &str) -> TokenStream {
    let mut errors = Errors::default();
    let edm_enum = model::EdmEnum::new(input, derive, &mut errors);
    check::check_edm_enum(&edm_enum, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_edm_enum(&edm_enum),
        || emit::fallback::emit_empty_edm_enum(input, &edm_enum),
    )
}

/// Expands `#[derive(Projection)]`.
pub(crate) fn expand_projection(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let projection = model::Projection::new(input, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_projection(&projection),
        || emit::fallback::emit_empty_projection(input, &projection),
    )
}

/// Expands `#[derive(Message)]`.
pub(crate) fn expand_message(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let message = model::Message::new(input, &mut errors);
    check::check_message(&message, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_message(&message),
        || emit::fallback::emit_empty_message(input, &message),
    )
}

/// Expands `#[derive(EntitySet)]`.
pub(crate) fn expand_entity_set(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let set = model::EntitySet::new(input, &mut errors);
    check::check_entity_set(&set, &mut errors);
    finish_expansion(
        errors,
        || emit::emit_entity_set(&set),
        || emit::fallback::emit_empty_entity_set(input, &set),
    )
}

fn finish_expansion(
    errors: Errors,
    emit: impl FnOnce() -> TokenStream,
    fallback: impl FnOnce() -> TokenStream,
) -> TokenStream {
    match errors.into_result() {
        Ok(()) => emit(),
        Err(error) => {
            let mut tokens = error.into_compile_error();
            tokens.extend(fallback());
            tokens
        }
    }
}

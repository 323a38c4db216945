//! Fourth stage: generates code.
//!
//! All generated code is in its own block, which keeps generated types from conflicting with the user's. The code
//! only uses `_rt`, the names in `_rt::short`, which begin with `_rt_`, and paths in `::core`. It calls traits by
//! their full paths. Names of local variables and generated types begin with `__`, because the user's types are in
//! scope.
//!
//! The code is kept short because the compiler reads it for every entity: no closures if a function of the runtime
//! will do, no `?` if [`unwrap_or_return`] will do, and tables of constants instead of repeated code.

mod aggregate;
mod columns;
mod const_assert;
mod copy_key_check;
mod edm_enum;
mod entry_doc;
pub(crate) mod fallback;
mod field;
mod from_row;
mod index;
mod key;
mod key_part;
mod message;
mod missing_steps;
mod newtype;
mod patch;
mod path_builder;
mod projection;
mod properties;
mod schema;
mod set;
mod table_entity;
mod to_row;

use crate::model::{self, CodeBlock};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// Returns the code of `#[derive(TableEntity)]`.
pub(crate) fn emit_entity(entity: &model::Entity) -> TokenStream {
    let json = field::json_codec_constants(&entity.fields);
    let schema = schema::emit_schema(entity);
    let asserts = const_assert::emit_const_asserts(entity);
    let from_row = from_row::emit_from_row(entity);
    let to_row = to_row::emit_to_row(entity);
    let table_entity = table_entity::emit_table_entity(entity);
    let paths = path_builder::emit_path_builders(entity);
    let indexes = index::emit_index_methods(entity);
    let patch = patch::emit_patch_builder(entity);
    let columns = columns::columns_of_entity(entity);
    scoped_block(
        &entity.block,
        &quote! {
            #json #schema #asserts #from_row #to_row #table_entity #paths #indexes #patch #columns
        },
    )
}

/// Returns the code of `#[derive(Properties)]`.
pub(crate) fn emit_properties(properties: &model::Properties) -> TokenStream {
    let json = field::json_codec_constants(&properties.fields);
    let slots = properties::slots_of_properties(properties);
    let body = properties::emit_properties_impl(properties);
    let columns = columns::columns_of_properties(properties);
    let hidden = const_assert::assert_hide_none_is_optional(&properties.fields);
    let defaulted = const_assert::assert_defaulted_are_required(&properties.fields);
    scoped_block(&properties.block, &quote! { #json #slots #body #columns #hidden #defaulted })
}

/// Returns the code of `#[derive(Message)]`.
pub(crate) fn emit_message(message: &model::Message) -> TokenStream {
    scoped_block(&message.block, &message::emit_message(message))
}

/// Returns the code of `#[derive(EdmEnum)]`.
pub(crate) fn emit_edm_enum(edm_enum: &model::EdmEnum) -> TokenStream {
    scoped_block(&edm_enum.block, &edm_enum::emit_edm_enum(edm_enum))
}

/// Returns the code of `#[derive(KeyPart)]` on a struct.
pub(crate) fn emit_key_part(newtype: &model::Newtype) -> TokenStream {
    scoped_block(&newtype.block, &newtype::emit_newtype(newtype))
}

/// Returns the code of `#[derive(Projection)]`.
pub(crate) fn emit_projection(projection: &model::Projection) -> TokenStream {
    scoped_block(&projection.block, &projection::emit_projection(projection))
}

/// Returns the code of `#[derive(EntitySet)]`.
pub(crate) fn emit_entity_set(set: &model::EntitySet) -> TokenStream {
    let members = set::emit_set_members(set);
    let body = match set.shape {
        model::Shape::Enum => set::emit_enum_set(set),
        model::Shape::Struct => aggregate::emit_aggregate_set(set),
    };
    let types = (set.shape == model::Shape::Struct).then(|| aggregate::checked_field_types(set));
    scoped_block(&set.block, &quote! { #types #members #body })
}

/// Returns `0`, the name of the first field of a generated tuple struct. As a literal inside `quote!`, the compiler
/// would lex it again each time.
fn first_field() -> Literal {
    Literal::usize_unsuffixed(0)
}

/// Returns an expression for the value of a `Result`. On an error, it returns from the enclosing function with that
/// error. The operator `?` does the same, but costs the compiler twice the work because it calls functions of two
/// traits.
fn unwrap_or_return(result: &TokenStream) -> TokenStream {
    quote! {
        match #result {
            _rt_Ok(__value) => __value,
            _rt_Err(__error) => return _rt_Err(__error)
        }
    }
}

/// Returns a block in which `_rt` is the runtime, and its frequent names are imported as `_rt_Name`.
///
/// The block has no `allow` that the user did not write, because an `allow` is an error if the user's crate forbids
/// the lint. Instead, no generated name or runtime path has a span of the user's code: lints ignore tokens from a
/// macro. See `names::generated_ident` and `names::runtime_item`.
fn scoped_block(block: &CodeBlock, body: &TokenStream) -> TokenStream {
    let runtime = &block.runtime;
    let lints = block.allows_deprecated.then(|| quote! { #[allow(deprecated)] });
    let code = quote! {
        #[doc(hidden)]
        #lints
        const _: () = {
            use #runtime::__private::short::*;
            #body
        };
    };
    if !block.is_path_given {
        return code;
    }
    // If the path does not exist, the compiler reports only this call instead of every name in the code.
    quote! { #runtime::__private::generated_code! { #code } }
}

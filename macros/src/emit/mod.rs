//! Fourth stage: code.
//!
//! Everything stands in a block of its own, so that helper types cannot meet the user's; only
//! `_rt` is named in it, and traits are called by their full paths. Names of locals and of helper
//! types begin with `__`, because the user's types are in scope.

mod aggregate;
mod const_assert;
mod from_row;
mod columns;
mod edm_enum;
mod table_entity;
pub(crate) mod fallback;
mod index;
mod key;
mod message;
mod key_part;
mod patch;
mod projection;
mod properties;
mod to_row;
mod schema;
mod copy_key_check;
mod set;
mod path_builder;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

use crate::model;

/// The code of an entity.
pub(crate) fn entity(entity: &model::Entity) -> TokenStream {
    let json = from_row::json_codecs(&entity.fields);
    let schema = schema::emit(entity);
    let asserts = const_assert::emit(entity);
    let codec = from_row::emit(entity);
    let table_entity = table_entity::emit(entity);
    let steps = entity.families.iter().map(|family| path_builder::emit(entity, family));
    let indexes = index::emit(entity);
    let patch = patch::emit(entity);
    let columns = columns::of_entity(entity);
    scoped(
        &entity.runtime,
        &quote! {
            #json #schema #asserts #codec #table_entity #(#steps)* #indexes #patch #columns
        },
    )
}

/// The code of a struct that is flattened.
pub(crate) fn properties(properties: &model::Properties) -> TokenStream {
    let json = from_row::json_codecs(&properties.fields);
    let slots = properties::slots(properties);
    let body = properties::emit(properties);
    let columns = columns::of_properties(properties);
    let hidden = const_assert::hidden(&properties.fields);
    scoped(&properties.runtime, &quote! { #json #slots #body #columns #hidden })
}

/// The code of a message.
pub(crate) fn message(message: &model::Message) -> TokenStream {
    scoped(&message.runtime, &message::emit(message))
}

/// The code of an enum that is stored as text.
pub(crate) fn edm_enum(edm_enum: &model::EdmEnum) -> TokenStream {
    scoped(&edm_enum.runtime, &edm_enum::emit(edm_enum))
}

/// The code of a projection.
pub(crate) fn projection(projection: &model::Projection) -> TokenStream {
    scoped(&projection.runtime, &projection::emit(projection))
}

/// The code of a set of entities.
pub(crate) fn set(set: &model::Set) -> TokenStream {
    let members = set::members(set);
    let body = match set.shape {
        model::Shape::Enum => set::emit(set),
        model::Shape::Struct => aggregate::emit(set),
    };
    scoped(&set.runtime, &quote! { #members #body })
}

/// The result of a conversion of the field; where nobody may see the value, its error says nothing
/// of it.
fn redacted(field: &model::Field, result: TokenStream) -> TokenStream {
    if field.is_secret() {
        quote! { _rt::redacted(#result) }
    } else {
        result
    }
}

/// A block in which `_rt` is the runtime. The user's lints are for code that the user wrote.
fn scoped(runtime: &Path, body: &TokenStream) -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(
            dead_code,
            deprecated,
            missing_debug_implementations,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            unnameable_types,
            unused_qualifications,
            non_camel_case_types,
            non_snake_case,
            non_upper_case_globals,
            clippy::all,
            clippy::pedantic,
            clippy::nursery,
            clippy::restriction,
        )]
        const _: () = {
            use #runtime::__private as _rt;
            #body
        };
    }
}

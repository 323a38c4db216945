//! The derives of entable. Use them through `entable::prelude`.
//!
//! Four stages, each of which takes only what the one before it made: `attr` reads attributes,
//! `model` fills in what they mean, `check` refuses what does not go together, `emit` writes code.
//! The code names only what `entable::__private` lists.

mod attr;
mod check;
mod emit;
mod errors;
mod model;
mod names;
mod run;
mod spanned;
mod template;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/table_entity.md")]
#[proc_macro_derive(TableEntity, attributes(table))]
pub fn table_entity(input: TokenStream) -> TokenStream {
    run::derive(input, run::table_entity)
}

#[doc = include_str!("../docs/properties.md")]
#[proc_macro_derive(Properties, attributes(table))]
pub fn properties(input: TokenStream) -> TokenStream {
    run::derive(input, run::properties)
}

#[doc = include_str!("../docs/edm_enum.md")]
#[proc_macro_derive(EdmEnum, attributes(table))]
pub fn edm_enum(input: TokenStream) -> TokenStream {
    run::derive(input, run::edm_enum)
}

#[doc = include_str!("../docs/projection.md")]
#[proc_macro_derive(Projection, attributes(table))]
pub fn projection(input: TokenStream) -> TokenStream {
    run::derive(input, run::projection)
}

#[doc = include_str!("../docs/entity_set.md")]
#[proc_macro_derive(EntitySet, attributes(table))]
pub fn entity_set(input: TokenStream) -> TokenStream {
    run::derive(input, run::entity_set)
}

#[doc = include_str!("../docs/message.md")]
#[proc_macro_derive(Message, attributes(table))]
pub fn message(input: TokenStream) -> TokenStream {
    run::derive(input, run::message)
}

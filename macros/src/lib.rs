//! The derives of entable. Use them through `entable::prelude`.
//!
//! There are four stages, each of which only uses the stages before it: `attr` reads attributes, `model` determines
//! their meaning, `check` reports conflicts, `emit` writes code. Generated code only uses items of
//! `entable::__private`.

mod attr;
mod check;
mod emit;
mod errors;
mod manifest;
mod model;
mod names;
mod driver;
mod once_setting;
mod template;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/table_entity.md")]
#[proc_macro_derive(TableEntity, attributes(table))]
pub fn table_entity(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_table_entity)
}

#[doc = include_str!("../docs/properties.md")]
#[proc_macro_derive(Properties, attributes(table))]
pub fn properties(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_properties)
}

#[doc = include_str!("../docs/edm_enum.md")]
#[proc_macro_derive(EdmEnum, attributes(table))]
pub fn edm_enum(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_edm_enum)
}

#[doc = include_str!("../docs/key_part.md")]
#[proc_macro_derive(KeyPart, attributes(table))]
pub fn key_part(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_key_part)
}

#[doc = include_str!("../docs/projection.md")]
#[proc_macro_derive(Projection, attributes(table))]
pub fn projection(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_projection)
}

#[doc = include_str!("../docs/entity_set.md")]
#[proc_macro_derive(EntitySet, attributes(table))]
pub fn entity_set(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_entity_set)
}

#[doc = include_str!("../docs/message.md")]
#[proc_macro_derive(Message, attributes(table))]
pub fn message(input: TokenStream) -> TokenStream {
    driver::parse_and_expand(input, driver::expand_message)
}

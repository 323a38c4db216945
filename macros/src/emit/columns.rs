//! Generates the column constants: one for each field that has properties.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{field, key_part};
use crate::{
    model::{Entity, Field, Properties, Storage},
    names,
    template::Form,
};

/// Returns the columns of an entity.
pub(super) fn columns_of_entity(entity: &Entity) -> TokenStream {
    let columns = entity.fields.iter().enumerate().filter_map(|(at, field)| {
        let parts = key_parts(entity, at, field);
        let in_keys = (!parts.is_empty()).then(|| quote! { .in_keys(&[#(#parts),*]) });
        column_constant(&entity.ident, field, field::column_type_and_value(field)?, in_keys)
    });
    wrap_in_impl(&entity.ident, columns)
}

/// Returns the columns of a struct with `#[derive(Properties)]`, which entities flatten.
pub(super) fn columns_of_properties(properties: &Properties) -> TokenStream {
    let columns = properties.fields.iter();
    wrap_in_impl(
        &properties.ident,
        columns.filter_map(|field| {
            column_constant(&properties.ident, field, field::column_type_and_value(field)?, None)
        }),
    )
}

/// Returns column constants for a type that is refused, which lets uses of the constants compile. The constants
/// cannot be used at run time. If several fields have the same constant name, only the first gets a constant.
pub(super) fn columns_of_refused_type(ident: &Ident, fields: &[Field]) -> TokenStream {
    let mut seen: Vec<String> = Vec::new();
    let columns = fields.iter().filter_map(|field| {
        let name = field.constant.to_string();
        let is_new = !seen.contains(&name);
        seen.push(name);
        column_constant(ident, field, field::refused_type_column(field)?, None).filter(|_| is_new)
    });
    wrap_in_impl(ident, columns)
}

fn wrap_in_impl(ident: &Ident, columns: impl Iterator<Item = TokenStream>) -> TokenStream {
    quote! {
        impl #ident { #(#columns)* }
    }
}

/// Returns the column constant of a field.
fn column_constant(
    ident: &Ident,
    field: &Field,
    (ty, value): (TokenStream, TokenStream),
    in_keys: Option<TokenStream>,
) -> Option<TokenStream> {
    let (vis, name) = (&field.vis, names::generated_ident_of(&field.constant));
    let doc = column_doc(ident, field)?;
    Some(quote! {
        #[doc = #doc]
        #vis const #name: #ty = #value #in_keys;
    })
}

/// Returns the documentation of a field's column: its properties, and an example of a condition in the user's own names
/// or why there is none. Returns `None` for a field without properties.
fn column_doc(ident: &Ident, field: &Field) -> Option<String> {
    let patterns = field.property_patterns();
    let (first, last) = (patterns.first()?, patterns.last()?);
    let properties = if first == last {
        format!("The column of `{}`: property `{first}`.", field.name)
    } else {
        format!("The columns of `{}`: properties `{first}` to `{last}`.", field.name)
    };
    let (name, column) = (&field.name, format!("{}::{}", names::ident_text(ident), field.constant));
    let is_encrypted = field.encrypt_settings().is_some();
    let has_token = field.token_property_and_length().is_some();
    let condition = match &field.storage {
        Storage::Plain if is_encrypted && has_token => {
            format!("A filter compares it for equality: `{column}.eq({name})`.")
        }
        Storage::Series(_) if !is_encrypted => {
            format!("A filter compares one slot: `{column}.at(slot).eq(value)`.")
        }
        _ if is_encrypted => "No filter compares it, because it is encrypted.".to_owned(),
        Storage::Plain => format!("A condition: `{column}.eq({name})`."),
        Storage::Json => "No filter compares it, because it is stored as JSON.".to_owned(),
        Storage::Split(_) => {
            "No filter compares it, because it is split over several properties.".to_owned()
        }
        Storage::Blob(_) => "No filter compares it, because a blob holds the value.".to_owned(),
        Storage::Flattened(_) => format!("One of its columns: `{column}.at(..)`."),
        Storage::Series(_) | Storage::Skipped | Storage::Extra => return Some(properties),
    };
    Some(format!("{properties} {condition}"))
}

/// Returns how the field is read from keys: a pair of form and reader function for each form of a key part from
/// which the field can be read. Each form is listed once.
fn key_parts(entity: &Entity, at: usize, field: &Field) -> Vec<TokenStream> {
    let mut reads: Vec<TokenStream> = Vec::new();
    let mut seen: Vec<&Form> = Vec::new();
    for family in entity.primary_and_copies() {
        let Some((in_row, part)) = entity.key_source(family, at, field) else { continue };
        let key = if in_row { &family.row } else { &family.partition };
        let Some(part) = key.parts().nth(part) else { continue };
        if seen.contains(&&part.form) {
            continue;
        }
        seen.push(&part.form);
        let (form, reader) =
            (key_part::form_constant(part), key_part::reader_function(part, field));
        reads.push(quote! { (#form, #reader) });
    }
    reads
}

//! Entities to keys: the PartitionKey and the RowKey of one family.

use proc_macro2::TokenStream;
use quote::quote;

use super::{key_part, schema::family_constant};
use crate::model::{Entity, Family, Field, Key, Part};

/// Where an entity's fields are.
pub(super) fn of_self(field: &Field) -> TokenStream {
    let name = &field.ident;
    quote! { self.#name }
}

/// The PartitionKey of a family, as `__partition_key`, from where the fields are.
pub(super) fn partition_key(
    entity: &Entity,
    family: &Family,
    place: impl Fn(&Field) -> TokenStream,
) -> TokenStream {
    let constant = family_constant(family);
    let parts = parts(&family.partition, entity, place);
    quote! {
        let mut __key = _rt::KeyWriter::new(&#constant.partition, "PartitionKey");
        #(#parts)*
        let __partition_key = _rt::KeyWriter::finish(__key)?;
    }
}

/// The RowKey of a family, as `__row_key`, from where the fields are.
pub(super) fn row_key(
    entity: &Entity,
    family: &Family,
    place: impl Fn(&Field) -> TokenStream,
) -> TokenStream {
    let constant = family_constant(family);
    let parts = parts(&family.row, entity, place);
    quote! {
        let mut __key = _rt::KeyWriter::new(&#constant.row, "RowKey");
        #(#parts)*
        let __row_key = _rt::KeyWriter::finish(__key)?;
    }
}

fn parts(key: &Key, entity: &Entity, place: impl Fn(&Field) -> TokenStream) -> Vec<TokenStream> {
    let write = |part| {
        let part: &Part = part;
        let field = entity.fields.get(part.field)?;
        let value = place(field);
        let encode = key_part::encode(part, &field.ty, &quote! { &#value });
        Some(quote! { _rt::KeyWriter::part(&mut __key, |__out| #encode)?; })
    };
    key.parts().filter_map(write).collect()
}

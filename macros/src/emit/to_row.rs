//! Generates `EncodeRows`, which writes the keys and properties of an entity's rows.

use super::{field, key};
use crate::{
    attr::Discriminator,
    model::{Entity, Field, RowFamily, Storage},
};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the impl of `EncodeRows`.
pub(super) fn emit_to_row(entity: &Entity) -> TokenStream {
    let ident = &entity.ident;
    let (partition_key, row_key) =
        (key::write_partition_key_body(entity), key::write_row_key_body(entity));
    let marker = match &entity.discriminator {
        Discriminator::Property(name) => Some(quote! {
            __out.put_value(#name, _rt_ValueRef::String(__family.marker));
        }),
        Discriminator::RowKey => None,
    };
    let fields =
        entity.fields.iter().enumerate().map(|(at, field)| write_property(entity, at, field));
    let conditions = conditions_method(entity);
    let blobs = blobs_method(entity);
    quote! {
        #[automatically_derived]
        impl _rt_EncodeRows for #ident {
            fn write_partition_key(
                &self,
                __family: &'static _rt_Family,
                __key: &mut _rt_KeyWriter,
            ) {
                #partition_key
            }

            fn write_row_key(&self, __family: &'static _rt_Family, __key: &mut _rt_KeyWriter) {
                #row_key
            }

            fn write_properties(
                &self,
                __family: &'static _rt_Family,
                __out: &mut _rt_PropertyWriter<'_>,
            ) {
                #marker
                #(#fields)*
            }

            #conditions

            #blobs
        }
    }
}

/// Returns the statement that writes a field in the row families that store it as a property.
fn write_property(entity: &Entity, at: usize, field: &Field) -> Option<TokenStream> {
    let is_stored = |family: &&RowFamily| {
        let is_held = family.holds_field(at);
        let is_extra = is_held && field.storage == Storage::Extra;
        is_extra || entity.is_property(family, at, field)
    };
    let families: Vec<usize> =
        entity.primary_and_copies().filter(is_stored).map(|family| family.index).collect();
    if families.is_empty() {
        return None;
    }
    let write = field::write_statement(field, &quote! { __out });
    if families.len() == entity.primary_and_copies().count() {
        return Some(write);
    }
    Some(quote! { if let #(#families)|* = __family.index { #write } })
}

/// Returns the method that calls an index's `when` function to decide whether the entity is in the index. Returns
/// `None` if no index has a `when`.
fn conditions_method(entity: &Entity) -> Option<TokenStream> {
    let arms: Vec<TokenStream> = entity
        .families
        .iter()
        .filter_map(|family| {
            let (index, when) = (family.index, family.when.as_ref()?);
            // An error about the function's type is reported where the function is named.
            Some(quote! {
                #index => {
                    let __when: fn(&Self) -> _rt::bool = #when;
                    __when(self)
                }
            })
        })
        .collect();
    (!arms.is_empty()).then(|| {
        quote! {
            fn has_row(&self, __family: &'static _rt_Family) -> _rt::bool {
                match __family.index {
                    #(#arms)*
                    _ => true,
                }
            }
        }
    })
}

/// Returns the method `blobs`, which lists the values of the blob fields. Returns `None` if there are none.
fn blobs_method(entity: &Entity) -> Option<TokenStream> {
    let pushed = field::blob_value_statements(&entity.fields, &quote! { &mut __blobs });
    (!pushed.is_empty()).then(|| {
        quote! {
            fn blobs(&self) -> _rt::Vec<_rt::BlobFieldValue> {
                let mut __blobs = _rt::Vec::new();
                #(#pushed)*
                __blobs
            }
        }
    })
}

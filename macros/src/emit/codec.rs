//! Rows to entities: `FromRow`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{part, schema::family_constant};
use crate::{
    attr::Discriminator,
    model::{Absent, Entity, Family, Field, Storage},
};

/// What is found of a field is kept in a local until the row was read.
fn slot(at: usize) -> Ident {
    format_ident!("__f{at}")
}

/// The impl of `FromRow`.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let ident = &entity.ident;
    let keys = entity.families.iter().take(1).map(|primary| split_keys(entity, primary));
    let slots = slots(entity);
    let walk = walk(entity);
    let fields = entity.fields.iter().enumerate().map(|(at, field)| {
        let name = &field.ident;
        let value = value(entity, at, field);
        quote! { #name: #value }
    });
    quote! {
        #[automatically_derived]
        impl _rt::FromRow for #ident {
            fn columns() -> _rt::Option<_rt::Vec<_rt::String>> {
                _rt::None
            }

            fn from_row(__row: &_rt::Row) -> _rt::Result<Self> {
                #(#keys)*
                #slots
                #walk
                _rt::Ok(Self { #(#fields),* })
            }
        }
    }
}

/// Takes the keys apart as far as fields are read from them.
fn split_keys(entity: &Entity, primary: &Family) -> TokenStream {
    let constant = family_constant(primary);
    let sources: Vec<(bool, usize)> = entity
        .fields
        .iter()
        .enumerate()
        .filter_map(|(at, field)| entity.key_source(at, field))
        .collect();
    let split = |in_row: bool, count: usize| {
        if !sources.iter().any(|(key, _)| *key == in_row) {
            return None;
        }
        let parts = (0..count).map(|at| match sources.contains(&(in_row, at)) {
            true => {
                let name = text_of(in_row, at);
                quote! { #name }
            }
            false => quote! { _ },
        });
        let (template, name, key) = key_of(in_row);
        Some(quote! {
            let [#(#parts),*] = _rt::split_key::<#count>(&#constant.#template, #name, #key)?;
        })
    };
    let partition = split(false, primary.partition.parts().count());
    let row = split(true, primary.row.parts().count());
    quote! { #partition #row }
}

fn text_of(in_row: bool, at: usize) -> Ident {
    if in_row { format_ident!("__r{at}") } else { format_ident!("__p{at}") }
}

/// The template's field, the key's name, and the key of `__row`.
pub(super) fn key_of(in_row: bool) -> (TokenStream, &'static str, TokenStream) {
    if in_row {
        (quote! { row }, "RowKey", quote! { _rt::Row::row_key(__row) })
    } else {
        (quote! { partition }, "PartitionKey", quote! { _rt::Row::partition_key(__row) })
    }
}

fn slots(entity: &Entity) -> TokenStream {
    let slots = entity.fields.iter().enumerate().filter_map(|(at, field)| {
        let (slot, ty) = (slot(at), &field.ty);
        Some(match &field.storage {
            Storage::Skipped => return None,
            Storage::Flattened(_) => quote_spanned! { ty.span() =>
                let mut #slot = <#ty as _rt::Properties>::slots();
            },
            Storage::Extra => quote! { let mut #slot: #ty = _rt::Default::default(); },
            Storage::Plain if !entity.is_property(at, field) => return None,
            Storage::Plain | Storage::Json => quote! {
                let mut #slot: _rt::Option<_rt::ValueRef<'_>> = _rt::None;
            },
        })
    });
    quote! { #(#slots)* }
}

/// One walk over the row; each property finds its slot by name.
fn walk(entity: &Entity) -> TokenStream {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for (at, field) in entity.fields.iter().enumerate() {
        let (slot, ty) = (slot(at), &field.ty);
        match &field.storage {
            Storage::Plain | Storage::Json if entity.is_property(at, field) => {
                let name = bytes(&field.property);
                named.push(quote! { #name => #slot = _rt::Some(__value), });
            }
            Storage::Flattened(prefix) => {
                let prefix = bytes(prefix);
                others.push(quote! {
                    if let _rt::Some(__rest) = <[u8]>::strip_prefix(__name, #prefix) {
                        if <#ty as _rt::Properties>::offer(&mut #slot, __rest, __value) {
                            continue;
                        }
                    }
                });
            }
            _ => {}
        }
    }
    let extra = entity.fields.iter().enumerate().find(|(_, f)| f.storage == Storage::Extra);
    if let Some((at, field)) = extra {
        let slot = slot(at);
        let ty = &field.ty;
        others.push(quote! {
            _rt::keep_unknown(__name, __value, |__name, __value| {
                <#ty as _rt::PropertyBag>::put(&mut #slot, __name, __value);
            })?;
        });
    }
    if let Discriminator::Property(name) = &entity.discriminator {
        let name = bytes(&name.value());
        named.push(quote! { #name => {} });
    }
    quote! {
        let mut __properties = _rt::Row::properties(__row);
        while let _rt::Some((__name, __value)) = __properties.next()? {
            match __name {
                #(#named)*
                _ => { #(#others)* }
            }
        }
    }
}

pub(super) fn bytes(text: &str) -> proc_macro2::Literal {
    proc_macro2::Literal::byte_string(text.as_bytes())
}

fn value(entity: &Entity, at: usize, field: &Field) -> TokenStream {
    if let Some((in_row, part_at)) = entity.key_source(at, field)
        && let Some(part) = part_of(entity, in_row, part_at)
    {
        let text = text_of(in_row, part_at);
        let decoded = part::decode(part, field, &quote! { #text });
        return quote! { #decoded? };
    }
    let slot = slot(at);
    match &field.storage {
        Storage::Skipped => default(field),
        Storage::Extra => quote! { #slot },
        _ => finish(field, &quote! { #slot }, None),
    }
}

/// A part of the primary's keys.
pub(super) fn part_of(entity: &Entity, in_row: bool, at: usize) -> Option<&crate::model::Part> {
    let primary = entity.families.first()?;
    let key = if in_row { &primary.row } else { &primary.partition };
    key.parts().nth(at)
}

/// The value of a field that is not there.
pub(super) fn default(field: &Field) -> TokenStream {
    match &field.absent {
        Absent::Call(path) => quote! { #path() },
        Absent::Default | Absent::Refused => {
            let ty = &field.ty;
            quote! { <#ty as _rt::Default>::default() }
        }
    }
}

/// The codec of a JSON field: serde's traits are asked for there, once.
pub(super) fn json_codec(field: &Field) -> Ident {
    format_ident!("__JSON_{}", field.constant)
}

/// The codecs of JSON fields.
pub(super) fn json_codecs(fields: &[Field]) -> TokenStream {
    let codecs = fields.iter().filter(|field| field.storage == Storage::Json).map(|field| {
        let (name, ty) = (json_codec(field), &field.ty);
        quote_spanned! { ty.span() =>
            const #name: _rt::JsonCodec<#ty> = <_rt::JsonCodec<#ty>>::new();
        }
    });
    quote! { #(#codecs)* }
}

/// A field from what was found of it. In a flattened struct, `prefix` stands before its name.
pub(super) fn finish(
    field: &Field,
    slot: &TokenStream,
    prefix: Option<&TokenStream>,
) -> TokenStream {
    let (ty, name) = (&field.ty, &field.property);
    let before = prefix.cloned().unwrap_or_else(|| quote! { "" });
    let found = match &field.storage {
        Storage::Flattened(inner) => {
            let whole = match prefix {
                Some(prefix) => quote! { &_rt::join(#prefix, #inner) },
                None => quote! { #inner },
            };
            return quote! { <#ty as _rt::Properties>::finish(#slot, #whole)? };
        }
        Storage::Json => {
            let codec = json_codec(field);
            quote! { (#codec.finish)(#slot, #before, #name)? }
        }
        _ => quote! {
            _rt::finish_stored(#slot, #before, #name, |__found| {
                <#ty as _rt::Property>::from_stored(__found)
            })?
        },
    };
    if let Absent::Refused = field.absent {
        return found;
    }
    let default = default(field);
    quote! {
        match #slot {
            _rt::None => #default,
            _ => #found,
        }
    }
}

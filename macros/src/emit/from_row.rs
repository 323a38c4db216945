//! Rows to entities: `FromRow`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{copy_key_check, key_part, schema::family_constant};
use crate::{
    attr::Discriminator,
    model::{Absent, Entity, Family, FamilyKind, Field, Storage},
};

/// What is found of a field is kept in a local until the row was read.
fn slot(at: usize) -> Ident {
    format_ident!("__f{at}")
}

/// What the keys give back of a field.
fn recovered(at: usize) -> Ident {
    format_ident!("__k{at}")
}

/// Whether the keys of any family give the field back.
fn is_in_keys(entity: &Entity, at: usize, field: &Field) -> bool {
    entity.readable_families().any(|family| entity.key_source(family, at, field).is_some())
}

/// Whether rows of any family hold the field as a property.
fn is_property(entity: &Entity, at: usize, field: &Field) -> bool {
    entity.readable_families().any(|family| entity.is_property(family, at, field))
}

/// The impl of `FromRow`.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let Some(primary) = entity.primary() else { return TokenStream::new() };
    let primary = family_constant(primary);
    let ident = &entity.ident;
    let keys = keys(entity);
    let slots = slots(entity);
    let walk = walk(entity);
    let key_check = copy_key_check::emit(entity);
    let fields = entity.fields.iter().enumerate().map(|(at, field)| {
        let name = &field.ident;
        let value = value(entity, at, field);
        quote! { #name: #value }
    });
    quote! {
        #[automatically_derived]
        impl _rt::FromRow for #ident {
            fn columns(
                _: _rt::Option<&'static _rt::Family>,
            ) -> _rt::Option<_rt::Vec<_rt::String>> {
                _rt::None
            }

            fn from_row(__row: &_rt::Row) -> _rt::Result<Self> {
                <Self as _rt::FromRow>::from_copy(__row, #primary)
            }

            fn from_copy(
                __row: &_rt::Row,
                __family: &'static _rt::Family,
            ) -> _rt::Result<Self> {
                <Self as _rt::FromRow>::read_with(__row, __family, 0, |__entity| __entity)
            }

            fn read_with<__R>(
                __row: &_rt::Row,
                __family: &'static _rt::Family,
                __from: u32,
                __wrap: impl _rt::FnOnce(Self) -> __R,
            ) -> _rt::Result<__R> {
                #keys
                #slots
                #walk
                let __entity = Self { #(#fields),* };
                #key_check
                _rt::Ok(__wrap(__entity))
            }
        }
    }
}

/// Takes the keys apart as far as fields are read from them.
fn keys(entity: &Entity) -> TokenStream {
    let locals = entity.fields.iter().enumerate().filter_map(|(at, field)| {
        let (name, ty) = (recovered(at), &field.ty);
        is_in_keys(entity, at, field)
            .then(|| quote! { let mut #name: _rt::Option<#ty> = _rt::None; })
    });
    let arms = entity.families.iter().enumerate().filter_map(|(index, family)| {
        let split = (family.kind != FamilyKind::List).then(|| split_keys(entity, family))?;
        Some(quote! { #index => { #split } })
    });
    quote! {
        #(#locals)*
        let (__partition_key, __row_key) = _rt::Row::keys(__row);
        match __family.index {
            #(#arms)*
            _ => {}
        }
    }
}

/// Reads the fields that the family's keys give back.
fn split_keys(entity: &Entity, family: &Family) -> TokenStream {
    let constant = family_constant(family);
    let sources: Vec<(usize, (bool, usize))> = entity
        .fields
        .iter()
        .enumerate()
        .filter_map(|(at, field)| Some((at, entity.key_source(family, at, field)?)))
        .collect();
    let split = |in_row: bool, count: usize| {
        if !sources.iter().any(|(_, (key, _))| *key == in_row) {
            return None;
        }
        let parts =
            (0..count).map(|at| match sources.iter().any(|(_, source)| *source == (in_row, at)) {
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
    let partition = split(false, family.partition.parts().count());
    let row = split(true, family.row.parts().count());
    let reads = sources.iter().filter_map(|(at, (in_row, part_at))| {
        let key = if *in_row { &family.row } else { &family.partition };
        let text = text_of(*in_row, *part_at);
        let field = entity.fields.get(*at)?;
        let decoded = key_part::decode(key.parts().nth(*part_at)?, field, &quote! { #text });
        let name = recovered(*at);
        Some(quote! { #name = _rt::Some(#decoded?); })
    });
    quote! { #partition #row #(#reads)* }
}

fn text_of(in_row: bool, at: usize) -> Ident {
    if in_row { format_ident!("__r{at}") } else { format_ident!("__p{at}") }
}

/// The template's field, the key's name, and the local that holds the key.
fn key_of(in_row: bool) -> (TokenStream, &'static str, TokenStream) {
    if in_row {
        (quote! { row }, "RowKey", quote! { __row_key })
    } else {
        (quote! { partition }, "PartitionKey", quote! { __partition_key })
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
            Storage::Plain if !is_property(entity, at, field) => return None,
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
            Storage::Plain | Storage::Json if is_property(entity, at, field) => {
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
    if entity.readable_families().any(|family| family.is_remote) {
        // Whose copy it is, and of which version.
        named.push(quote! { b"Src" | b"SrcP" | b"SrcR" | b"SrcT" => {} });
    }
    if let Discriminator::Property(name) = &entity.discriminator {
        let name = bytes(&name.value());
        named.push(quote! { #name => {} });
    }
    quote! {
        let mut __properties = _rt::Row::properties_from(__row, __from);
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
    let (slot, recovered, name) = (slot(at), recovered(at), &field.property);
    let found = match &field.storage {
        Storage::Skipped => return default(field),
        Storage::Extra => return quote! { #slot },
        _ if is_property(entity, at, field) => finish(field, &quote! { #slot }, None),
        _ => return quote! { _rt::from_keys(#recovered, #name)? },
    };
    if !is_in_keys(entity, at, field) {
        return found;
    }
    quote! {
        match #recovered {
            _rt::Some(__value) => __value,
            _rt::None => #found,
        }
    }
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
        let new = if field.is_secret() { "redacted" } else { "new" };
        let new = Ident::new(new, ty.span());
        quote_spanned! { ty.span() =>
            const #name: _rt::JsonCodec<#ty> = <_rt::JsonCodec<#ty>>::#new();
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
        _ => {
            let read = super::redacted(
                field,
                quote! {
                    <#ty as _rt::Property>::from_stored(__found)
                },
            );
            quote! { _rt::finish_stored(#slot, #before, #name, |__found| #read)? }
        }
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

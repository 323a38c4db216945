//! Indexes and lists: their path builders, and the rows that an entity has in them.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{entity, schema::family_constant, steps};
use crate::{
    model::{Entity, Family, FamilyKind},
    names::{self, Case},
};

/// The type that stands for a partial copy's fields.
pub(super) fn marker(entity: &Entity, family: &Family) -> Ident {
    format_ident!("__{}{}Fields", names::unraw(&entity.ident), names::unraw(&family.name))
}

/// The methods that begin a path through an index, and what partial copies hold.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let (ident, vis) = (&entity.ident, &entity.vis);
    let indexes = || entity.families.iter().filter(|family| !family.is_primary());
    let methods = indexes().map(|family| {
        let name = Case::Snake.apply(&names::unraw(&family.name));
        let method = format_ident!("{name}", span = family.name.span());
        let start = steps::start_type(entity, family);
        let value = steps::start(entity, family);
        let doc = format!("The path by `{}`.", family.row.text);
        quote! {
            #[doc = #doc]
            #vis fn #method() -> #start {
                #value
            }
        }
    });
    let partial = indexes().filter(|family| family.kind == FamilyKind::Copy && !family.is_full());
    let markers = partial.map(|family| holds(entity, family));
    quote! {
        #[automatically_derived]
        impl #ident { #(#methods)* }
        #(#markers)*
    }
}

fn holds(entity: &Entity, family: &Family) -> TokenStream {
    let (marker, vis) = (marker(entity, family), &entity.vis);
    let held = entity.fields.iter().enumerate().filter(|(at, field)| {
        family.holds.get(*at).copied().unwrap_or_default()
            || entity.key_source(family, *at, field).is_some()
    });
    let fields = held.map(|(_, field)| names::fingerprint(&field.ident));
    let doc = format!("The fields that copies of `{}` hold.", family.name);
    quote! {
        #[doc = #doc]
        #[derive(_rt::Clone, _rt::Debug)]
        #vis struct #marker;
        #(#[automatically_derived] impl _rt::Holds<#fields> for #marker {})*
    }
}

/// Every row that an entity has, where it has more than one.
pub(super) fn rows(entity: &Entity) -> TokenStream {
    let further: Vec<TokenStream> = entity
        .families
        .iter()
        .filter(|family| !family.is_primary())
        .map(|family| further(entity, family))
        .collect();
    if further.is_empty() {
        return TokenStream::new();
    }
    quote! {
        fn rows(&self) -> _rt::Result<_rt::EntityRows> {
            let mut __rows =
                _rt::EntityRows::only(<Self as _rt::TableEntity>::to_row(self)?);
            #(#further)*
            _rt::Ok(__rows)
        }
    }
}

fn further(entity: &Entity, family: &Family) -> TokenStream {
    let constant = family_constant(family);
    let add = match family.kind {
        FamilyKind::Primary => return TokenStream::new(),
        FamilyKind::Copy => {
            let row = entity::row(entity, family);
            let place = match family.is_elsewhere {
                true => quote! { elsewhere },
                false => quote! { copies },
            };
            quote! {
                let __copy = #row;
                __rows.#place.push(_rt::CopyRow { family: #constant, row: __copy });
            }
        }
        FamilyKind::List => {
            let row_key = entity::row_key(entity, family, &quote! { self });
            quote! {
                #row_key
                let __id = _rt::ToOwned::to_owned(_rt::Row::row_key(&__rows.primary));
                __rows.entries.push(_rt::ListEntry {
                    family: #constant,
                    row_key: __row_key,
                    id: __id,
                });
            }
        }
    };
    match &family.when {
        Some(when) => quote! { if #when(self) { #add } },
        None => quote! {{ #add }},
    }
}

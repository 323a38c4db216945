//! Indexes and lists: their path builders, and the rows that an entity has in them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{
    key, path_builder,
    schema::{family_constant, marker},
    to_row,
};
use crate::{
    model::{Entity, Family, FamilyKind, Field},
    names::{self, Case},
};

/// The methods that begin a path through an index, and what partial copies hold.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let (ident, vis) = (&entity.ident, &entity.vis);
    let indexes = || entity.families.iter().filter(|family| !family.is_primary());
    let methods = indexes().map(|family| {
        let name = Case::Snake.apply(&names::unraw(&family.name));
        let method = format_ident!("{name}", span = family.name.span());
        let start = path_builder::start_type(entity, family);
        let value = path_builder::start(entity, family);
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
        #(#[automatically_derived] impl _rt::HoldsField<#fields> for #marker {})*
    }
}

/// Every row that an entity has, where it has more than the primary.
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
        fn rows_with(&self, __primary: _rt::Row) -> _rt::Result<_rt::EntityRows> {
            let mut __rows = _rt::EntityRows::only(__primary);
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
            // Copies in the partition of the primary share its key, which is known.
            let (place, partition_key) = match family.is_remote {
                true => {
                    (quote! { remote_copies }, key::partition_key(entity, family, key::of_self))
                }
                false => {
                    let shared = quote! {
                        let __partition_key = _rt::Row::partition_key(&__rows.primary);
                    };
                    (quote! { local_copies }, shared)
                }
            };
            let row = to_row::write(entity, family, &partition_key);
            quote! {
                let __copy = #row;
                __rows.#place.push(_rt::CopyRow { family: #constant, row: __copy });
            }
        }
        FamilyKind::List if family.is_remote => {
            let partition_key = key::partition_key(entity, family, key::of_self);
            let row_key = key::row_key(entity, family, key::of_self);
            quote! {
                #partition_key
                #row_key
                __rows.remote_lists.push(_rt::RemoteList {
                    family: #constant,
                    partition_key: __partition_key,
                    row_key: __row_key,
                });
            }
        }
        FamilyKind::List => {
            let row_key = key::row_key(entity, family, key::of_self);
            quote! {
                #row_key
                let __id = _rt::ToOwned::to_owned(_rt::Row::row_key(&__rows.primary));
                __rows.local_list_entries.push(_rt::ListEntry {
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

/// The keys of the entity that a copy is one of, where the copies hold them.
pub(super) fn owner(entity: &Entity) -> TokenStream {
    let Some(primary) = entity.primary() else { return TokenStream::new() };
    let is_known = |family: &Family| {
        family.kind == FamilyKind::Copy
            && primary.parts().all(|part| {
                let field = entity.fields.get(part.field);
                let is_given = |field| entity.key_source(family, part.field, field).is_some();
                let is_held = family.holds.get(part.field).copied().unwrap_or_default();
                is_held || field.is_some_and(is_given)
            })
    };
    let known: Vec<usize> =
        (0..).zip(&entity.families).filter(|(_, family)| is_known(family)).map(|at| at.0).collect();
    if known.is_empty() {
        return TokenStream::new();
    }
    let place = |field: &Field| {
        let local = format_ident!("__of_{}", field.name);
        quote! { #local }
    };
    let reads = entity.fields.iter().enumerate().filter(|(at, _)| entity.is_in_key(*at)).map(
        |(_, field)| {
            let (local, constant) = (place(field), &field.constant);
            quote! {
                let #local = _rt::ReadColumn::read(&<Self>::#constant, __row, __family)?;
            }
        },
    );
    let partition_key = key::partition_key(entity, primary, place);
    let row_key = key::row_key(entity, primary, place);
    quote! {
        fn owner_of(
            __row: &_rt::Row,
            __family: &'static _rt::Family,
        ) -> _rt::Result<_rt::Option<(_rt::String, _rt::String)>> {
            match __family.index {
                #(#known)|* => {}
                _ => return _rt::Ok(_rt::None),
            }
            #(#reads)*
            #partition_key
            #row_key
            _rt::Ok(_rt::Some((__partition_key, __row_key)))
        }
    }
}

//! Entities to rows: `TableEntity`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Path, spanned::Spanned};

use super::{codec::json_codec, part, patch, schema::family_constant, steps};
use crate::{
    attr::Discriminator,
    model::{Entity, Family, Field, Key, Storage},
};

/// The impl of `TableEntity`.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let Some(primary) = entity.families.first() else { return TokenStream::new() };
    let ident = &entity.ident;
    let patch = patch::name(entity);
    let steps = steps::start_type(entity, primary);
    let start = steps::start(entity, primary);
    let row = row(entity, primary);
    let rows = super::index::rows(entity);
    let check = entity.validate.as_ref().map(|path| {
        quote! {
            fn check(&self) -> _rt::Result<(), _rt::BoxError> {
                let __check: fn(&Self) -> _ = #path;
                match __check(self) {
                    _rt::Ok(()) => _rt::Ok(()),
                    _rt::Err(__error) => _rt::Err(_rt::Into::into(__error)),
                }
            }
        }
    });
    let older = entity.upgrade_from.as_ref().map(older);
    quote! {
        #[automatically_derived]
        impl _rt::Writable for #ident {
            fn table(&self) -> &'static str {
                __SCHEMA.table
            }

            fn change(&self, __verb: _rt::BulkVerb) -> _rt::Result<_rt::BulkChange> {
                _rt::bulk_change(self, __verb)
            }
        }

        #[automatically_derived]
        impl _rt::TableEntity for #ident {
            type Primary = #steps;
            type Patch = #patch;

            const SCHEMA: &'static _rt::Schema = &__SCHEMA;

            fn primary() -> Self::Primary {
                #start
            }

            fn patch() -> Self::Patch {
                #patch(_rt::Patch::new())
            }

            fn to_row(&self) -> _rt::Result<_rt::Row> {
                _rt::Ok(#row)
            }

            #rows
            #older
            #check
        }
    }
}

/// What reads rows of older versions.
fn older(older: &Path) -> TokenStream {
    // The conversion that is missing is shown where the older version is named.
    let upgrade = quote_spanned! { older.span() =>
        |__old: #older| <Self as _rt::UpgradeFrom<#older>>::upgrade(__old)
    };
    quote! {
        fn from_version(
            __row: &_rt::Row,
            __family: &str,
            __version: u32,
        ) -> _rt::Result<_rt::Option<Self>> {
            _rt::older_version(__row, __family, __version, #upgrade)
        }

        fn rows_of_version(
            __row: &_rt::Row,
            __family: &str,
            __version: u32,
        ) -> _rt::Result<_rt::Option<_rt::EntityRows>> {
            _rt::older_rows::<#older>(__row, __family, __version)
        }
    }
}

/// Writes one row of a family: its keys, its type, and what it holds.
pub(super) fn row(entity: &Entity, family: &Family) -> TokenStream {
    let constant = family_constant(family);
    let (partition_key, row_key) =
        (partition_key(entity, family), row_key(entity, family, &quote! { self }));
    let marker = match &entity.discriminator {
        Discriminator::Property(name) => Some(quote! {
            _rt::PropertyWriter::put_value(
                &mut __out,
                #name,
                _rt::ValueRef::String(#constant.marker),
            );
        }),
        Discriminator::RowKey => None,
    };
    let properties = entity
        .fields
        .iter()
        .enumerate()
        .filter(|(at, field)| {
            let held = family.holds.get(*at).copied().unwrap_or_default();
            let extra = held && field.storage == Storage::Extra;
            extra || entity.is_property(family, *at, field)
        })
        .map(|(_, field)| put(field, &quote! { &mut __out }));
    quote! {{
        #partition_key
        #row_key
        let mut __row = _rt::Row::build(&__partition_key, &__row_key);
        let mut __out = _rt::PropertyWriter::new(&mut __row);
        #marker
        #(#properties)*
        __row.finish()?
    }}
}

fn partition_key(entity: &Entity, family: &Family) -> TokenStream {
    let constant = family_constant(family);
    let parts = parts(&family.partition, entity, &quote! { self });
    quote! {
        let mut __key = _rt::KeyWriter::new(&#constant.partition, "PartitionKey");
        #(#parts)*
        let __partition_key = _rt::KeyWriter::finish(__key)?;
    }
}

/// The RowKey of `this` in a family, as `__row_key`.
pub(super) fn row_key(entity: &Entity, family: &Family, this: &TokenStream) -> TokenStream {
    let constant = family_constant(family);
    let parts = parts(&family.row, entity, this);
    quote! {
        let mut __key = _rt::KeyWriter::new(&#constant.row, "RowKey");
        #(#parts)*
        let __row_key = _rt::KeyWriter::finish(__key)?;
    }
}

fn parts(key: &Key, entity: &Entity, this: &TokenStream) -> Vec<TokenStream> {
    let write = |part| {
        let part: &crate::model::Part = part;
        let field = entity.fields.get(part.field)?;
        let name = &field.ident;
        let encode = part::encode(part, &field.ty, &quote! { &#this.#name });
        Some(quote! { _rt::KeyWriter::part(&mut __key, |__out| #encode)?; })
    };
    key.parts().filter_map(write).collect()
}

/// Writes one field of `self` to the property writer.
pub(super) fn put(field: &Field, out: &TokenStream) -> TokenStream {
    let (ident, name, ty) = (&field.ident, &field.property, &field.ty);
    match &field.storage {
        Storage::Skipped => TokenStream::new(),
        Storage::Plain => {
            let stored = quote! { <#ty as _rt::Property>::to_stored(&self.#ident) };
            let stored = super::hushed(field, stored);
            quote! { _rt::PropertyWriter::put_stored(#out, #name, #stored)?; }
        }
        Storage::Json => {
            let codec = json_codec(field);
            quote! { (#codec.put)(#out, #name, &self.#ident)?; }
        }
        Storage::Flattened(prefix) => {
            quote! {
                _rt::PropertyWriter::put_nested(#out, #prefix, |__out| {
                    <#ty as _rt::Properties>::write(&self.#ident, __out)
                })?;
            }
        }
        Storage::Extra => quote! {
            <#ty as _rt::PropertyBag>::each(&self.#ident, |__name, __value| {
                let __schema = <Self as _rt::TableEntity>::SCHEMA;
                _rt::PropertyWriter::put_extra(#out, __schema, __name, __value)
            })?;
        },
    }
}

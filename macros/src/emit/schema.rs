//! What is known of an entity's rows, as constants.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::key_part;
use crate::{
    attr::Discriminator,
    model::{Entity, Family, FamilyKind, Field, Key, Segment, Storage},
};

/// The constant of a family: `__PRIMARY`.
pub(super) fn family_constant(family: &Family) -> Ident {
    let name = crate::names::unraw(&family.name);
    format_ident!("__{}", crate::names::Case::Screaming.apply(&name))
}

/// The type that stands for a partial copy's fields.
pub(super) fn marker(entity: &Entity, family: &Family) -> Ident {
    format_ident!(
        "__{}{}Fields",
        crate::names::unraw(&entity.ident),
        crate::names::unraw(&family.name)
    )
}

/// The constants of the families.
pub(super) fn families(entity: &Entity) -> TokenStream {
    let families = entity.families.iter().enumerate().map(|(index, family)| {
        let name = family_constant(family);
        let value = self::family(family, index, entity);
        quote! { const #name: &'static _rt::Family = &#value; }
    });
    quote! { #(#families)* }
}

/// The constants of the families, and `__SCHEMA`.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let families = families(entity);
    let constants = entity.families.iter().map(family_constant);
    let columns = entity.fields.iter().enumerate().filter_map(|(at, field)| {
        let stored = entity.primary().is_some_and(|primary| entity.is_property(primary, at, field));
        column(field, stored)
    });
    let conditional = entity.families.iter().any(|family| family.when.is_some());
    let name = crate::names::unraw(&entity.ident);
    let (ident, table, entity_type) = (&entity.ident, &entity.table, &entity.entity_type);
    let discriminator = match &entity.discriminator {
        Discriminator::Property(name) => quote! { _rt::Discriminator::Property(#name) },
        Discriminator::RowKey => quote! { _rt::Discriminator::RowKey },
    };
    let (version, marker) = (entity.version, entity.stored_type());
    let is_sealed = entity.is_sealed;
    let older = match &entity.upgrade_from {
        Some(older) => quote_spanned! { older.span() =>
            _rt::Some(<#older as _rt::TableEntity>::SCHEMA)
        },
        None => quote! { _rt::None },
    };
    quote! {
        #families
        static __SCHEMA: _rt::Schema = _rt::Schema {
            entity: #name,
            table: #table,
            entity_type: #entity_type,
            version: #version,
            marker: #marker,
            discriminator: #discriminator,
            families: &[#(*#constants),*],
            conditional: #conditional,
            columns: &[#(#columns),*],
            older: #older,
            sealed: #is_sealed,
            rows_through: _rt::rows_of_any_version::<#ident>,
            current_form: _rt::current_form::<#ident>,
            owner: _rt::owner_in_any_version::<#ident>,
        };
    }
}

fn family(family: &Family, index: usize, entity: &Entity) -> TokenStream {
    let name = crate::names::unraw(&family.name);
    let entity_type = entity.stored_type();
    let (kind, marker) = match family.kind {
        FamilyKind::Primary => (quote! { Primary }, entity_type),
        FamilyKind::Copy => (quote! { Copy }, format!("{entity_type}#{name}")),
        FamilyKind::List => (quote! { List }, "entable.list".to_owned()),
    };
    let partition = template(&family.partition, entity);
    let row = template(&family.row, entity);
    let fields = || entity.fields.iter().enumerate();
    let in_keys = fields()
        .filter(|(at, field)| entity.key_source(family, *at, field).is_some())
        .map(|(_, field)| &field.property);
    let left_out = fields()
        .filter(|(at, field)| {
            !family.holds.get(*at).copied().unwrap_or_default()
                && entity.key_source(family, *at, field).is_none()
        })
        .filter_map(|(_, field)| match &field.storage {
            Storage::Plain | Storage::Json => Some(field.property.clone()),
            Storage::Flattened(prefix) => Some(format!("{prefix}*")),
            Storage::Skipped | Storage::Extra => None,
        });
    let (unique, is_remote, in_blob) = (family.unique, family.is_remote, family.in_blob);
    let table = match &family.table {
        Some(table) => quote! { _rt::Some(#table) },
        None => quote! { _rt::None },
    };
    quote! {
        _rt::Family {
            name: #name,
            index: #index,
            kind: _rt::FamilyKind::#kind,
            marker: #marker,
            partition: #partition,
            row: #row,
            in_keys: &[#(#in_keys),*],
            left_out: &[#(#left_out),*],
            unique: #unique,
            table: #table,
            is_remote: #is_remote,
            in_blob: #in_blob,
        }
    }
}

fn template(key: &Key, entity: &Entity) -> TokenStream {
    let text = &key.text;
    let segments = key.segments.iter().filter_map(|segment| match segment {
        Segment::Literal(text, _) => Some(quote! { _rt::Segment::Literal(#text) }),
        Segment::Part(part) => {
            let field = entity.fields.get(part.field)?;
            let (form, width) = (key_part::form(part), key_part::width(part, &field.ty));
            let (name, ty) = (&field.property, &field.ty);
            let encode = key_part::encode(part, ty, &quote! { &__field });
            Some(quote! {
                _rt::Segment::Part(_rt::Part {
                    field: #name,
                    form: #form,
                    width: #width,
                    encode: |__value, __out| {
                        let __field = <#ty as _rt::EdmValue>::from_edm(__value)?;
                        #encode
                    },
                })
            })
        }
    });
    quote! { _rt::Template { text: #text, segments: &[#(#segments),*] } }
}

/// The column of a field, if it is one.
pub(super) fn column(field: &Field, stored: bool) -> Option<TokenStream> {
    let (name, ty) = (&field.property, &field.ty);
    let (name, edm, optional, nested) = match &field.storage {
        Storage::Skipped | Storage::Extra => return None,
        Storage::Plain if !stored => (name, quote! { _rt::None }, quote! { false }, quote! { &[] }),
        Storage::Plain => (
            name,
            quote! { _rt::Some(<#ty as _rt::Property>::EDM) },
            quote! { <#ty as _rt::Property>::OPTIONAL },
            quote! { &[] },
        ),
        Storage::Json => {
            (name, quote! { _rt::Some(_rt::EdmType::String) }, quote! { false }, quote! { &[] })
        }
        Storage::Flattened(prefix) => (
            prefix,
            quote! { _rt::None },
            quote! { false },
            quote! { <#ty as _rt::Properties>::COLUMNS },
        ),
    };
    let sealed = sealed(field);
    Some(quote! {
        _rt::ColumnSchema {
            name: #name,
            edm: #edm,
            optional: #optional,
            stored: #stored,
            nested: #nested,
            sealed: #sealed,
        }
    })
}

/// How a field is sealed.
fn sealed(field: &Field) -> TokenStream {
    let Some(encrypt) = field.sealed() else { return quote! { _rt::None } };
    let (pad, hide_none) = (encrypt.pad, encrypt.hide_none);
    let blind = match field.token_property() {
        Some((name, chars)) => {
            quote! { _rt::Some(_rt::TokenProperty { name: #name, chars: #chars }) }
        }
        None => quote! { _rt::None },
    };
    quote! {
        _rt::Some(_rt::ColumnEncryption { pad: #pad, hide_none: #hide_none, blind: #blind })
    }
}

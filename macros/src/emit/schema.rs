//! Generates the constants that describe an entity: its schema and its row families. A row family is the primary
//! rows, the copies of one index, or one list.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{field, key_part};
use crate::{
    attr::Discriminator,
    model::{Entity, FamilyKind, Field, KeyTemplate, RowFamily, Segment, Storage},
    names::runtime_item,
};

/// The number at the end of the RowKey of a wide entity's first row.
const NUMBER_OF_FIRST_PART: &str = "01";

/// Returns the name of a row family's constant: `__FAMILY_BY_NAME`.
pub(super) fn family_constant_name(family: &RowFamily) -> Ident {
    let name = crate::names::ident_text(&family.name);
    format_ident!("__FAMILY_{}", crate::names::Case::Screaming.convert_name(&name))
}

/// Returns the name of the type for the fields in copies of a partial index.
pub(super) fn copied_fields_type_name(entity: &Entity, family: &RowFamily) -> Ident {
    format_ident!(
        "__{}{}Fields",
        crate::names::ident_text(&entity.ident),
        crate::names::ident_text(&family.name)
    )
}

/// Returns one constant for each row family of an entity: the primary's, each index's and each list's.
pub(super) fn family_constants(entity: &Entity) -> TokenStream {
    let families = entity.families.iter().map(|family| {
        let name = family_constant_name(family);
        let value = family_value(family, entity);
        quote! { const #name: &'static _rt_Family = &#value; }
    });
    quote! { #(#families)* }
}

/// Returns the schema's field `blobs`: the properties of each blob field. Returns `None` if there is none.
fn blobs_field(entity: &Entity) -> Option<TokenStream> {
    let blobs: Vec<TokenStream> = entity
        .fields
        .iter()
        .filter_map(|field| match &field.storage {
            Storage::Blob(names) => Some(field::blob_property_names_expression(names)),
            _ => None,
        })
        .collect();
    (!blobs.is_empty()).then(|| quote! { blobs: &[#(#blobs),*], })
}

/// Returns the schema's field `dated`: how dated tables are named. Returns `None` for an entity of one table.
fn dated_field(entity: &Entity) -> Option<TokenStream> {
    let dated = entity.dated.as_ref()?;
    let (table, prefix, form) = (&entity.table, &dated.prefix, &dated.form);
    let property = &entity.fields.get(dated.field)?.property;
    Some(quote! {
        dated: _rt_Some(_rt::DatedTables {
            template: #table,
            prefix: #prefix,
            form: #form,
            property: #property,
        }),
    })
}

/// Returns the constant `__SCHEMA` of an entity, and one constant for each of its row families: the
/// primary's, each index's and each list's.
pub(super) fn emit_schema(entity: &Entity) -> TokenStream {
    let families = family_constants(entity);
    let constants = entity.families.iter().map(family_constant_name);
    let columns = entity.fields.iter().enumerate().filter_map(|(at, field)| {
        let stored = entity.primary().is_some_and(|primary| entity.is_property(primary, at, field));
        field::column_schemas_of_field(field, stored)
    });
    let name = crate::names::ident_text(&entity.ident);
    let (ident, table, entity_type) = (&entity.ident, &entity.table, &entity.entity_type);
    let discriminator = match &entity.discriminator {
        Discriminator::Property(name) => quote! { _rt::Discriminator::Property(#name) },
        Discriminator::RowKey => quote! { _rt::Discriminator::RowKey },
    };
    let marker = entity.stored_entity_type();
    let version = entity.version;
    let version = (version > 1).then(|| quote! { version: #version, });
    let conditional = entity.families.iter().any(|family| family.when.is_some());
    let conditional = conditional.then(|| quote! { conditional: true, });
    let sealed = entity.is_sealed.then(|| quote! { sealed: true, });
    let holds_extra = entity.fields.iter().any(|field| field.storage == Storage::Extra);
    let holds_extra = holds_extra.then(|| quote! { holds_extra: true, });
    let has_no_column = |field: &&Field| !field.storage.has_own_properties();
    let without_column = entity.fields.iter().filter(has_no_column).map(|field| &field.name);
    let without_column: Vec<&String> = without_column.collect();
    let without_column = (!without_column.is_empty())
        .then(|| quote! { fields_without_column: &[#(#without_column),*], });
    let series: Vec<TokenStream> = entity.fields.iter().filter_map(field::series_schema).collect();
    let series = (!series.is_empty()).then(|| quote! { series: &[#(#series),*], });
    let blobs = blobs_field(entity);
    let shares_keys = entity.shares_keys.map(|_| quote! { shares_keys: true, });
    let silenced = entity.attr.silenced_notes();
    let silenced = (!silenced.is_empty()).then(|| quote! { silenced_notes: &[#(#silenced),*], });
    let drops_unknown = entity.drops_unknown.then(|| quote! { drops_unknown: true, });
    let parts = parts_fields(entity, &marker);
    let any_part = any_part_constant(entity);
    let dated = dated_field(entity);
    let expires = expires_field(entity);
    let older = entity.upgrade_from.as_ref().map(|older| {
        let entity = runtime_item("TableEntity", older.span());
        let schema = quote_spanned! { older.span() => <#older as #entity>::SCHEMA };
        quote! { older: _rt_Some(#schema), }
    });
    quote! {
        #families
        #any_part
        const __SCHEMA: &'static _rt_Schema = &_rt_Schema {
            entity: #name,
            table: #table,
            entity_type: #entity_type,
            marker: #marker,
            discriminator: #discriminator,
            families: &[#(*#constants),*],
            columns: &[#(#columns),*],
            #version
            #conditional
            #series
            #sealed
            #drops_unknown
            #shares_keys
            #silenced
            #parts
            #holds_extra
            #without_column
            #blobs
            #dated
            #expires
            #older
            .._rt_schema_defaults_of_entity::<#ident>()
        };
    }
}

/// Returns the schema's fields `parts` and `part_rows`, which describe the rows (parts) of a wide entity. Returns
/// `None` if the entity is not wide.
fn parts_fields(entity: &Entity, marker: &str) -> Option<TokenStream> {
    entity.wide?;
    let of_part = |part| if part == 1 { marker.to_owned() } else { format!("{marker}#{part:02}") };
    let markers = (1..=entity.wide_part_count()).map(of_part);
    Some(quote! { parts: &[#(#markers),*], part_rows: _rt_Some(__PARTS), })
}

/// Returns the schema's field `expires`: the property that holds the time of expiry. Returns `None` if the entity has
/// no `expires`.
fn expires_field(entity: &Entity) -> Option<TokenStream> {
    let property = &entity.fields.get(entity.expires.as_ref()?.field)?.property;
    Some(quote! { expires: _rt_Some(#property), })
}

/// Returns the value of a row family's constant. Fields that it does not set are taken from `RowFamily::of_primary`,
/// `of_copy` or `of_list`.
fn family_value(family: &RowFamily, entity: &Entity) -> TokenStream {
    let (index, name) = (family.index, crate::names::ident_text(&family.name));
    let entity_type = entity.stored_entity_type();
    let (kind, marker) = match family.kind {
        FamilyKind::Primary => (quote! { of_primary }, entity_type),
        FamilyKind::Copy => (quote! { of_copy }, format!("{entity_type}#{name}")),
        FamilyKind::List => (quote! { of_list }, "entable.list".to_owned()),
    };
    let partition = match entity.primary() {
        // Local indexes share the primary's partition.
        Some(primary)
            if !family.is_primary() && primary.partition.text == family.partition.text =>
        {
            let primary = family_constant_name(primary);
            quote! { #primary.partition }
        }
        _ => template_constant(&family.partition, entity),
    };
    let row = template_constant(&family.row, entity);
    let is_in_keys = |at: usize, field: &Field| entity.key_source(family, at, field).is_some();
    let is_held = |at: usize| family.holds_field(at);
    let fields = || entity.fields.iter().enumerate();
    let in_keys = fields().filter(|(at, field)| is_in_keys(*at, field));
    let in_keys: Vec<&String> = in_keys.map(|(_, field)| &field.property).collect();
    let left_out: Vec<String> = fields()
        .filter(|(at, field)| !is_held(*at) && !is_in_keys(*at, field))
        .flat_map(|(_, field)| field.property_patterns())
        .collect();
    let left_out_structs: Vec<TokenStream> = fields()
        .filter(|(at, _)| !is_held(*at))
        .filter_map(|(_, field)| left_out_struct(field))
        .collect();
    let left_out_structs = (!left_out_structs.is_empty())
        .then(|| quote! { left_out_structs: &[#(#left_out_structs),*], });
    let in_keys = (!in_keys.is_empty()).then(|| quote! { in_keys: &[#(#in_keys),*], });
    let left_out = (!left_out.is_empty()).then(|| quote! { left_out: &[#(#left_out),*], });
    let unique = family.unique.then(|| quote! { unique: true, });
    let remote = family.is_remote.then(|| quote! { is_remote: true, });
    let in_blob = family.in_blob.then(|| quote! { in_blob: true, });
    let conditional = family.when.is_some().then(|| quote! { conditional: true, });
    let table = family.table.as_ref().map(|table| quote! { table: _rt_Some(#table), });
    quote! {
        _rt_Family {
            partition: #partition,
            row: #row,
            #in_keys
            #left_out
            #left_out_structs
            #unique
            #table
            #remote
            #in_blob
            #conditional
            .._rt_Family::#kind(#name, #index, #marker)
        }
    }
}

/// Returns the value that lists the properties of a flattened struct that a copy lacks. Returns `None` for any
/// other field.
fn left_out_struct(field: &Field) -> Option<TokenStream> {
    let (Storage::Flattened(prefix), ty) = (&field.storage, &field.ty) else { return None };
    Some(quote! {
        _rt::LeftOutStruct {
            prefix: #prefix,
            has_property: |__name| {
                _rt::has_property(<#ty as _rt::Properties>::COLUMNS, __name)
            },
        }
    })
}

/// Returns the constant `__PARTS` of a wide entity: a row family whose template matches the keys of every part.
/// Returns `None` if the entity is not wide.
fn any_part_constant(entity: &Entity) -> Option<TokenStream> {
    let (_, primary) = entity.wide.zip(entity.primary())?;
    let constant = family_constant_name(primary);
    let KeyTemplate { text, segments, .. } = &primary.row;
    let segments = segments.iter().filter_map(|segment| match segment {
        Segment::Literal(text, _) => {
            let text = text.strip_suffix(NUMBER_OF_FIRST_PART).unwrap_or(text);
            Some(quote! { _rt_Literal(#text) })
        }
        Segment::Part(part) => Some(key_part::part_constant(part, entity.fields.get(part.field)?)),
    });
    let number = quote! {
        _rt_part_segment("", _rt_Form::Width(2), _rt_Some(2), _rt_zero_padded_codec::<_rt::u8>())
    };
    Some(quote! {
        const __PARTS: &'static _rt_Family = &_rt_Family {
            row: _rt_Template {
                text: #text,
                segments: &[#(#segments,)* #number],
            },
            ..*#constant
        };
    })
}

/// Returns the constant of a key template.
fn template_constant(key: &KeyTemplate, entity: &Entity) -> TokenStream {
    let text = &key.text;
    let segments = key.segments.iter().filter_map(|segment| match segment {
        Segment::Literal(text, _) => Some(quote! { _rt_Literal(#text) }),
        Segment::Part(part) => Some(key_part::part_constant(part, entity.fields.get(part.field)?)),
    });
    quote! { _rt_Template { text: #text, segments: &[#(#segments),*] } }
}

//! Generates `FromRow`, which reads an entity from a row of any of its row families.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{
    copy_key_check,
    field::{self, slot_local},
    key_part,
    schema::family_constant_name,
    unwrap_or_return,
};
use crate::{
    attr::Discriminator,
    model::{Entity, Field, RowFamily, TemplatePart},
};

/// Returns the local variable with the text of the key part for a field.
fn text_local(at: usize) -> Ident {
    format_ident!("__k{at}")
}

/// Returns whether the field can be read from the keys of some row family.
fn is_in_keys(entity: &Entity, at: usize, field: &Field) -> bool {
    entity.primary_and_copies().any(|family| entity.key_source(family, at, field).is_some())
}

/// Returns whether rows of any row family store the field as a property.
fn is_property(entity: &Entity, at: usize, field: &Field) -> bool {
    entity.primary_and_copies().any(|family| entity.is_property(family, at, field))
}

/// Returns the impl of `FromRow`.
pub(super) fn emit_from_row(entity: &Entity) -> TokenStream {
    let Some(primary) = entity.primary() else { return TokenStream::new() };
    let primary = family_constant_name(primary);
    let ident = &entity.ident;
    let keys = split_keys(entity);
    let properties = walk_properties(entity);
    let key_check = copy_key_check::emit_check_of_read_copy_key(entity);
    let fields = entity.fields.iter().enumerate().map(|(at, field)| {
        let name = &field.ident;
        let value = field_value(entity, at, field);
        quote! { #name: #value }
    });
    quote! {
        #[automatically_derived]
        impl _rt_FromRow for #ident {
            fn from_row(__row: &_rt_Row) -> _rt_Result<Self> {
                <Self as _rt_FromRow>::from_copy(__row, #primary)
            }

            fn read_with<__R>(
                __row: &_rt_Row,
                __family: &'static _rt_Family,
                __from: _rt_u32,
                __wrap: impl _rt_FnOnce(Self) -> __R,
            ) -> _rt_Result<__R> {
                #keys
                #properties
                let __entity = Self { #(#fields),* };
                #key_check
                _rt_Ok(__wrap(__entity))
            }
        }
    }
}

/// Returns the statement that splits the row family's keys, as far as fields are read from them.
fn split_keys(entity: &Entity) -> TokenStream {
    let fields: Vec<usize> = entity
        .fields
        .iter()
        .enumerate()
        .filter(|(at, field)| is_in_keys(entity, *at, field))
        .map(|(at, _)| at)
        .collect();
    if fields.is_empty() {
        return TokenStream::new();
    }
    let texts = fields.iter().map(|at| text_local(*at));
    let tables = entity.families.iter().map(|family| {
        let slots = |in_row: bool, parts: usize| {
            let slots = (0..parts).map(move |part| (in_row, part));
            let slots = slots.map(|source| read_from(entity, &fields, family, source));
            let slots = slots.map(|slot| match slot {
                Some(slot) => quote! { #slot },
                None => quote! { _rt::UNREAD },
            });
            quote! { &[#(#slots),*] }
        };
        let partition = slots(false, family.partition.parts().count());
        let row = slots(true, family.row.parts().count());
        quote! { (#partition, #row) }
    });
    let read = unwrap_or_return(&quote! {
        _rt_key_texts(__row, __family, &[#(#tables),*], &mut __texts)
    });
    quote! {
        let mut __texts = _rt_empty_field_slots();
        #read
        let [#(#texts),*] = __texts;
    }
}

/// Returns the position in `fields` of the field that is read from the key part `source` of the row family.
/// `source` is whether the part is in the RowKey, and the part's index. Returns `None` if there is no such field.
fn read_from(
    entity: &Entity,
    fields: &[usize],
    family: &RowFamily,
    source: (bool, usize),
) -> Option<usize> {
    if !family.is_primary_or_copy() {
        return None;
    }
    fields.iter().position(|at| {
        let field = entity.fields.get(*at);
        field.and_then(|field| entity.key_source(family, *at, field)) == Some(source)
    })
}

/// Returns the statements that iterate over the row and put each property into its field's slot.
fn walk_properties(entity: &Entity) -> TokenStream {
    let fields = || entity.fields.iter().enumerate();
    let named = || {
        fields().filter(|(at, field)| {
            field.storage.has_known_names() && is_property(entity, *at, field)
        })
    };
    let (slots, names): (Vec<Ident>, Vec<&str>) =
        named().flat_map(|(at, field)| field::slot_locals_of_field(at, field)).unzip();
    let opened = fields().filter_map(|(at, field)| field::collecting_slot_statement(at, field));
    let taken = quote! { continue; };
    // A bag for unknown properties takes everything that other fields leave, so it comes last.
    let (bags, structs): (Vec<_>, Vec<_>) =
        fields().partition(|(_, field)| field.storage.takes_every_property());
    let offers: Vec<TokenStream> = structs
        .into_iter()
        .chain(bags)
        .filter_map(|(at, field)| {
            let slot = slot_local(at);
            field::offer_statement(field, &quote! { #slot }, &taken)
        })
        .collect();
    if offers.is_empty() {
        let found = unwrap_or_return(&quote! {
            _rt_find_properties(__row, __from, &__NAMES, &mut __found)
        });
        let count = names.len();
        return quote! {
            static __NAMES: [&_rt_str; #count] = [#(#names),*];
            let mut __found = _rt_empty_field_slots();
            #found
            let [#(#slots),*] = __found;
        };
    }
    let others = other_properties(entity);
    let next = unwrap_or_return(&quote! { __properties.next() });
    quote! {
        #(#opened)*
        let mut __found = _rt_empty_field_slots();
        let mut __next = 0;
        let mut __properties = _rt_Row::properties_from_offset(__row, __from);
        while let _rt_Some((__name, __value)) = #next {
            if _rt::place_property(__name, __value, &[#(#names),*], &mut __next, &mut __found)
                || _rt::is_one_of(__name, &[#(#others),*])
            {
                continue;
            }
            #(#offers)*
        }
        let [#(#slots),*] = __found;
    }
}

/// Returns the properties that belong to no field: the discriminator, and the owner of a remote copy.
fn other_properties(entity: &Entity) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    if entity.primary_and_copies().any(|family| family.is_remote) {
        others.extend(["Src", "SrcP", "SrcR", "SrcT"].map(str::to_owned));
    }
    if let Discriminator::Property(name) = &entity.discriminator {
        others.push(name.value());
    }
    others
}

/// Returns the value of a field, from its key part or otherwise from its slot.
fn field_value(entity: &Entity, at: usize, field: &Field) -> TokenStream {
    let (slot, name) = (slot_local(at), &field.property);
    if field.storage.is_one_property() && !is_property(entity, at, field) {
        return match read_key(entity, at, field, &quote! { _rt::field_not_in_keys_error(#name) }) {
            Some(read) => unwrap_or_return(&read),
            None => unwrap_or_return(&quote! { _rt::field_not_in_keys_error(#name) }),
        };
    }
    if let Some(whole) = field::value_if_infallible(field, &quote! { #slot }) {
        return whole;
    }
    let found = field::finish_expression(field, &field::slot_locals_as_expression(at, field), None);
    match read_key(entity, at, field, &found) {
        Some(read) => unwrap_or_return(&read),
        None => unwrap_or_return(&found),
    }
}

/// Returns the expression that reads a field from its key part. For row families whose keys do not contain the
/// field, the expression has the value `otherwise`. Returns `None` if neither the keys of the primary nor of a copy
/// contain the field.
fn read_key(
    entity: &Entity,
    at: usize,
    field: &Field,
    otherwise: &TokenStream,
) -> Option<TokenStream> {
    let mut parts: Vec<(Vec<usize>, &TemplatePart)> = Vec::new();
    for family in entity.primary_and_copies() {
        let Some((in_row, part)) = entity.key_source(family, at, field) else { continue };
        let key = if in_row { &family.row } else { &family.partition };
        let part = key.parts().nth(part)?;
        match parts.iter_mut().find(|(_, known)| known.form == part.form) {
            Some((families, _)) => families.push(family.index),
            None => parts.push((vec![family.index], part)),
        }
    }
    let text = text_local(at);
    let read = |part: &TemplatePart| key_part::read_part(part, field, &quote! { __text });
    let (_, last) = parts.pop()?;
    let last = read(last);
    let read = if parts.is_empty() {
        last
    } else {
        let arms = parts.iter().map(|(families, part)| {
            let read = read(part);
            quote! { #(#families)|* => #read, }
        });
        quote! { match __family.index { #(#arms)* _ => #last } }
    };
    Some(quote! {
        match #text {
            _rt_Some(__text) => #read,
            _rt_None => #otherwise,
        }
    })
}

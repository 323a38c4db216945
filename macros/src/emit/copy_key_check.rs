//! Generates the check that refuses an index copy whose key does not match its fields, which means that another program
//! changed the copy.

use super::unwrap_or_return;
use crate::{
    model::{Entity, KeyTemplate, RowFamily, TemplatePart},
    template::Form,
};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the statement that compares the keys of a copy with the keys that the fields of `__entity` produce. Only
/// compares keys that have a part from which the field cannot be read back, and whose fields are all in the copy.
pub(super) fn emit_check_of_read_copy_key(entity: &Entity) -> TokenStream {
    let arms = entity.families.iter().filter_map(|family| {
        if !family.is_copy() {
            return None;
        }
        let row = check_row_key(entity, family);
        let partition = family.is_remote.then(|| check_partition_key(entity, family)).flatten();
        if row.is_none() && partition.is_none() {
            return None;
        }
        let index = family.index;
        Some(quote! { #index => { #row #partition } })
    });
    let arms: Vec<TokenStream> = arms.collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    quote! { match __family.index { #(#arms)* _ => {} } }
}

/// Returns the check of the RowKey, or `None` if it needs none. The check builds the whole key from the fields and
/// compares it with the stored key. If all parts to compare are lower-case text, it first compares only these,
/// which is cheaper, and builds the key only if one differs.
fn check_row_key(entity: &Entity, family: &RowFamily) -> Option<TokenStream> {
    let lossy = parts_that_lose_their_field(entity, family, &family.row)?;
    let compared = lossy.iter().map(|(at, part)| {
        let field = entity.fields.get(part.field)?;
        let (name, ty) = (&field.ident, &field.ty);
        matches!(part.form, Form::Lower).then(|| {
            quote! {
                _rt_is_lower_part(
                    &__family.row,
                    __row,
                    #at,
                    <#ty as _rt_TextPart>::as_text(&__entity.#name),
                )
            }
        })
    });
    let check =
        unwrap_or_return(&quote! { _rt_check_row_key_matches_fields(__row, __family, &__entity) });
    Some(match compared.collect::<Option<Vec<TokenStream>>>() {
        Some(compared) => quote! { if !(#(#compared)&&*) { #check } },
        None => check,
    })
}

/// Returns the check of a remote copy's PartitionKey.
fn check_partition_key(entity: &Entity, family: &RowFamily) -> Option<TokenStream> {
    parts_that_lose_their_field(entity, family, &family.partition)?;
    Some(unwrap_or_return(
        &quote! { _rt::check_partition_key_matches_fields(__row, __family, &__entity) },
    ))
}

/// Returns the parts of a key from which their fields cannot be read back. Returns `None` if there are none, or if
/// the copy lacks a field of the key.
fn parts_that_lose_their_field<'k>(
    entity: &Entity,
    family: &RowFamily,
    key: &'k KeyTemplate,
) -> Option<Vec<(usize, &'k TemplatePart)>> {
    let is_held = |part: &TemplatePart| family.holds_field(part.field);
    let is_lossy = |part: &TemplatePart| {
        entity.fields.get(part.field).is_some_and(|field| !part.is_read_back_exactly(field))
    };
    let lossy: Vec<_> = key.parts().enumerate().filter(|(_, part)| is_lossy(part)).collect();
    (!lossy.is_empty() && key.parts().all(is_held)).then_some(lossy)
}

//! Copies whose key does not follow from their fields: another program changed them.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    key::{partition_key, row_key},
    schema::family_constant,
};
use crate::{
    model::{Entity, Family, FamilyKind, Field, Key, Part},
    template::Form,
};

/// Compares the keys of a copy that was read with what its fields give, where a key has a field in
/// a form that does not give it back.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    let arms = entity.families.iter().enumerate().filter_map(|(index, family)| {
        if family.kind != FamilyKind::Copy {
            return None;
        }
        let row = check_row(entity, family);
        let partition = family.is_remote.then(|| check_partition(entity, family)).flatten();
        if row.is_none() && partition.is_none() {
            return None;
        }
        Some(quote! { #index => { #row #partition } })
    });
    let arms: Vec<TokenStream> = arms.collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    quote! { match __family.index { #(#arms)* _ => {} } }
}

/// Text in lower case is compared where it stands in the RowKey; other forms are written again.
fn check_row(entity: &Entity, family: &Family) -> Option<TokenStream> {
    let lossy = lossy_parts(entity, family, &family.row)?;
    let constant = family_constant(family);
    let compared = lossy.iter().map(|(at, part)| {
        let field = entity.fields.get(part.field)?;
        let (name, ty) = (&field.ident, &field.ty);
        matches!(part.form, Form::Lower).then(|| {
            quote! {
                _rt::is_lower_part(
                    &#constant.row,
                    __row,
                    #at,
                    <#ty as _rt::TextPart>::as_text(&__entity.#name),
                )
            }
        })
    });
    let row_key = row_key(entity, family, of_entity);
    let check = quote! { #row_key _rt::check_copy_key(__row, &__row_key)?; };
    Some(match compared.collect::<Option<Vec<TokenStream>>>() {
        Some(compared) => quote! { if !(#(#compared)&&*) { #check } },
        None => check,
    })
}

fn check_partition(entity: &Entity, family: &Family) -> Option<TokenStream> {
    lossy_parts(entity, family, &family.partition)?;
    let partition_key = partition_key(entity, family, of_entity);
    Some(quote! { #partition_key _rt::check_copy_partition(__row, &__partition_key)?; })
}

/// The parts of a key that do not give their fields back; `None`: there is none, or the copy does
/// not hold all that the key is made of.
fn lossy_parts<'k>(
    entity: &Entity,
    family: &Family,
    key: &'k Key,
) -> Option<Vec<(usize, &'k Part)>> {
    let is_held = |part: &Part| family.holds.get(part.field).copied().unwrap_or_default();
    let is_lossy =
        |part: &Part| entity.fields.get(part.field).is_some_and(|field| !part.is_exact(field));
    let lossy: Vec<_> = key.parts().enumerate().filter(|(_, part)| is_lossy(part)).collect();
    (!lossy.is_empty() && key.parts().all(is_held)).then_some(lossy)
}

/// The field of the entity that was read.
fn of_entity(field: &Field) -> TokenStream {
    let name = &field.ident;
    quote! { __entity.#name }
}

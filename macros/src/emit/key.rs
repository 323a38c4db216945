//! Generates the code that writes the PartitionKeys and RowKeys of row families.

use super::key_part;
use crate::model::{Entity, Field, KeyTemplate, RowFamily};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the expression `self.name`, with the field's name.
fn field_of_self(field: &Field) -> TokenStream {
    let name = &field.ident;
    quote! { self.#name }
}

/// Returns the body of `EncodeRows::write_partition_key`: the key of the row family `__family`.
pub(super) fn write_partition_key_body(entity: &Entity) -> TokenStream {
    let own = entity.families.iter().map(|family| (family.index, &family.partition));
    write_parts_by_family(entity, own.collect())
}

/// Returns the body of `EncodeRows::write_row_key`: the key of the row family `__family`.
pub(super) fn write_row_key_body(entity: &Entity) -> TokenStream {
    let own = entity.families.iter().map(|family| (family.index, &family.row));
    write_parts_by_family(entity, own.collect())
}

/// Returns statements that write the parts of one key, PartitionKey or RowKey, of the row family `__family`. This
/// is a `match` over its index, with one arm for all row families with the same template, or no `match` if all have
/// the same. `keys` contains the index and the key template of each row family.
fn write_parts_by_family(entity: &Entity, keys: Vec<(usize, &KeyTemplate)>) -> TokenStream {
    let mut templates: Vec<(Vec<usize>, &KeyTemplate)> = Vec::new();
    for (index, key) in keys {
        // Local copies share the primary's partition template. One arm for all of them is less code to
        // compile.
        match templates.iter_mut().find(|(_, known)| known.text == key.text) {
            Some((indexes, _)) => indexes.push(index),
            None => templates.push((vec![index], key)),
        }
    }
    if let [(_, key)] = templates.as_slice() {
        return write_parts(entity, key, field_of_self);
    }
    let arms = templates.iter().filter(|(_, key)| key.parts().next().is_some());
    let arms = arms.map(|(indexes, key)| {
        let parts = write_parts(entity, key, field_of_self);
        quote! { #(#indexes)|* => { #parts } }
    });
    quote! { match __family.index { #(#arms)* _ => {} } }
}

/// Returns statements that write the parts of a key with the key writer `__key`. `place` returns
/// the expression for a field.
fn write_parts(
    entity: &Entity,
    key: &KeyTemplate,
    place: impl Fn(&Field) -> TokenStream,
) -> TokenStream {
    let parts = key.parts().filter_map(|part| {
        let field = entity.fields.get(part.field)?;
        Some(key_part::write_part(part, &field.ty, &place(field)))
    });
    quote! { #(#parts)* }
}

/// Returns two expressions separated by a comma: the writers of PartitionKey and RowKey of a row
/// family, with all parts written. `place` returns the expression for a field's value.
pub(super) fn filled_key_writers(
    entity: &Entity,
    family: &RowFamily,
    place: impl Fn(&Field) -> TokenStream,
) -> TokenStream {
    let constant = super::schema::family_constant_name(family);
    let (partition_key, row_key) = ("PartitionKey", "RowKey");
    let partition = write_parts(entity, &family.partition, &place);
    let row = write_parts(entity, &family.row, &place);
    quote! {
        {
            let mut __key = _rt_KeyWriter::new(&#constant.partition, #partition_key);
            #partition
            __key
        },
        {
            let mut __key = _rt_KeyWriter::new(&#constant.row, #row_key);
            #row
            __key
        }
    }
}

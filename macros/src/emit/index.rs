//! Generates the methods that begin a path through an index, the types for the fields in copies of partial indexes, and
//! `owner_of`, which reads the keys of the primary from a copy.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{
    entry_doc::path_method_doc, key, path_builder, schema::copied_fields_type_name,
    unwrap_or_return,
};
use crate::{
    model::{Entity, Field, RowFamily},
    names,
};

/// Returns the methods that begin a path through an index, and the types for the fields in partial copies.
pub(super) fn emit_index_methods(entity: &Entity) -> TokenStream {
    methods_with_starts(entity, path_builder::new_builder_value)
}

/// Returns the methods that begin a path through an index, for a refused entity. They compile, but have no working
/// body.
pub(super) fn emit_for_refused_entity(entity: &Entity) -> TokenStream {
    methods_with_starts(entity, |_, _| quote! { loop {} })
}

fn methods_with_starts(
    entity: &Entity,
    start: fn(&Entity, &RowFamily) -> TokenStream,
) -> TokenStream {
    let (ident, vis) = (&entity.ident, &entity.vis);
    let indexes = || entity.families.iter().filter(|family| !family.is_primary());
    let methods = indexes().filter_map(|family| {
        let method = names::path_method_name(&family.name)?;
        let start_type = path_builder::start_type(entity, family);
        let value = start(entity, family);
        let doc = path_method_doc(entity, family);
        Some(quote! {
            #[doc = #doc]
            #[inline]
            #vis fn #method() -> #start_type {
                #value
            }
        })
    });
    let partial = indexes().filter(|family| family.is_copy() && !family.has_every_field());
    let markers = partial.map(|family| held_fields_type(entity, family));
    quote! {
        impl #ident { #(#methods)* }
        #(#markers)*
    }
}

/// Returns a marker type that implements `HoldsField` for each field in the copies of a partial index. The compiler then
/// refuses to read other fields from such a copy.
fn held_fields_type(entity: &Entity, family: &RowFamily) -> TokenStream {
    let (marker, vis) = (copied_fields_type_name(entity, family), &entity.vis);
    let held = entity.fields.iter().enumerate().filter(|(at, field)| {
        family.holds_field(*at) || entity.key_source(family, *at, field).is_some()
    });
    let impls = held.map(|(_, field)| {
        let name = names::type_spelling_field_name(&field.ident);
        quote! { #[automatically_derived] impl _rt::HoldsField<#name> for #marker {} }
    });
    let doc = format!("The fields that copies of `{}` hold.", family.name);
    quote! {
        #[doc = #doc]
        #[derive(_rt_Clone, _rt_Debug)]
        #vis struct #marker;
        #(#impls)*
    }
}

/// Returns the method that reads the keys of the primary from a copy, if copies contain them.
pub(super) fn owner_of_method(entity: &Entity) -> TokenStream {
    let Some(primary) = entity.primary() else { return TokenStream::new() };
    let is_known = |family: &RowFamily| {
        family.is_copy()
            && primary.parts().all(|part| {
                let field = entity.fields.get(part.field);
                let is_given = |field| entity.key_source(family, part.field, field).is_some();
                let is_held = family.holds_field(part.field);
                is_held || field.is_some_and(is_given)
            })
    };
    let known: Vec<usize> = entity
        .families
        .iter()
        .filter(|family| is_known(family))
        .map(|family| family.index)
        .collect();
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
            let read = unwrap_or_return(&quote! {
                _rt_ReadColumn::read(&<Self>::#constant, __row, __family)
            });
            quote! { let #local = #read; }
        },
    );
    let writers = key::filled_key_writers(entity, primary, place);
    quote! {
        #[inline]
        fn owner_of(
            __row: &_rt_Row,
            __family: &'static _rt_Family,
        ) -> _rt_Result<_rt_Option<(_rt_String, _rt_String)>> {
            match __family.index {
                #(#known)|* => {}
                _ => return _rt_Ok(_rt_None),
            }
            #(#reads)*
            _rt_finish_owner_key_writers(#writers)
        }
    }
}

//! Generates the patch of an entity: a type with methods that set and remove properties.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{field, first_field};
use crate::{
    model::{Entity, Field, Storage},
    names,
};

/// Returns the name of the patch's type.
pub(super) fn patch_type_name(entity: &Entity) -> Ident {
    format_ident!("__{}Patch", names::ident_text(&entity.ident))
}

/// Returns the patch's type and its methods.
pub(super) fn emit_patch_builder(entity: &Entity) -> TokenStream {
    patch_with_methods(entity, field::patch_setter)
}

/// Returns the patch's type with setters that compile although the entity is refused.
pub(super) fn emit_for_refused_entity(entity: &Entity) -> TokenStream {
    patch_with_methods(entity, field::setter_of_refused_entity)
}

fn patch_with_methods(entity: &Entity, setter: fn(&Field) -> TokenStream) -> TokenStream {
    let (ident, name, vis) = (&entity.ident, patch_type_name(entity), &entity.vis);
    let inner = first_field();
    let doc = format!("Changes to some properties of `{}`.", names::ident_text(ident));
    let methods = entity.fields.iter().enumerate().map(|(at, field)| {
        if !entity.can_change_in_place(at) {
            let removed = field.name.strip_prefix("remove_");
            let is_taken = removed.is_some_and(|name| entity.field_with_setter(name).is_some());
            return if is_taken { TokenStream::new() } else { refusing_method(field) };
        }
        let method = names::generated_ident(&format!("remove_{}", field.name), field.span);
        let is_free = entity.field_with_setter(&method.to_string()).is_none();
        let remove = is_free.then(|| remove_method(field, &method));
        let set = setter(field);
        quote! { #set #remove }
    });
    quote! {
        #[doc = #doc]
        #vis struct #name(_rt_Patch<#ident>);

        impl #name { #(#methods)* }

        #[automatically_derived]
        impl _rt_Debug for #name {
            fn fmt(&self, __f: &mut _rt_Formatter<'_>) -> _rt_FmtResult {
                _rt_Debug::fmt(&self.#inner, __f)
            }
        }

        #[automatically_derived]
        impl _rt_From<#name> for _rt_Patch<#ident> {
            #[inline]
            fn from(__patch: #name) -> Self {
                __patch.#inner
            }
        }
    }
}

/// Returns a method that accepts no argument, for a field of the key. A call does not compile, and the error
/// explains that keys cannot be patched.
fn refusing_method(field: &Field) -> TokenStream {
    let ident = &field.ident;
    quote! {
        #[doc(hidden)]
        pub fn #ident(self, _: impl _rt_KeyFieldPatchInput) -> Self { self }
    }
}

/// Returns the method that removes a property. Returns `None` if the field cannot be removed, for example because
/// it is stored as JSON, flattened or skipped. A bound on the field's type makes a call fail to compile if the
/// field is not an `Option`. An alias of `Option` is allowed.
fn remove_method(field: &Field, method: &Ident) -> Option<TokenStream> {
    match &field.storage {
        Storage::Plain => {}
        Storage::Series(names) => return remove_slot(field, method, names),
        Storage::Split(names) | Storage::Blob(names) if field.is_option() => {
            let (doc, inner) = (format!("Removes `{}`.", field.name), first_field());
            return Some(quote! {
                #[doc = #doc]
                pub fn #method(self) -> Self {
                    Self(self.#inner #(.remove(#names))*)
                }
            });
        }
        Storage::Split(_)
        | Storage::Blob(_)
        | Storage::Json
        | Storage::Flattened(_)
        | Storage::Extra
        | Storage::Skipped => return None,
    }
    let (ty, name, inner) = (&field.ty, &field.property, first_field());
    let doc = if field.is_option() {
        let text = format!("Removes `{}`.", field.name);
        quote! { #[doc = #text] }
    } else {
        quote! { #[doc(hidden)] }
    };
    Some(quote! {
        #doc
        pub fn #method(self) -> Self
        where
            for<'__a> #ty: _rt_Removable,
        {
            Self(self.#inner.remove(#name))
        }
    })
}

/// Returns the method that removes the value of one slot of a series, or `None` if the field is not a series.
fn remove_slot(field: &Field, method: &Ident, names: &[String]) -> Option<TokenStream> {
    let (series_slot_type, of, inner) = (field.series_slot_type()?, &field.name, first_field());
    let doc = if field.is_removable() {
        let text = format!("Removes a slot of `{of}`, counted from 0.");
        quote! { #[doc = #text] }
    } else {
        quote! { #[doc(hidden)] }
    };
    Some(quote! {
        #doc
        pub fn #method(self, __slot: _rt_usize) -> Self
        where
            for<'__a> #series_slot_type: _rt_Removable,
        {
            Self(self.#inner.change_series_slot(&[#(#names),*], __slot, |__patch, __name| {
                __patch.remove(__name)
            }))
        }
    })
}

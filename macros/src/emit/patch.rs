//! Patches: a setter for each property.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::from_row::json_codec;
use crate::model::{Entity, Field, Storage};

/// The name of the patch's type.
pub(super) fn name(entity: &Entity) -> Ident {
    format_ident!("__{}Patch", crate::names::unraw(&entity.ident))
}

/// The patch's type and its methods.
pub(super) fn emit(entity: &Entity) -> TokenStream {
    with_methods(entity, setter)
}

/// The same with methods that do nothing, for an entity that is refused: how a field is stored may
/// be the mistake.
pub(super) fn hollow(entity: &Entity) -> TokenStream {
    with_methods(entity, |field| match field.storage {
        Storage::Json | Storage::Flattened(_) => whole(field, &quote! { loop {} }),
        _ => setter(field),
    })
}

fn with_methods(entity: &Entity, setter: fn(&Field) -> TokenStream) -> TokenStream {
    let (ident, name, vis) = (&entity.ident, name(entity), &entity.vis);
    let doc = format!("Changes to some properties of `{}`.", crate::names::unraw(ident));
    // A key cannot be patched: another key is another row.
    let methods = entity.fields.iter().enumerate().filter(|(at, _)| !entity.is_in_key(*at)).map(
        |(_, field)| {
            let method = format_ident!("remove_{}", field.name, span = field.ident.span());
            let is_free = entity.setter_named(&method.to_string()).is_none();
            let remove = is_free.then(|| remove(field, &method));
            let set = setter(field);
            quote! { #set #remove }
        },
    );
    quote! {
        #[doc = #doc]
        #[derive(_rt::Debug)]
        #vis struct #name(_rt::Patch<#ident>);

        #[automatically_derived]
        impl #name { #(#methods)* }

        #[automatically_derived]
        impl _rt::From<#name> for _rt::Patch<#ident> {
            fn from(__patch: #name) -> Self {
                __patch.0
            }
        }
    }
}

fn setter(field: &Field) -> TokenStream {
    let (ident, ty, name) = (&field.ident, &field.ty, &field.property);
    let doc = format!("Sets `{}`.", field.name);
    match &field.storage {
        Storage::Skipped | Storage::Extra => TokenStream::new(),
        Storage::Plain => {
            let hush = field.is_secret().then(|| quote! { .redacted(#name) });
            quote! {
                #[doc = #doc]
                pub fn #ident<__V>(self, __value: __V) -> Self
                where
                    __V: _rt::PatchInput<#ty>,
                {
                    Self(<__V as _rt::PatchInput<#ty>>::set(__value, self.0, #name)#hush)
                }
            }
        }
        Storage::Json => {
            let codec = json_codec(field);
            whole(
                field,
                &quote! { self.0.set_nested("", |__out| (#codec.put)(__out, #name, &__value)) },
            )
        }
        Storage::Flattened(prefix) => whole(
            field,
            &quote! {
                self.0.set_nested(#prefix, |__out| {
                    <#ty as _rt::Properties>::write(&__value, __out)
                })
            },
        ),
    }
}

/// A setter that takes the field's type as it is.
fn whole(field: &Field, patch: &TokenStream) -> TokenStream {
    let (ident, ty) = (&field.ident, &field.ty);
    let doc = format!("Sets `{}`.", field.name);
    quote! {
        #[doc = #doc]
        pub fn #ident(self, __value: #ty) -> Self {
            Self(#patch)
        }
    }
}

/// Only an optional property can be absent. What its type is, its trait tells, under whatever name;
/// a bound of no lifetime in particular is asked for where the method is called.
fn remove(field: &Field, method: &Ident) -> Option<TokenStream> {
    if field.storage != Storage::Plain {
        return None;
    }
    let (ty, name) = (&field.ty, &field.property);
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
            for<'__a> #ty: _rt::Removable,
        {
            Self(self.0.remove(#name))
        }
    })
}

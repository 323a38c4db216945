//! Structs that are flattened: `Properties`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{
    from_row::{bytes, default, finish},
    schema::column,
    to_row::put,
};
use crate::model::{Properties, Storage};

fn slots_name(properties: &Properties) -> Ident {
    format_ident!("__{}Slots", crate::names::unraw(&properties.ident))
}

fn slot(at: usize) -> Ident {
    format_ident!("__f{at}")
}

/// What is found of each field while a row is walked.
pub(super) fn slots(properties: &Properties) -> TokenStream {
    let name = slots_name(properties);
    let mut declared = Vec::new();
    let mut empty = Vec::new();
    for (at, field) in properties.fields.iter().enumerate() {
        let (slot, ty) = (slot(at), &field.ty);
        let slot_type = match field.storage {
            Storage::Skipped => continue,
            Storage::Flattened(_) => quote! { <#ty as _rt::Properties>::Slots<'__r> },
            _ => quote! { _rt::Option<_rt::ValueRef<'__r>> },
        };
        declared.push(quote! { #slot: #slot_type });
        empty.push(match field.storage {
            Storage::Flattened(_) => quote! { #slot: <#ty as _rt::Properties>::slots() },
            _ => quote! { #slot: _rt::None },
        });
    }
    quote! {
        #[doc = "What was found of the fields so far."]
        pub struct #name<'__r> {
            #(#declared,)*
            __of: _rt::PhantomData<&'__r ()>,
        }

        #[automatically_derived]
        impl<'__r> _rt::Default for #name<'__r> {
            fn default() -> Self {
                Self { #(#empty,)* __of: _rt::PhantomData }
            }
        }
    }
}

/// The impl of `Properties`.
pub(super) fn emit(properties: &Properties) -> TokenStream {
    let (ident, slots) = (&properties.ident, slots_name(properties));
    let columns = properties.fields.iter().filter_map(|field| column(field, true));
    let puts = properties.fields.iter().map(|field| put(field, &quote! { __out }));
    let offer = offer(properties);
    let fields = properties.fields.iter().enumerate().map(|(at, field)| {
        let (name, slot) = (&field.ident, slot(at));
        let value = match field.storage {
            Storage::Skipped => default(field),
            _ => finish(field, &quote! { __slots.#slot }, Some(&quote! { __prefix })),
        };
        quote! { #name: #value }
    });
    quote! {
        #[automatically_derived]
        impl _rt::Properties for #ident {
            type Slots<'__r> = #slots<'__r>;

            const COLUMNS: &'static [_rt::ColumnSchema] = &[#(#columns),*];

            fn write(&self, __out: &mut _rt::PropertyWriter<'_>) -> _rt::Result<()> {
                #(#puts)*
                _rt::Ok(())
            }

            #offer

            fn finish(__slots: Self::Slots<'_>, __prefix: &str) -> _rt::Result<Self> {
                _rt::Ok(Self { #(#fields),* })
            }
        }
    }
}

/// Takes a property by its name; a nested struct takes what begins with its prefix.
fn offer(properties: &Properties) -> TokenStream {
    let mut named = Vec::new();
    let mut nested = Vec::new();
    for (at, field) in properties.fields.iter().enumerate() {
        let (slot, ty) = (slot(at), &field.ty);
        match &field.storage {
            Storage::Skipped => {}
            Storage::Flattened(prefix) => {
                let prefix = bytes(prefix);
                nested.push(quote! {
                    if let _rt::Some(__rest) = <[u8]>::strip_prefix(__name, #prefix) {
                        if <#ty as _rt::Properties>::offer(&mut __slots.#slot, __rest, __value) {
                            return true;
                        }
                    }
                });
            }
            _ => {
                let name = bytes(&field.property);
                named.push(quote! { #name => __slots.#slot = _rt::Some(__value), });
            }
        }
    }
    quote! {
        fn offer<'__r>(
            __slots: &mut Self::Slots<'__r>,
            __name: &'__r [u8],
            __value: _rt::ValueRef<'__r>,
        ) -> bool {
            match __name {
                #(#named)*
                _ => {
                    #(#nested)*
                    return false;
                }
            }
            #[allow(unreachable_code)]
            true
        }
    }
}

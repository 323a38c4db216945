//! Generates `Properties` for structs that are flattened into entities.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{
    field::{self, slot_local},
    unwrap_or_return,
};
use crate::model::Properties;

fn slots_name(properties: &Properties) -> Ident {
    format_ident!("__{}Slots", crate::names::ident_text(&properties.ident))
}

/// Returns the struct with an empty slot for each stored field, and its `Default` impl. The slots are filled while a
/// row is read. Skipped fields have none.
pub(super) fn slots_of_properties(properties: &Properties) -> TokenStream {
    let name = slots_name(properties);
    let mut declared = Vec::new();
    let mut empty = Vec::new();
    for (at, field) in properties.fields.iter().enumerate() {
        let slot = slot_local(at);
        let Some((slot_type, value)) = field::empty_slot_with_type(field) else { continue };
        declared.push(quote! { #slot: #slot_type });
        empty.push(quote! { #slot: #value });
    }
    quote! {
        #[doc = "The properties that were found of the fields so far."]
        pub struct #name<'__r> {
            #(#declared,)*
            __of: _rt_PhantomData<&'__r ()>,
        }

        #[automatically_derived]
        impl<'__r> _rt::Default for #name<'__r> {
            fn default() -> Self {
                Self { #(#empty,)* __of: _rt_PhantomData }
            }
        }
    }
}

/// Returns the impl of `Properties`.
pub(super) fn emit_properties_impl(properties: &Properties) -> TokenStream {
    let (ident, slots) = (&properties.ident, slots_name(properties));
    let columns =
        properties.fields.iter().filter_map(|field| field::column_schemas_of_field(field, true));
    let writes =
        properties.fields.iter().map(|field| field::write_statement(field, &quote! { __out }));
    let offer = offer_method(properties);
    let fields = properties.fields.iter().enumerate().map(|(at, field)| {
        let (name, slot) = (&field.ident, slot_local(at));
        let found = quote! { __slots.#slot };
        let value = field::value_if_infallible(field, &found).unwrap_or_else(|| {
            unwrap_or_return(&field::finish_expression(field, &found, Some(&quote! { __prefix })))
        });
        quote! { #name: #value }
    });
    quote! {
        #[automatically_derived]
        impl _rt::Properties for #ident {
            type Slots<'__r> = #slots<'__r>;

            const COLUMNS: &'static [_rt_ColumnSchema] = &[#(#columns),*];

            fn write(&self, __out: &mut _rt_PropertyWriter<'_>) -> _rt_Result<()> {
                #(#writes)*
                __out.return_first_error()
            }

            #offer

            fn finish(__slots: Self::Slots<'_>, __prefix: &_rt_str) -> _rt_Result<Self> {
                _rt_Ok(Self { #(#fields),* })
            }
        }
    }
}

/// Returns the method `offer`, which puts a property into the slot of the field with its name, or offers it to the
/// nested struct with its prefix.
fn offer_method(properties: &Properties) -> TokenStream {
    let fields = || properties.fields.iter().enumerate();
    let named = fields().filter(|(_, field)| field.storage.is_one_property());
    let named = named.map(|(at, field)| {
        let (slot, name) =
            (slot_local(at), proc_macro2::Literal::byte_string(field.property.as_bytes()));
        quote! {
            #name => {
                __slots.#slot = _rt_Some(__value);
                return true;
            }
        }
    });
    let taken = quote! { return true; };
    let nested = fields().filter_map(|(at, field)| {
        let slot = slot_local(at);
        field::offer_statement(field, &quote! { __slots.#slot }, &taken)
    });
    quote! {
        fn offer<'__r>(
            __slots: &mut Self::Slots<'__r>,
            __name: &'__r [_rt::u8],
            __value: _rt_ValueRef<'__r>,
        ) -> _rt::bool {
            match __name {
                #(#named)*
                _ => {}
            }
            #(#nested)*
            false
        }
    }
}

//! Generates the impl of a struct that folds the rows of a partition.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::model::{EntitySet, Member, RowsPerMember};

/// Returns the types of the fields as aliases `__M0` and so on, with the type of `other` last. If a type does not
/// fit, the compiler reports it once, where the alias is checked, and ignores everything that follows from the
/// type.
pub(super) fn checked_field_types(set: &EntitySet) -> TokenStream {
    let members = set.members.iter().map(|member| {
        let check = match member.count {
            RowsPerMember::One => quote! { check_one_field },
            RowsPerMember::Many => quote! { check_many_field },
        };
        (check, &member.ty)
    });
    let other = set.other.iter().map(|other| (quote! { check_other_field }, &other.ty));
    let aliases = members.chain(other).enumerate().map(|(at, (check, ty))| {
        let alias = field_type_alias(at);
        let check = quote_spanned! { ty.span() => _rt::#check::<#ty>() };
        quote! { type #alias = <[#ty; #check] as _rt::Array>::Element; }
    });
    quote! { #(#aliases)* }
}

/// Returns the alias of the type of a field. `at` is its position among the members.
fn field_type_alias(at: usize) -> Ident {
    format_ident!("__M{at}")
}

/// Returns the type of the value that is read from each of a member's rows. `at` is the member's position.
pub(super) fn row_value_type(at: usize, member: &Member) -> TokenStream {
    let ty = field_type_alias(at);
    match member.count {
        RowsPerMember::One => quote! { <#ty as _rt::OneField>::Value },
        RowsPerMember::Many => quote! { <#ty as _rt::ManyField>::Value },
    }
}

/// Returns the impl of `Aggregate`.
pub(super) fn emit_aggregate_set(set: &EntitySet) -> TokenStream {
    let ident = &set.ident;
    let has_other = set.other.is_some();
    let members = || set.members.iter().enumerate();
    let slot = |at: usize| format_ident!("__f{at}");
    let slots = members().map(|(at, member)| {
        let (slot, value) = (slot(at), row_value_type(at, member));
        match member.count {
            RowsPerMember::One => quote! {
                let mut #slot: _rt_Option<_rt::Stored<#value>> = _rt_None;
            },
            RowsPerMember::Many => quote! {
                let mut #slot: _rt::Vec<_rt::Stored<#value>> = _rt::Vec::new();
            },
        }
    });
    let puts = members().map(|(at, member)| {
        let slot = slot(at);
        let put = match member.count {
            RowsPerMember::One => quote! { put_in_one },
            RowsPerMember::Many => quote! { put_in_many },
        };
        quote! { #at => _rt::PartitionFold::#put(__rows, &mut #slot, __found)?, }
    });
    let fields = members().map(|(at, member)| {
        let (slot, name, ty) = (slot(at), &member.ident, field_type_alias(at));
        let text = crate::names::ident_text(name);
        match member.count {
            RowsPerMember::One => quote! {
                #name: <#ty as _rt::OneField>::from_found(
                    #slot,
                    || _rt::PartitionFold::missing_error(__rows, #text)
                )?
            },
            RowsPerMember::Many => {
                quote! { #name: <#ty as _rt::ManyField>::from_found(#slot) }
            }
        }
    });
    let other = set.other.as_ref().map(|other| {
        let (name, ty) = (&other.ident, field_type_alias(set.members.len()));
        quote! {
            #name: <#ty as _rt::OtherField>::from_others(
                _rt::PartitionFold::take_rows_without_member(__rows)
            ),
        }
    });
    quote! {
        #[automatically_derived]
        impl _rt::Aggregate for #ident {
            const OTHER: _rt::bool = #has_other;

            fn fold(__rows: &mut _rt::PartitionFold) -> _rt_Result<Self> {
                #(#slots)*
                while let _rt_Some(__found) = _rt::PartitionFold::next_row(__rows) {
                    match _rt::RowMatch::member_index(&__found.1) {
                        #(#puts)*
                        _ => {}
                    }
                }
                _rt_Ok(Self {
                    #(#fields,)*
                    #other
                })
            }
        }
    }
}

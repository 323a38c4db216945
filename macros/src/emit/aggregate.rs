//! Generates the impl of a struct that gathers the rows of a partition.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::{
    model::{Member, RowsPerMember, Set},
    names::call_site_ident,
};

/// Returns the type of the value that is read from each of a member's rows.
pub(super) fn row_value_type(member: &Member) -> TokenStream {
    let ty = &member.ty;
    match member.count {
        RowsPerMember::One => quote_spanned! { ty.span() => <#ty as _rt::OneField>::Value },
        RowsPerMember::Many => quote_spanned! { ty.span() => <#ty as _rt::ManyField>::Value },
    }
}

/// Returns the impl of `Aggregate`.
pub(super) fn emit(set: &Set) -> TokenStream {
    let ident = &set.ident;
    let has_other = set.other.is_some();
    let members = || set.members.iter().enumerate();
    // The compiler reports a trait that a type lacks at each span once. All uses of a type have its
    // span, so that it is reported once.
    let slot = |at: usize, member: &Member| format_ident!("__f{at}", span = member.ty.span());
    let slots = members().map(|(at, member)| {
        let (slot, value) = (slot(at, member), row_value_type(member));
        match member.count {
            RowsPerMember::One => quote! {
                let mut #slot: _rt_Option<_rt::Stored<#value>> = _rt_None;
            },
            RowsPerMember::Many => quote! {
                let mut #slot: _rt::Vec<_rt::Stored<#value>> = _rt::Vec::new();
            },
        }
    });
    let (rows, found) = (call_site_ident("__rows"), call_site_ident("__found"));
    let puts = members().map(|(at, member)| {
        let slot = slot(at, member);
        let put = match member.count {
            RowsPerMember::One => quote! { put_in_one },
            RowsPerMember::Many => quote! { put_in_many },
        };
        let put = quote_spanned! { member.ty.span() =>
            _rt::PartitionFold::#put(#rows, &mut #slot, #found)
        };
        quote! { #at => #put?, }
    });
    let fields = members().map(|(at, member)| {
        let (slot, name, ty) = (slot(at, member), &member.ident, &member.ty);
        let text = crate::names::ident_text(name);
        match member.count {
            RowsPerMember::One => {
                let found = quote_spanned! { ty.span() => <#ty as _rt::OneField>::from_found };
                quote! {
                    #name: #found(#slot, || _rt::PartitionFold::missing_error(#rows, #text))?
                }
            }
            RowsPerMember::Many => {
                quote_spanned! { ty.span() => #name: <#ty as _rt::ManyField>::from_found(#slot) }
            }
        }
    });
    let other = set.other.as_ref().map(|other| {
        let (name, ty) = (&other.ident, &other.ty);
        quote_spanned! { ty.span() =>
            #name: <#ty as _rt::ManyField>::from_found(_rt::PartitionFold::take_rows_without_member(#rows)),
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

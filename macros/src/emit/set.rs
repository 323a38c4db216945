//! Generates the constants through which a set finds the member type of a row, and the impls of enums of entities.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::aggregate;
use crate::{
    model::{EntitySet, Member, Shape},
    names::call_site_ident,
};

/// Returns the constant with the members' schemas, the statics with their discriminators and key forms, which the
/// compiler computes, the impl of `SetMembers`, and assertions that no row can belong to two members.
pub(super) fn emit_set_members(set: &EntitySet) -> TokenStream {
    let ident = &set.ident;
    let name = crate::names::ident_text(ident);
    let members = set.members.iter().enumerate();
    let schemas: Vec<TokenStream> =
        members.map(|(at, member)| member_schema(set, at, member)).collect();
    let apart = assertions_of_separate_members(set, &schemas);
    quote! {
        const __SCHEMAS: &'static [&'static _rt_Schema] = &[#(#schemas),*];
        static __MARKERS: [_rt::TypeMarker; _rt::marker_hash_table_len(__SCHEMAS)] =
            _rt::build_marker_table(__SCHEMAS);
        static __FORMS: [_rt::KeyForm; _rt::count_key_forms(__SCHEMAS)] =
            _rt::key_forms_by_prefix(__SCHEMAS);
        static __MEMBERS: _rt::Members =
            _rt::Members::new(#name, __SCHEMAS, &__MARKERS, &__FORMS);

        #[automatically_derived]
        impl _rt::SetMembers for #ident {
            const MEMBERS: &'static _rt::Members = &__MEMBERS;
        }

        #apart
    }
}

/// Returns an expression for the schema of the entity whose rows a member is read from.
fn member_schema(set: &EntitySet, at: usize, member: &Member) -> TokenStream {
    let ty = match set.shape {
        Shape::Enum => {
            let ty = &member.ty;
            quote! { #ty }
        }
        Shape::Struct => aggregate::row_value_type(at, member),
    };
    quote_spanned! { member.ty.span() => <#ty as _rt::SetMember>::MEMBER }
}

/// Returns const assertions, one group for each pair of members, that no row can belong to both. The compiler evaluates
/// them.
fn assertions_of_separate_members(set: &EntitySet, schemas: &[TokenStream]) -> TokenStream {
    let members = set.members.iter().zip(schemas).enumerate();
    let pairs = members.flat_map(|(at, later)| {
        set.members.iter().zip(schemas).take(at).map(move |earlier| (earlier, later))
    });
    let asserts = pairs.map(|((first, first_schema), (second, second_schema))| {
        let (a, b, span) = (&first.ident, &second.ident, second.ty.span());
        let types = format!(
            "`{a}` and `{b}` have the same entity type, so a row could belong to either: give one of them another `entity_type`"
        );
        let keys = format!(
            "rows of `{a}` and rows of `{b}` could have the same key: begin their keys with different literals, or, if only primary rows can have the same key, write `#[table(allow(same_keys))]` on both types and on the set"
        );
        let copies = format!(
            "a copy or a part of `{a}` or `{b}` could have the key of a row of the other type, and `allow(same_keys)` covers primary rows only: begin its key with a different literal"
        );
        let shared = format!(
            "rows of `{a}` and rows of `{b}` could have the same key: write `#[table(allow(same_keys))]` on both types too, so that their queries and writes check the type"
        );
        let keys_apart = if set.same_keys {
quote_spanned! { span =>
                const _: () = _rt::assert_copy_keys_apart(#first_schema, #second_schema, #copies);
                const _: () = _rt::assert_shared_keys(#first_schema, #second_schema, #shared);
            }
} else {
quote_spanned! { span =>
                const _: () = _rt::assert_member_keys_apart(#first_schema, #second_schema, #keys);
            }
};
        quote_spanned! { span =>
            const _: () = _rt::assert_types_apart(#first_schema, #second_schema, #types);
            #keys_apart
        }
    });
    quote! { #(#asserts)* }
}

/// Returns the impls of `EntitySet` and `FromRow` for an enum, the conversions of its variants, and the impls that
/// write it.
pub(super) fn emit_enum_set(set: &EntitySet) -> TokenStream {
    let ident = &set.ident;
    let (from_row, columns) = (from_row(set), set_columns_body(set));
    let (row, claim) = (call_site_ident("__row"), call_site_ident("__matched"));
    let reads = set.members.iter().enumerate().map(|(at, member)| {
        let (variant, ty) = (&member.ident, &member.ty);
        let read = quote_spanned! { ty.span() => <#ty as _rt::SetMember>::read_into };
        let value = boxed_if(member.is_boxed, quote! { __member });
        quote! { #at => #read(#row, #claim, |__member| Self::#variant(#value)), }
    });
    let other = match &set.other {
        Some(other) => {
            let (variant, ty) = (&other.ident, &other.ty);
            let read = quote_spanned! { ty.span() => <#ty as _rt::OtherRow>::from_any_row };
            let value = boxed_if(other.is_boxed, quote! { #read(#row)? });
            quote! { _rt_Ok(_rt_Some(Self::#variant(#value))) }
        }
        None => quote! { _rt_Ok(_rt_None) },
    };
    let names = set.members.iter().enumerate().map(|(at, member)| {
        let (variant, schema) = (&member.ident, member_schema(set, at, member));
        quote! { Self::#variant(_) => #schema.entity, }
    });
    let other_name = set.other.as_ref().map(|other| {
        let variant = &other.ident;
        quote! { Self::#variant(_) => "DynamicEntity", }
    });
    let variants =
        set.members.iter().chain(&set.other).map(|member| variant_conversions(set, member));
    let writes = write_impls(set);
    quote! {
        #from_row

        #[automatically_derived]
        impl _rt::EntitySet for #ident {
            #[inline]
            fn read(__row: &_rt_Row, __matched: &_rt::RowMatch) -> _rt_Result<Self> {
                match _rt::RowMatch::member_index(__matched) {
                    #(#reads)*
                    _ => _rt_Err(_rt::Members::unrecognized_error(&__MEMBERS, __row)),
                }
            }

            fn other(__row: &_rt_Row) -> _rt_Result<_rt_Option<Self>> {
                #other
            }

            fn member_name(&self) -> &'static _rt_str {
                match self {
                    #(#names)*
                    #other_name
                }
            }

            fn set_columns(__copies: _rt::bool) -> _rt_Option<_rt::Vec<_rt_String>> {
                #columns
            }
        }

        #(#variants)*
        #writes
    }
}

/// Returns the body of `set_columns`: the columns of all members, with the discriminators.
fn set_columns_body(set: &EntitySet) -> TokenStream {
    if set.other.is_some() {
        // A row whose type is not in the set is read completely, so all properties are requested.
        return quote! { let _ = __copies; _rt_None };
    }
    let names = call_site_ident("__names");
    let copies = call_site_ident("__copies");
    let columns = set.members.iter().map(|member| {
        let ty = &member.ty;
        let read = quote_spanned! { ty.span() => <#ty as _rt::SetMember>::member_columns };
        quote! {
            let mut __columns = #read(#copies)?;
            _rt::Vec::append(&mut #names, &mut __columns);
        }
    });
    quote! {
        let mut __names = _rt::Members::always_selected_columns(&__MEMBERS);
        #(#columns)*
        _rt_Some(__names)
    }
}

fn from_row(set: &EntitySet) -> TokenStream {
    let ident = &set.ident;
    quote! {
        #[automatically_derived]
        impl _rt_FromRow for #ident {
            fn columns(
                _: _rt_Option<&'static _rt_Family>,
            ) -> _rt_Option<_rt::Vec<_rt_String>> {
                <Self as _rt::EntitySet>::set_columns(false)
            }

            #[inline]
            fn from_row(__row: &_rt_Row) -> _rt_Result<Self> {
                _rt::read_required_set_item(__row)
            }
        }
    }
}

/// Returns the impls that convert a value of the set to one of a member, and back.
fn variant_conversions(set: &EntitySet, member: &Member) -> TokenStream {
    let (ident, variant, ty) = (&set.ident, &member.ident, &member.ty);
    // In an enum with one variant, an arm for others would be unreachable, and the compiler would warn the
    // user about it.
    let is_only = set.members.len() + usize::from(set.other.is_some()) == 1;
    let others = (!is_only).then(|| quote! { __other => _rt_Err(__other), });
    let unboxed = if member.is_boxed {
        quote! { *__member }
    } else {
        quote! { __member }
    };
    let value = boxed_if(member.is_boxed, quote! { __member });
    quote! {
        #[automatically_derived]
        impl _rt::Variant<#ty> for #ident {
            fn into_member(self) -> _rt_Result<#ty, Self> {
                match self {
                    Self::#variant(__member) => _rt_Ok(#unboxed),
                    #others
                }
            }
        }

        #[automatically_derived]
        impl _rt_From<#ty> for #ident {
            fn from(__member: #ty) -> Self {
                Self::#variant(#value)
            }
        }
    }
}

/// Returns the value, in a new `Box` if `is_boxed` is set.
fn boxed_if(is_boxed: bool, value: TokenStream) -> TokenStream {
    if is_boxed {
        quote! { _rt::Box::new(#value) }
    } else {
        value
    }
}

/// Returns the impls that write a value of the set by writing its member.
///
/// The impls apply only if every member is an entity. Their bounds have an unused lifetime, which makes the compiler
/// check them where an impl is used. Without it, a set of projections would not compile.
fn write_impls(set: &EntitySet) -> TokenStream {
    let ident = &set.ident;
    let types: Vec<_> = set.members.iter().map(|member| &member.ty).collect();
    let bounds = quote! { #(for<'__a> #types: _rt_TableEntity,)* };
    let arms = |member: &dyn Fn(usize) -> TokenStream, other: &TokenStream| {
        let members = set.members.iter().enumerate().map(|(at, held)| {
            let (name, member) = (&held.ident, member(at));
            let unboxed = held.is_boxed.then(|| quote! { let __member = &**__member; });
            quote! { Self::#name(__member) => { #unboxed #member } }
        });
        let other = set.other.as_ref().map(|variant| {
            let unboxed = variant.is_boxed.then(|| quote! { let __other = &**__other; });
            let (variant, ty) = (&variant.ident, &variant.ty);
            let value = call_site_ident("__other");
            let dynamic = quote_spanned! { ty.span() =>
                <#ty as _rt::OtherRow>::as_dynamic(#value)
            };
            quote! {
                Self::#variant(__other) => {
                    #unboxed
                    let __other = #dynamic;
                    #other
                }
            }
        });
        quote! { #(#members)* #other }
    };
    let table = arms(
        &|_| quote! { _rt::home_table_of(__member) },
        &quote! { let _ = __other; _rt_Cow::Borrowed(_rt::Members::table(&__MEMBERS)) },
    );
    let change = arms(
        &|_| quote! { _rt_bulk_change(__member, __verb) },
        &quote! { _rt_Writable::change(__other, __verb) },
    );
    let replacement = arms(
        &|at| quote! { _rt::plan_replacement_of(__stored, __member, #at) },
        &quote! { _rt::plan_replacement_of_unknown_type(__stored, __other) },
    );
    let removal = arms(
        &|at| quote! { _rt::plan_removal_of(__stored, __member, #at) },
        &quote! { let _ = __other; _rt::plan_removal_of_unknown_type(__stored) },
    );
    quote! {
        #[automatically_derived]
        impl _rt_Writable for #ident
        where
            #bounds
        {
            fn table(&self) -> _rt_Cow<'static, _rt_str> {
                match self { #table }
            }

            fn change(&self, __verb: _rt_BulkVerb) -> _rt_Result<_rt_BulkChange> {
                match self { #change }
            }
        }

        #[automatically_derived]
        impl _rt::Rewritable for #ident
        where
            #bounds
        {
            fn home(
                __stored: &_rt::Stored<Self>,
            ) -> _rt_Result<_rt_Cow<'static, _rt_str>> {
                _rt_Ok(match &**__stored { #table })
            }

            fn replacement(__stored: &_rt::Stored<Self>) -> _rt_Result<_rt_BulkChange> {
                match &**__stored { #replacement }
            }

            fn removal(__stored: &_rt::Stored<Self>) -> _rt_Result<_rt_BulkChange> {
                match &**__stored { #removal }
            }

            fn reread(__row: _rt_Row) -> _rt_Result<_rt_Option<_rt::Stored<Self>>> {
                _rt::decode_reread_row(__row)
            }

            fn type_name(&self) -> &'static _rt_str {
                <Self as _rt::EntitySet>::member_name(self)
            }
        }
    }
}

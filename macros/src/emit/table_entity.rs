//! Generates `TableEntity` and `Writable`.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Path, spanned::Spanned};

use super::{entry_doc::path_method_doc, index, key_part, patch, path_builder};
use crate::{
    model::{DatedTableName, Entity},
    names::runtime_item,
};

/// Returns the impls of `TableEntity` and `Writable`.
pub(super) fn emit_table_entity(entity: &Entity) -> TokenStream {
    let Some(primary) = entity.primary() else { return TokenStream::new() };
    let ident = &entity.ident;
    let patch = patch::patch_type_name(entity);
    let path = path_builder::start_type(entity, primary);
    let start = path_builder::new_builder_value(entity, primary);
    let doc = path_method_doc(entity, primary);
    let point = path_builder::own_row_path_expression(entity, primary);
    let owner = index::owner_of_method(entity);
    let home = entity.dated.as_ref().and_then(|dated| home_table_method(entity, dated));
    let check = entity.validate.as_ref().map(check_method);
    let older = entity.upgrade_from.as_ref().map(older_version_methods);
    quote! {
        #[automatically_derived]
        impl _rt_Writable for #ident {
            #[inline]
            fn table(&self) -> _rt_Cow<'static, _rt_str> {
                _rt_TableEntity::home_table(self)
            }

            #[inline]
            fn change(&self, __verb: _rt_BulkVerb) -> _rt_Result<_rt_BulkChange> {
                _rt_bulk_change(self, __verb)
            }
        }

        #[automatically_derived]
        impl _rt_TableEntity for #ident {
            type Primary = #path;
            type Patch = #patch;

            const SCHEMA: &'static _rt_Schema = __SCHEMA;

            #[doc = #doc]
            #[inline]
            fn primary() -> Self::Primary {
                #start
            }

            #[inline]
            fn patch() -> Self::Patch {
                #patch(_rt_Patch::new())
            }

            fn point(&self) -> _rt_Point<Self> {
                #point
            }

            #home
            #owner
            #older
            #check
        }
    }
}

/// Returns the method `home_table` of an entity with dated tables, which determines the table from the entity's time.
fn home_table_method(entity: &Entity, dated: &DatedTableName) -> Option<TokenStream> {
    let field = entity.fields.get(dated.field)?;
    let (ident, to_ticks) =
        (&field.ident, key_part::type_as_trait_item(&field.ty, "DatePart", "to_ticks"));
    Some(quote! {
        fn home_table(&self) -> _rt_Cow<'static, _rt_str> {
            _rt::dated_home_table(__SCHEMA, #to_ticks(&self.#ident))
        }
    })
}

/// Returns the method `check`, which calls the user's function from `validate = path`.
fn check_method(path: &Path) -> TokenStream {
    // An error about the function's result is reported where the function is named.
    let outcome = Ident::new("__outcome", path.span());
    let boxed = quote_spanned! { path.span() => _rt::ValidateOutcome::into_result(#outcome) };
    quote! {
        fn check(&self) -> _rt_Result<(), _rt::BoxError> {
            let __check: fn(&Self) -> _ = #path;
            let #outcome = __check(self);
            #boxed
        }
    }
}

/// Returns the methods that read rows of older versions as the type `older`. `from_version` converts the value with
/// `UpgradeFrom`.
fn older_version_methods(older: &Path) -> TokenStream {
    // A missing conversion is reported where the older version is named.
    let upgrade_from = runtime_item("UpgradeFrom", older.span());
    let upgrade = quote_spanned! { older.span() =>
        |__old: #older| <Self as #upgrade_from<#older>>::upgrade(__old)
    };
    quote! {
        fn from_version(
            __row: &_rt_Row,
            __family: &_rt_str,
            __version: _rt_u32,
        ) -> _rt_Result<_rt_Option<Self>> {
            _rt::read_and_upgrade_older(__row, __family, __version, #upgrade)
        }

        fn rows_of_version(
            __row: &_rt_Row,
            __family: &_rt_str,
            __version: _rt_u32,
        ) -> _rt_Result<_rt_Option<_rt::EntityRows>> {
            _rt::rows_of_older::<#older>(__row, __family, __version)
        }

        fn owner_of_version(
            __row: &_rt_Row,
            __family: &_rt_str,
            __version: _rt_u32,
        ) -> _rt_Result<_rt_Option<(_rt_String, _rt_String)>> {
            _rt::owner_of_older::<#older>(__row, __family, __version)
        }
    }
}

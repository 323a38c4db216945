//! Generates impls for refused inputs. They compile and do nothing, to avoid further messages about uses of the type.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput};

use super::{columns, index, patch, path_builder, scoped_block};
use crate::model;

/// Returns whether empty impls for the type compile, whatever its fields are. Types with generic parameters and
/// unions get none.
fn can_have_empty_impls(input: &DeriveInput) -> bool {
    input.generics.params.is_empty() && !matches!(input.data, Data::Union(_))
}

/// Returns impls that do nothing for `#[derive(TableEntity)]`.
pub(crate) fn emit_empty_entity(input: &DeriveInput, entity: &model::Entity) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    let ident = &entity.ident;
    let from_row = from_row(input);
    let columns = columns::columns_of_refused_type(ident, &entity.fields);
    let (patch_name, patch) =
        (patch::patch_type_name(entity), patch::emit_for_refused_entity(entity));
    let Some(primary) = entity.primary() else { return TokenStream::new() };
    let start = path_builder::start_type(entity, primary);
    let path = path_builder::emit_for_refused_entity(entity);
    let indexes = index::emit_for_refused_entity(entity);
    let body = quote! {
        #path
        #indexes
        #patch
        #from_row

        impl _rt_TableEntity for #ident {
            type Primary = #start;
            type Patch = #patch_name;

            const SCHEMA: &'static _rt_Schema = &_rt_Schema::NONE;

            fn primary() -> Self::Primary { loop {} }

            fn patch() -> Self::Patch { loop {} }

            fn point(&self) -> _rt_Point<Self> { loop {} }
        }

        impl _rt_EncodeRows for #ident {
            fn write_partition_key(&self, _: &'static _rt_Family, _: &mut _rt_KeyWriter) {}

            fn write_row_key(&self, _: &'static _rt_Family, _: &mut _rt_KeyWriter) {}

            fn write_properties(&self, _: &'static _rt_Family, _: &mut _rt_PropertyWriter<'_>) {}
        }

        impl _rt_Writable for #ident {
            fn table(&self) -> _rt_Cow<'static, _rt_str> { _rt_Cow::Borrowed("") }

            fn change(&self, _: _rt_BulkVerb) -> _rt_Result<_rt_BulkChange> { loop {} }
        }

        #columns
    };
    scoped_block(&entity.block, &body)
}

/// Returns impls that do nothing for `#[derive(Properties)]`.
pub(crate) fn emit_empty_properties(
    input: &DeriveInput,
    properties: &model::Properties,
) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    let ident = &properties.ident;
    let columns = columns::columns_of_refused_type(ident, &properties.fields);
    let body = quote! {
        impl _rt::Properties for #ident {
            type Slots<'__r> = ();

            const COLUMNS: &'static [_rt_ColumnSchema] = &[];

            fn write(&self, _: &mut _rt_PropertyWriter<'_>) -> _rt_Result<()> { loop {} }

            fn offer<'__r>(_: &mut (), _: &'__r [_rt::u8], _: _rt_ValueRef<'__r>) -> _rt::bool { false }

            fn finish(_: (), _: &_rt_str) -> _rt_Result<Self> { loop {} }
        }

        #columns
    };
    scoped_block(&properties.block, &body)
}

/// Returns the impl for a refused `#[derive(Message)]`. This is the usual one, which compiles whatever is wrong
/// with the message.
pub(crate) fn emit_empty_message(input: &DeriveInput, message: &model::Message) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    super::emit_message(message)
}

/// Returns impls that do nothing for `#[derive(EdmEnum)]`.
pub(crate) fn emit_empty_edm_enum(input: &DeriveInput, edm_enum: &model::EdmEnum) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    scoped_block(&edm_enum.block, &text_or_part(&edm_enum.ident))
}

/// Returns impls that do nothing for `#[derive(KeyPart)]` on a struct.
pub(crate) fn emit_empty_key_part(input: &DeriveInput, newtype: &model::Newtype) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    scoped_block(&newtype.block, &text_or_part(&newtype.ident))
}

/// Returns impls that do nothing for a type that is a property and a key part.
fn text_or_part(ident: &Ident) -> TokenStream {
    quote! {
        impl _rt::EdmValue for #ident {
            const EDM: _rt::EdmType = _rt::EdmType::String;

            fn to_edm(&self) -> _rt_Result<_rt::EdmCow<'_>, _rt::InvalidValue> { loop {} }

            fn from_edm(_: _rt_ValueRef<'_>) -> _rt_Result<Self, _rt::InvalidValue> { loop {} }
        }

        impl _rt_KeyPart for #ident {
            const WIDTH: _rt_Option<_rt_usize> = _rt_None;

            fn encode(&self, _: &mut _rt_String) -> _rt_Result<(), _rt::InvalidValue> { loop {} }

            fn decode(_: &_rt_str) -> _rt_Result<Self, _rt::InvalidValue> { loop {} }
        }
    }
}

/// Returns impls that do nothing for `#[derive(Projection)]`.
pub(crate) fn emit_empty_projection(
    input: &DeriveInput,
    projection: &model::Projection,
) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    let ident = &projection.ident;
    let from_row = from_row(input);
    let projected = projection.of.as_ref().map(|of| {
        quote! {
            impl _rt::Projection for #ident {
                type Entity = #of;
            }

            impl _rt::SetMember for #ident {
                const MEMBER: &'static _rt_Schema = _rt::projection_schema::<Self>();

                fn read_matched(_: &_rt_Row, _: &_rt::RowMatch) -> _rt_Result<Self> { loop {} }
            }
        }
    });
    scoped_block(&projection.block, &quote! { #from_row #projected })
}

/// Returns impls that do nothing for `#[derive(EntitySet)]`.
pub(crate) fn emit_empty_entity_set(input: &DeriveInput, set: &model::EntitySet) -> TokenStream {
    if !can_have_empty_impls(input) {
        return TokenStream::new();
    }
    let ident = &set.ident;
    let body = match set.shape {
        model::Shape::Enum => {
            let from_row = from_row(input);
            quote! {
                #from_row

                impl _rt::EntitySet for #ident {
                    fn read(_: &_rt_Row, _: &_rt::RowMatch) -> _rt_Result<Self> { loop {} }

                    fn other(_: &_rt_Row) -> _rt_Result<_rt_Option<Self>> { loop {} }

                    fn member_name(&self) -> &'static _rt_str { "" }

                    fn set_columns(_: _rt::bool) -> _rt_Option<_rt::Vec<_rt_String>> { _rt_None }
                }
            }
        }
        model::Shape::Struct => quote! {
            impl _rt::Aggregate for #ident {
                const OTHER: _rt::bool = false;

                fn fold(_: &mut _rt::PartitionFold) -> _rt_Result<Self> { loop {} }
            }
        },
    };
    let body = quote! {
        impl _rt::SetMembers for #ident {
            const MEMBERS: &'static _rt::Members = &_rt::Members::new("", &[], &[], &[]);
        }

        #body
    };
    scoped_block(&set.block, &body)
}

fn from_row(input: &DeriveInput) -> TokenStream {
    let ident = &input.ident;
    quote! {
        // `loop {}` has every type and needs no value of the user's types. A program with an error
        // is never run.
        impl _rt_FromRow for #ident {
            fn from_row(_: &_rt_Row) -> _rt_Result<Self> { loop {} }
        }
    }
}

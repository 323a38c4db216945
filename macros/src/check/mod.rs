//! Third stage: reports attributes that do not go together. Changes nothing.

mod dated;
mod edm_enum;
mod entity;
mod expires;
mod field;
mod identifier;
mod index;
mod key;
mod message;
mod names;
mod set;
mod wide;

use crate::{
    errors::Errors,
    model::{EdmEnum, Entity, Message, Properties, Set},
};

/// Checks a struct with `#[derive(TableEntity)]`.
pub(crate) fn entity(entity: &Entity, errors: &mut Errors) {
    entity::table_name(entity, errors);
    dated::tables(entity, errors);
    expires::expires(entity, errors);
    entity::entity_type(entity, errors);
    entity::discriminator(entity, errors);
    entity::version(entity, errors);
    field::conflicting_attributes(&entity.fields, errors);
    field::blind(&entity.fields, errors);
    field::report_unflattened_references(&entity.fields, errors);
    field::hide_none(&entity.fields, errors);
    field::second_extra_field(&entity.fields, errors);
    field::series(entity, errors);
    wide::wide(entity, errors);
    field::key_fields(entity, errors);
    names::property_names(&entity.fields, entity.type_property(), errors);
    names::seal_property(entity, errors);
    names::column_names(&entity.fields, errors);
    names::patch_methods(entity, errors);
    for family in &entity.families {
        if family.is_primary() || family.is_remote {
            key::separated_parts(&family.partition, entity, errors);
        }
        key::separated_parts(&family.row, entity, errors);
    }
    key::refuse_optional_parts(entity, errors);
    key::hot_partition(entity, errors);
    key::hashed_parts(entity, errors);
    index::row_count(entity, errors);
    index::refuse_ambiguous_remote_copies(entity, errors);
}

/// Checks a struct with `#[derive(Properties)]`.
pub(crate) fn properties(properties: &Properties, errors: &mut Errors) {
    field::conflicting_attributes(&properties.fields, errors);
    field::blind(&properties.fields, errors);
    field::report_unflattened_references(&properties.fields, errors);
    field::hide_none(&properties.fields, errors);
    names::property_names(&properties.fields, None, errors);
    names::column_names(&properties.fields, errors);
}

/// Checks an enum with `#[derive(EdmEnum)]`.
pub(crate) fn edm_enum(edm_enum: &EdmEnum, errors: &mut Errors) {
    edm_enum::distinct_texts(edm_enum, errors);
}

/// Checks a struct with `#[derive(Message)]`.
pub(crate) fn message(message: &Message, errors: &mut Errors) {
    message::name(message, errors);
}

/// Checks a type with `#[derive(EntitySet)]`.
pub(crate) fn set(set: &Set, errors: &mut Errors) {
    set::distinct_types(set, errors);
}

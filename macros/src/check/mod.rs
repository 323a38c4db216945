//! Third stage: reports attributes that conflict. Changes nothing.

mod conflict;
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
    model::{EdmEnum, Entity, EntitySet, Message, Properties},
};

/// Checks a struct with `#[derive(TableEntity)]`.
pub(crate) fn check_entity(entity: &Entity, errors: &mut Errors) {
    entity::check_table_names(entity, errors);
    dated::check_dated_tables(entity, errors);
    expires::check_expiry_field(entity, errors);
    entity::check_entity_type(entity, errors);
    entity::check_discriminator_name(entity, errors);
    entity::check_version_and_upgrade(entity, errors);
    entity::check_shared_keys(entity, errors);
    conflict::report_conflicting_settings(&entity.fields, errors);
    field::refuse_blind_without_encrypt(&entity.fields, errors);
    field::report_unflattened_references(&entity.fields, errors);
    field::report_arrays_of_entity(entity, errors);
    field::check_hide_none(&entity.fields, errors);
    field::refuse_second_extra_field(&entity.fields, errors);
    field::check_series(entity, errors);
    wide::check_wide_entity(entity, errors);
    field::check_key_fields(entity, errors);
    names::check_property_names(&entity.fields, entity.discriminator_property(), errors);
    names::refuse_seal_property_name(entity, errors);
    names::report_equal_column_names(&entity.fields, errors);
    names::report_remove_method_clashes(entity, errors);
    for family in &entity.families {
        for key in family.declared_keys() {
            key::report_unseparated_parts(key, entity, errors);
        }
    }
    key::refuse_optional_parts(entity, errors);
    key::refuse_hot_partition(entity, errors);
    key::refuse_tokens_that_hide_nothing(entity, errors);
    key::refuse_copies_without_fields_of_tokens(entity, errors);
    key::check_plaintext_attribute(entity, errors);
    index::check_rows_fit_transaction(entity, errors);
    index::check_selected_fields(entity, errors);
    index::check_remote_copy_owners(entity, errors);
}

/// Checks a struct with `#[derive(Properties)]`.
pub(crate) fn check_properties(properties: &Properties, errors: &mut Errors) {
    conflict::report_conflicting_settings(&properties.fields, errors);
    field::refuse_blind_without_encrypt(&properties.fields, errors);
    field::report_unflattened_references(&properties.fields, errors);
    field::report_arrays_of_properties(&properties.fields, errors);
    field::check_hide_none(&properties.fields, errors);
    names::check_property_names(&properties.fields, None, errors);
    names::report_equal_column_names(&properties.fields, errors);
}

/// Checks an enum with `#[derive(EdmEnum)]`.
pub(crate) fn check_edm_enum(edm_enum: &EdmEnum, errors: &mut Errors) {
    edm_enum::report_equal_texts(edm_enum, errors);
}

/// Checks a struct with `#[derive(Message)]`.
pub(crate) fn check_message(message: &Message, errors: &mut Errors) {
    message::check_name(message, errors);
}

/// Checks a type with `#[derive(EntitySet)]`.
pub(crate) fn check_entity_set(set: &EntitySet, errors: &mut Errors) {
    set::report_equal_member_types(set, errors);
    set::check_field_types(set, errors);
}

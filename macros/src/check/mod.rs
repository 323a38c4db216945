//! Third stage: what attributes mean together. Each rule adds its mistakes and changes nothing.

mod edm_enum;
mod entity;
mod field;
mod index;
mod key;
mod message;
mod names;
mod set;

pub(crate) use self::key::SEPARATED;
use crate::{
    errors::Errors,
    model::{EdmEnum, Entity, Message, Properties, Set},
};

/// The rules for an entity.
pub(crate) fn entity(entity: &Entity, errors: &mut Errors) {
    entity::table_name(entity, errors);
    entity::entity_type(entity, errors);
    entity::discriminator(entity, errors);
    entity::version(entity, errors);
    field::conflicts(&entity.fields, errors);
    field::blind(&entity.fields, errors);
    field::hidden(&entity.fields, errors);
    field::one_extra(&entity.fields, errors);
    field::key_fields(entity, errors);
    names::properties(&entity.fields, entity.marker(), errors);
    names::seal(entity, errors);
    names::constants(&entity.fields, errors);
    names::patches(entity, errors);
    for family in &entity.families {
        if family.is_primary() || family.is_elsewhere {
            key::separated(&family.partition, entity, errors);
        }
        key::separated(&family.row, entity, errors);
    }
    key::hot_partition(entity, errors);
    key::tokens(entity, errors);
    index::count(entity, errors);
    index::elsewhere(entity, errors);
}

/// The rules for a struct that is flattened.
pub(crate) fn properties(properties: &Properties, errors: &mut Errors) {
    field::conflicts(&properties.fields, errors);
    field::blind(&properties.fields, errors);
    field::hidden(&properties.fields, errors);
    names::properties(&properties.fields, None, errors);
    names::constants(&properties.fields, errors);
}

/// The rules for an enum that is stored as text.
pub(crate) fn edm_enum(edm_enum: &EdmEnum, errors: &mut Errors) {
    edm_enum::distinct(edm_enum, errors);
}

/// The rules for a message.
pub(crate) fn message(message: &Message, errors: &mut Errors) {
    message::name(message, errors);
}

/// The rules for a set of entities.
pub(crate) fn set(set: &Set, errors: &mut Errors) {
    set::distinct(set, errors);
}

//! An entity.

use proc_macro2::Ident;
use syn::{DeriveInput, LitStr, Path, Visibility};

use super::{Family, FamilyKind, Field, Key, Storage, named_fields, refuse_generics, runtime};
use crate::{
    attr::{Discriminator, EntityAttr, FieldAttr},
    errors::Errors,
    names::{self, Case},
    spanned::Slot,
};

/// An entity: its table, its kinds of rows and its fields.
#[derive(Debug)]
pub(crate) struct Entity {
    pub(crate) ident: Ident,
    /// Helper types have it too: they name the entity in public places.
    pub(crate) vis: Visibility,
    pub(crate) runtime: Path,
    pub(crate) table: LitStr,
    pub(crate) entity_type: LitStr,
    pub(crate) discriminator: Discriminator,
    pub(crate) validate: Option<Path>,
    pub(crate) may_be_hot: bool,
    pub(crate) fields: Vec<Field>,
    /// The primary first.
    pub(crate) families: Vec<Family>,
}

impl Entity {
    /// The entity that the input declares.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "TableEntity", errors);
        let attr = EntityAttr::read(&input.attrs, errors);
        let fields = fields(input, &attr, errors);
        let named = || LitStr::new(&names::unraw(&input.ident), input.ident.span());
        let discriminator = attr.discriminator.get().cloned().unwrap_or_else(|| {
            Discriminator::Property(LitStr::new("EntityType", input.ident.span()))
        });
        Self {
            ident: input.ident.clone(),
            vis: input.vis.clone(),
            runtime: runtime(&attr.runtime),
            table: attr.name.get().cloned().unwrap_or_else(named),
            entity_type: attr.entity_type.get().cloned().unwrap_or_else(named),
            discriminator,
            validate: attr.validate.get().cloned(),
            may_be_hot: attr.hot_partition.is_set(),
            families: primary(input, &attr, &fields, errors).into_iter().collect(),
            fields,
        }
    }

    /// Whether rows hold the field as a property, or as several.
    pub(crate) fn is_property(&self, at: usize, field: &Field) -> bool {
        match field.storage {
            Storage::Skipped | Storage::Extra => false,
            _ => self.key_source(at, field).is_none(),
        }
    }

    /// The part of the primary's keys that the field is read from: it is no property then.
    pub(crate) fn key_source(&self, at: usize, field: &Field) -> Option<(bool, usize)> {
        if field.attr.store.is_set() || field.storage != Storage::Plain {
            return None;
        }
        self.families.first().and_then(|primary| primary.source_of(at, &self.fields))
    }

    /// Whether all keys are known as they were meant.
    pub(crate) fn has_keys(&self) -> bool {
        !self.families.is_empty() && self.families.iter().all(Family::is_sound)
    }

    /// Whether the field is a part of any key.
    pub(crate) fn is_in_key(&self, at: usize) -> bool {
        self.families.iter().flat_map(Family::parts).any(|part| part.field == at)
    }
}

fn fields(input: &DeriveInput, attr: &EntityAttr, errors: &mut Errors) -> Vec<Field> {
    let case = attr.rename_all.get().copied().unwrap_or(Case::Pascal);
    let mut fields = Vec::new();
    for field in named_fields(input, errors) {
        let attr = FieldAttr::of_entity(&field.attrs, errors);
        fields.extend(Field::new(&field, attr, case, &input.ident));
    }
    fields
}

/// The family of the entity's own rows, where both keys are given.
fn primary(
    input: &DeriveInput,
    attr: &EntityAttr,
    fields: &[Field],
    errors: &mut Errors,
) -> Option<Family> {
    let mut key = |name: &str, slot: &Slot<LitStr>, example: &str| {
        if !slot.is_set() {
            let message =
                format!("an entity needs a `{name}`, write `#[table({name} = \"{example}\")]`");
            errors.at(input.ident.span(), message);
        }
        slot.get().map(|literal| Key::new(literal, fields, errors))
    };
    let partition = key("partition_key", &attr.partition_key, "{department}");
    let row = key("row_key", &attr.row_key, "{id:06}");
    Some(Family {
        name: "Primary".to_owned(),
        kind: FamilyKind::Primary,
        partition: partition?,
        row: row?,
    })
}

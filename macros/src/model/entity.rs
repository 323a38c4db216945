//! Describes a struct with `#[derive(TableEntity)]`.

use std::collections::{BTreeSet, HashMap};

use proc_macro2::{Ident, Span, TokenStream};
use syn::{DeriveInput, LitStr, Path};

use super::{
    CodeBlock, DatedTableName, FamilyKind, Field, KeyTemplate, RowFamily, named_fields,
    refuse_generics,
};
use crate::{
    attr::{Discriminator, EntityAttr, FieldAttr, IndexAttr},
    errors::Errors,
    names::{self, Case},
    once_setting::OnceSetting,
    template::Form,
};

/// An entity: its table, its row families and its fields.
#[derive(Debug)]
pub(crate) struct Entity {
    pub(crate) ident: Ident,
    /// The span of the struct's name, for messages.
    pub(crate) span: Span,
    /// The visibility of the struct. Generated types have it too, because public methods return them.
    pub(crate) vis: TokenStream,
    pub(crate) block: CodeBlock,
    pub(crate) table: LitStr,
    /// The period in the table's name, if the entity has one table for each period.
    pub(crate) dated: Option<DatedTableName>,
    /// Whether `name = ".."` sets the table's name. Otherwise, the struct's name is used.
    pub(crate) has_table_name: bool,
    pub(crate) entity_type: LitStr,
    pub(crate) discriminator: Discriminator,
    /// The version of the struct, counted from 1.
    pub(crate) version: u32,
    /// The span of `version = n`, or else of the struct's name.
    pub(crate) version_span: Span,
    /// The struct of the previous version, from `upgrade_from(..)`.
    pub(crate) upgrade_from: Option<Path>,
    pub(crate) validate: Option<Path>,
    pub(crate) allows_hot_partition: bool,
    /// The span of `allow(same_keys)`, if rows of other types may have the keys of this type's.
    pub(crate) shares_keys: Option<Span>,
    /// The span of `wide`, if the entity is stored as several rows.
    pub(crate) wide: Option<Span>,
    /// Set by `seal`: each row has a property that authenticates all others.
    pub(crate) is_sealed: bool,
    /// Whether a write drops undeclared properties, set by `drop_unknown`.
    pub(crate) drops_unknown: bool,
    /// The field with the time of expiry, from `expires = field`.
    pub(crate) expires: Option<ExpiryField>,
    pub(crate) fields: Vec<Field>,
    /// Row families: the primary, then indexes and lists in source order.
    pub(crate) families: Vec<RowFamily>,
    /// The attributes as written. They also show which settings could not be read.
    pub(crate) attr: EntityAttr,
}

/// The field with the time of expiry.
#[derive(Debug)]
pub(crate) struct ExpiryField {
    /// Index of the field among the entity's fields.
    pub(crate) field: usize,
    /// Span of the field's name in `expires = field`.
    pub(crate) span: Span,
}

impl Entity {
    /// Reads the struct and its attributes. Reports mistakes.
    pub(crate) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        refuse_generics(input, "TableEntity", errors);
        let attr = EntityAttr::read(&input.attrs, errors);
        let mut fields = read_fields(input, &attr, errors);
        let families = row_families(input, &attr, &fields, errors);
        for part in families.iter().flat_map(RowFamily::parts) {
            if let (Form::Hmac, Some(field)) = (&part.form, fields.get_mut(part.field)) {
                field.has_token = true;
            }
        }
        let named = || LitStr::new(&names::ident_text(&input.ident), input.ident.span());
        let discriminator = attr.discriminator.get().cloned().unwrap_or_else(|| {
            Discriminator::Property(LitStr::new("EntityType", input.ident.span()))
        });
        let dated = attr.name.get().and_then(|name| DatedTableName::new(name, &fields, errors));
        let version = attr.version.get().copied().unwrap_or((1, input.ident.span()));
        Self {
            ident: names::generated_ident_of(&input.ident),
            span: input.ident.span(),
            vis: names::respanned_visibility(&input.vis),
            block: CodeBlock::new(&attr.runtime, input, errors),
            dated,
            has_table_name: attr.name.is_set(),
            table: attr.name.get().cloned().unwrap_or_else(named),
            entity_type: attr.entity_type.get().cloned().unwrap_or_else(named),
            discriminator,
            version: version.0,
            version_span: version.1,
            upgrade_from: attr.upgrade_from.get().cloned(),
            validate: attr.validate.get().cloned(),
            allows_hot_partition: attr.hot_partition.is_set(),
            shares_keys: attr.same_keys.span(),
            wide: attr.wide.span(),
            is_sealed: attr.seal.is_set(),
            drops_unknown: attr.drop_unknown.is_set(),
            expires: attr.expires.get().and_then(|name| find_expires_field(name, &fields, errors)),
            families,
            fields,
            attr,
        }
    }

    /// Returns the stored entity type, which includes a version of 2 or more, such as `Employee.v2`.
    pub(crate) fn stored_entity_type(&self) -> String {
        let name = self.entity_type.value();
        match self.version {
            1 => name,
            version => format!("{name}.v{version}"),
        }
    }

    /// Returns the numbers of the parts of a wide entity that store at least one property.
    pub(crate) fn nonempty_wide_parts(&self) -> BTreeSet<usize> {
        let Some(primary) = self.primary() else { return BTreeSet::new() };
        let fields = self.fields.iter().enumerate();
        let stored = fields.filter(|(at, field)| self.is_property(primary, *at, field));
        let parts = stored.flat_map(|(_, field)| {
            let properties = field.known_property_names().len().max(1);
            (0..properties).map(|property| field.wide_part_of_property(property))
        });
        parts.collect()
    }

    /// Returns the number of rows of a wide entity.
    pub(crate) fn wide_part_count(&self) -> usize {
        self.nonempty_wide_parts().last().copied().unwrap_or(1)
    }

    /// Returns the property that stores a row's entity type, if a property does.
    pub(crate) fn discriminator_property(&self) -> Option<String> {
        match &self.discriminator {
            Discriminator::Property(name) if !self.attr.discriminator.is_unreadable() => {
                Some(name.value())
            }
            Discriminator::Property(_) | Discriminator::RowKey => None,
        }
    }

    /// Returns whether rows of the row family store the field as one or several properties.
    pub(crate) fn is_property(&self, family: &RowFamily, at: usize, field: &Field) -> bool {
        let is_held = family.holds_field(at);
        field.storage.has_own_properties()
            && is_held
            && self.key_source(family, at, field).is_none()
    }

    /// Returns the part of the row family's keys from which the field is read. `true` means the RowKey. The field
    /// is then not stored as a property.
    pub(crate) fn key_source(
        &self,
        family: &RowFamily,
        at: usize,
        field: &Field,
    ) -> Option<(bool, usize)> {
        let is_held = family.holds_field(at);
        // A reader of a single row must know whether it has expired.
        let is_expiry = self.expires.as_ref().is_some_and(|expires| expires.field == at);
        let is_stored_too = (field.attr.store.is_set() || is_expiry) && is_held;
        if is_stored_too || !field.storage.can_be_in_key() {
            return None;
        }
        family.exact_part_of_field(at, &self.fields)
    }

    /// Returns the row families from whose rows an entity can be read: the primary and index copies.
    pub(crate) fn primary_and_copies(&self) -> impl Iterator<Item = &RowFamily> {
        self.families.iter().filter(|family| family.is_primary_or_copy())
    }

    /// Returns the declaration of a copy or list as written, or `None` for the primary.
    pub(crate) fn declaration(&self, family: &RowFamily) -> Option<&IndexAttr> {
        self.attr.indexes.iter().find(|attr| attr.name == family.name)
    }

    /// Returns the row family of the primary entity, which every entity has.
    pub(crate) fn primary(&self) -> Option<&RowFamily> {
        self.families.first()
    }

    /// Returns whether the field is a part of the primary's keys.
    pub(crate) fn is_in_key(&self, at: usize) -> bool {
        self.primary().is_some_and(|primary| primary.parts().any(|part| part.field == at))
    }

    /// Returns whether the primary's address is unchanged if the field changes: neither the primary's keys nor the
    /// table's name depend on the field. The keys of indexes may.
    pub(crate) fn can_change_in_place(&self, at: usize) -> bool {
        !self.is_in_key(at) && self.dated.as_ref().is_none_or(|dated| dated.field != at)
    }

    /// Returns the field that the patch method with this name sets.
    pub(crate) fn field_with_setter(&self, method: &str) -> Option<&Field> {
        let (at, field) = self.fields.iter().enumerate().find(|(_, field)| field.name == method)?;
        (field.storage.has_own_properties() && self.can_change_in_place(at)).then_some(field)
    }

    /// Returns whether the templates of all row families are free of faults.
    pub(crate) fn has_only_sound_templates(&self) -> bool {
        !self.families.is_empty() && self.families.iter().all(RowFamily::has_sound_templates)
    }

    /// Returns whether the field is in the keys of any row family.
    pub(crate) fn is_in_any_key(&self, at: usize) -> bool {
        self.families.iter().flat_map(RowFamily::parts).any(|part| part.field == at)
    }
}

fn read_fields(input: &DeriveInput, attr: &EntityAttr, errors: &mut Errors) -> Vec<Field> {
    let case = attr.rename_all.get().copied().unwrap_or(Case::Pascal);
    let is_wide = attr.wide.is_set();
    let mut fields = Vec::new();
    for field in named_fields(input, errors) {
        let attr = FieldAttr::read_entity_field(&field.attrs, errors);
        let field = Field::new(&field, attr, case, &input.ident);
        fields.extend(field.map(|field| Field { is_wide, ..field }));
    }
    if attr.rename_all.is_unreadable() {
        fields.iter_mut().for_each(Field::mark_case_unknown);
    }
    fields
}

/// Finds the field in `expires = field`. Reports an unknown field.
fn find_expires_field(name: &Ident, fields: &[Field], errors: &mut Errors) -> Option<ExpiryField> {
    let text = names::ident_text(name);
    let found = fields.iter().position(|field| field.name == text);
    if found.is_none() && !errors.may_have_unread_fields(fields.len()) {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        errors.add_at(name.span(), names::unknown_name_message("field", &text, &known));
    }
    found.map(|field| ExpiryField { field, span: name.span() })
}

/// Returns the row families: the primary, then indexes and lists in source order.
fn row_families(
    input: &DeriveInput,
    attr: &EntityAttr,
    fields: &[Field],
    errors: &mut Errors,
) -> Vec<RowFamily> {
    let primary = primary_family(input, attr, fields, errors);
    let table = attr.name.get().map_or_else(|| names::ident_text(&input.ident), LitStr::value);
    let mut families = Vec::new();
    let mut methods = HashMap::new();
    // Omit an index without a usable method name. Code generated for it would cause a second mistake.
    for index in &attr.indexes {
        if !has_free_method(index, &mut methods, errors) {
            continue;
        }
        families.push(self::index(index, &primary, &table, fields, errors));
    }
    families.insert(0, primary);
    for (index, family) in families.iter_mut().enumerate() {
        family.index = index;
    }
    families
}

/// Methods of the trait `TableEntity`, which an index with such a method would shadow.
const TRAIT_METHODS: [&str; 3] = ["primary", "scan", "patch"];

/// Returns whether the index can have a method: its name is valid and no other method has it. Otherwise reports the
/// mistake.
fn has_free_method(
    index: &IndexAttr,
    methods: &mut HashMap<String, String>,
    errors: &mut Errors,
) -> bool {
    let name = names::ident_text(&index.name);
    // Compare methods, because names that differ only in case, such as `ByEmail` and `by_email`, have the same
    // method.
    let method = Case::Snake.convert_name(&name);
    let message = if TRAIT_METHODS.contains(&method.as_str()) {
        format!("an index cannot be named `{name}`: the method `{method}()` already exists")
    } else if names::path_method_name(&index.name).is_none() {
        format!(
            "an index cannot be named `{name}`: `{method}()` is not a valid method name; begin the name with a word such as `By`"
        )
    } else if let Some(first) = methods.insert(method.clone(), name.clone()) {
        format!(
            "indexes `{first}` and `{name}` would both have the method `{method}()`: rename one of them"
        )
    } else {
        return true;
    };
    errors.add_at(index.name.span(), message);
    false
}

/// Returns the row family of the primary entity. Reports a key that is missing.
fn primary_family(
    input: &DeriveInput,
    attr: &EntityAttr,
    fields: &[Field],
    errors: &mut Errors,
) -> RowFamily {
    let mut key = |name: &str, slot: &OnceSetting<LitStr>, example: &str| {
        if !slot.is_set() {
            let message =
                format!("an entity needs a `{name}`; write `#[table({name} = \"{example}\")]`");
            errors.add_unless_incomplete(input.ident.span(), message);
        }
        match slot.get() {
            Some(literal) => KeyTemplate::new(literal, fields, errors),
            // Later stages continue with an unknown key, so that the mistakes of fields are also
            // reported.
            None => KeyTemplate::unknown(input.ident.span()),
        }
    };
    let partition = key("partition_key", &attr.partition_key, "{department}");
    let row = key("row_key", &attr.row_key, "{id:06}");
    let row = if attr.wide.is_set() { row_key_of_first_part(&row, fields, errors) } else { row };
    RowFamily {
        index: 0,
        name: Ident::new("Primary", input.ident.span()),
        kind: FamilyKind::Primary,
        partition,
        row,
        declares_partition: true,
        table: None,
        is_remote: false,
        in_blob: false,
        holds: vec![true; fields.len()],
        unique: false,
        when: None,
    }
}

/// The end of the RowKey of a wide entity's first row.
const FIRST_PART: &str = "_01";

/// Returns the RowKey of a wide entity's first row: `key` with the suffix of part 1. Reports faults of the extended
/// template. Returns `key` unchanged if it already has faults.
fn row_key_of_first_part(key: &KeyTemplate, fields: &[Field], errors: &mut Errors) -> KeyTemplate {
    if !key.is_sound {
        return key.clone();
    }
    let text = [key.text.as_str(), FIRST_PART].concat();
    KeyTemplate::new(&LitStr::new(&text, key.literal.span()), fields, errors)
}

/// Returns the row family of an index or a list. Its PartitionKey is the primary's if the attribute has none.
fn index(
    attr: &IndexAttr,
    primary: &RowFamily,
    table: &str,
    fields: &[Field],
    errors: &mut Errors,
) -> RowFamily {
    let partition = &primary.partition;
    if !attr.row_key.is_set() {
        let kind = if attr.is_list { "list" } else { "index" };
        let message =
            format!("`{0}` needs a key; write `{kind}({0}, row_key = \"..\")`", attr.name);
        errors.add_unless_incomplete(attr.name.span(), message);
    }
    let row = match attr.row_key.get() {
        Some(literal) => KeyTemplate::new(literal, fields, errors),
        None => KeyTemplate::unknown(attr.name.span()),
    };
    let other_partition =
        attr.partition_key.get().filter(|literal| partition.text != literal.value());
    let other_table =
        attr.table.get().filter(|literal| !literal.value().eq_ignore_ascii_case(table));
    if let (true, Some(literal)) = (attr.in_blob.is_set(), attr.table.get()) {
        let message = "a list stored in blobs has no table: remove `table` or `in_blob`";
        errors.add_at(literal.span(), message);
    }
    let lost_partition =
        || attr.partition_key.is_unreadable().then(|| KeyTemplate::unknown(attr.name.span()));
    let own_partition = other_partition
        .map(|literal| KeyTemplate::new(literal, fields, errors))
        .or_else(lost_partition);
    let mut family = RowFamily {
        index: 0,
        name: attr.name.clone(),
        kind: if attr.is_list { FamilyKind::List } else { FamilyKind::Copy },
        is_remote: own_partition.is_some() || other_table.is_some() || attr.in_blob.is_set(),
        in_blob: attr.in_blob.is_set(),
        declares_partition: own_partition.is_some(),
        partition: own_partition.unwrap_or_else(|| partition.clone()),
        row,
        table: other_table.filter(|_| !attr.in_blob.is_set()).cloned(),
        holds: held_fields(attr, fields, errors),
        unique: attr.unique.is_set(),
        when: attr.when.get().cloned(),
    };
    if attr.only.is_set() {
        add_key_fields(&mut family, primary, fields);
    }
    family
}

/// Makes a partial copy also store the fields of its own keys and of the primary's keys, unless they can be read
/// back from the copy's keys.
///
/// With `row_key = "{email:lower}"` and `only(age)`, the copy also stores `email`.
fn add_key_fields(family: &mut RowFamily, primary: &RowFamily, fields: &[Field]) {
    let keys = family.parts().chain(primary.parts());
    let in_keys: Vec<usize> = keys.map(|part| part.field).collect();
    for at in in_keys {
        let given_back = family.exact_part_of_field(at, fields).is_some();
        if let (false, Some(slot)) = (given_back, family.holds.get_mut(at)) {
            *slot = true;
        }
    }
}

/// Returns one flag per field: whether the index's copies contain it according to `only(..)` and `except(..)`.
fn held_fields(attr: &IndexAttr, fields: &[Field], errors: &mut Errors) -> Vec<bool> {
    let (named, wanted) = match (attr.only.get(), attr.except.get()) {
        (Some(_), Some(_)) => {
            let span = attr.except.span().unwrap_or_else(|| attr.name.span());
            errors.add_at(span, "`only` and `except` cannot be combined: remove one of them");
            return vec![true; fields.len()];
        }
        (Some(only), None) => (only, true),
        (None, Some(except)) => (except, false),
        (None, None) => return vec![true; fields.len()],
    };
    let mut held = vec![!wanted; fields.len()];
    for (count, name) in named.iter().enumerate() {
        if named.iter().take(count).any(|earlier| earlier == name) {
            errors.add_at(name.span(), format!("`{name}` is listed twice; remove one"));
            continue;
        }
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let at = fields.iter().position(|field| field.name == names::ident_text(name));
        match at.and_then(|at| held.get_mut(at)) {
            Some(slot) => *slot = wanted,
            None if errors.may_have_unread_fields(fields.len()) => {}
            None => {
                errors.add_at(
                    name.span(),
                    names::unknown_name_message("field", &names::ident_text(name), &known),
                );
            }
        }
    }
    held
}

//! Makes the model of a report from schemas.

use super::{
    example::{EXAMPLE_TIME, ExampleKey, example_key},
    model::{
        EntityModel, FieldModel, KeyTemplateModel, RowFamilyKind, RowFamilyModel, RowFamilyPlace,
        TableModel,
    },
    paths::paths_of,
    warnings::warnings_of,
};
use crate::{
    edm::EdmType,
    entity::{ColumnSchema, Discriminator, Schema, dated::DatedTables},
    key::{FamilyKind, RowFamily, Template},
    patterns::write_cost::verb_costs,
};

/// The end of the RowKey of part 1 of a wide entity.
const FIRST_PART: &str = "_01";

/// Returns the tables of the types, in order of first mention.
pub(super) fn tables_of(schemas: &[&'static Schema]) -> Vec<TableModel> {
    let mut tables: Vec<TableModel> = Vec::new();
    for schema in schemas {
        let entity = entity_of(schema);
        match tables.iter_mut().find(|table| table.name == schema.table) {
            Some(table) => table.entities.push(entity),
            None => tables.push(TableModel {
                name: schema.table.to_owned(),
                entities: vec![entity],
                scopes: Vec::new(),
                dated: schema.dated.as_ref(),
                periods: schema.dated.as_ref().map(periods_of),
                figures: None,
            }),
        }
    }
    for table in &mut tables {
        for entity in &table.entities {
            let Some(primary) = entity.rows.first() else { continue };
            let template = &primary.partition.template;
            match table.scopes.iter_mut().find(|(scope, _)| scope == template) {
                Some((_, types)) => types.push(entity.name.clone()),
                None => table.scopes.push((template.clone(), vec![entity.name.clone()])),
            }
        }
    }
    tables
}

/// Returns two sentences on dated tables: the length of a period with an example of a table's name, and how
/// whole tables are dropped.
fn periods_of(dated: &DatedTables) -> String {
    let period = match dated.form {
        "%Y" => "year",
        "%Y%m" => "month",
        "%Y%m%d" => "day",
        _ => "hour",
    };
    // Every form can write the time of the example, which is in 2014.
    let example = dated.name_of_period(dated.period_at(EXAMPLE_TIME)).unwrap_or_default();
    format!(
        "One table for each {period} of `{}` in UTC, such as `{example}`. `drop_before` and `retain` drop \
         whole tables.",
        dated.property
    )
}

fn entity_of(schema: &'static Schema) -> EntityModel {
    let fields = fields_of(schema);
    let warnings = warnings_of(schema, &fields);
    EntityModel {
        name: schema.entity.to_owned(),
        is_sealed: schema.sealed,
        versions: match schema.older {
            None => format!("version {}", schema.version),
            Some(_) => {
                // `versions` begins with the schema itself, so there always is a least one.
                let oldest = schema.versions().map(|older| older.version).min();
                format!("version {}, reads {} and later", schema.version, oldest.unwrap_or(1))
            }
        },
        recognised_by: match schema.discriminator {
            Discriminator::Property(name) => format!("{name} = {}", schema.marker),
            Discriminator::RowKey => "the form of the RowKey".to_owned(),
        },
        rows: all_rows_of(schema),
        fields,
        paths: paths_of(schema),
        costs: verb_costs(schema),
        warnings,
    }
}

/// Returns the row families. The further parts of a wide entity and the blobs of fields come directly after
/// the primary.
fn all_rows_of(schema: &'static Schema) -> Vec<RowFamilyModel> {
    let mut rows: Vec<RowFamilyModel> =
        schema.families.iter().map(|family| rows_of(schema, family)).collect();
    let Some(primary) = schema.families.first() else { return rows };
    let like_primary = || RowFamilyModel { holds: String::new(), ..rows_of(schema, primary) };
    let parts = (2..=schema.parts.len()).map(|part| {
        let own = like_primary();
        let key =
            |text: &str| format!("{}_{part:02}", text.strip_suffix(FIRST_PART).unwrap_or(text));
        let row =
            KeyTemplateModel { template: key(&own.row.template), example: key(&own.row.example) };
        let properties = ColumnSchema::max_property_count_in_part(schema.columns, part);
        RowFamilyModel {
            kind: RowFamilyKind::Part(part, schema.parts.len()),
            name: format!("Part {part}"),
            holds: format!("{properties} properties"),
            row,
            ..own
        }
    });
    let blobs = schema.blobs.iter().map(|names| {
        let has: Vec<&str> = names.property_names().collect();
        let bytes = if names.key.is_some() { "the bytes, encrypted" } else { "the bytes" };
        RowFamilyModel {
            kind: RowFamilyKind::Bytes,
            name: names.name.to_owned(),
            place: RowFamilyPlace::Upload,
            holds: format!("{bytes}; the row has {}", has.join(", ")),
            ..like_primary()
        }
    });
    let further: Vec<RowFamilyModel> = parts.chain(blobs).collect();
    // The first row family holds the primaries, so the primary is at position 0.
    rows.splice(1..1, further);
    rows
}

fn rows_of(schema: &Schema, family: &'static RowFamily) -> RowFamilyModel {
    RowFamilyModel {
        kind: match family.kind {
            FamilyKind::Primary => RowFamilyKind::Primary,
            FamilyKind::Copy => RowFamilyKind::Index,
            FamilyKind::List => RowFamilyKind::List,
        },
        name: family.name.to_owned(),
        place: match (family.in_blob, family.is_remote) {
            (true, _) => RowFamilyPlace::Blob,
            (_, true) => RowFamilyPlace::Remote,
            (_, false) => RowFamilyPlace::Local,
        },
        table: family.table.unwrap_or(schema.table).to_owned(),
        is_unique: family.unique,
        is_conditional: family.conditional,
        partition: key_of(&family.partition),
        row: if schema.parts.is_empty() {
            key_of(&family.row)
        } else {
            row_key_of_first_part(key_of(&family.row))
        },
        holds: match (family.kind, family.left_out.is_empty()) {
            (FamilyKind::List, _) => "ids".to_owned(),
            (FamilyKind::Primary, true) if !schema.parts.is_empty() => {
                format!(
                    "{} properties",
                    ColumnSchema::max_property_count_in_part(schema.columns, 1)
                )
            }
            (_, true) => "all fields".to_owned(),
            (_, false) => format!("without {}", left_out(family)),
        },
    }
}

/// Returns the RowKey of part 1 of a wide entity: the declared template, with the suffix of part 1 unless the
/// template ends with it already.
fn row_key_of_first_part(key: KeyTemplateModel) -> KeyTemplateModel {
    let with = |text: String| if text.ends_with(FIRST_PART) { text } else { text + FIRST_PART };
    KeyTemplateModel { template: with(key.template), example: with(key.example) }
}

fn left_out(family: &RowFamily) -> String {
    let shown: Vec<&str> = family.left_out.iter().take(6).copied().collect();
    match family.left_out.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        rest => format!("{} and {rest} more", shown.join(", ")),
    }
}

fn key_of(template: &'static Template) -> KeyTemplateModel {
    let ExampleKey { text, .. } = example_key(template);
    KeyTemplateModel { template: template.text.to_owned(), example: text }
}

fn fields_of(schema: &'static Schema) -> Vec<FieldModel> {
    let mut fields = Vec::new();
    push_fields(schema, "", schema.columns, &mut fields);
    for series in schema.series {
        let Some(at) = fields.iter().position(|field| field.name == series.first) else { continue };
        let end = (at + series.slots).min(fields.len());
        let last = fields.get(end.saturating_sub(1)).map_or("", |field| &field.name).to_owned();
        // The derive refuses a series without slots, so `end` is greater than `at`.
        fields.drain(at + 1..end);
        if let Some(field) = fields.get_mut(at) {
            field.name = format!("{} .. {last}", series.first);
            let kind = if series.is_split { "pieces of" } else { "slots of" };
            field.flags.retain(|flag| flag != "optional");
            field.flags.insert(0, format!("{} {kind} {}", series.slots, series.field));
        }
    }
    for names in schema.blobs {
        let others: Vec<&str> = names.other_names().collect();
        fields.retain(|field| !others.contains(&field.name.as_str()));
        if let Some(field) = fields.iter_mut().find(|field| field.name == names.name) {
            field.edm = "Blob".to_owned();
            let bytes = if names.key.is_some() { "encrypted bytes" } else { "bytes" };
            field.flags.push(format!("{bytes} in a blob; the row stores {}", others.join(", ")));
        }
    }
    if let Some(dated) = schema.dated
        && let Some(field) = fields.iter_mut().find(|field| field.name == dated.property)
    {
        field.flags.push("part of the table name".to_owned());
    }
    for name in schema.expiry_properties() {
        if let Some(field) = fields.iter_mut().find(|field| field.name == name) {
            field.flags.push("the entity expires at this time".to_owned());
        }
    }
    fields
}

fn push_fields(
    schema: &'static Schema,
    prefix: &str,
    columns: &'static [ColumnSchema],
    into: &mut Vec<FieldModel>,
) {
    for column in columns {
        let name = [prefix, column.name].concat();
        if !column.nested.is_empty() {
            push_fields(schema, &name, column.nested, into);
            continue;
        }
        let mut flags = Vec::new();
        if column.optional {
            flags.push("optional".to_owned());
        }
        if column.has_default {
            flags.push("default".to_owned());
        }
        if column.part_number() > 1 {
            flags.push(format!("part {}", column.part_number()));
        }
        if let Some(sealed) = column.sealed {
            flags.push("encrypted".to_owned());
            if sealed.pad > 0 {
                flags.push(format!("padded to {} bytes", sealed.pad));
            }
            if sealed.hide_none {
                flags.push("hides absence".to_owned());
            }
            if let Some(token) = sealed.blind {
                flags.push(format!("blind token {prefix}{}", token.name));
            }
        }
        let in_keys = families_with(schema, &name);
        if !in_keys.is_empty() {
            flags.push(format!("in keys of {}", in_keys.join(", ")));
        }
        if !column.stored {
            let copies = copies_storing(schema, &name);
            flags.push(if copies.is_empty() {
                "only in keys".to_owned()
            } else {
                format!("property of {} only", copies.join(", "))
            });
        }
        let edm = column.edm.map_or("key", EdmType::name);
        into.push(FieldModel {
            name,
            edm: edm.strip_prefix("Edm.").unwrap_or(edm).to_owned(),
            flags,
        });
    }
}

/// Returns the names of the row families that have the field in a key.
fn families_with(schema: &'static Schema, field: &str) -> Vec<&'static str> {
    let has = |family: &&'static RowFamily| {
        family.partition.parts().chain(family.row.parts()).any(|part| part.field == field)
    };
    schema.families.iter().filter(has).map(|family| family.name).collect()
}

/// Returns the names of the indexes whose copies store the field as a property because their own keys do not
/// contain the field. The primary does not store the field: the primary's keys contain its value.
fn copies_storing(schema: &'static Schema, field: &str) -> Vec<&'static str> {
    let stores = |family: &&'static RowFamily| {
        family.is_copy() && !family.in_keys.contains(&field) && !family.leaves_out(field)
    };
    schema.families.iter().filter(stores).map(|family| family.name).collect()
}

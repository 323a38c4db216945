//! Makes the layout of an entity type from its schema.

use super::shape::{
    BlobFieldShape, EntityShape, KeyFieldShape, KeyTemplateShape, PropertyEncryptionShape,
    PropertyShape, RowsShape, SeriesShape, StoredTypeShape,
};
use crate::{
    edm::EdmType,
    entity::{ColumnSchema, Discriminator, Schema},
    key::{Form, RowFamily, Segment, Template},
};

impl EntityShape {
    pub(super) fn shape_of_entity(schema: &'static Schema) -> Self {
        let mut columns = Vec::new();
        push_columns("", None, schema.columns, &mut columns);
        let mut series = Vec::new();
        for declared in schema.series {
            let Some(at) = columns.iter().position(|column| column.name == declared.first) else {
                continue;
            };
            // The slots of a series are columns that follow one another.
            let end = (at + declared.slots).min(columns.len());
            let slots: Vec<PropertyShape> = columns.drain(at..end).collect();
            if let (Some(first), Some(last)) = (slots.first(), slots.last()) {
                // Each piece may be absent from a row, but a field that is not an `Option` needs all of them.
                let is_optional = declared.is_optional;
                series.push(SeriesShape {
                    field: declared.field.to_owned(),
                    is_split: declared.is_split,
                    slots: declared.slots,
                    last: last.name.clone(),
                    first: PropertyShape { is_optional, ..first.clone() },
                });
            }
        }
        let blobs = schema.blobs.iter().filter_map(|names| {
            let at = columns.iter().position(|column| column.name == names.name)?;
            // The properties of a blob field change together, so they are compared as one field.
            let is_optional = columns.remove(at).is_optional;
            columns.retain(|column| names.other_names().all(|other| other != column.name));
            let others = names.other_names().map(str::to_owned).collect();
            Some(BlobFieldShape { name: names.name.to_owned(), is_optional, others })
        });
        let blobs = blobs.collect();
        Self {
            entity_type: schema.entity_type.to_owned(),
            version: schema.version,
            table: schema.table.to_owned(),
            parts: schema.parts.len().max(1),
            dated_by: schema.dated.map(|dated| dated.property.to_owned()),
            discriminator: match schema.discriminator {
                Discriminator::Property(name) => Some(name.to_owned()),
                Discriminator::RowKey => None,
            },
            is_sealed: schema.sealed,
            expires: schema.expires.map(str::to_owned),
            rows: schema.families.iter().map(RowsShape::shape_of_rows).collect(),
            key_fields: schema.columns.iter().filter_map(shape_of_key_field).collect(),
            properties: columns,
            series,
            blobs,
        }
    }
}

impl RowsShape {
    fn shape_of_rows(family: &RowFamily) -> Self {
        Self {
            kind: family.kind,
            name: family.name.to_owned(),
            table: family.table.map(str::to_owned),
            is_remote: family.is_remote,
            in_blob: family.in_blob,
            is_unique: family.unique,
            is_conditional: family.conditional,
            partition: KeyTemplateShape::shape_of_key(&family.partition),
            row: KeyTemplateShape::shape_of_key(&family.row),
            left_out: family.left_out.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

impl KeyTemplateShape {
    fn shape_of_key(template: &Template) -> Self {
        Self {
            template: template_text(template),
            widths: template.parts().map(|part| part.width).collect(),
        }
    }
}

/// Returns the text of a template in the names of stored properties.
pub(super) fn template_text(template: &Template) -> String {
    let mut text = String::new();
    for segment in template.segments {
        match segment {
            Segment::Literal(literal) => text.push_str(literal),
            Segment::Part(part) => {
                let form = match part.form {
                    Form::Plain => String::new(),
                    Form::Width(width) => format!(":0{width}"),
                    Form::Descending => ":desc".to_owned(),
                    Form::Date(form) => format!(":{form}"),
                    Form::Lower => ":lower".to_owned(),
                    Form::Bucket(count) => format!(":bucket({count})"),
                    Form::Hmac => ":hmac".to_owned(),
                };
                text.extend(["{", part.field, &form, "}"]);
            }
        }
    }
    text
}

/// Returns the shape of a field that only keys hold, or `None` for another column.
fn shape_of_key_field(column: &ColumnSchema) -> Option<KeyFieldShape> {
    let edm = column.edm.filter(|_| !column.stored)?;
    Some(KeyFieldShape {
        name: column.name.to_owned(),
        stored_type: StoredTypeShape::shape_of_type(edm, column.values),
    })
}

fn push_columns(
    prefix: &str,
    within: Option<&str>,
    columns: &[ColumnSchema],
    into: &mut Vec<PropertyShape>,
) {
    for column in columns.iter().filter(|column| column.stored) {
        let name = [prefix, column.name].concat();
        match column.edm {
            None => {
                let within = if column.optional { Some(&*name) } else { within };
                push_columns(&name, within, column.nested, into);
            }
            Some(edm) => into.push(PropertyShape {
                name,
                stored_type: StoredTypeShape::shape_of_type(edm, column.values),
                is_optional: column.optional,
                has_default: column.has_default,
                within: within.map(str::to_owned),
                part: column.part_number(),
                encryption: column.sealed.map(|sealed| PropertyEncryptionShape {
                    pad: sealed.pad,
                    hides_none: sealed.hide_none,
                    blind: sealed.blind.map(|token| ([prefix, token.name].concat(), token.chars)),
                }),
            }),
        }
    }
}

impl StoredTypeShape {
    fn shape_of_type(edm: EdmType, values: &str) -> Self {
        let name = edm.name();
        let edm = name.strip_prefix("Edm.").unwrap_or(name).to_owned();
        Self { edm, values: values.to_owned() }
    }
}

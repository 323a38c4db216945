//! Describes a layout for people, as Markdown.

use std::fmt::Write as _;

use super::{
    lock::Layout,
    shape::{EntityShape, PropertyShape, RowsShape},
};
use crate::key::FamilyKind;

impl Layout {
    /// Returns the layout for people, as Markdown: for each type the keys of its rows, and its properties.
    ///
    /// ```
    /// use entable::{layout::Layout, prelude::*};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
    ///
    /// let text = entable::layout![Employee].markdown();
    /// assert!(text.contains("| entity | `Staff` | `{Department}` | `empid_{Id:06}` |"));
    /// assert!(text.contains("| `Age` | Int32 | |"));
    /// ```
    pub fn markdown(&self) -> String {
        let mut text = "# How rows are stored\n".to_owned();
        for entity in self.entities() {
            push_entity(&mut text, entity);
        }
        text
    }

    /// Returns the names of the tables with rows of the layout, each once. For an entity with dated tables, the
    /// name is the template.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #     index(ByEmail, table = "StaffByEmail", partition_key = "{email:lower}", row_key = "email", unique))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// assert_eq!(entable::layout![Employee].tables(), ["Staff", "StaffByEmail"]);
    /// ```
    pub fn tables(&self) -> Vec<String> {
        let of = |entity: &EntityShape| {
            let others = entity.rows.iter().filter(|rows| !rows.in_blob);
            let others = others.filter_map(|rows| rows.table.clone()).collect::<Vec<_>>();
            [vec![entity.table.clone()], others].concat()
        };
        let mut names: Vec<String> = self.entities().iter().flat_map(of).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn push_entity(text: &mut String, entity: &EntityShape) {
    let sealed = if entity.is_sealed { " Each row is sealed as a whole." } else { "" };
    let told = match &entity.discriminator {
        Some(property) => format!("{} says that a row is of this type.", in_code_marks(property)),
        None => "The form of the keys says that a row is of this type.".to_owned(),
    };
    // Writing to a text cannot fail.
    let _ = writeln!(
        text,
        "\n## {}, version {}\n\n{told}{sealed}\n\n| rows | table | PartitionKey | RowKey |\n|---|---|---|---|",
        plain_text(&entity.entity_type),
        entity.version,
    );
    for rows in &entity.rows {
        push_rows(text, entity, rows);
    }
    let _ = writeln!(text, "\n| property | type | |\n|---|---|---|");
    for property in &entity.properties {
        push_property(text, &in_code_marks(&property.name), property);
    }
    for series in &entity.series {
        let names =
            format!("{} to {}", in_code_marks(&series.first.name), in_code_marks(&series.last));
        push_property(text, &names, &series.first);
    }
    for blob in &entity.blobs {
        let _ = writeln!(text, "| {} | blob | |", in_code_marks(&blob.name));
    }
}

fn push_rows(text: &mut String, entity: &EntityShape, rows: &RowsShape) {
    let kind = match rows.kind {
        FamilyKind::Primary => "entity".to_owned(),
        FamilyKind::Copy => format!("index {}", in_code_marks(&rows.name)),
        FamilyKind::List => format!("list {}", in_code_marks(&rows.name)),
    };
    let marks = [
        (rows.is_remote, ", remote"),
        (rows.is_unique, ", unique"),
        (rows.is_conditional, ", of some entities"),
        (!rows.left_out.is_empty(), ", without some properties"),
    ];
    let marks: String = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    let table = match &rows.table {
        _ if rows.in_blob => "blobs".to_owned(),
        Some(table) => in_code_marks(table),
        None => in_code_marks(&entity.table),
    };
    let (partition, row) =
        (in_code_marks(&rows.partition.template), in_code_marks(&rows.row.template));
    let _ = writeln!(text, "| {kind}{marks} | {table} | {partition} | {row} |");
}

fn push_property(text: &mut String, name: &str, property: &PropertyShape) {
    let blind = |property: &PropertyShape| {
        property.encryption.as_ref().is_some_and(|encryption| encryption.blind.is_some())
    };
    let marks = [
        (property.is_optional, "optional"),
        (property.has_default, "has a default"),
        (property.encryption.is_some(), "encrypted"),
        (blind(property), "found by a blind token"),
    ];
    let marks: Vec<&str> = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    let marks = if marks.is_empty() { String::new() } else { format!("{} ", marks.join(", ")) };
    let _ = writeln!(text, "| {name} | {} | {marks}|", plain_text(&property.stored_type.edm));
}

/// Returns a text in code marks. A file of a layout may hold any text.
fn in_code_marks(text: &str) -> String {
    format!("`{}`", plain_text(text))
}

/// Returns a text with `?` in place of each character that has a meaning for Markdown or a
/// terminal: control characters, a backquote, `|`, `<` and `>`.
fn plain_text(text: &str) -> String {
    let is_bad = |c: char| c.is_control() || matches!(c, '`' | '|' | '<' | '>');
    text.chars().map(|c| if is_bad(c) { '?' } else { c }).collect()
}

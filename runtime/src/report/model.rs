//! Defines what a report shows, before it is written as text.

use crate::{
    entity::dated::DatedTables, maintain::PartitionReport, patterns::write_cost::CostModel,
    worker::OutboxStatus,
};

/// A table with the entity types whose primaries it holds.
#[derive(Debug)]
pub(super) struct TableModel {
    pub(super) name: String,
    pub(super) entities: Vec<EntityModel>,
    /// The PartitionKey templates of primaries, each with the types that can share a transaction.
    pub(super) scopes: Vec<(String, Vec<String>)>,
    /// How the tables are dated and named, or `None` if the entities have no dated tables.
    pub(super) dated: Option<&'static DatedTables>,
    /// Sentences on the length of a period, an example of a table's name, and the calls that drop tables;
    /// `None` unless tables are dated.
    pub(super) periods: Option<String>,
    /// The figures of the table, or `None` before a store was measured.
    pub(super) figures: Option<TableFigures>,
}

/// The figures that were read from a store for one table: rows, bytes and partitions.
#[derive(Debug)]
pub(super) struct TableFigures {
    /// Sentences that say what was read from the store, or why nothing was read.
    pub(super) notes: Vec<String>,
    pub(super) partitions: PartitionReport,
}

/// The figures of a store's outbox.
#[derive(Debug)]
pub(super) struct OutboxFigures {
    pub(super) is_whole: bool,
    pub(super) status: OutboxStatus,
}

impl OutboxFigures {
    /// Returns the number of outbox rows with open work.
    pub(super) fn open_row_count(&self) -> u64 {
        self.status.dirty_rows + self.status.claims + self.status.messages
    }
}

/// An entity type in the report, with its rows, fields, access paths, costs of verbs, and warnings.
#[derive(Debug)]
pub(super) struct EntityModel {
    pub(super) name: String,
    pub(super) is_sealed: bool,
    /// Says in words which older versions of the type are read, too.
    pub(super) versions: String,
    pub(super) recognised_by: String,
    pub(super) rows: Vec<RowFamilyModel>,
    pub(super) fields: Vec<FieldModel>,
    pub(super) paths: Vec<PathModel>,
    pub(super) costs: Vec<CostModel>,
    pub(super) warnings: Vec<String>,
}

/// The place of a row family's rows, relative to the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFamilyPlace {
    Local,
    Remote,
    /// In a blob that is written after the primary, by the outbox.
    Blob,
    /// In a blob that is written before the primary.
    Upload,
}

/// The kind of a row family's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFamilyKind {
    Primary,
    /// A further row of a wide entity: the number of the part, and of all parts.
    Part(usize, usize),
    Index,
    List,
    /// The bytes of a field that is stored in a blob.
    Bytes,
}

/// A row family.
#[derive(Debug)]
pub(super) struct RowFamilyModel {
    pub(super) kind: RowFamilyKind,
    pub(super) name: String,
    pub(super) place: RowFamilyPlace,
    pub(super) table: String,
    pub(super) is_unique: bool,
    pub(super) is_conditional: bool,
    pub(super) partition: KeyTemplateModel,
    pub(super) row: KeyTemplateModel,
    /// Says in words what the rows of the row family hold.
    pub(super) holds: String,
}

impl RowFamilyModel {
    /// Returns the kind of the family in words, such as `local index, unique, conditional`.
    pub(super) fn kind_words(&self) -> String {
        let kind = match (self.kind, self.place) {
            (RowFamilyKind::Primary, _) => return "primary".to_owned(),
            (RowFamilyKind::Part(part, parts), _) => return format!("part {part} of {parts}"),
            (RowFamilyKind::Bytes, _) => return "bytes of a field, in a blob".to_owned(),
            (RowFamilyKind::Index, RowFamilyPlace::Local) => "local index",
            (RowFamilyKind::Index, _) => "remote index",
            (RowFamilyKind::List, RowFamilyPlace::Local) => "local list",
            (RowFamilyKind::List, RowFamilyPlace::Remote) => "remote list",
            (RowFamilyKind::List, RowFamilyPlace::Blob | RowFamilyPlace::Upload) => {
                "list in a blob"
            }
        };
        let unique = if self.is_unique { ", unique" } else { "" };
        let conditional = if self.is_conditional { ", conditional" } else { "" };
        [kind, unique, conditional].concat()
    }

    /// Returns in words when the rows are written, such as "before the transaction".
    pub(super) fn when_written(&self) -> &'static str {
        match (self.kind, self.place) {
            (RowFamilyKind::Primary, _) => "the transaction",
            (_, RowFamilyPlace::Upload) => "before the transaction",
            (_, RowFamilyPlace::Local) => "same transaction",
            (_, RowFamilyPlace::Remote | RowFamilyPlace::Blob) => "later, by the outbox",
        }
    }
}

/// A key: its template as declared, and an example.
#[derive(Debug)]
pub(super) struct KeyTemplateModel {
    pub(super) template: String,
    pub(super) example: String,
}

/// A field of an entity type, with its name, the type that is stored, and its features such as `optional`.
#[derive(Debug)]
pub(super) struct FieldModel {
    pub(super) name: String,
    pub(super) edm: String,
    pub(super) flags: Vec<String>,
}

/// One access path of an entity type, as the report lists it: the call that begins it, its cost class, filter and requests.
#[derive(Debug)]
pub(super) struct PathModel {
    /// The call that begins the path, such as `Employee::by_email()`.
    pub(super) entry: String,
    /// The fields whose values the caller passes to the path, in order.
    pub(super) given: Vec<String>,
    pub(super) class: String,
    pub(super) filter: String,
    pub(super) requests: String,
}

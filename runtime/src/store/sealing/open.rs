//! Rows on their way from the store: which of them concern the reader, and as what.

use std::borrow::Cow;

use super::Vault;
use crate::{
    edm::ValueRef,
    entity::{Discriminator, Schema, SealedColumn, set::Members},
    error::Result,
    key::{Family, FamilyKind},
    row::Row,
};

/// What rows are read as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// An entity's; rows of other types are left alone.
    Typed(&'static Schema),
    /// Those of a set.
    Members(&'static Members),
    /// Of no declared type.
    Untyped,
}

/// What is declared of the rows of one type.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) schema: &'static Schema,
    pub(crate) columns: Vec<SealedColumn>,
    /// Properties that programs do not see.
    #[cfg(feature = "encrypt")]
    pub(crate) unseen: Vec<Cow<'static, str>>,
}

impl Sheet {
    pub(crate) fn of(schema: &'static Schema) -> Self {
        Self {
            schema,
            columns: schema.sealed_columns(),
            #[cfg(feature = "encrypt")]
            unseen: schema.hidden_properties(),
        }
    }
}

/// What a row is to the reader.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Known {
    /// Of a type that the reader does not ask for.
    Foreign,
    /// Of that sheet and that kind.
    Declared(usize, Option<&'static Family>),
    Untyped,
}

impl Reading {
    /// Whether something that is read is declared to be sealed.
    pub(crate) fn has_sealed(self) -> bool {
        match self {
            Self::Typed(schema) => schema.is_sealed(),
            Self::Members(members) => members.schemas().iter().any(|schema| schema.is_sealed()),
            Self::Untyped => false,
        }
    }

    /// Whether keys of what is read have tokens.
    #[cfg(feature = "encrypt")]
    pub(crate) fn has_tokens(self) -> bool {
        match self {
            Self::Typed(schema) => schema.has_tokens(),
            Self::Members(members) => members.schemas().iter().any(|schema| schema.has_tokens()),
            Self::Untyped => false,
        }
    }

    /// What is declared, in the order of the members.
    pub(crate) fn sheets(self) -> Vec<Sheet> {
        let schemas: Cow<'static, [&'static Schema]> = match self {
            Self::Typed(schema) => Cow::Owned(vec![schema]),
            Self::Members(members) => Cow::Borrowed(members.schemas()),
            Self::Untyped => Cow::Borrowed(&[]),
        };
        schemas.iter().map(|schema| Sheet::of(schema)).collect()
    }

    /// What a row is.
    pub(crate) fn know(self, row: &Row) -> Result<Known> {
        Ok(match self {
            Self::Typed(schema) => match kind_of(schema, row)? {
                Kind::Ours(family) => Known::Declared(0, family),
                Kind::Foreign => Known::Foreign,
            },
            Self::Members(members) => match members.match_row(row)? {
                Some(matched) => Known::Declared(matched.member(), Some(matched.family())),
                None => Known::Untyped,
            },
            Self::Untyped => Known::Untyped,
        })
    }
}

enum Kind {
    Ours(Option<&'static Family>),
    Foreign,
}

/// Which of an entity's kinds of rows it is, in whatever version.
fn kind_of(schema: &'static Schema, row: &Row) -> Result<Kind> {
    let families: &'static [Family] = schema.families;
    let Discriminator::Property(name) = schema.discriminator else {
        let fits = |family: &&Family| {
            family.kind != FamilyKind::List
                && family.row.matches(row.row_key())
                && family.partition.matches(row.partition_key())
        };
        return Ok(Kind::Ours(families.iter().find(fits)));
    };
    let Some(ValueRef::String(marker)) = row.get(name)? else { return Ok(Kind::Foreign) };
    let (own, copy) = marker.split_at(marker.find('#').unwrap_or(marker.len()));
    if schema.version_of_marker(own).is_none() {
        return Ok(Kind::Foreign);
    }
    let family = match copy.strip_prefix('#') {
        None => families.first(),
        Some(name) => families.iter().find(|f| f.kind == FamilyKind::Copy && f.name == name),
    };
    Ok(Kind::Ours(family))
}

impl Vault {
    /// One row as programs see it.
    ///
    /// # Errors
    ///
    /// `is_decrypt` for a value that does not open, `is_key_unavailable` where its key cannot be had.
    pub(crate) async fn open_one(
        &self,
        table: &str,
        row: Row,
        reading: Reading,
        select: Option<&[String]>,
    ) -> Result<Row> {
        let mut opened = self.open(table, vec![row], reading, select).await;
        opened.pop().unwrap_or_else(|| Err(crate::row::corrupt_row("the row was lost")))
    }
}

#[cfg(not(feature = "encrypt"))]
impl Vault {
    /// Rows as programs see them, one by one.
    #[allow(clippy::unused_async, reason = "the other form asks for keys")]
    pub(crate) async fn open(
        &self,
        _: &str,
        rows: Vec<Row>,
        reading: Reading,
        _: Option<&[String]>,
    ) -> Vec<Result<Row>> {
        let sealed = reading.has_sealed();
        let sheets = if sealed { reading.sheets() } else { Vec::new() };
        let check = |row: Row| {
            if let (true, Known::Declared(at, _)) = (sealed, reading.know(&row)?)
                && sheets.get(at).is_some_and(|sheet| sheet.schema.is_sealed())
            {
                return Err(crate::store::sealing::keyless(
                    "the row has encrypted properties, which need the feature `encrypt`",
                )
                .at_keys(row.partition_key(), row.row_key()));
            }
            Ok(row)
        };
        rows.into_iter().map(check).collect()
    }
}

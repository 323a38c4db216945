//! The plan of a read: which rows it asks for, and which stages they pass before they are items.

use crate::{
    entity::{Access, FromRow, Needs, Schema, Set, TableEntity, set::Members},
    error::Result,
    filter::Filter,
    key::Family,
    plan::wide::PartsRead,
    store::{rows::Store, sealing::open::ReadAs},
};

use super::columns::{columns_of_row, may_be_reserved};

/// A read, decided once from its path, its conditions and its view. Every verb that reads rows for a
/// program runs one.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    /// The path. Its keys hold their blind tokens.
    pub(crate) access: Access,
    /// The types of the rows, by whose declarations they are decrypted.
    pub(crate) kinds: ReadAs,
    /// The rows that make up an item.
    pub(crate) parts: Parts,
    /// The properties to request; `None` requests all.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) filter: ReadFilter,
    /// What stored rows pass before they are items.
    pub(crate) open_stages: OpenStages,
}

/// The rows that make up an item of a read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Parts {
    /// One row.
    Single,
    /// Those rows of a wide entity of this type.
    OfType(&'static Schema, PartsRead),
    /// One row, or all rows of an entity of a wide member of the set.
    OfMembers(&'static Members),
}

impl Parts {
    /// Returns how many rows each item is read from.
    pub(crate) fn rows_per_item(self) -> u32 {
        match self {
            Self::OfType(schema, PartsRead::All) => u32::try_from(schema.parts.len()).unwrap_or(1),
            Self::OfType(_, PartsRead::One(_)) | Self::Single | Self::OfMembers(_) => 1,
        }
    }
}

/// The conditions of a read.
#[derive(Debug)]
pub(crate) struct ReadFilter {
    /// The filter that a scan sends; a read of one row sends its keys alone.
    pub(crate) sent: Filter,
    /// The caller's conditions on rows as readers see them, for rows that the store cannot compare:
    /// encrypted and reserved ones. A condition that such a row cannot answer is its error.
    pub(crate) opened: Result<Filter>,
}

impl ReadFilter {
    /// No conditions.
    pub(crate) const NONE: Self =
        Self { sent: Filter::Constant(true), opened: Ok(Filter::Constant(true)) };
}

/// The stages that stored rows pass before they are items: any of the constants of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenStages(u8);

impl OpenStages {
    /// Rows are items as they are stored.
    pub(crate) const NONE: Self = Self(0);
    /// Rows are verified and decrypted.
    pub(crate) const OPEN: Self = Self(1);
    /// A reserved copy is replaced by the copy that its owner derives.
    pub(crate) const CONFIRM: Self = Self(1 << 1);
    /// Rows whose time is over are left out.
    pub(crate) const EXPIRE: Self = Self(1 << 2);
    /// The rows of a wide entity are joined.
    pub(crate) const JOIN: Self = Self(1 << 3);
    /// Rows of scopes whose keys are deleted for good are left out.
    pub(crate) const HIDE: Self = Self(1 << 4);
    /// Decrypted rows that do not meet the caller's conditions are left out.
    pub(crate) const COMPARE: Self = Self(1 << 5);

    /// Returns whether `stage` is among these.
    pub(crate) const fn contain(self, stage: Self) -> bool {
        self.0 & stage.0 == stage.0
    }

    /// Returns these stages, and `stage` if the condition holds.
    pub(crate) const fn and_if(self, condition: bool, stage: Self) -> Self {
        if condition { Self(self.0 | stage.0) } else { self }
    }

    /// Returns whether rows may have to meet the caller's conditions after they were opened.
    pub(crate) const fn meets_conditions_later(self) -> bool {
        self.contain(Self::CONFIRM) || self.contain(Self::COMPARE)
    }

    /// Returns these stages without `stage`.
    pub(crate) const fn without(self, stage: Self) -> Self {
        Self(self.0 & !stage.0)
    }
}

/// A type whose rows are read one by one, as the type itself or as a projection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowType {
    pub(crate) schema: &'static Schema,
    /// [`Schema::needs`], as a constant.
    pub(crate) needs: Needs,
    /// Returns the properties that the reader needs of rows of a family.
    pub(crate) columns: fn(Option<&'static Family>) -> Option<Vec<String>>,
}

impl RowType {
    /// Returns the type `E`, whose rows are read as a `T`.
    pub(crate) fn of<E: TableEntity, T: FromRow>() -> Self {
        Self { schema: E::SCHEMA, needs: const { E::SCHEMA.needs() }, columns: T::columns }
    }

    /// Returns the type, whose rows are read with all their properties.
    pub(crate) fn whole(self) -> Self {
        Self { columns: |_| None, ..self }
    }
}

impl ReadPlan {
    /// Plans reads of single rows of a type. `access` is the path to one row, or names only the row
    /// family of the rows.
    ///
    /// # Errors
    ///
    /// Fails for a schema without row families, which no derive writes.
    pub(crate) fn for_row(store: &Store, of: RowType, mut access: Access) -> Result<Self> {
        let RowType { schema, needs, columns } = of;
        let family = access.family.map_or_else(|| schema.primary(), Ok)?;
        access.family = Some(family);
        // A copy is one row, also that of a wide entity.
        let is_wide = needs.contain(Needs::PARTS) && family.is_primary();
        // The parts of a wide entity are opened and joined where they are read.
        let open_stages = OpenStages::NONE
            .and_if(store.sealing.opens_rows(needs) && !is_wide, OpenStages::OPEN)
            .and_if(may_be_reserved(family), OpenStages::CONFIRM)
            .and_if(needs.contain(Needs::EXPIRY), OpenStages::EXPIRE)
            .and_if(access.needs_key_tokens(), OpenStages::HIDE);
        Ok(Self {
            access,
            kinds: ReadAs::Typed(schema),
            parts: if is_wide { Parts::OfType(schema, PartsRead::All) } else { Parts::Single },
            columns: columns_of_row(schema, family, columns),
            filter: ReadFilter::NONE,
            open_stages,
        })
    }

    /// Plans reads of single rows of a set.
    pub(crate) fn for_row_of_set<S: Set>(store: &Store, access: Access) -> Self {
        let (members, needs) = (S::MEMBERS, const { S::MEMBERS.needs() });
        let is_wide = needs.contain(Needs::PARTS);
        // Copies are no items, so that none is confirmed. Parts are opened where they are read.
        let open_stages = OpenStages::NONE
            .and_if(store.sealing.opens_rows(needs) && !is_wide, OpenStages::OPEN)
            .and_if(needs.contain(Needs::EXPIRY), OpenStages::EXPIRE);
        Self {
            access,
            kinds: ReadAs::Members(members),
            parts: if is_wide { Parts::OfMembers(members) } else { Parts::Single },
            columns: None,
            filter: ReadFilter::NONE,
            open_stages,
        }
    }

    /// Reads rows whether or not their time is over: writes and maintenance do not ask it.
    pub(crate) fn with_expired(self) -> Self {
        Self { open_stages: self.open_stages.without(OpenStages::EXPIRE), ..self }
    }
}

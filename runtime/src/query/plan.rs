//! The plan of a read: which rows it requests, and which stages turn them into items.

use crate::{
    entity::{FromRow, Needs, Schema, SetMembers, TableEntity, UntypedPath, set::Members},
    error::Result,
    filter::Filter,
    key::RowFamily,
    plan::wide::WidePartsRead,
    store::{rows::Store, sealing::open::ReadAs},
};

use super::columns::{columns_of_row, may_be_reserved};

/// A read, planned once from its path, its conditions and its view. Every verb that reads rows for a program
/// runs a plan.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    /// The path. In the plan of a query, its keys contain blind tokens, unless the keys for these are permanently
    /// deleted. The plan of a point read contains placeholders until [`read_point`](Self::read_point) replaces them.
    pub(crate) access: UntypedPath,
    /// The types whose declarations are used to decrypt the rows.
    pub(crate) kinds: ReadAs,
    /// The rows that make up an item.
    pub(crate) parts: ItemParts,
    /// The properties to request, or `None` for all.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) filter: ReadFilter,
    /// The stages that turn stored rows into items.
    pub(crate) open_stages: OpenStages,
}

/// The rows that make up an item of a read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ItemParts {
    /// One row.
    Single,
    /// These rows of a wide entity of this type.
    OfType(&'static Schema, WidePartsRead),
    /// One row, or all rows of an entity of a wide member of the set.
    OfMembers(&'static Members),
}

impl ItemParts {
    /// Returns how many rows each item is read from.
    pub(crate) fn rows_per_item(self) -> u32 {
        match self {
            Self::OfType(schema, WidePartsRead::All) => {
                u32::try_from(schema.parts.len()).unwrap_or(1)
            }
            Self::OfType(_, WidePartsRead::One(_)) | Self::Single | Self::OfMembers(_) => 1,
        }
    }
}

/// The conditions of a read.
#[derive(Debug)]
pub(crate) struct ReadFilter {
    /// The filter that a scan sends. A read of one row sends only its keys.
    pub(crate) sent: Filter,
    /// The caller's conditions, applied to decrypted and confirmed rows that the store cannot compare. If a row
    /// cannot be compared, the result is an error for that row.
    pub(crate) opened: Result<Filter>,
}

impl ReadFilter {
    /// No conditions.
    pub(crate) const NONE: Self =
        Self { sent: Filter::Constant(true), opened: Ok(Filter::Constant(true)) };
}

/// The stages that turn stored rows into items: any combination of the constants of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenStages(u8);

impl OpenStages {
    /// Stored rows are items as they are.
    pub(crate) const NONE: Self = Self(0);
    /// Rows are verified and decrypted.
    pub(crate) const OPEN: Self = Self(1);
    /// A reserved copy is replaced by the copy that its owner derives.
    pub(crate) const CONFIRM: Self = Self(1 << 1);
    /// Expired rows are dropped.
    pub(crate) const EXPIRE: Self = Self(1 << 2);
    /// The rows of a wide entity are joined.
    pub(crate) const JOIN: Self = Self(1 << 3);
    /// Rows of scopes whose keys are permanently deleted are dropped.
    pub(crate) const HIDE: Self = Self(1 << 4);
    /// Decrypted rows that do not meet the caller's conditions are dropped.
    pub(crate) const COMPARE: Self = Self(1 << 5);

    /// Returns whether these stages include `stage`.
    pub(crate) const fn contain(self, stage: Self) -> bool {
        self.0 & stage.0 == stage.0
    }

    /// Returns these stages, and also `stage` if `condition` is `true`.
    pub(crate) const fn and_if(self, condition: bool, stage: Self) -> Self {
        if condition { Self(self.0 | stage.0) } else { self }
    }

    /// Returns whether the caller's conditions may have to be checked after rows were opened.
    pub(crate) const fn checks_conditions_after_opening(self) -> bool {
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
    /// Returns the properties of a family's rows that the reader needs.
    pub(crate) columns: fn(Option<&'static RowFamily>) -> Option<Vec<String>>,
}

impl RowType {
    /// Returns the type `E`, with its rows read as a `T`.
    pub(crate) fn of<E: TableEntity, T: FromRow>() -> Self {
        Self { schema: E::SCHEMA, needs: const { E::SCHEMA.needs() }, columns: T::columns }
    }

    /// Returns the type, with its rows read completely.
    pub(crate) fn whole(self) -> Self {
        Self { columns: |_| None, ..self }
    }
}

/// Where the rows of a query's items come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ItemOrigin {
    /// The rows that the query reads.
    Rows,
    /// The entities whose ids are in the lists that the query reads.
    EntitiesOfLists(RowType),
    /// The lists of ids alone: an empty row for each id.
    IdsOfLists(&'static Schema),
}

impl ReadPlan {
    /// Plans reads of single rows of a type. `access` is the path to one row, or only contains the row family.
    ///
    /// # Errors
    ///
    /// Fails for a schema without row families, which no derive generates.
    pub(crate) fn for_row(store: &Store, of: RowType, mut access: UntypedPath) -> Result<Self> {
        let RowType { schema, needs, columns } = of;
        let family = access.family.map_or_else(|| schema.primary(), Ok)?;
        access.family = Some(family);
        // A copy is a single row, even of a wide entity.
        let is_wide = needs.contain(Needs::PARTS) && family.is_primary();
        // The parts of a wide entity are opened and joined where they are read.
        let open_stages = OpenStages::NONE
            .and_if(store.sealing.unseals_rows(needs) && !is_wide, OpenStages::OPEN)
            .and_if(may_be_reserved(family), OpenStages::CONFIRM)
            .and_if(needs.contain(Needs::EXPIRY), OpenStages::EXPIRE)
            .and_if(access.needs_key_tokens(), OpenStages::HIDE);
        Ok(Self {
            access,
            kinds: ReadAs::Typed(schema),
            parts: if is_wide {
                ItemParts::OfType(schema, WidePartsRead::All)
            } else {
                ItemParts::Single
            },
            columns: columns_of_row(schema, family, columns),
            filter: ReadFilter::NONE,
            open_stages,
        })
    }

    /// Plans reads of single rows of a set.
    pub(crate) fn for_row_of_set<S: SetMembers>(store: &Store, access: UntypedPath) -> Self {
        let (members, needs) = (S::MEMBERS, const { S::MEMBERS.needs() });
        let is_wide = needs.contain(Needs::PARTS);
        // Copies are never items here, so none is confirmed. Parts are opened where they are read.
        let open_stages = OpenStages::NONE
            .and_if(store.sealing.unseals_rows(needs) && !is_wide, OpenStages::OPEN)
            .and_if(needs.contain(Needs::EXPIRY), OpenStages::EXPIRE);
        Self {
            access,
            kinds: ReadAs::Members(members),
            parts: if is_wide { ItemParts::OfMembers(members) } else { ItemParts::Single },
            columns: None,
            filter: ReadFilter::NONE,
            open_stages,
        }
    }

    /// Also returns expired rows. Writes and maintenance do not check the time.
    pub(crate) fn with_expired(self) -> Self {
        Self { open_stages: self.open_stages.without(OpenStages::EXPIRE), ..self }
    }
}

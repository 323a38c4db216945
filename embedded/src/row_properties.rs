//! The properties of a row that is written, with the bytes of their values.

use std::str::from_utf8;

use entable_core::{edm::EdmType, row::Row};

/// The property that mostly names the type of a row, so that all rows of the type have the same text.
pub(crate) const ENTITY_TYPE: &[u8] = b"EntityType";
/// The longest `EntityType` that a layout has for its rows.
const LONGEST_ENTITY_TYPE: usize = 255;

/// A property of a row.
pub(crate) struct Property<'r> {
    pub(crate) name: &'r [u8],
    pub(crate) edm: EdmType,
    pub(crate) value: &'r [u8],
}

impl Property<'_> {
    pub(crate) fn is_entity_type(&self) -> bool {
        self.name == ENTITY_TYPE
    }
}

/// The properties of a row, in its order.
pub(crate) struct RowProperties<'r> {
    pub(crate) list: Vec<Property<'r>>,
    /// The text of the row's `EntityType`, if a layout may have it for its rows.
    pub(crate) entity_type: Option<&'r str>,
}

impl<'r> RowProperties<'r> {
    /// Lists the properties of a row. Returns `None` for a row that is damaged.
    pub(crate) fn of_row(row: &'r Row) -> Option<Self> {
        let mut properties = row.properties();
        let (mut list, mut entity_type) = (Vec::with_capacity(16), None);
        while let Some((name, edm, value)) = properties.next_undecoded().ok()? {
            let property = Property { name, edm, value };
            if property.is_entity_type()
                && edm == EdmType::String
                && value.len() <= LONGEST_ENTITY_TYPE
            {
                entity_type = Some(from_utf8(value).ok()?);
            }
            list.push(property);
        }
        Some(Self { list, entity_type })
    }
}

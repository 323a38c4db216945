//! Splits a wide entity into its rows (the parts), and joins them again.
//!
//! Above the store, typed code handles a wide entity as a single row with the keys of part 1, the properties of all
//! parts, and an ETag made from the ETags of all parts. Only this folder computes the RowKeys of stored parts and finds
//! out which parts belong together. The derive and the report repeat the ending of the RowKeys, such as `_01`.

mod layout;
mod guards;
mod split;
mod join;
mod torn;
mod selection;
mod key_bounds;
mod page;

pub(crate) use guards::join_part_answers;
pub(crate) use join::{JoinedRow, join_parts};
pub(crate) use key_bounds::{bounds_with_all_parts, condition_on_all_parts};
pub(crate) use layout::{
    is_key_of_first_part, maximum_parts_of_versions, may_have_older_layout, row_key_of_part,
};
pub(crate) use page::{PageItem, join_parts_in_page, part_as_entity_row};
pub(crate) use selection::{
    WidePartsRead, choose_parts_to_read, names_with_generation, part_numbers_to_read,
    parts_with_properties, type_markers_of_parts,
};
pub(crate) use split::{can_ignore_missing_parts, split_operation};
pub(crate) use torn::{is_torn, join_torn, torn_error};

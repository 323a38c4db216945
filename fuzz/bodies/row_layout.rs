//! Rows and layouts of the store in a file that nobody wrote.

use entable_embedded::__fuzz::{read_by_layout, store_and_read};

/// Reads a row by a layout: two bytes with the length of the layout, the layout and the row. One that is taken has to
/// come back when it is stored.
pub(crate) fn row_layout(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let Some((layout, row)) = rest.split_at_checked(u16::from_le_bytes(*length).into()) else {
        return;
    };
    let Some(row) = read_by_layout(layout, b"p\0r", row) else { return };
    assert_eq!(row.keys(), ("p", "r"));
    assert_eq!(store_and_read(&row).unwrap(), row);
}

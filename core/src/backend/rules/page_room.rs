//! The bounds of one page: how many rows it returns, how many it examines, and how many bytes it takes.

use crate::{
    backend::ScanRequest,
    error::{Error, Result, ServiceCode},
    limits,
};

/// Maximum number of rows that one page examines. Bounds how long a scan occupies a store.
const EXAMINED_ROWS: usize = 20_000;
/// Maximum size of a page's rows in bytes. Bounds the memory of a page.
const PAGE_BYTES: usize = 16 * 1024 * 1024;

/// Refuses a scan that the service would refuse, and returns the largest number of rows of its page.
///
/// ```
/// use entable_core::{Filter, backend::{ScanRequest, rules::checked_page_size}};
///
/// let filter = Filter::parse("Age ge 30")?;
/// let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
/// assert_eq!(checked_page_size(&scan)?, 1000);
/// assert!(checked_page_size(&ScanRequest { top: Some(1001), ..scan }).unwrap_err().is_invalid());
/// # Ok::<(), entable_core::Error>(())
/// ```
///
/// # Errors
///
/// `is_invalid` for a `$top` above 1,000, more than 255 selected properties, or a filter that cannot
/// be written as text.
pub fn checked_page_size(scan: &ScanRequest<'_>) -> Result<usize> {
    scan.filter.check().map_err(|error| error.in_table(scan.table))?;
    let selected = scan.select.map_or(0, <[String]>::len);
    // The keys and the Timestamp may be selected besides.
    if selected > limits::PROPERTIES + 3 {
        let message = format!("{selected} properties are selected, the limit is 255");
        return Err(Error::service(ServiceCode::InvalidInput, message).in_table(scan.table));
    }
    match scan.top.unwrap_or(limits::PAGE_ROWS) {
        // A number up to 1,000 fits on every platform.
        top @ 0..=limits::PAGE_ROWS => Ok(usize::try_from(top).unwrap_or(1)),
        top => {
            let message = format!(
                "the request asks for a page of {top} rows, the limit is {}",
                limits::PAGE_ROWS
            );
            Err(Error::service(ServiceCode::InvalidInput, message).in_table(scan.table))
        }
    }
}

/// The room that is left in a page: rows to return, rows to examine, and bytes.
///
/// ```
/// use entable_core::{Filter, backend::{ScanRequest, rules::PageRoom}};
///
/// let filter = Filter::parse("Age ge 30")?;
/// let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: Some(1), from: None };
/// let mut room = PageRoom::for_scan(&scan)?;
/// room.take_examined();
/// assert!(!room.is_full());
/// room.take_returned(60);
/// assert!(room.is_full());
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PageRoom {
    rows: usize,
    examined: usize,
    bytes: usize,
}

impl PageRoom {
    /// Returns the room of the page that `scan` requests, before its first row.
    ///
    /// # Errors
    ///
    /// The errors of [`checked_page_size`].
    pub fn for_scan(scan: &ScanRequest<'_>) -> Result<Self> {
        let rows = checked_page_size(scan)?;
        Ok(Self { rows, examined: EXAMINED_ROWS, bytes: PAGE_BYTES })
    }

    /// Returns whether the page ends before the next row.
    pub fn is_full(&self) -> bool {
        self.rows == 0 || self.examined == 0 || self.bytes == 0
    }

    /// Returns how many rows the page may still return.
    pub const fn rows_left(&self) -> usize {
        self.rows
    }

    /// Takes room for one more row that is examined.
    pub fn take_examined(&mut self) {
        self.examined = self.examined.saturating_sub(1);
    }

    /// Takes room for one more row that is returned. The last row of a page may take more bytes than are
    /// left.
    pub fn take_returned(&mut self, bytes: usize) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

//! Defines continuation tokens, the pages of a query, and the cursor that a program can store.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::OffsetDateTime;

use crate::{
    edm::Ticks,
    error::{Error, ErrorKind},
    key::{fnv1a, stable_hash},
    limits::saturating_u32,
};

/// The service's continuation token: the position of the next row, which only the backend that made
/// it can read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Continuation {
    /// The value of `NextPartitionKey`.
    pub partition_key: String,
    /// The value of `NextRowKey`, which the service can leave out.
    pub row_key: Option<String>,
}

/// One page of a query.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The items of this page. A page can be empty although more pages follow.
    pub items: Vec<T>,
    /// The position of the next page, or `None` after the last one.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// Makes a page.
    ///
    /// ```
    /// use entable_core::Page;
    ///
    /// let page = Page::new(vec!["Jones"], None);
    /// assert_eq!((page.items.len(), page.next), (1, None));
    /// ```
    pub fn new(items: Vec<T>, next: Option<Cursor>) -> Self {
        Self { items, next }
    }
}

/// The position of a loop over pages: the start, the cursor of the next page, or the end.
///
/// Every job, query and worker that reads pages uses this loop:
///
/// ```text
/// let mut pages = PageLoop::from_start();
/// while let Some(from) = pages.take_position() {
///     // Read the page at `from`, and work on it.
///     pages.continue_at(page.next);
///     // Report: a later run can continue at `pages.cursor()`.
/// }
/// ```
///
/// The loop ends unless [`continue_at`](Self::continue_at) is called for the page.
#[derive(Debug)]
#[doc(hidden)]
pub enum PageLoop<C> {
    /// The next page begins at this cursor, or at the start if there is none.
    At(Option<C>),
    /// No page follows.
    End,
}

impl<C> PageLoop<C> {
    /// Begins a loop at the first page.
    pub const fn from_start() -> Self {
        Self::At(None)
    }

    /// Begins a loop at a cursor; at the first page without one.
    pub const fn from_cursor(cursor: Option<C>) -> Self {
        Self::At(cursor)
    }

    /// Returns where the next page begins, and ends the loop until [`continue_at`](Self::continue_at) is called.
    /// Returns `Some(None)` for the first page, and `None` at the end.
    #[allow(clippy::option_option, reason = "a page to read, which may be the first one")]
    pub fn take_position(&mut self) -> Option<Option<C>> {
        match std::mem::replace(self, Self::End) {
            Self::At(from) => Some(from),
            Self::End => None,
        }
    }

    /// Goes on at the cursor that a page names; ends without one.
    pub fn continue_at(&mut self, next: Option<C>) {
        if next.is_some() {
            *self = Self::At(next);
        }
    }

    /// Returns the cursor of the next page, or `None` at the start and at the end.
    pub const fn cursor(&self) -> Option<&C> {
        match self {
            Self::At(from) => from.as_ref(),
            Self::End => None,
        }
    }

    /// Returns whether no page is left.
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::End)
    }
}

/// A position in a query. This process or another can continue reading there.
///
/// Its text is opaque. It holds a format version and a fingerprint of the query. A query refuses the cursor
/// of a different query. `Cursor` implements serde, `Display` and `FromStr`.
///
/// ```
/// use entable_core::Cursor;
///
/// assert!("page 2".parse::<Cursor>().unwrap_err().is_invalid_cursor());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The fingerprint of the query that the cursor belongs to.
    #[doc(hidden)]
    pub fingerprint: u64,
    /// The number of items that earlier pages returned.
    #[doc(hidden)]
    pub returned: u64,
    /// Whether earlier pages held rows that are not items, such as rows of other types.
    #[doc(hidden)]
    pub mixed: bool,
    /// The position of the next page in the store.
    #[doc(hidden)]
    pub at: Continuation,
    /// The dated table that holds the next page's entities, for a scan that reads dated tables in turn.
    /// `None` for any other scan. `at` is empty if the page begins at the start of the table.
    #[doc(hidden)]
    pub table: Option<String>,
    /// The instant from which the program counts the window of its query, for later pages.
    #[doc(hidden)]
    pub as_of: Option<Ticks>,
}

const VERSION: u8 = 1;

const MIXED: u64 = 1 << 63;
const AS_OF: u64 = 1 << 62;

/// Encodes and decodes the cursor's bytes. Numbers are little endian:
///
/// ```text
/// 0   u8   version, 1
/// 1   u32  check sum of all that follows
/// 5   u64  fingerprint of the query
/// 13  u64  rows returned so far; the highest bit: pages held rows that were skipped; the next one: a time follows
///     i64  the time of `as_of`, in ticks since year 1, if there is one
///     u8   bytes of the table's name, 0 unless the query reads several tables; and the name, ASCII
///     u32  bytes of NextPartitionKey
///     ..   NextPartitionKey, UTF-8
///     ..   nothing, or 1 and NextRowKey to the end
/// ```
impl Cursor {
    /// Returns the cursor with the instant from which the query's window is counted. The cursors of later pages
    /// keep it, so a query of "the last 90 days" reads the same 90 days on every page, however long its reader
    /// takes. A window from another instant is another query, which refuses the cursor.
    ///
    /// ```
    /// use entable_core::Cursor;
    /// use time::{Duration, OffsetDateTime};
    ///
    /// /// The instant from which a page of "the last 90 days" counts them.
    /// fn window_end(cursor: Option<&Cursor>, now: OffsetDateTime) -> OffsetDateTime {
    ///     cursor.and_then(Cursor::as_of).unwrap_or(now)
    /// }
    ///
    /// let first = OffsetDateTime::UNIX_EPOCH;
    /// # let next: Cursor = "AWZBzq8BAAAAAAAAAAIAAAAAAAAAAAUAAABTYWxlcw".parse()?;
    /// // `next` is the cursor of the first page.
    /// let next = next.with_as_of(window_end(None, first));
    /// assert_eq!(window_end(Some(&next), first + Duration::hours(1)), first);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// A time outside of the years 1 to 9999 is left out.
    #[must_use]
    pub fn with_as_of(self, time: OffsetDateTime) -> Self {
        Self { as_of: Ticks::try_from(time).ok(), ..self }
    }

    /// Returns the instant from which the query's window is counted, if [`with_as_of`](Self::with_as_of) set one.
    /// Whoever has the cursor can change it: a service that must not show older rows checks it.
    ///
    /// ```
    /// use entable_core::Cursor;
    /// use time::OffsetDateTime;
    ///
    /// // As it comes back in an address, from a page whose program set no instant.
    /// let cursor: Cursor = "AWZBzq8BAAAAAAAAAAIAAAAAAAAAAAUAAABTYWxlcw".parse()?;
    /// assert_eq!(cursor.as_of(), None);
    /// let start = OffsetDateTime::UNIX_EPOCH;
    /// assert_eq!(cursor.with_as_of(start).as_of(), Some(start));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn as_of(&self) -> Option<OffsetDateTime> {
        self.as_of.map(OffsetDateTime::from)
    }

    fn encode(&self) -> Vec<u8> {
        let length = saturating_u32(self.at.partition_key.len());
        let mut body = Vec::with_capacity(64 + self.at.partition_key.len());
        body.extend_from_slice(&self.fingerprint.to_le_bytes());
        // No query returns 2^62 items, so the highest bits of their number are free.
        let returned = self.returned & !(MIXED | AS_OF)
            | if self.mixed { MIXED } else { 0 }
            | if self.as_of.is_some() { AS_OF } else { 0 };
        body.extend_from_slice(&returned.to_le_bytes());
        body.extend(self.as_of.into_iter().flat_map(|time| time.get().to_le_bytes()));
        let table = self.table.as_deref().unwrap_or_default();
        // A table's name has at most 63 characters, all ASCII, so the fallback is never taken.
        body.push(u8::try_from(table.len()).unwrap_or(u8::MAX));
        body.extend_from_slice(table.as_bytes());
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(self.at.partition_key.as_bytes());
        if let Some(row_key) = &self.at.row_key {
            body.push(1);
            body.extend_from_slice(row_key.as_bytes());
        }
        [&[VERSION][..], &check_sum(&body), &body].concat()
    }

    /// Returns whether the query reads several tables and the cursor is at the beginning of one.
    #[doc(hidden)]
    pub fn is_at_table_start(&self) -> bool {
        self.table.is_some() && self.at.partition_key.is_empty() && self.at.row_key.is_none()
    }

    /// Decodes the bytes after the version. Returns `None` if they are damaged.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (sum, body) = bytes.split_first_chunk()?;
        if *sum != check_sum(body) {
            return None;
        }
        let (fingerprint, rest) = body.split_first_chunk()?;
        let (returned, rest) = rest.split_first_chunk()?;
        let returned = u64::from_le_bytes(*returned);
        let (as_of, rest) = match returned & AS_OF {
            0 => (None, rest),
            _ => {
                let (ticks, rest) = rest.split_first_chunk()?;
                (Some(Ticks::new(i64::from_le_bytes(*ticks))?), rest)
            }
        };
        let (length, rest) = rest.split_first()?;
        let (table, rest) = rest.split_at_checked(usize::from(*length))?;
        let table = Some(text_of(table)?).filter(|table| !table.is_empty());
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (partition_key, rest) = rest.split_at_checked(length)?;
        let row_key = match rest {
            [] => None,
            // The 1 distinguishes an empty RowKey from a missing one.
            [1, row_key @ ..] => Some(text_of(row_key)?),
            _ => return None,
        };
        Some(Self {
            fingerprint: u64::from_le_bytes(*fingerprint),
            returned: returned & !(MIXED | AS_OF),
            mixed: returned & MIXED != 0,
            at: Continuation { partition_key: text_of(partition_key)?, row_key },
            table,
            as_of,
        })
    }
}

/// Returns a checksum of a cursor's bytes. Without it, a cursor that lost a character in copying
/// would go on at a wrong row.
fn check_sum(body: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = stable_hash(body).to_le_bytes();
    [a, b, c, d]
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.encode()))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    /// Parses a cursor.
    ///
    /// # Errors
    ///
    /// `is_invalid_cursor` for any other text, and for a cursor of another format version.
    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorKind::InvalidCursor, message);
        // Invalid base64 counts as empty text, which the last arm reports.
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        match bytes.split_first() {
            Some((&VERSION, rest)) => Self::decode(rest).ok_or_else(|| {
                invalid("the cursor is damaged; start again without a cursor".into())
            }),
            Some((version, _)) => Err(invalid(format!(
                "expected a cursor of version {VERSION}, found version {version}; start again without a cursor"
            ))),
            None => Err(invalid(
                "the text is not a cursor; pass the text of `Page::next` unchanged".into(),
            )),
        }
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Returns a stable hash of a query's text (FNV-1a, 64 bits). A cursor holds it, to recognise its
/// query.
#[doc(hidden)]
pub fn text_fingerprint(text: &str) -> u64 {
    fnv1a(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn cursors()(
            fingerprint: u64,
            returned in 0..AS_OF,
            mixed: bool,
            partition_key in ".*",
            row_key in proptest::option::of(".*"),
            table in proptest::option::of("[A-Za-z0-9]{3,63}"),
            as_of in proptest::option::of(0..=Ticks::MAX.get()),
        ) -> Cursor {
            let at = Continuation { partition_key, row_key };
            let as_of = as_of.and_then(Ticks::new);
            Cursor { fingerprint, returned, mixed, at, table, as_of }
        }
    }

    proptest! {
        #[test]
        fn a_cursor_goes_through_text_and_serde(cursor in cursors()) {
            let text = cursor.to_string();
            prop_assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
            prop_assert_eq!(&text.parse::<Cursor>().unwrap(), &cursor);
            let json = serde_json::to_string(&cursor).unwrap();
            prop_assert_eq!(json.clone(), format!("\"{text}\""));
            prop_assert_eq!(serde_json::from_str::<Cursor>(&json).unwrap(), cursor);
        }

        #[test]
        fn a_cut_cursor_is_refused(cursor in cursors(), cut: prop::sample::Index) {
            let text = cursor.to_string();
            let error = text[..cut.index(text.len())].parse::<Cursor>().unwrap_err();
            prop_assert!(error.is_invalid_cursor());
        }

        #[test]
        fn a_changed_character_is_refused(
            cursor in cursors(),
            at: prop::sample::Index,
            to in "[A-Za-z0-9_-]",
        ) {
            let text = cursor.to_string();
            let at = at.index(text.len());
            let changed = [&text[..at], &to, &text[at + 1..]].concat();
            prop_assume!(changed != text);
            prop_assert!(changed.parse::<Cursor>().unwrap_err().is_invalid_cursor());
        }
    }

    #[test]
    fn the_format_does_not_change() {
        let at = Continuation { partition_key: "Sales".into(), row_key: Some("empid_7".into()) };
        let cursor =
            Cursor { fingerprint: 1, returned: 2, mixed: false, at, table: None, as_of: None };
        assert_eq!(cursor.to_string(), "AZMlJvoBAAAAAAAAAAIAAAAAAAAAAAUAAABTYWxlcwFlbXBpZF83");
        let cursor = Cursor { at: Continuation { row_key: None, ..cursor.at }, ..cursor };
        assert_eq!(cursor.to_string(), "AWZBzq8BAAAAAAAAAAIAAAAAAAAAAAUAAABTYWxlcw");
    }

    #[test]
    fn another_version_is_named() {
        let error = URL_SAFE_NO_PAD.encode([3, 0, 0]).parse::<Cursor>().unwrap_err();
        assert!(error.is_invalid_cursor());
        assert!(error.message().contains("found version 3"), "{error}");
    }
}

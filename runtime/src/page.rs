//! Continuation tokens and the cursor that a program can keep.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::{Error, ErrorKind};

/// Where a backend goes on: it names the next row, and is opaque to all but the backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Continuation {
    /// `NextPartitionKey`.
    pub partition_key: String,
    /// `NextRowKey`, which a service may leave out.
    pub row_key: Option<String>,
}

/// One page of a query.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, possibly none although there are more pages.
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    pub(crate) fn new(items: Vec<T>, next: Option<Cursor>) -> Self {
        Self { items, next }
    }
}

/// Where a query goes on, in this process or another.
///
/// Opaque text with a version and a fingerprint of its query: another query refuses it. It goes
/// through serde, `Display` and `FromStr`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub(crate) fingerprint: u64,
    pub(crate) returned: u64,
    pub(crate) at: Continuation,
}

const VERSION: u8 = 1;

impl Cursor {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        bytes.extend_from_slice(&self.returned.to_le_bytes());
        let length = u32::try_from(self.at.partition_key.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(self.at.partition_key.as_bytes());
        if let Some(row_key) = &self.at.row_key {
            bytes.push(1);
            bytes.extend_from_slice(row_key.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let (fingerprint, rest) = rest.split_first_chunk()?;
        let (returned, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (partition_key, rest) = rest.split_at_checked(length)?;
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        let row_key = match rest.split_first() {
            None => None,
            Some((1, row_key)) => Some(text(row_key)?),
            Some(_) => return None,
        };
        Some(Self {
            fingerprint: u64::from_le_bytes(*fingerprint),
            returned: u64::from_le_bytes(*returned),
            at: Continuation { partition_key: text(partition_key)?, row_key },
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.encode()))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| Self::decode(&bytes)).ok_or_else(|| {
            Error::new(ErrorKind::InvalidCursor, "the text is not a cursor of this version")
        })
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

/// A stable hash of a query's text (FNV-1a, 64 bits), so that a cursor knows its query.
pub(crate) fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

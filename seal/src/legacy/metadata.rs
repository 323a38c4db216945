//! The metadata of a legacy row: wrapped content key, initialization vector, and writing library.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use entable_core::{
    edm::ValueRef,
    error::{Error, Result, SealFault},
    row::Row,
};

/// The property that holds the metadata as JSON.
pub const METADATA_PROPERTY: &str = "_ClientEncryptionMetadata1";
/// The property that holds the encrypted list of the names of encrypted properties.
pub(super) const NAMES_PROPERTY: &str = "_ClientEncryptionMetadata2";

/// The content key of a row in its stored form: encrypted (wrapped) by another key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrappedKey {
    /// The id of the wrapping key.
    pub key_id: String,
    /// The wrapping algorithm: `A256KW`, `RSA-OAEP` (with SHA-1), `RSA1_5`, or another name that the
    /// writer's key used.
    pub algorithm: String,
    /// The wrapped key.
    pub bytes: Vec<u8>,
}

/// The decoded metadata of a row.
pub(super) struct LegacyMetadata {
    pub(super) wrapped: WrappedKey,
    pub(super) is_java: bool,
    iv: [u8; 16],
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StoredMetadata {
    wrapped_content_key: StoredWrappedKey,
    encryption_agent: EncryptionAgent,
    #[serde(rename = "ContentEncryptionIV")]
    content_encryption_iv: String,
    key_wrapping_metadata: Option<KeyWrappingMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StoredWrappedKey {
    key_id: String,
    encrypted_key: String,
    algorithm: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EncryptionAgent {
    protocol: String,
    encryption_algorithm: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyWrappingMetadata {
    encryption_library: Option<String>,
}

impl LegacyMetadata {
    /// Reads the metadata property of a row. Fails if the property is missing or malformed, or names another
    /// protocol than `1.0` with `AES_CBC_256`.
    pub(super) fn read_metadata(row: &Row) -> Result<Self> {
        let Some(ValueRef::String(text)) = row.get(METADATA_PROPERTY)? else {
            return Err(Error::seal(
                SealFault::NotEncrypted,
                format!(
                    "the row is not encrypted by the legacy protocol: it has no `{METADATA_PROPERTY}`"
                ),
            ));
        };
        let stored: StoredMetadata = serde_json::from_str(text).map_err(|_| malformed_error())?;
        let agent = &stored.encryption_agent;
        // Only this protocol and cipher are read: another one would decrypt to garbage.
        if agent.protocol != "1.0" || agent.encryption_algorithm != "AES_CBC_256" {
            return Err(Error::seal(
                SealFault::Malformed,
                format!(
                    "the row is encrypted with protocol `{}` and `{}`, but only `1.0` with `AES_CBC_256` can be read",
                    agent.protocol.escape_debug(),
                    agent.encryption_algorithm.escape_debug()
                ),
            ));
        }
        let decode = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| malformed_error());
        let iv = decode(&stored.content_encryption_iv)?;
        let wrapped = WrappedKey {
            bytes: decode(&stored.wrapped_content_key.encrypted_key)?,
            key_id: stored.wrapped_content_key.key_id,
            algorithm: stored.wrapped_content_key.algorithm,
        };
        Ok(Self {
            wrapped,
            is_java: match stored.key_wrapping_metadata {
                None => true,
                Some(writer) => writer.encryption_library.is_some_and(|name| name.contains("Java")),
            },
            iv: iv.try_into().map_err(|_| malformed_error())?,
        })
    }

    /// Returns the initialization vector of a property: a hash of the row's vector, both keys and the
    /// name, with nothing in between. Java hashes the PartitionKey first, the other libraries the RowKey.
    pub(super) fn property_iv(&self, row: &Row, property: &str) -> [u8; 16] {
        let (first, second) = if self.is_java {
            (row.partition_key(), row.row_key())
        } else {
            (row.row_key(), row.partition_key())
        };
        let hash = Sha256::new_with_prefix(self.iv)
            .chain_update(first)
            .chain_update(second)
            .chain_update(property)
            .finalize();
        let mut iv = [0; 16];
        iv.iter_mut().zip(hash).for_each(|(iv, byte)| *iv = byte);
        iv
    }

    /// Splits the decrypted list into names. It is JSON, except that Java wrote `[A, B]`.
    pub(super) fn split_names(&self, list: &str) -> Option<Vec<String>> {
        if !self.is_java {
            return serde_json::from_str(list).ok();
        }
        let names = list.strip_prefix('[')?.strip_suffix(']')?.split([',', ' ']);
        Some(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }
}

fn malformed_error() -> Error {
    Error::seal(
        SealFault::Malformed,
        format!("the row's `{METADATA_PROPERTY}` does not have the form of the legacy protocol"),
    )
}

/// Returns the error for every failure to unwrap the content key or to decrypt with it, except an unavailable wrapping
/// key. It is always the same, so it does not reveal the cause.
pub(super) fn legacy_decrypt_error() -> Error {
    Error::seal(
        SealFault::Authentication,
        "the row cannot be decrypted with this key by the legacy protocol",
    )
}

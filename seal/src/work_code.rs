//! Codes over the work of workers: proof that somebody who holds the keys asked for it.
//!
//! ```text
//! 0   AE 6E   magic
//! 2   01      suite
//! 3   8       key id
//! 11  32      HMAC-SHA256
//! ```

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    binding::length_prefix_bytes,
    canonical,
    data_key::{DataKey, authentication_error, key_not_found_error, not_encrypted_error},
    envelope::KeyId,
};
use entable_core::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result, SealFault},
};

/// The first two bytes of every work code; the suite follows.
const MAGIC: [u8; 2] = [0xae, 0x6e];
/// The suite of work codes: HMAC-SHA256.
const SUITE: u8 = 1;
/// The first bytes of the input, which keep it apart from other uses of a key.
const DOMAIN: &[u8] = b"azt-work-v1\0";

/// Bytes that a work code covers, without the id of the key: the kind of the work, and its fields. They
/// are wiped when dropped, since a move's fields are secret values.
#[derive(Clone)]
pub(crate) struct WorkInput {
    kind: u8,
    fields: Zeroizing<Vec<u8>>,
}

impl WorkInput {
    /// Creates the input of a work code for work of this kind, without fields yet.
    pub(crate) fn new(kind: u8) -> Self {
        Self { kind, fields: Zeroizing::new(Vec::with_capacity(256)) }
    }

    /// Appends a text after its length.
    pub(crate) fn push_text(&mut self, text: &str) {
        self.fields.extend_from_slice(&length_prefix_bytes(text.len()));
        self.fields.extend_from_slice(text.as_bytes());
    }

    /// Appends a number of 32 bits.
    pub(crate) fn push_number(&mut self, number: u32) {
        self.fields.extend_from_slice(&number.to_be_bytes());
    }

    /// Appends a time, as ticks of 100 ns since 1970.
    pub(crate) fn push_time(&mut self, ticks: i64) {
        self.fields.extend_from_slice(&ticks.to_be_bytes());
    }

    /// Appends bytes as they are. Their length must follow from the kind.
    pub(crate) fn push_bytes_without_length(&mut self, bytes: &[u8]) {
        self.fields.extend_from_slice(bytes);
    }

    /// Appends a value after the length of its type tag and bytes. `None` is written as the tag of a hidden absence.
    pub(crate) fn push_value(&mut self, value: Option<ValueRef<'_>>) {
        let mut bytes = Zeroizing::new(Vec::new());
        match value {
            None => bytes.push(canonical::NULL),
            Some(value) => canonical::write_value(&mut bytes, canonical::normal_form(value)),
        }
        self.fields.extend_from_slice(&length_prefix_bytes(bytes.len()));
        self.fields.extend_from_slice(&bytes);
    }
}

impl DataKey {
    /// Returns the code over work, such as a message or a move: names the suite and the key, and
    /// ends with the HMAC of `input`.
    ///
    /// # Errors
    ///
    /// None in practice: HMAC takes keys of any length.
    pub(crate) fn sign_work(&self, input: &WorkInput) -> Result<Vec<u8>> {
        let [m0, m1] = MAGIC;
        let mut code = vec![m0, m1, SUITE];
        code.extend_from_slice(self.id().as_bytes());
        code.extend_from_slice(&self.work_mac(input)?.finalize().into_bytes());
        Ok(code)
    }

    /// Verifies the code over some work, in constant time.
    ///
    /// # Errors
    ///
    /// `is_decrypt` if the bytes are not a work code, or are a code by another key or for other work.
    pub(crate) fn verify_work(&self, input: &WorkInput, code: &[u8]) -> Result<()> {
        let (id, mac) = split_code(code)?;
        if id != self.id() {
            return Err(key_not_found_error(id));
        }
        self.work_mac(input)?.verify_slice(mac).map_err(|_| authentication_error())
    }

    fn work_mac(&self, input: &WorkInput) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.work.as_slice()).map_err(|_| {
            Error::new(ErrorKind::Invalid, "HMAC refuses the length of the work's key")
        })?;
        // The domain and the kind keep a code from being valid for other work.
        mac.update(DOMAIN);
        mac.update(&[input.kind]);
        mac.update(self.id().as_bytes());
        mac.update(&input.fields);
        Ok(mac)
    }
}

/// Splits a work code into the id of its key and its MAC.
fn split_code(code: &[u8]) -> Result<(KeyId, &[u8; 32])> {
    let Some(rest) = code.strip_prefix(&MAGIC) else { return Err(not_encrypted_error()) };
    let malformed = || Error::seal(SealFault::Malformed, "the code over the work is truncated");
    let (&suite, rest) = rest.split_first().ok_or_else(malformed)?;
    if suite != SUITE {
        let message = format!(
            "the work's code has suite {suite}, but this version of entable knows only suite {SUITE}"
        );
        return Err(Error::seal(SealFault::UnsupportedSuite(suite), message));
    }
    let (id, mac) = rest.split_first_chunk().ok_or_else(malformed)?;
    let mac = mac.try_into().map_err(|_| malformed())?;
    Ok((KeyId::from_bytes(*id), mac))
}

/// Returns the id of the key that a work code was made with.
///
/// # Errors
///
/// `is_decrypt` if the bytes are not a complete work code of a known suite.
pub(crate) fn work_key_id_of(code: &[u8]) -> Result<KeyId> {
    split_code(code).map(|(id, _)| id)
}

//! Seals of whole entities: a code over the names, types and values of all properties, which detects
//! a property that was changed, added or removed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{
    binding::{ValueBinding, length_prefix_bytes},
    canonical,
    data_key::{DataKey, authentication_error, not_encrypted_error},
    envelope::KeyId,
};
use entable_core::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result, SealFault},
    row::Row,
};

/// The first two bytes of every seal; the suite follows.
const MAGIC: [u8; 2] = [0xae, 0x5e];
/// The suite of seals: HMAC-SHA256.
const SUITE: u8 = 1;
/// The first bytes of the sealed text, which keep it apart from other uses of a key.
const DOMAIN: &[u8] = b"azt-seal-v1\0";

impl DataKey {
    /// Returns a seal over the stored form of an entity: its table and keys, and the name, type and
    /// value of each property. `binding.property` is the property that will hold the seal, and is left
    /// out.
    ///
    /// An encrypted property counts with its envelope: seal after encrypting, and verify before
    /// decrypting.
    ///
    /// # Errors
    ///
    /// `is_invalid` if `properties` contains a name twice.
    pub fn seal(
        &self,
        binding: &ValueBinding<'_>,
        properties: &[(&str, ValueRef<'_>)],
    ) -> Result<Vec<u8>> {
        let mac =
            self.begin_mac(binding, properties).map_err(|error| binding.error_at_value(error))?;
        let [m0, m1] = MAGIC;
        let mut seal = vec![m0, m1, SUITE];
        seal.extend_from_slice(self.id().as_bytes());
        seal.extend_from_slice(&mac.finalize().into_bytes());
        Ok(seal)
    }

    /// Verifies the seal of an entity that was read, in constant time.
    ///
    /// # Errors
    ///
    /// `is_decrypt` if the bytes are not a seal, or are a seal by another key or of another entity.
    pub fn verify_seal(
        &self,
        binding: &ValueBinding<'_>,
        properties: &[(&str, ValueRef<'_>)],
        seal: &[u8],
    ) -> Result<()> {
        self.verify_entity_mac(binding, properties, seal)
            .map_err(|error| binding.error_at_value(error))
    }

    fn verify_entity_mac(
        &self,
        binding: &ValueBinding<'_>,
        of: &[(&str, ValueRef<'_>)],
        seal: &[u8],
    ) -> Result<()> {
        let Some((id, sealed)) = split_seal(seal)? else { return Err(not_encrypted_error()) };
        if id != self.id() {
            return Err(crate::data_key::key_not_found_error(id));
        }
        // A seal is never made over a name that occurs twice, so such a row was changed.
        let mac = self.begin_mac(binding, of).map_err(|_| authentication_error())?;
        mac.verify_slice(sealed).map_err(|_| authentication_error())
    }

    /// Returns a MAC that has read an entity's table, keys and properties, except the property that
    /// holds the seal. The caller finalizes or verifies the MAC.
    fn begin_mac(
        &self,
        binding: &ValueBinding<'_>,
        of: &[(&str, ValueRef<'_>)],
    ) -> Result<Hmac<Sha256>> {
        let own = binding.property;
        let mut properties: Vec<_> = of.iter().filter(|(name, _)| *name != own).collect();
        // Sorted by name: the service returns properties in any order.
        properties.sort_unstable_by_key(|(name, _)| *name);
        let names = || properties.iter().map(|(name, _)| *name);
        if let Some((name, _)) = names().zip(names().skip(1)).find(|(one, next)| one == next) {
            let message = format!("property `{}` is given twice", name.escape_debug());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(self.seal.as_slice()).map_err(|_| {
            Error::new(ErrorKind::Invalid, "HMAC refuses the length of the seal's key")
        })?;
        mac.update(DOMAIN);
        mac.update(self.id().as_bytes());
        for part in [binding.table, binding.partition_key, binding.row_key] {
            update_mac(&mut mac, part.as_bytes());
        }
        // The code covers the number of properties, so none can be left out at the end.
        mac.update(&length_prefix_bytes(properties.len()));
        let mut value = Vec::new();
        for (name, stored) in properties {
            update_mac(&mut mac, name.as_bytes());
            value.clear();
            canonical::write_value(&mut value, canonical::normal_form(*stored));
            update_mac(&mut mac, &value);
        }
        Ok(mac)
    }
}

fn update_mac(mac: &mut Hmac<Sha256>, bytes: &[u8]) {
    mac.update(&length_prefix_bytes(bytes.len()));
    mac.update(bytes);
}

/// Splits a seal into the id of its key and its code. Returns `None` for bytes that do not begin as a seal.
/// Fails for a seal of another suite or another length.
fn split_seal(seal: &[u8]) -> Result<Option<(KeyId, &[u8])>> {
    let Some(rest) = seal.strip_prefix(&MAGIC) else { return Ok(None) };
    let malformed_error = || Error::seal(SealFault::Malformed, "the seal is truncated");
    let (&suite, rest) = rest.split_first().ok_or_else(malformed_error)?;
    if suite != SUITE {
        let message = format!(
            "the seal has suite {suite}, but this version of entable knows only suite {SUITE}"
        );
        return Err(Error::seal(SealFault::UnsupportedSuite(suite), message));
    }
    let (id, code) = rest.split_first_chunk().ok_or_else(malformed_error)?;
    if code.len() != 32 {
        return Err(malformed_error());
    }
    Ok(Some((KeyId::from_bytes(*id), code)))
}

/// Returns the id of the key that a seal was made with, or `None` if the bytes are not a seal.
///
/// # Errors
///
/// `is_decrypt` for a seal that is truncated or has an unknown suite.
pub fn seal_key_id_of(seal: &[u8]) -> Result<Option<KeyId>> {
    Ok(split_seal(seal)?.map(|(id, _)| id))
}

/// Returns the properties of a row in the form that [`DataKey::seal`](DataKey::seal) takes.
///
/// # Errors
///
/// `is_corrupt` if the row is damaged.
pub fn properties_to_seal(row: &Row) -> Result<Vec<(&str, ValueRef<'_>)>> {
    let mut taken = Vec::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = std::str::from_utf8(name).map_err(|_| {
            Error::new(
                ErrorKind::Corrupt,
                "the stored row is damaged: a property's name is not UTF-8",
            )
        })?;
        taken.push((name, value));
    }
    Ok(taken)
}

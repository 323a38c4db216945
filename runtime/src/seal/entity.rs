//! The seal of a whole entity: which properties it has, of which types, with which values.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::{
    canonical,
    data_key::{DataKey, authentication, not_encrypted},
    envelope::KeyId,
    place::{Place, counted},
};
use crate::{
    edm::ValueRef,
    error::{Error, ErrorKind, Result, SealFault},
    row::Row,
};

/// Begins every seal: magic, then the suite.
const MAGIC: [u8; 2] = [0xae, 0x5e];
/// HMAC-SHA256.
const SUITE: u8 = 1;
/// Begins what is sealed.
const DOMAIN: &[u8] = b"azt-seal-v1\0";

impl DataKey {
    /// The seal over an entity as it is stored: table, keys, and the names, types and values of
    /// these properties. `place.property` is where the seal itself is kept; it is left out.
    ///
    /// Values are taken as stored, encrypted ones as their envelopes, so that a seal is made last
    /// and checked first.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a property that is given twice.
    pub fn seal(&self, place: &Place<'_>, properties: &[(&str, ValueRef<'_>)]) -> Result<Vec<u8>> {
        let mac = self.mac(place, properties).map_err(|error| place.name(error))?;
        let [m0, m1] = MAGIC;
        let mut seal = vec![m0, m1, SUITE];
        seal.extend_from_slice(self.id().as_bytes());
        seal.extend_from_slice(&mac.finalize().into_bytes());
        Ok(seal)
    }

    /// Checks the seal of an entity as it was read, in constant time.
    ///
    /// # Errors
    ///
    /// `is_decrypt`: no seal, a seal of another key, or one that is not of this entity.
    pub fn verify_seal(
        &self,
        place: &Place<'_>,
        properties: &[(&str, ValueRef<'_>)],
        seal: &[u8],
    ) -> Result<()> {
        self.verify(place, properties, seal).map_err(|error| place.name(error))
    }

    fn verify(&self, place: &Place<'_>, of: &[(&str, ValueRef<'_>)], seal: &[u8]) -> Result<()> {
        let Some((id, sealed)) = parts(seal)? else { return Err(not_encrypted()) };
        if id != self.id() {
            return Err(super::data_key::key_not_found(id));
        }
        // A property that stands there twice was not sealed so.
        let mac = self.mac(place, of).map_err(|_| authentication())?;
        mac.verify_slice(sealed).map_err(|_| authentication())
    }

    fn mac(&self, place: &Place<'_>, of: &[(&str, ValueRef<'_>)]) -> Result<Hmac<Sha256>> {
        let own = place.property;
        let mut properties: Vec<_> = of.iter().filter(|(name, _)| *name != own).collect();
        properties.sort_unstable_by_key(|(name, _)| *name);
        if let Some([(name, _), _]) =
            properties.array_windows().find(|[(one, _), (next, _)]| one == next)
        {
            let message = format!("property `{}` is given twice", name.escape_debug());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(self.seal.as_slice())
            .map_err(|_| Error::new(ErrorKind::Invalid, "the seal's key is of no length"))?;
        mac.update(DOMAIN);
        mac.update(self.id().as_bytes());
        for part in [place.table, place.partition_key, place.row_key] {
            update(&mut mac, part.as_bytes());
        }
        mac.update(&counted(properties.len()));
        let mut value = Vec::new();
        for (name, stored) in properties {
            update(&mut mac, name.as_bytes());
            value.clear();
            canonical::write(&mut value, as_returned(*stored));
            update(&mut mac, &value);
        }
        Ok(mac)
    }
}

fn update(mac: &mut Hmac<Sha256>, bytes: &[u8]) {
    mac.update(&counted(bytes.len()));
    mac.update(bytes);
}

/// A value as the service gives it back: it knows one NaN only.
fn as_returned(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::Double(v) if v.is_nan() => ValueRef::Double(f64::NAN),
        other => other,
    }
}

/// Key id and code of a seal; `None` for bytes that are none.
fn parts(seal: &[u8]) -> Result<Option<(KeyId, &[u8])>> {
    let Some(rest) = seal.strip_prefix(&MAGIC) else { return Ok(None) };
    let malformed = || Error::seal(SealFault::Malformed, "the seal is cut");
    let (&suite, rest) = rest.split_first().ok_or_else(malformed)?;
    if suite != SUITE {
        let message =
            format!("the seal is of suite {suite}, this version knows suite {SUITE} only");
        return Err(Error::seal(SealFault::UnsupportedSuite(suite), message));
    }
    let (id, code) = rest.split_first_chunk().ok_or_else(malformed)?;
    if code.len() != 32 {
        return Err(malformed());
    }
    Ok(Some((KeyId::from_bytes(*id), code)))
}

/// Which key a seal is made with; `None` for bytes that are no seal.
///
/// # Errors
///
/// `is_decrypt` for a seal that is cut or of an unknown suite.
pub fn seal_key_id_of(seal: &[u8]) -> Result<Option<KeyId>> {
    Ok(parts(seal)?.map(|(id, _)| id))
}

/// The properties of a row as a seal takes them.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
pub fn properties_of(row: &Row) -> Result<Vec<(&str, ValueRef<'_>)>> {
    let mut taken = Vec::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = std::str::from_utf8(name).map_err(|_| {
            Error::new(ErrorKind::Corrupt, "stored row is damaged: a property's name is not UTF-8")
        })?;
        taken.push((name, value));
    }
    Ok(taken)
}

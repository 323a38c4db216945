//! Envelopes, seals and keyrings that nobody wrote.

use entable::{
    DataKey, Keyring, RootKey, SealFault,
    seal::{ValueBinding, is_envelope, key_id_of, seal_key_id_of, sealed_len, token_version},
};

/// What is no envelope of the key is refused for the reason that its bytes give; what the key itself
/// seals comes back.
pub(crate) fn envelope(data: &[u8]) {
    let key = DataKey::from_root(&RootKey::from_bytes([0x42; 32]));
    let place = ValueBinding { table: "T", partition_key: "p", row_key: "r", property: "P" };
    let opened = key.decrypt(&place, data);
    match key_id_of(data) {
        Ok(None) => {
            assert!(!is_envelope(data));
            assert_eq!(opened.unwrap_err().seal_fault(), Some(SealFault::NotEncrypted));
        }
        Ok(Some(id)) if id == key.id() => {
            // The corpus holds envelopes of this key: those open, and no others do.
            match opened {
                Ok(value) => {
                    let length = sealed_len(value.as_ref().map(|value| value.as_ref()), 0);
                    assert!(length <= data.len());
                }
                Err(error) => assert_eq!(error.seal_fault(), Some(SealFault::Authentication)),
            }
        }
        Ok(Some(id)) => {
            let expected = SealFault::KeyNotFound(*id.as_bytes());
            assert_eq!(opened.unwrap_err().seal_fault(), Some(expected));
        }
        Err(error) => assert_eq!(opened.unwrap_err().seal_fault(), error.seal_fault()),
    }
    if key.verify_seal(&place, &[], data).is_ok() {
        assert_eq!(seal_key_id_of(data).unwrap(), Some(key.id()));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = token_version(text);
    drop(Keyring::parse(text));
    let sealed =
        key.encrypt(&place, Some(entable::ValueRef::String(text)), text.len() % 7).unwrap();
    let back = key.decrypt(&place, &sealed).unwrap();
    assert_eq!(back.as_ref().and_then(|value| value.as_str()), Some(text));
}

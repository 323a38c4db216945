//! The shared key of an account, which signs requests and shared access signatures.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use entable_core::error::{Error, ErrorKind, Result};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

/// The account of the emulator, and its key, which is public.
pub(crate) const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
/// The key of the storage emulator, which is public.
pub const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Maximum length of an account name in bytes. A 64-byte key is 88 bytes in base64, so it never passes for a name.
const NAME_BYTES: usize = 63;

/// The name of an account and one of its keys.
///
/// The key is never printed: `Debug` shows the account alone.
#[derive(Clone)]
pub struct AccountKey {
    account: String,
    mac: Hmac<Sha256>,
}

impl AccountKey {
    /// Makes a key from its base64 text, as the Azure portal shows it.
    ///
    /// ```
    /// use entable_azure::AccountKey;
    ///
    /// let key = AccountKey::new("myaccount", "AAECAwQ=")?;
    /// assert_eq!(key.account(), "myaccount");
    /// assert!(!format!("{key:?}").contains("AAECAwQ"));
    /// assert!(AccountKey::new("myaccount", "no base64!").is_err_and(|error| error.is_invalid()));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` for a key that is empty or not base64, and for a name that no account can have.
    /// The error quotes neither the key nor the name.
    pub fn new(account: impl Into<String>, key: &str) -> Result<Self> {
        let invalid = || {
            Error::new(
                ErrorKind::Invalid,
                "the account key is not base64; copy all of it, with the `=` at its end",
            )
        };
        let bytes = STANDARD.decode(key.trim()).map(Zeroizing::new).map_err(|_| invalid())?;
        if bytes.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "the account key is empty"));
        }
        let account = account.into();
        // `Debug` shows the name and each request sends it, so a key must not pass for a name.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if account.is_empty() || account.len() > NAME_BYTES || !account.bytes().all(is_name) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the account's name is not valid; give the name first, then the key",
            ));
        }
        Ok(Self { account, mac: hmac_with_key(&bytes) })
    }

    /// Returns the well-known key of the emulator.
    ///
    /// ```
    /// assert_eq!(entable_azure::AccountKey::emulator().account(), "devstoreaccount1");
    /// ```
    pub fn emulator() -> Self {
        // The constant is valid base64: the default, an empty key, is never taken.
        let bytes = Zeroizing::new(STANDARD.decode(EMULATOR_KEY).unwrap_or_default());
        Self { account: EMULATOR_ACCOUNT.to_owned(), mac: hmac_with_key(&bytes) }
    }

    /// Returns the name of the account.
    ///
    /// ```
    /// let key = entable_azure::AccountKey::new("myaccount", "AAECAwQ=")?;
    /// assert_eq!(key.account(), "myaccount");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Returns the HMAC-SHA256 of a text, as base64. Clients sign requests with it, and servers check them.
    ///
    /// ```
    /// let key = entable_azure::AccountKey::new("myaccount", "AAECAwQ=")?;
    /// assert_eq!(key.sign_text("text"), "86X3IKMCbwnWxVoRc9DUo06kjQVDTXxQtxtx2dUlIoc=");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn sign_text(&self, text: &str) -> String {
        let mut mac = self.mac.clone();
        mac.update(text.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

/// Makes an HMAC from a key of any length. A key longer than a block of 64 bytes is replaced by its
/// hash, as RFC 2104 demands.
fn hmac_with_key(key: &[u8]) -> Hmac<Sha256> {
    let mut block = Zeroizing::new([0; 64]);
    let mut digest = Sha256::digest(key);
    let bytes = if key.len() > block.len() { &digest } else { key };
    block.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    digest.as_mut_slice().zeroize();
    // A key of one block is taken as it is. The state that is made of it is wiped when it is dropped.
    Hmac::new((&*block).into())
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountKey").field("account", &self.account).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use zeroize::ZeroizeOnDrop;

    use super::*;

    #[test]
    fn the_state_of_the_key_is_wiped() {
        fn is_wiped<T: ZeroizeOnDrop>() {}
        // An HMAC consists of two such states. Fails to compile without the feature `zeroize` of the crate.
        is_wiped::<Sha256>();
    }

    #[test]
    fn a_key_of_any_length_signs_as_rfc_2104_says() {
        for length in [1, 63, 64, 65, 200] {
            let bytes = vec![7; length];
            let mut mac = Hmac::<Sha256>::new_from_slice(&bytes).unwrap();
            mac.update(b"text");
            let expected = STANDARD.encode(mac.finalize().into_bytes());
            let key = AccountKey::new("me", &STANDARD.encode(&bytes)).unwrap();
            assert_eq!(key.sign_text("text"), expected, "{length}");
        }
    }
}

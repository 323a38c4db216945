//! The text form of a keyring: one key per line.
//!
//! ```text
//! entable-keyring 1
//! # a comment
//! data  default  primary    <64 hex digits>  pin=<32 to 64 hex digits>
//! data  default  decrypt    <64 hex digits>
//! index default  1 current  <64 hex digits>
//! index default  2 other    <64 hex digits>
//! ```
//!
//! An error contains the number of the line but not its text, because a misplaced word may be a secret. If a key
//! contradicts its pin or an earlier line, the error also contains the key's scope, id or version.

use std::{
    fmt::Write,
    fs::File,
    io::{self, Read},
    path::Path,
};

use zeroize::Zeroizing;

use super::{builder::KeyringBuilder, ring::Keyring};
use crate::{data_key::DataKey, provider::KeyScope, root::RootKey};
use entable_core::error::{Error, ErrorKind, Result, SealFault};

const HEADER: &str = "entable-keyring 1";

impl Keyring {
    /// Reads a keyring from its text form, which `docs/encryption.md` specifies.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring};
    ///
    /// let text = Keyring::generate_text()?;
    /// let keys = Keyring::parse(&text)?;
    /// assert_eq!(keys.key_ids(&KeyScope::default_scope()).len(), 1);
    /// assert!(Keyring::parse("no keyring").unwrap_err().is_invalid());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` and the number of the wrong line. The error does not quote the line, except the scope
    /// and the version of a key that contradicts an earlier line. Fails with [`SealFault::KeyIdMismatch`] for a key
    /// that does not have the fingerprint after `pin=`.
    pub fn parse(text: &str) -> Result<Self> {
        parse(text)?.build()
    }

    /// Reads a keyring from a file, which nobody but its owner may be able to write (where the system has
    /// such permissions).
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("keys.txt");
    /// std::fs::write(&path, Keyring::generate_text()?.as_bytes())?;
    /// # #[cfg(unix)]
    /// # std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    /// let keys = Keyring::from_file(&path)?;
    /// assert_eq!(keys.key_ids(&KeyScope::default_scope()).len(), 1);
    /// assert!(Keyring::from_file("missing").unwrap_err().is_key_unavailable());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](Self::parse); `is_invalid` if other users can write the file; `is_key_unavailable` if the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unreadable = |cause| {
            let fault = SealFault::KeyUnavailable { retryable: false };
            let message = format!("the keyring `{}` cannot be read", path.display());
            Error::seal(fault, message).with_source(cause)
        };
        let mut file = File::open(path).map_err(unreadable)?;
        if is_writable_by_others(&file).map_err(unreadable)? {
            let message = format!(
                "other users can write to the keyring `{}` and add keys of their own; remove the permission with \
                 `chmod 600`",
                path.display()
            );
            // Refused before it is read: such a file may hold keys of somebody else.
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Wiped when dropped: the text holds every key.
        let mut text = Zeroizing::new(String::new());
        file.read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text)
    }

    /// Reads a keyring from an environment variable. Prefer a file: child processes see the
    /// environment, and logs often contain it.
    ///
    /// ```
    /// use entable_seal::Keyring;
    ///
    /// assert!(Keyring::from_env("A_VARIABLE_THAT_IS_NOT_SET").unwrap_err().is_key_unavailable());
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](Self::parse); `is_key_unavailable` if the variable is not set.
    pub fn from_env(variable: &str) -> Result<Self> {
        // The cause is dropped: it would quote a value that is not UTF-8.
        let text = std::env::var(variable).map(Zeroizing::new).map_err(|_| {
            let fault = SealFault::KeyUnavailable { retryable: false };
            let message =
                format!("the environment variable `{variable}` is not set or is not UTF-8");
            Error::seal(fault, message)
        })?;
        Self::parse(&text)
    }

    /// Generates a new keyring with a data key and a blind token key for the default scope, and returns its
    /// text form, for a store of secrets.
    ///
    /// ```
    /// use entable_seal::Keyring;
    ///
    /// let (one, two) = (Keyring::generate_text()?, Keyring::generate_text()?);
    /// assert_ne!(one, two);
    /// assert!(Keyring::parse(&one).is_ok());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the system has no random bytes.
    pub fn generate_text() -> Result<Zeroizing<String>> {
        generate()
    }
}

/// Returns whether the file's permissions let its group or everybody write it.
#[cfg_attr(not(unix), allow(clippy::unnecessary_wraps, reason = "no such permissions"))]
fn is_writable_by_others(file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    let is_writable =
        std::os::unix::fs::PermissionsExt::mode(&file.metadata()?.permissions()) & 0o022 != 0;
    #[cfg(not(unix))]
    let is_writable = file.metadata().map(|_| false)?;
    Ok(is_writable)
}

/// Reads the lines of a keyring into a builder.
fn parse(text: &str) -> Result<KeyringBuilder> {
    let mut ring = Keyring::builder();
    let mut has_header = false;
    // Some editors put an invisible byte order mark before a text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refuse = |why: &str| {
            let message = format!("line {} of the keyring {why}", number + 1);
            Error::new(ErrorKind::Invalid, message)
        };
        if !has_header {
            has_header = line == HEADER;
            if !has_header {
                return Err(refuse(&format!("is not `{HEADER}`, the first line of a keyring")));
            }
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        ring = match *words {
            ["data", scope, role, secret] => {
                add_data_line(ring, scope, role, secret, None, refuse)?
            }
            ["data", scope, role, secret, pin] => {
                add_data_line(ring, scope, role, secret, Some(pin), refuse)?
            }
            ["index", scope, version, role, secret] => {
                add_index_line(ring, scope, version, role, secret, refuse)?
            }
            _ => {
                return Err(refuse(
                    "is neither `data SCOPE primary|decrypt KEY [pin=FINGERPRINT]` \
                                    nor `index SCOPE VERSION current|other KEY`",
                ));
            }
        };
        // The builder keeps its first fault. Checking after each line gives the line number.
        if let Some(fault) = &ring.fault {
            return Err(refuse(&format!("is not allowed: {}", fault.message())));
        }
    }
    if has_header { Ok(ring) } else { Err(Error::new(ErrorKind::Invalid, "the keyring is empty")) }
}

fn add_data_line(
    ring: KeyringBuilder,
    scope: &str,
    role: &str,
    secret: &str,
    pin: Option<&str>,
    refuse: impl Fn(&str) -> Error,
) -> Result<KeyringBuilder> {
    let is_primary = match role {
        "primary" => true,
        "decrypt" => false,
        _ => return Err(refuse("gives a data key a role that is neither `primary` nor `decrypt`")),
    };
    let key = DataKey::from_root(&parse_root(secret, &refuse)?);
    if let Some(pin) = pin {
        check_pin(&key, pin, &refuse)?;
    }
    Ok(ring.add_data_key(&KeyScope::named(scope), key, is_primary))
}

/// Refuses a key whose fingerprint does not begin with the digits after `pin=`.
fn check_pin(key: &DataKey, pin: &str, refuse: impl Fn(&str) -> Error) -> Result<()> {
    let digits = pin.strip_prefix("pin=").filter(|digits| matches!(digits.len(), 32..=64));
    // 16 digits, a key id, are too few for a pin: a key with a given id can be searched for.
    let pinned = digits.and_then(parse_hex).ok_or_else(|| {
        refuse(
            "ends with something other than `pin=` and a fingerprint of 32 to 64 hexadecimal digits",
        )
    })?;
    if key.fingerprint().starts_with(&pinned) {
        return Ok(());
    }
    let message = format!("contains the key {}, which does not match its pin", key.id());
    Err(Error::seal(SealFault::KeyIdMismatch, refuse(&message).message()))
}

fn add_index_line(
    ring: KeyringBuilder,
    scope: &str,
    version: &str,
    role: &str,
    secret: &str,
    refuse: impl Fn(&str) -> Error,
) -> Result<KeyringBuilder> {
    let version: u32 =
        version.parse().ok().filter(|version| *version > 0).ok_or_else(|| {
            refuse("gives a blind token key a version that is no number from 1 on")
        })?;
    let root = parse_root(secret, &refuse)?;
    let scope = KeyScope::named(scope);
    match role {
        "current" => Ok(ring.blind_token_key(&scope, version, &root)),
        "other" => Ok(ring.blind_token_key_for_lookups(&scope, version, &root)),
        _ => Err(refuse("gives a blind token key a role that is neither `current` nor `other`")),
    }
}

fn parse_root(secret: &str, refuse: impl Fn(&str) -> Error) -> Result<RootKey> {
    let bytes = parse_hex(secret);
    let root = bytes.as_ref().and_then(|bytes| bytes.as_slice().try_into().ok());
    root.map(RootKey::from_bytes)
        .ok_or_else(|| refuse("contains a key that is not 64 hexadecimal digits"))
}

fn parse_hex(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    // Allocated once: a Vec that grows leaves copies of the secret in freed memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for [high, low] in pairs {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
    }
    rest.is_empty().then_some(bytes)
}

/// Generates the text of a keyring with two new keys.
fn generate() -> Result<Zeroizing<String>> {
    let (data, index) = (RootKey::generate()?, RootKey::generate()?);
    let fingerprint = *DataKey::from_root(&data).fingerprint();
    // Allocated once: a String that grows leaves copies of the secret in freed memory.
    let mut text = Zeroizing::new(String::with_capacity(512));
    text.push_str(HEADER);
    text.push_str("\ndata default primary ");
    push_hex(&mut text, data.expose());
    text.push_str(" pin=");
    push_hex(&mut text, &fingerprint);
    text.push_str("\nindex default 1 current ");
    push_hex(&mut text, index.expose());
    text.push('\n');
    Ok(text)
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String never fails.
        let _ = write!(text, "{byte:02x}");
    }
}

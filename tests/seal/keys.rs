//! Tests keyrings: their text, their scopes, and that they never show keys.

use entable::{DataKey, Error, ErrorKind, KeyProvider, KeyScope, Keyring, RootKey, SealFault};

const A: &str = "4242424242424242424242424242424242424242424242424242424242424242";
const B: &str = "4343434343434343434343434343434343434343434343434343434343434343";

fn ring(lines: &str) -> Result<Keyring, Error> {
    Keyring::parse(&format!("# keys\n\nentable-keyring 1\n{lines}\n"))
}

fn id(byte: u8) -> entable::KeyId {
    crate::key(byte).id()
}

fn refused(lines: &str) -> Error {
    let error = ring(lines).unwrap_err();
    assert!(error.is_invalid(), "{error:?}");
    let text = format!("{error:?} {error}");
    assert!(!text.contains("4242") && !text.contains("4343"), "a secret in a message: {text}");
    error
}

#[test]
fn a_text_gives_primary_and_earlier_keys() {
    let keys = ring(&format!("data default decrypt {A}\ndata  default\tprimary {B} # x"));
    assert!(keys.is_err(), "a comment stands on a line of its own");
    let keys = ring(&format!("data default decrypt {A}\ndata  default\tprimary {B}")).unwrap();
    let scope = KeyScope::default_scope();
    assert_eq!(keys.primary_key(&scope).unwrap().id(), id(0x43));
    assert_eq!(keys.data_key(&scope, id(0x42)).unwrap().id(), id(0x42));
    assert_eq!(keys.key_ids(&scope), [id(0x43), id(0x42)]);
    let missing = keys.data_key(&scope, id(1)).unwrap_err();
    assert!(missing.is_decrypt());
    assert_eq!(missing.seal_fault(), Some(SealFault::KeyNotFound(*id(1).as_bytes())));
}

#[test]
fn what_editors_add_unseen_is_no_mistake() {
    let text = format!("\u{feff}entable-keyring 1\r\ndata default primary {A}\r\n\r\n");
    let keys = Keyring::parse(&text).unwrap();
    assert_eq!(keys.key_ids(&KeyScope::default_scope()), [id(0x42)]);
}

#[test]
fn blind_token_keys_have_versions_of_which_one_is_in_use() {
    let keys = ring(&format!("index default 1 other {A}\nindex default 2 current {B}")).unwrap();
    let scope = KeyScope::default_scope();
    let version = |asked| keys.blind_token_key(&scope, asked).map(|key| key.version());
    assert_eq!(version(None).unwrap(), 2);
    assert_eq!(version(Some(1)).unwrap(), 1);
    assert!(version(Some(3)).unwrap_err().is_key_unavailable());
    assert!(keys.primary_key(&scope).unwrap_err().is_key_unavailable());
}

#[test]
fn a_scope_has_its_own_keys_and_no_others() {
    let keys = ring(&format!("data default primary {A}\ndata tenant-7 primary {B}")).unwrap();
    let keys = keys.with_scopes(|partition_key| match partition_key.strip_prefix("t7") {
        Some(_) => KeyScope::named("tenant-7"),
        None if partition_key == "gone" => KeyScope::named("tenant-8"),
        None => KeyScope::default_scope(),
    });
    let scope = keys.scope_of("t7|orders");
    assert_eq!(keys.primary_key(&scope).unwrap().id(), id(0x43));
    // The default scope's key is in the ring, and not for this scope.
    assert!(keys.data_key(&scope, id(0x42)).unwrap_err().is_decrypt());
    assert!(keys.data_key(&keys.scope_of("x"), id(0x43)).unwrap_err().is_decrypt());
    // A scope whose keys are dropped can be neither read nor written.
    let gone = keys.scope_of("gone");
    assert!(keys.primary_key(&gone).unwrap_err().is_key_unavailable());
    assert!(keys.data_key(&gone, id(0x43)).unwrap_err().is_decrypt());
    assert!(keys.blind_token_key(&gone, None).unwrap_err().is_key_unavailable());
}

#[test]
fn a_pinned_key_is_that_key() {
    let full: String = crate::key(0x42).fingerprint().iter().map(|b| format!("{b:02x}")).collect();
    assert!(full.starts_with("2c7d2f902fb02b61"));
    for digits in [32, 40, 64] {
        assert!(ring(&format!("data default primary {A} pin={}", &full[..digits])).is_ok());
    }
    let error = refused(&format!("data default primary {B} pin={}", &full[..32]));
    assert_eq!(error.seal_fault(), Some(SealFault::KeyIdMismatch));
    assert!(error.to_string().contains("line 4"), "{error}");
    // An id of eight bytes can be searched for.
    refused(&format!("data default primary {A} pin={}", &full[..16]));
    refused(&format!("data default primary {A} pin={}zz", &full[..32]));
    refused(&format!("data default primary {A} {}", &full[..32]));
}

#[test]
fn mistakes_are_told_by_line_without_the_line() {
    for lines in [
        &format!("data default primary {A}\ndata default primary {B}"),
        &format!("data default primary {A}\ndata default decrypt {A}"),
        &format!("index default 1 current {A}\nindex default 2 current {B}"),
        &format!("index default 1 current {A}\nindex default 1 other {B}"),
        &format!("index default 0 current {A}"),
        &format!("index default one current {A}"),
        &format!("index default 1 {A} current"),
        &format!("data default {A}"),
        &format!("data default {A} primary"),
        &format!("data primary {A}"),
        &format!("default primary {A}"),
        &format!("data default primary {}", &A[1..]),
        &format!("data default primary {A}42"),
        &format!("data default primary {}zz", &A[2..]),
        &A.to_string(),
    ] {
        let error = refused(lines);
        assert!(error.to_string().contains("line "), "{lines}: {error}");
    }
    assert!(Keyring::parse("").unwrap_err().is_invalid());
    let headless = Keyring::parse(&format!("data default primary {A}")).unwrap_err();
    assert!(headless.to_string().contains("`entable-keyring 1`"), "{headless}");
    let future = Keyring::parse("entable-keyring 2").unwrap_err();
    assert!(future.is_invalid());
}

#[test]
fn builders_refuse_what_texts_refuse() {
    let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([1; 32]));
    let other = RootKey::from_bytes([2; 32]);
    let refused = |builder: entable::KeyringBuilder| builder.build().unwrap_err().kind();
    let builder = || Keyring::builder().primary(&scope, &root).blind_token_key(&scope, 1, &root);
    assert!(builder().build().is_ok());
    assert_eq!(refused(builder().primary(&scope, &other)), ErrorKind::Invalid);
    assert_eq!(refused(builder().decrypt_only(&scope, &root)), ErrorKind::Invalid);
    assert_eq!(refused(builder().blind_token_key(&scope, 2, &other)), ErrorKind::Invalid);
    assert_eq!(
        refused(builder().blind_token_key_for_lookups(&scope, 1, &other)),
        ErrorKind::Invalid
    );
    // Its tokens would say that they are of version 4.
    assert_eq!(
        refused(builder().blind_token_key_for_lookups(&scope, 0, &other)),
        ErrorKind::Invalid
    );
    assert!(builder().primary(&KeyScope::named("other"), &other).build().is_ok());
}

#[test]
fn a_generated_ring_is_read_from_a_file() {
    let text = Keyring::generate_text().unwrap();
    assert_ne!(*text, *Keyring::generate_text().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, text.as_bytes()).unwrap();
    let keys = Keyring::from_file(&path).unwrap();
    assert!(keys.primary_key(&KeyScope::default_scope()).is_ok());
    assert!(keys.blind_token_key(&KeyScope::default_scope(), Some(1)).is_ok());
    #[cfg(unix)]
    for mode in [0o620, 0o602, 0o666] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let error = Keyring::from_file(&path).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("other users"), "{error}");
    }
    let missing = Keyring::from_file(folder.path().join("none")).unwrap_err();
    assert!(missing.is_key_unavailable() && missing.to_string().contains("none"));
    let unset = Keyring::from_env("ENTABLE_NO_SUCH_VARIABLE").unwrap_err();
    assert!(unset.is_key_unavailable());
}

#[test]
fn bytes_are_the_default_scopes_primary() {
    let keys = Keyring::from_bytes([0x42; 32]);
    assert_eq!(keys.primary_key(&keys.scope_of("any")).unwrap().id(), id(0x42));
    assert!(keys.blind_token_key(&keys.scope_of("any"), None).unwrap_err().is_key_unavailable());
}

#[test]
fn nothing_shows_a_secret() {
    let root = RootKey::from_bytes([0x42; 32]);
    let key = DataKey::from_root(&root);
    let builder = Keyring::builder().primary(&KeyScope::default_scope(), &root).blind_token_key(
        &KeyScope::default_scope(),
        1,
        &root,
    );
    let shown = format!("{root:?} {root:#?} {key:?} {key:#?} {builder:?}");
    let shown = format!("{shown} {:?}", builder.build().unwrap());
    let (decimal, hexadecimal) = ("66, 66", "4242");
    assert!(!shown.contains(decimal) && !shown.contains(hexadecimal), "{shown}");
    assert!(shown.contains("2c7d2f902fb02b61") && shown.contains("default"), "{shown}");
    assert!(!shown.contains("BBBB"), "{shown}");
}

/// Two purposes of one root share nothing.
#[test]
fn the_derived_keys_differ() {
    let key = crate::key(0x42);
    assert!(!key.fingerprint().windows(4).any(|bytes| bytes == [0x42; 4]));
    let other = crate::key(0x43);
    assert_ne!(key.fingerprint(), other.fingerprint());
}

//! Tests blind tokens.

use std::collections::BTreeSet;

use entable::{BlindTokenKey, RootKey, ValueRef, limits::check_key, seal::token_version};

fn index(byte: u8, version: u32) -> BlindTokenKey {
    BlindTokenKey::from_root(&RootKey::from_bytes([byte; 32]), version)
}

const ADA: ValueRef<'static> = ValueRef::String("ada@example.com");

#[test]
fn the_vector() {
    assert_eq!(index(0x43, 1).token("People", "Email", ADA), "7fk5gujb7kccdq7728bvdqsnvg");
}

#[test]
fn a_token_hangs_on_everything_but_the_version_only_at_its_end() {
    let token = index(0x43, 1).token("People", "Email", ADA);
    let others = [
        index(0x44, 1).token("People", "Email", ADA),
        index(0x43, 1).token("Peopl", "eEmail", ADA),
        index(0x43, 1).token("People", "Mail", ADA),
        index(0x43, 1).token("People", "Email", ValueRef::String("Ada@example.com")),
        index(0x43, 1).token("People", "Email", ValueRef::Binary(b"ada@example.com")),
    ];
    let all: BTreeSet<_> = others.iter().chain([&token]).collect();
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|token| token.len() == 26 && check_key("RowKey", token).is_ok()));
    for version in 1..10 {
        let of_version = index(0x43, version).token("People", "Email", ADA);
        assert_eq!(of_version[..25], token[..25]);
        assert_eq!(token_version(&of_version), Some(version % 4));
    }
    assert_eq!(token_version("7fk5"), None);
    assert_eq!(token_version("7fk5gujb7kccdq7728bvdqsnvz"), None);
    assert_eq!(token_version("7FK5gujb7kccdq7728bvdqsnvg"), None);
}

#[test]
fn short_tokens_are_as_short_as_asked_and_of_their_own() {
    let index = index(0x43, 1);
    let long = index.token("People", "Email", ADA);
    for bits in 1..=128 {
        let short = index.short_token("People", "Email", ADA, bits);
        assert_eq!(u32::try_from(short.len()).unwrap(), bits.div_ceil(5));
        assert!(bits < 20 || !long.starts_with(&short), "it tells the beginning of the long one");
    }
    // Eight bits: 256 tokens at most, and most of them met by 2,000 values.
    let tokens: BTreeSet<_> =
        (0..2_000).map(|n| index.short_token("People", "Email", ValueRef::Int32(n), 8)).collect();
    assert!((200..=256).contains(&tokens.len()), "{}", tokens.len());
    let full = index.short_token("People", "Email", ADA, 128);
    assert_eq!(full, index.short_token("People", "Email", ADA, 4_000));
    assert_eq!(index.short_token("People", "Email", ADA, 0).len(), 1);
}

#[test]
fn debug_shows_the_version_only() {
    assert_eq!(format!("{:?}", index(0x43, 2)), "BlindTokenKey { version: 2, .. }");
}

#[test]
fn there_is_one_zero_as_comparisons_have_it() {
    let token = |value| index(0x43, 1).token("People", "Rate", ValueRef::Double(value));
    assert_eq!(token(0.0), token(-0.0));
    assert_ne!(token(0.0), token(f64::MIN_POSITIVE));
}

//! Computes buckets: a stable hash of a field spreads a hot partition over several partitions.

use super::KeyPart;
use crate::edm::InvalidValue;

/// Hashes bytes with FNV-1a (64 bits) and the finaliser of SplitMix64. Stored keys depend on it, so
/// it must never change.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let hash = fnv1a(bytes);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Hashes bytes by FNV-1a with 64 bits. The hash never changes. Its low bits depend only on the low
/// bits of each byte, so they do not suit the choice of a bucket.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the bucket of a text, from 0 to `buckets` - 1: its stable hash modulo `buckets`. Keys
/// hold the bucket of a field's plain form, `{field:bucket(16)}`.
///
/// ```
/// # use entable_core::key::bucket;
/// assert_eq!(bucket("jonesj", 16), bucket("jonesj", 16));
/// assert!(bucket("jonesj", 16) < 16);
/// ```
pub fn bucket(text: &str, buckets: u32) -> u32 {
    // The remainder is less than a `u32`, so the fallback is never taken.
    u32::try_from(stable_hash(text.as_bytes()) % u64::from(buckets.max(1))).unwrap_or(0)
}

/// Returns the number of digits of the largest bucket.
pub const fn bucket_width(buckets: u32) -> usize {
    let mut largest = if buckets == 0 { 0 } else { buckets - 1 };
    let mut width = 1;
    while largest >= 10 {
        largest /= 10;
        width += 1;
    }
    width
}

/// Appends the bucket of a value to `out`, zero padded. The bucket is computed from the text that
/// `KeyPart::encode` writes.
///
/// # Errors
///
/// Fails if `KeyPart::encode` fails.
pub fn encode_bucket<T: KeyPart>(
    value: &T,
    buckets: u32,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let mut text = String::new();
    value.encode(&mut text)?;
    push_bucket(bucket(&text, buckets), buckets, out);
    Ok(())
}

/// Appends a bucket's number to `out`, zero padded to the width of the largest bucket.
pub fn push_bucket(bucket: u32, buckets: u32, out: &mut String) {
    let width = bucket_width(buckets);
    out.push_str(&format!("{bucket:0width$}"));
}

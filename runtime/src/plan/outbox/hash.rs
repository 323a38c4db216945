//! Hashes several texts into one short name.

use sha2::{Digest, Sha256};

use crate::limits::saturating_u64;

/// Returns 128 bits of the SHA-256 of several strings, as 32 hex digits. The lengths are hashed too, to distinguish
/// `ab` `c` from `a` `bc`.
pub(crate) fn hash128(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(saturating_u64(text.len()).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::hash128;

    #[test]
    fn texts_are_kept_apart() {
        assert_ne!(hash128(&["ab", "c"]), hash128(&["a", "bc"]));
        assert_eq!(hash128(&["Staff", "Sales"]), "4741fcbfc4678a8c7ca929edd693e210");
    }
}

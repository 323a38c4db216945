//! AES-256-CBC with PKCS#7 padding, which is checked without branches that depend on decrypted bytes.

use cbc::cipher::{BlockModeDecrypt, KeyIvInit, block_padding::NoPadding};
use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};
use zeroize::Zeroizing;

/// Number of bytes of a cipher block.
const BLOCK: usize = 16;

/// Decrypts and removes the padding. Returns `None` if the length or the padding is wrong.
pub(super) fn decrypt(
    key: &[u8; 32],
    iv: &[u8; BLOCK],
    ciphertext: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    if ciphertext.is_empty() || !ciphertext.len().is_multiple_of(BLOCK) {
        return None;
    }
    let mut plain = Zeroizing::new(ciphertext.to_vec());
    let cipher = cbc::Decryptor::<aes::Aes256>::new(key.into(), iv.into());
    cipher.decrypt_padded::<NoPadding>(&mut plain).ok()?;
    let length = unpadded(&plain)?;
    plain.truncate(length);
    Some(plain)
}

/// Returns the length without padding, or `None` if the padding is wrong. Takes equal time for every
/// padding.
fn unpadded(plain: &[u8]) -> Option<usize> {
    let (_, block) = plain.split_last_chunk::<BLOCK>()?;
    let [.., count] = *block;
    // Without branches: the time must not depend on the padding, or a writer of rows could decrypt
    // values.
    let mut good = !count.ct_eq(&0) & count.ct_lt(&17);
    for (at, byte) in block.iter().rev().enumerate() {
        let is_padding = u8::try_from(at).map_or(Choice::from(0), |at| at.ct_lt(&count));
        good &= !is_padding | byte.ct_eq(&count);
    }
    bool::from(good).then(|| plain.len().saturating_sub(usize::from(count)))
}

#[cfg(test)]
mod tests {
    use super::unpadded;

    #[test]
    fn padding_is_all_of_one_count() {
        let block = |end: &[u8]| {
            let mut block = [0xaa; 32];
            block[32 - end.len()..].copy_from_slice(end);
            unpadded(&block)
        };
        for count in 1..=16 {
            let end = vec![count; count.into()];
            assert_eq!(block(&end), Some(32 - usize::from(count)));
            for wrong in 0..end.len() - 1 {
                let mut end = end.clone();
                end[wrong] ^= 1;
                assert_eq!(block(&end), None, "{count} {wrong}");
            }
        }
        assert_eq!(block(&[0]), None);
        assert_eq!(block(&[17; 17]), None);
        assert_eq!(block(&[255; 32]), None);
        assert_eq!(unpadded(&[1; 15]), None);
    }
}

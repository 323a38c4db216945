//! AES-256-CBC with PKCS#7 padding, judged without branches on what was decrypted.

use cbc::cipher::{BlockModeDecrypt, KeyIvInit, block_padding::NoPadding};
use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};
use zeroize::Zeroizing;

const BLOCK: usize = 16;

/// The plain bytes; `None` where length or padding is wrong.
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

/// The length without the padding.
fn unpadded(plain: &[u8]) -> Option<usize> {
    let (_, block) = plain.split_last_chunk::<BLOCK>()?;
    let [.., count] = *block;
    let mut good = !count.ct_eq(&0) & count.ct_lt(&17);
    for (at, byte) in block.iter().rev().enumerate() {
        let is_padding = u8::try_from(at).map_or(Choice::from(0), |at| at.ct_lt(&count));
        good &= !is_padding | byte.ct_eq(&count);
    }
    bool::from(good).then(|| plain.len().saturating_sub(usize::from(count)))
}

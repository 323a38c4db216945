//! Seals and opens the chunks of one blob's content.

use xaes_256_gcm::{
    Key, Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit, inout::InOutBuf},
};
use zeroize::Zeroize;

use crate::{
    content::BlobContentKey,
    envelope::{NONCE_BYTES, TAG_BYTES},
};

/// The associated data of every chunk, which keeps it apart from other uses of the cipher.
const DOMAIN: &[u8; 12] = b"azt-blob-v1\0";

impl BlobContentKey {
    /// Returns the cipher of the content's chunks.
    pub fn cipher(&self) -> BlobContentCipher {
        let mut key = <Key>::from(**self.0);
        let cipher = Xaes256Gcm::new(&key);
        // The cipher has its own copy of the key.
        key.as_mut_slice().zeroize();
        BlobContentCipher(cipher)
    }
}

/// The cipher of one blob's content, under the blob's own key: XAES-256-GCM. The nonce of a chunk is its position.
#[allow(missing_debug_implementations, reason = "it has a key")]
pub struct BlobContentCipher(Xaes256Gcm);

impl BlobContentCipher {
    /// Encrypts a chunk into `sealed`, whose length is the chunk's length plus the tag's. `is_end` marks the content's
    /// last chunk.
    ///
    /// Encrypt each position of a content only once, or with equal bytes.
    pub fn seal_chunk(&self, index: u64, is_end: bool, chunk: &[u8], sealed: &mut [u8]) {
        let nonce = chunk_nonce(index, is_end);
        let tag = sealed.split_last_chunk_mut::<TAG_BYTES>().and_then(|(content, at_end)| {
            let buffers = InOutBuf::new(chunk, content).ok()?;
            let tag = self.0.encrypt_inout_detached(&nonce, DOMAIN, buffers).ok()?;
            at_end.copy_from_slice(&tag);
            Some(tag)
        });
        // The cipher refuses only sizes far above a chunk's. Readers never accept a chunk of zeros.
        if tag.is_none() {
            sealed.fill(0);
        }
    }

    /// Decrypts a chunk and appends it to `out`. Returns `false`, and appends nothing, if the chunk
    /// was not encrypted with this key at this position, or was changed since.
    pub fn open_chunk(&self, index: u64, is_end: bool, sealed: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((content, tag)) = sealed.split_last_chunk::<TAG_BYTES>() else { return false };
        let start = out.len();
        out.extend_from_slice(content);
        let chunk = out.get_mut(start..).unwrap_or_default();
        // The position is part of the nonce, so chunks cannot be reordered, and the end cannot be
        // cut off.
        let (nonce, tag) = (chunk_nonce(index, is_end), Tag::from(*tag));
        let opened = self.0.decrypt_inout_detached(&nonce, DOMAIN, chunk.into(), &tag);
        if opened.is_err() {
            // Nothing of a chunk that fails may be used.
            out.truncate(start);
        }
        opened.is_ok()
    }
}

/// Returns the nonce of a position: 15 zeros, the chunk's index in 8 bytes, and 1 for the last chunk.
fn chunk_nonce(index: u64, is_end: bool) -> Nonce {
    let mut nonce = [0; NONCE_BYTES];
    if let Some(([.., i0, i1, i2, i3, i4, i5, i6, i7], [end])) = nonce.split_last_chunk_mut::<1>() {
        [*i0, *i1, *i2, *i3, *i4, *i5, *i6, *i7] = index.to_be_bytes();
        *end = u8::from(is_end);
    }
    Nonce::from(nonce)
}

#[cfg(test)]
mod tests {
    use super::chunk_nonce;
    use crate::content::BlobContentKey;

    fn key() -> BlobContentKey {
        let stored: Vec<u8> = std::iter::once(1).chain([0x42; 32]).collect();
        BlobContentKey::from_stored(&stored).unwrap()
    }

    #[test]
    fn a_nonce_is_a_position() {
        let mut expected = [0; 24];
        expected[21] = 1;
        expected[22] = 2;
        assert_eq!(chunk_nonce(0x0102, false).as_slice(), expected);
        expected[23] = 1;
        assert_eq!(chunk_nonce(0x0102, true).as_slice(), expected);
    }

    #[test]
    fn a_chunk_opens_at_its_position_alone() {
        let cipher = key().cipher();
        let mut chunk = [7; 6 + 16];
        cipher.seal_chunk(3, false, b"a face", &mut chunk);
        let mut other = [0; 6 + 16];
        cipher.seal_chunk(3, false, b"a face", &mut other);
        assert_eq!(chunk, other, "nothing of what was in the buffer before");
        cipher.seal_chunk(3, false, b"a face", &mut other[1..]);
        assert_eq!(other[1..], [0; 5 + 16], "a buffer of another size has no chunk");
        let open = |index, is_end, sealed: &[u8]| {
            let mut out = vec![7];
            let is_opened = cipher.open_chunk(index, is_end, sealed, &mut out);
            assert!(is_opened || out == [7], "nothing is appended");
            is_opened.then_some(out)
        };
        assert_eq!(open(3, false, &chunk).as_deref(), Some(&b"\x07a face"[..]));
        assert_eq!(open(4, false, &chunk), None);
        assert_eq!(open(3, true, &chunk), None);
        assert_eq!(open(3, false, &chunk[..5]), None);
        for at in 0..chunk.len() {
            let mut changed = chunk;
            changed[at] ^= 1;
            assert_eq!(open(3, false, &changed), None, "byte {at}");
        }
    }
}

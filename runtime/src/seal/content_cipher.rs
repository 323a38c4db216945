//! Seals and opens the chunks of one blob's content.

use xaes_256_gcm::{
    Key, Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit, inout::InOutBuf},
};
use zeroize::Zeroize;

use super::{
    content::ContentKey,
    envelope::{NONCE_BYTES, TAG_BYTES},
};

/// The associated data of every chunk, which keeps it apart from other uses of the cipher.
const DOMAIN: &[u8; 12] = b"azt-blob-v1\0";

impl ContentKey {
    /// Returns the cipher of the content's chunks.
    pub(crate) fn cipher(&self) -> ContentCipher {
        let mut key = <Key>::from(**self.0);
        let cipher = Xaes256Gcm::new(&key);
        // The cipher has its own copy of the key.
        key.as_mut_slice().zeroize();
        ContentCipher(cipher)
    }
}

/// The cipher of one content: XAES-256-GCM. The nonce of a chunk is its position.
pub(crate) struct ContentCipher(Xaes256Gcm);

impl ContentCipher {
    /// Encrypts a chunk into `sealed`, which has the chunk's size and that of the tag. `is_end` marks the
    /// content's last chunk.
    ///
    /// Each position of a content must be encrypted once only, or with equal bytes.
    pub(crate) fn seal_chunk(&self, index: u64, is_end: bool, chunk: &[u8], sealed: &mut [u8]) {
        let nonce = chunk_nonce(index, is_end);
        let tag = sealed.split_last_chunk_mut::<TAG_BYTES>().and_then(|(content, at_end)| {
            let buffers = InOutBuf::new(chunk, content).ok()?;
            let tag = self.0.encrypt_inout_detached(&nonce, DOMAIN, buffers).ok()?;
            at_end.copy_from_slice(&tag);
            Some(tag)
        });
        // The cipher refuses only sizes far above a chunk's; a chunk of zeros is never taken.
        if tag.is_none() {
            sealed.fill(0);
        }
    }

    /// Decrypts a chunk and appends it to `out`. Returns `false`, and appends nothing, if the chunk
    /// was not encrypted with this key at this position, or was changed since.
    pub(crate) fn open_chunk(
        &self,
        index: u64,
        is_end: bool,
        sealed: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
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

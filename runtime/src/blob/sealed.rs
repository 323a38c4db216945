//! Encrypts contents in chunks of 64 KiB. Each chunk is sealed, which means encrypted and authenticated, for
//! its position: a chunk at another position is refused. A content can be written and read piece by piece, and
//! a range needs only its own chunks.
//!
//! `docs/envelope.md` specifies the format.

use std::{
    future::ready,
    ops::Range,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, future::Either, stream, stream::BoxStream};
use object_store::PutPayload;
use sha2::{Digest, Sha256};

use super::beside::run_blocking;
use crate::{
    blob_port::LengthAndHash,
    error::{Error, ErrorKind, Result},
    limits::{saturating_u64, saturating_usize},
    seal::{BlobContentCipher, BlobContentKey},
};

/// Number of the content's bytes in a chunk; the last chunk may have fewer.
const CHUNK_BYTES: u64 = 64 << 10;
/// The number of bytes that sealing adds to a chunk.
const TAG_BYTES: u64 = 16;
/// Number of bytes of a sealed chunk.
const SEALED_BYTES: u64 = CHUNK_BYTES + TAG_BYTES;

/// Chunks of a piece of a content that is sealed at a time: 1 MiB.
const PIECE_CHUNKS: usize = 16;
/// Number of pieces that are sealed at once.
const PIECES_AHEAD: usize = 2;

/// Returns the number of chunks of a content of `len` bytes before encryption. An empty content has one empty
/// chunk, which marks the end of the content.
fn chunk_count(len: u64) -> u64 {
    // An empty content has one empty chunk, whose tag proves that it is empty.
    len.div_ceil(CHUNK_BYTES).max(1)
}

/// Returns the number of stored bytes of a content of `len` bytes.
pub(crate) fn sealed_len(len: u64) -> u64 {
    len.saturating_add(chunk_count(len).saturating_mul(TAG_BYTES))
}

/// Returns the length of the content whose sealed form has `sealed` bytes. Does not check `sealed`: the caller
/// has just written that form.
pub(crate) fn content_len(sealed: u64) -> u64 {
    sealed.saturating_sub(sealed.div_ceil(SEALED_BYTES).saturating_mul(TAG_BYTES))
}

/// Returns the number of stored bytes of a chunk.
fn chunk_len(len: u64, index: u64) -> usize {
    let rest = len.saturating_sub(index.saturating_mul(CHUNK_BYTES));
    saturating_usize(rest.min(CHUNK_BYTES) + TAG_BYTES)
}

/// Seals a whole content. Returns the bytes to store and their hash.
pub(crate) fn seal_and_hash_bytes(key: &BlobContentKey, content: &Bytes) -> (PutPayload, [u8; 32]) {
    let len = length(content);
    let mut sealed = vec![0; byte_count(sealed_len(len))];
    // An empty content is sealed as one empty chunk.
    let empty = content.is_empty().then_some(&content[..]);
    let chunks = content.chunks(byte_count(CHUNK_BYTES)).chain(empty);
    seal_chunks(&key.cipher(), 0, Some(chunk_count(len) - 1), chunks, &mut sealed);
    let hash = Sha256::digest(&sealed).into();
    (PutPayload::from(sealed), hash)
}

/// Seals consecutive chunks into `sealed`. The caller makes it exactly as long as all chunks with their
/// authentication tags. `first` is the index of the first chunk. `last` is the index of the content's last chunk,
/// or `None` if that chunk comes later.
fn seal_chunks<'c>(
    cipher: &BlobContentCipher,
    first: u64,
    last: Option<u64>,
    chunks: impl Iterator<Item = &'c [u8]>,
    mut sealed: &mut [u8],
) {
    for (index, chunk) in (first..).zip(chunks) {
        // Always `Some`: the buffer was made for all chunks with their tags.
        if let Some(sealed) = sealed.split_off_mut(..chunk.len() + byte_count(TAG_BYTES)) {
            cipher.seal_chunk(index, Some(index) == last, chunk, sealed);
        }
    }
}

/// Seals a content piece by piece. Each item is a sealed piece of up to 1 MiB of content. If `expected` is
/// given and the content has another length or hash, the stream fails with `is_corrupt`. An error can come
/// before a piece that is still being sealed, so read nothing after it.
///
/// Within a runtime, pieces are sealed on other threads, two at a time, while the caller hashes and writes the
/// sealed pieces before them. A content of one piece is sealed on the thread that polls the stream.
pub(crate) fn seal_stream<S: Stream<Item = Result<Bytes>>>(
    key: &BlobContentKey,
    content: S,
    expected: Option<LengthAndHash>,
) -> impl Stream<Item = Result<Bytes>> + use<S> {
    let sums = expected.map(|expected| (expected, Sha256::new(), 0));
    let cipher = Arc::new(key.cipher());
    let (source, buffers) = (Pieces::new(content), Buffers::default());
    let sealing = ContentSealer { source, cipher, buffers, next: Some(0), sums };
    let pieces = stream::try_unfold(sealing, |mut sealing| async move {
        Ok(sealing.next_piece().await?.map(|piece| (piece, sealing)))
    });
    pieces.try_buffered(PIECES_AHEAD)
}

/// A content that is being sealed.
struct ContentSealer<S> {
    source: Pieces<S>,
    cipher: Arc<BlobContentCipher>,
    buffers: Buffers,
    /// The index of the next chunk, or `None` after the last one.
    next: Option<u64>,
    /// The expected hash and length of the content, with the hash and length of what was read so far.
    sums: Option<(LengthAndHash, Sha256, u64)>,
}

impl<S: Stream<Item = Result<Bytes>>> ContentSealer<S> {
    /// Reads the next piece, of several chunks, and begins to seal it.
    async fn next_piece(
        &mut self,
    ) -> Result<Option<impl Future<Output = Result<Bytes>> + Send + use<S>>> {
        let Some(first) = self.next.take() else { return Ok(None) };
        let (mut chunks, mut is_end) = (Vec::with_capacity(PIECE_CHUNKS), false);
        while chunks.len() < PIECE_CHUNKS && !is_end {
            let chunk = self.source.take_bytes(byte_count(CHUNK_BYTES)).await?;
            is_end = self.source.is_at_end().await?;
            if let Some((_, hash, len)) = &mut self.sums {
                hash.update(&chunk);
                *len = len.saturating_add(length(&chunk));
            }
            chunks.push(chunk);
        }
        if let Some((expected, hash, len)) = self.sums.take_if(|_| is_end)
            && expected != (LengthAndHash { len, hash: hash.finalize().into() })
        {
            return Err(corrupt_error("the blob to encrypt is damaged".to_owned()));
        }
        let next = first.saturating_add(length_of(&chunks));
        self.next = (!is_end).then_some(next);
        let cipher = self.cipher.clone();
        let len = chunks.iter().map(|chunk| chunk.len() + byte_count(TAG_BYTES)).sum();
        // Lent here, not on the other thread: allocators keep the memory of each thread apart.
        let mut sealed = self.buffers.lend(len);
        let seal = move || {
            let last = is_end.then_some(next - 1);
            seal_chunks(
                &cipher,
                first,
                last,
                chunks.iter().map(|chunk| &chunk[..]),
                &mut sealed.bytes,
            );
            Bytes::from_owner(sealed)
        };
        // The only piece of a content has no other piece to overlap with.
        let is_alone = is_end && first == 0;
        Ok(Some(if is_alone {
            Either::Left(ready(Ok(seal())))
        } else {
            Either::Right(run_blocking(seal))
        }))
    }
}

/// Buffers for the sealed pieces of an upload. Each is used again once the store and the hash are done
/// with it.
// Memory that is new to the process takes two thirds of the time of the cipher.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// Returns a buffer of `len` bytes, which goes back to these buffers when it is dropped. The bytes are
    /// zeros, or sealed bytes of an earlier piece: the caller overwrites all of them.
    fn lend(&self, len: usize) -> LentBuffer {
        let used = self.lock().pop().map(|mut used| {
            used.resize(len, 0);
            used
        });
        LentBuffer { bytes: used.unwrap_or_else(|| vec![0; len]), buffers: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        // A poisoned lock is used on: a buffer comes or goes in one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that goes back when nobody has its bytes any more.
struct LentBuffer {
    bytes: Vec<u8>,
    buffers: Buffers,
}

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.buffers.lock().push(bytes);
    }
}

/// Opens a whole content of `len` bytes.
///
/// # Errors
///
/// `is_corrupt` if these are not the bytes that were stored.
pub(crate) fn open_bytes(key: &BlobContentKey, len: u64, sealed: &Bytes) -> Result<Bytes> {
    if length(sealed) != sealed_len(len) {
        return Err(wrong_length(sealed_len(len), length(sealed)));
    }
    open_chunks(key, len, 0, sealed).map(Bytes::from)
}

/// Opens a content of `len` bytes piece by piece. Each item is one decrypted chunk. The last item is an
/// `is_corrupt` error if a chunk was not sealed for its position, or if the stored bytes do not end with the
/// content's last chunk.
pub(crate) fn open_stream(
    key: &BlobContentKey,
    len: u64,
    sealed: BoxStream<'static, Result<Bytes>>,
) -> BoxStream<'static, Result<Bytes>> {
    let opening =
        ContentOpener { source: Pieces::new(sealed), cipher: key.cipher(), len, index: 0 };
    let chunks = stream::try_unfold(opening, |mut opening| async move {
        Ok(opening.next_chunk().await?.map(|chunk| (chunk, opening)))
    });
    chunks.boxed()
}

/// A content that is being opened.
struct ContentOpener {
    source: Pieces<BoxStream<'static, Result<Bytes>>>,
    cipher: BlobContentCipher,
    len: u64,
    index: u64,
}

impl ContentOpener {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        let (index, count) = (self.index, chunk_count(self.len));
        if index == count {
            return if self.source.is_at_end().await? {
                Ok(None)
            } else {
                Err(corrupt_error("it has bytes after its last chunk".to_owned()))
            };
        }
        let sealed = self.source.take_bytes(chunk_len(self.len, index)).await?;
        let mut chunk = Vec::with_capacity(sealed.len());
        if !self.cipher.open_chunk(index, index + 1 == count, &sealed, &mut chunk) {
            return Err(chunk_authentication_error(index));
        }
        self.index += 1;
        Ok(Some(Bytes::from(chunk)))
    }
}

/// The chunks that hold a range of a content.
#[derive(Debug)]
pub(crate) struct ChunkRange {
    /// The positions of these chunks in the stored blob, in bytes.
    pub(crate) sealed: Range<u64>,
    first: u64,
    /// The range within the content of the chunks.
    within: Range<usize>,
    len: u64,
}

impl ChunkRange {
    /// Finds the chunks of a range, which is not empty and ends within the content of `len` bytes.
    pub(crate) fn chunks_of_range(range: &Range<u64>, len: u64) -> Self {
        let first = range.start / CHUNK_BYTES;
        let end = range.end.div_ceil(CHUNK_BYTES);
        let start = first.saturating_mul(CHUNK_BYTES);
        let sealed = first.saturating_mul(SEALED_BYTES)
            ..end.saturating_mul(SEALED_BYTES).min(sealed_len(len));
        let within = byte_count(range.start - start)..byte_count(range.end - start);
        Self { sealed, first, within, len }
    }

    /// Opens the chunks in `sealed`, and returns the bytes of the range.
    ///
    /// # Errors
    ///
    /// `is_corrupt` if `sealed` does not have the bytes that were stored.
    pub(crate) fn open_chunks(&self, key: &BlobContentKey, sealed: &Bytes) -> Result<Bytes> {
        let expected = self.sealed.end - self.sealed.start;
        if length(sealed) != expected {
            return Err(wrong_length(expected, length(sealed)));
        }
        let content = Bytes::from(open_chunks(key, self.len, self.first, sealed)?);
        Ok(content.slice(self.within.clone()))
    }
}

/// Opens the consecutive chunks in `sealed`. The first has the index `first`, and the content has `len` bytes.
/// Fails with `is_corrupt` for a chunk that was not sealed for its position.
fn open_chunks(key: &BlobContentKey, len: u64, first: u64, sealed: &[u8]) -> Result<Vec<u8>> {
    let (cipher, count) = (key.cipher(), chunk_count(len));
    let mut content = Vec::with_capacity(sealed.len());
    for (chunk, index) in sealed.chunks(byte_count(SEALED_BYTES)).zip(first..) {
        if !cipher.open_chunk(index, index + 1 == count, chunk, &mut content) {
            return Err(chunk_authentication_error(index));
        }
    }
    Ok(content)
}

/// Splits a stream of bytes into pieces of a given size.
struct Pieces<S> {
    stream: Pin<Box<S>>,
    pending: Bytes,
    is_done: bool,
}

impl<S: Stream<Item = Result<Bytes>>> Pieces<S> {
    fn new(stream: S) -> Self {
        Self { stream: Box::pin(stream), pending: Bytes::new(), is_done: false }
    }

    /// Returns the next `count` bytes; fewer only at the end.
    async fn take_bytes(&mut self, count: usize) -> Result<Bytes> {
        if self.is_at_end().await? || self.pending.len() >= count {
            return Ok(self.pending.split_to(count.min(self.pending.len())));
        }
        let mut piece = Vec::with_capacity(count);
        while piece.len() < count && !self.is_at_end().await? {
            let missing = count - piece.len();
            piece.extend_from_slice(&self.pending.split_to(missing.min(self.pending.len())));
        }
        Ok(Bytes::from(piece))
    }

    /// Returns whether the stream has ended, after waiting for the next bytes if necessary.
    async fn is_at_end(&mut self) -> Result<bool> {
        while self.pending.is_empty() && !self.is_done {
            match self.stream.next().await {
                Some(piece) => self.pending = piece?,
                None => self.is_done = true,
            }
        }
        Ok(self.pending.is_empty())
    }
}

fn byte_count(bytes: u64) -> usize {
    saturating_usize(bytes)
}

fn length(bytes: &[u8]) -> u64 {
    saturating_u64(bytes.len())
}

fn length_of(chunks: &[Bytes]) -> u64 {
    saturating_u64(chunks.len())
}

fn corrupt_error(message: String) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

fn wrong_length(expected: u64, found: u64) -> Error {
    corrupt_error(format!("expected {expected} encrypted bytes, found {found}"))
}

/// Returns the error for a chunk that fails authentication. The cause cannot be determined.
fn chunk_authentication_error(index: u64) -> Error {
    corrupt_error(format!(
        "its chunk {index} was not encrypted with the row's key for this place, or has been changed since"
    ))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{StreamExt, TryStreamExt, stream};
    use proptest::prelude::*;

    use super::{
        CHUNK_BYTES, ChunkRange, LengthAndHash, SEALED_BYTES, content_len, open_bytes, open_stream,
        seal_and_hash_bytes, seal_stream, sealed_len,
    };
    use crate::{error::Result, seal::BlobContentKey};

    fn key() -> BlobContentKey {
        BlobContentKey::from_stored(&[1; 33]).unwrap()
    }

    fn content(len: usize) -> Bytes {
        (0..len).map(|at| (at % 251) as u8).collect::<Vec<u8>>().into()
    }

    fn sealed(content: &Bytes) -> Bytes {
        let (payload, _) = seal_and_hash_bytes(&key(), content);
        payload.iter().flatten().copied().collect::<Vec<u8>>().into()
    }

    fn collect(items: impl futures_util::Stream<Item = Result<Bytes>>) -> Result<Vec<u8>> {
        let all = futures_util::FutureExt::now_or_never(items.try_collect::<Vec<_>>());
        all.unwrap().map(|pieces| pieces.concat())
    }

    fn pieces(bytes: &Bytes, size: usize) -> stream::BoxStream<'static, Result<Bytes>> {
        let pieces: Vec<_> = bytes.chunks(size).map(|p| Ok(Bytes::copy_from_slice(p))).collect();
        stream::iter(pieces).boxed()
    }

    #[test]
    fn lengths_follow_from_each_other() {
        let chunk = CHUNK_BYTES;
        for len in [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 5 * chunk + 7] {
            assert_eq!(content_len(sealed_len(len)), len);
        }
        assert_eq!(
            (sealed_len(0), sealed_len(chunk), sealed_len(chunk + 1)),
            (16, chunk + 16, chunk + 33)
        );
        assert_eq!(sealed_len(u64::MAX), u64::MAX, "a row can hold any length");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn what_is_sealed_is_read_back(
            chunks in 0_usize..4,
            rest in prop_oneof![Just(0_usize), Just(1), 0..65_536_usize],
            size in 1_usize..200_000,
            start in any::<prop::sample::Index>(),
            end in any::<prop::sample::Index>(),
        ) {
            let content = content(chunks * 65_536 + rest);
            let len = content.len() as u64;
            let whole = sealed(&content);
            prop_assert_eq!(whole.len() as u64, sealed_len(len));
            let streamed = seal_stream(&key(), pieces(&content, size), None);
            prop_assert_eq!(&collect(streamed).unwrap(), &whole);
            prop_assert_eq!(open_bytes(&key(), len, &whole).unwrap(), content.clone());
            let opened = collect(open_stream(&key(), len, pieces(&whole, size))).unwrap();
            prop_assert_eq!(&opened, &content);
            if len > 0 {
                let (a, b) = (start.index(content.len()), end.index(content.len()));
                let range = a.min(b)..a.max(b) + 1;
                let of = ChunkRange::chunks_of_range(&(range.start as u64..range.end as u64), len);
                let stored = whole.slice(of.sealed.start as usize..of.sealed.end as usize);
                prop_assert_eq!(of.open_chunks(&key(), &stored).unwrap(), content.slice(range.clone()));
                let most = range.len() as u64 + 2 * SEALED_BYTES + 16 * (range.len() as u64 / CHUNK_BYTES + 1);
                prop_assert!(of.sealed.end - of.sealed.start <= most, "only the range's chunks");
            }
        }
    }

    #[test]
    fn pieces_that_are_sealed_at_once_keep_their_order() {
        // Outside of a runtime and inside one, with an end in the middle and at the end of a piece.
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        for len in [(5 << 20) + 17, 4 << 20, (4 << 20) + 1] {
            let content = content(len);
            let whole = sealed(&content);
            let streamed = || seal_stream(&key(), pieces(&content, 100_000), None);
            assert_eq!(collect(streamed()).unwrap(), whole);
            let all = runtime.block_on(streamed().try_collect::<Vec<_>>());
            assert_eq!(all.unwrap().concat(), whole);
        }
    }

    /// Asserts that altered stored bytes fail with `is_corrupt`, read as a whole and read as a stream.
    fn refused(what: &str, len: u64, stored: &Bytes) {
        let error = open_bytes(&key(), len, stored).unwrap_err();
        assert!(error.is_corrupt(), "{what}: {error}");
        let error = collect(open_stream(&key(), len, pieces(stored, 10_000))).unwrap_err();
        assert!(error.is_corrupt(), "{what}: {error}");
    }

    #[test]
    fn no_other_bytes_are_taken_for_the_content() {
        let (chunk, whole) = (SEALED_BYTES as usize, sealed(&content(3 * 65_536 + 100)));
        let len = 3 * CHUNK_BYTES + 100;
        for at in [0, 70_000, chunk - 1, chunk, 2 * chunk + 5, whole.len() - 1] {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 0x10;
            refused("a flip", len, &flipped.into());
        }
        for end in [0, 1, chunk, 2 * chunk, 3 * chunk, whole.len() - 1] {
            let cut = whole.slice(..end);
            refused("a truncation", len, &cut);
            // The row's length may be changed with the blob.
            refused("a truncation with the length", content_len(end as u64), &cut);
        }
        let joined = |parts: [&[u8]; 4]| Bytes::from(parts.concat());
        let at = |index: usize| &whole[index * chunk..whole.len().min((index + 1) * chunk)];
        refused("an exchange", len, &joined([at(1), at(0), at(2), at(3)]));
        refused("a repetition", len, &joined([at(0), at(0), at(2), at(3)]));
        refused("an extension", len, &Bytes::from([&whole[..], &[0; 16]].concat()));
        let longer = Bytes::from([&whole[..], at(3)].concat());
        refused("an extension with the length", content_len(longer.len() as u64), &longer);
        let (other, _) = seal_and_hash_bytes(
            &BlobContentKey::from_stored(&[&[1][..], &[2; 32]].concat()).unwrap(),
            &content(100),
        );
        let other: Vec<u8> = other.iter().flatten().copied().collect();
        refused("another blob", 100, &other.into());
    }

    #[test]
    fn a_range_tells_a_changed_end() {
        let content = content(2 * 65_536);
        let whole = sealed(&content);
        // The row says one chunk, the blob has two.
        let of = ChunkRange::chunks_of_range(&(65_000..65_536), CHUNK_BYTES);
        let stored = whole.slice(of.sealed.start as usize..of.sealed.end as usize);
        assert!(of.open_chunks(&key(), &stored).unwrap_err().is_corrupt());
        let of = ChunkRange::chunks_of_range(&(0..10), 2 * CHUNK_BYTES);
        assert!(
            of.open_chunks(&key(), &whole.slice(..100)).unwrap_err().is_corrupt(),
            "a short answer"
        );
    }

    #[test]
    fn a_content_that_is_not_the_expected_one_is_not_sealed() {
        let content = content(70_000);
        let sums = LengthAndHash { len: 70_000, hash: [0; 32] };
        let error = collect(seal_stream(&key(), pieces(&content, 999), Some(sums))).unwrap_err();
        assert!(error.is_corrupt(), "{error}");
    }
}

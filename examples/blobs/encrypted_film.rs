//! Streams a film into an encrypted blob and out of it, with less than 64 MiB of memory.
//!
//! The film has 256 MiB, or as many as `ENTABLE_FILM_MIB` says. It is kept in a directory, encrypted under a
//! key of its own, which the row holds sealed; a film that is not encrypted is beside it to compare.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use entable::{Blob, KeyScope, Keyring, backend::Memory, prelude::*, seal::RootKey};
use futures_util::{StreamExt, stream};
use object_store::local::LocalFileSystem;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Films", partition_key = "{year}", row_key = "film_{id:06}")]
struct Film {
    year: u16,
    id: u32,
    #[table(blob)]
    trailer: Option<Blob>,
    #[table(blob, encrypt)]
    reel: Option<Blob>,
}

/// Bytes of one piece of the film.
const PIECE: usize = 1 << 20;

/// Returns the pieces of a film one after the other: each is made when it is asked for.
fn pieces(count: usize) -> impl stream::Stream<Item = io::Result<bytes::Bytes>> {
    stream::iter(0..count).map(|number| Ok(vec![(number % 251) as u8; PIECE].into()))
}

/// Reads a blob to its end, and returns the number of bytes. Nothing of it is kept.
async fn watch(films: &Table<Film>, film: &Blob) -> Result<u64, Error> {
    let (mut seen, mut pieces) = (0, films.blob(film).stream());
    while let Some(piece) = pieces.next().await {
        seen += piece?.len() as u64;
    }
    Ok(seen)
}

/// Returns the most memory that the process ever had, in MiB; `None` where the system does not tell.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024)
}

fn rate(mib: usize, time: Duration) -> f64 {
    mib as f64 / time.as_secs_f64()
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mib = std::env::var("ENTABLE_FILM_MIB").ok().map_or(Ok(256), |mib| mib.parse())?;
    let directory = tempfile::tempdir()?;
    let store = Arc::new(LocalFileSystem::new_with_prefix(directory.path())?);
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &RootKey::generate()?);
    let client =
        Client::builder().backend(Memory::new()).blobs(store).keys(keys.build()?).build()?;
    let films: Table<Film> = client.table();
    films.create().await?;
    let mut film = Film { year: 1968, id: 1, trailer: None, reel: None };
    let before = most_memory();

    let begin = Instant::now();
    film.trailer = Some(films.upload(&film, Film::TRAILER, pieces(mib)).await?);
    let plain_in = begin.elapsed();
    let begin = Instant::now();
    film.reel = Some(films.upload(&film, Film::REEL, pieces(mib)).await?);
    let secret_in = begin.elapsed();
    let film = films.insert(&film).await?;
    let (Some(trailer), Some(reel)) = (&film.trailer, &film.reel) else { return Ok(()) };

    let begin = Instant::now();
    let seen = watch(&films, trailer).await?;
    let plain_out = begin.elapsed();
    let begin = Instant::now();
    assert_eq!(seen, watch(&films, reel).await?);
    let secret_out = begin.elapsed();
    assert_eq!(seen, (mib * PIECE) as u64);
    println!("{mib} MiB in and out, in MiB/s:");
    println!("  plain      {:6.0} {:6.0}", rate(mib, plain_in), rate(mib, plain_out));
    println!("  encrypted  {:6.0} {:6.0}", rate(mib, secret_in), rate(mib, secret_out));

    // A range opens only its chunks of 64 KiB.
    let scene = films.blob(reel).range(3 * PIECE as u64..3 * PIECE as u64 + 5).await?;
    assert_eq!(scene, [3; 5][..]);
    if let (Some(before), Some(after)) = (before, most_memory()) {
        println!("memory: {before} MiB before, at most {after} MiB");
        assert!(after - before < 64, "held {} MiB", after - before);
    }
    Ok(())
}

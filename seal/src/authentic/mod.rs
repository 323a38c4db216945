//! Authentic work: codes that prove to a worker that a program with the keys asked for the work.
//!
//! Anyone who can write to a table can write rows that give workers work. A worker with keys therefore does only work
//! whose code it has verified. `docs/envelope.md` specifies the codes byte by byte, and `docs/encryption.md` lists the
//! attacks they withstand.

mod policy;
pub(crate) mod work;
pub(crate) mod codes;

pub use policy::{Authenticity, MessageAuthenticity, WorkAuthenticity};

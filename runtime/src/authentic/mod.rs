//! Authentic work: codes that prove to a worker that a program with the keys asked for the work.
//!
//! Whoever can write a table can write rows that tell workers what to do. So a worker with keys
//! does only work whose code it has verified. `docs/envelope.md` specifies the codes byte by byte,
//! `docs/encryption.md` says which attacks they withstand.

mod policy;
mod work;
mod codes;

pub use policy::{Authenticity, MessageAuthenticity, WorkAuthenticity};

pub(crate) use self::{
    codes::{WorkCodes, WorkRefusal, is_key_gone},
    work::{HeldValues, MoveIdentity, Work, is_message_expired},
};

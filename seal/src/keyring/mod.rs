//! Keyrings: key providers whose keys the process holds itself, from code, a text, a file or an
//! environment variable.

mod ring;

mod builder;
mod text;

pub use builder::KeyringBuilder;
pub use ring::Keyring;

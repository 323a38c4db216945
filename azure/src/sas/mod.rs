//! Makes shared access signatures (SAS): signed permissions for one table, or all tables of an
//! account. No request is sent.
//!
//! For what it permits, a signature is as powerful as the account's key. Transmit it over a secure
//! channel and limit its lifetime. `Debug` never prints one.

mod letters;
mod token;
mod terms;
mod bounds;
mod account;
mod table;

pub use account::{AccountPermissions, AccountSas, ResourceTypes};
pub use table::{TablePermissions, TableSas};
pub use token::SasToken;

//! Makes shared access signatures (SAS): signed permissions for one table, or all tables of an
//! account. No request is sent.
//!
//! For what it permits, a signature is as powerful as the account's key. Transmit it over a secure
//! channel and limit its lifetime. `Debug` never prints one.

mod table;
mod cache;

#[doc(no_inline)]
pub use crate::backend::azure::UserDelegationKey;
pub use cache::SasCache;
pub use entable_azure::{
    AccessPolicy,
    sas::{AccountPermissions, AccountSas, ResourceTypes, SasToken, TablePermissions},
};
pub use table::TableSas;

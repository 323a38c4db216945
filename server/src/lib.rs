//! Serves the protocol of Azure Table storage over any store of [entable], for programs in other languages and
//! for other processes.
//!
//! [`Server::builder`] describes a server, [`ServerBuilder::bind`] opens its port, and [`Server::run`] answers requests until it is told to stop. The README lists
//! what the server answers and what it refuses.
//!
//! [entable]: https://docs.rs/entable

mod failure;
mod address;
mod budget;
mod grant;
mod request;
mod host;
mod service;

mod policies;
mod signature;
mod sas;
mod access;

mod entity_json;
mod properties;
mod tables;
mod entities;
mod batch;
mod routes;

mod stalled;
mod listen;
mod builder;

// Parsers for the fuzz targets.
#[doc(hidden)]
pub mod __fuzz;

pub use builder::ServerBuilder;
pub use listen::Server;

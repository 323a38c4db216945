//! Serves the protocol of Azure Table storage over any store of [`entable`], for programs in other languages and
//! for other processes.
//!
//! [`Server::bind`] opens a port and [`Server::run`] answers requests until it is told to stop. The README lists
//! what the server answers and what it refuses.

mod address;
mod failure;
mod request;
mod access;
mod entity_json;
mod tables;
mod entities;
mod batch;
mod service;
mod listen;

pub use listen::Server;

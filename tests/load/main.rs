//! Loads on an account that pushes back: how many requests a client keeps in flight, what share of the account's limit
//! it gets, and what other requests notice of it. All time is virtual.
//!
//! `ENTABLE_LONG=1` writes 10,000,000 entities against the limits of the service, or as many as `ENTABLE_LOAD` says.

mod bulk;
mod fair;
mod growth;
mod world;

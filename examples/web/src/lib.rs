//! A web service over a table: a list by pages, and reads and writes of one employee under ETags.
//!
//! `docs/http.md` explains the headers.

pub mod employee;
pub mod etag;
pub mod problem;
pub mod routes;
pub mod serve;

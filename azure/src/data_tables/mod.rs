//! The transport over the client of `azure_data_tables` 0.21, which is frozen.
//!
//! A request starts the client's operation for it, and passes through the client's pipeline. The last
//! policy of the pipeline sends the request of the wire in place of the client's, whose addresses, bodies
//! and signatures have faults (`docs/from-azure-data-tables.md` lists them), and takes the answer out of the pipeline,
//! because the client would drop the code and the message of an error.

mod sender;
mod client;

pub(crate) use client::open;

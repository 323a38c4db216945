//! Laws of keys, values, filters, rows, pages and batches, on random input.

mod batch;
mod collide;
mod edm;
mod filter;
mod key;
mod limits;
mod page;
mod row;
mod template;

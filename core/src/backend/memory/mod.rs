//! A backend that keeps rows in memory, for tests and as the reference for the other backends.

mod store;

#[cfg(test)]
mod tests;

pub use store::Memory;

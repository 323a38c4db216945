//! Backends, which keep rows: the trait [`Backend`], its implementations, and layers that wrap a backend.
//!
//! A backend moves rows and knows no entity types.

#[cfg(feature = "azure-wire")]
pub mod azure;
/// Layers: backends that wrap a backend to retry, record, observe, refuse or throttle requests, or to inject faults.
pub mod layer {
    pub(crate) use entable_core::__runtime::backend::layer::*;
    pub use entable_core::backend::layer::*;
}

pub use entable_core::backend::*;
#[cfg(feature = "embedded")]
pub use entable_embedded::{
    Durability, Embedded, EmbeddedOptions, VerifyCopy, VerifyProgress, VerifyReport,
};

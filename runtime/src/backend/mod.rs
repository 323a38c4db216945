//! Backends, which keep rows: the trait [`Backend`], its implementations, and layers that wrap a backend.
//!
//! A backend moves rows and knows no entity types.

/// Azure Table storage, Cosmos DB's Table API and the storage emulator.
#[cfg(feature = "azure-wire")]
pub mod azure {
    pub use entable_azure::{
        AccountKey, AnswerBody, Azure, AzureOptions, Carrier, HttpAnswer, HttpRequest, Method,
        PrimaryThenSecondary, SendFailure, Transport, UserDelegationKey,
    };
}
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

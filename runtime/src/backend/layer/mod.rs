//! Layers: backends that wrap a backend to retry requests, record requests or inject faults.

mod fault_injector;
mod recorder;
mod retry;

pub use fault_injector::{FaultInjector, InjectedFault, RequestKind};
pub use recorder::{Recorder, Request};
pub use retry::{Retry, RetryPolicy};

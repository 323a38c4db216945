//! Layers: backends that wrap a backend to retry, record, observe, refuse or throttle requests, or to inject faults.

mod forward;
pub(crate) mod adaptive_rate;
mod fault_injector;
mod observe;
mod partition;
mod read_only;
mod recorder;
pub(crate) mod retry;
mod simulated_account;
pub(crate) mod span_fields;
pub(crate) mod verb_counts;

pub use adaptive_rate::AdaptiveRate;
pub use fault_injector::{FaultInjector, InjectedFault, RequestKind};
pub use observe::Observe;
pub use read_only::ReadOnly;
pub use recorder::{Recorder, Request};
pub use retry::{Retry, RetryPolicy};
pub use simulated_account::{AccountFigures, SimulatedAccount};

//! Runs work that takes the processor or a disk for a while on another thread than the calling
//! task.

use crate::error::{Error, ErrorKind, Result};

/// Runs the work on a thread for blocking work and returns its result. The work begins at the call,
/// before the first poll. Outside of a runtime, the call itself runs the work on the calling thread.
///
/// # Errors
///
/// `is_backend` if the work panics on its thread, or if the runtime is shut down before the work is done.
pub(crate) fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T>> + Send + 'static {
    let begun = match tokio::runtime::Handle::try_current() {
        Ok(runtime) => Ok(runtime.spawn_blocking(work)),
        Err(_) => Err(work()),
    };
    async move {
        match begun {
            Ok(task) => task.await.map_err(|error| {
                let message = "the async runtime shut down before the blob operation ended";
                Error::new(ErrorKind::Backend, message).with_source(error)
            }),
            Err(done) => Ok(done),
        }
    }
}

//! Work that takes the processor or a disk for a while, on a thread beside that of the task.

use crate::error::{Error, ErrorKind, Result};

/// Runs the work on a thread for blocking work and returns its result. Begins at once, before the first
/// poll. Outside of a runtime the work runs here.
///
/// # Errors
///
/// `is_backend` if the runtime is shut down meanwhile.
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
                let message = "the runtime ended before the work on a blob";
                Error::new(ErrorKind::Backend, message).with_source(error)
            }),
            Err(done) => Ok(done),
        }
    }
}

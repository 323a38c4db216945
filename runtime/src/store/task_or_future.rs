//! Runs work concurrently with the task that waits for it or, outside of a tokio runtime, while it is awaited.

use std::{
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{runtime::Handle, task::JoinHandle};
use tracing::Instrument;

use crate::backend::BoxFuture;

/// Work that runs in its own task if the caller is in a tokio runtime. Outside of a runtime, it advances only
/// while it is awaited. Dropping this value ends the work.
pub(crate) enum TaskOrFuture<T> {
    Task(JoinHandle<T>),
    Own(BoxFuture<'static, T>),
}

impl<T: Send + 'static> TaskOrFuture<T> {
    /// Starts a task for `work`, in the caller's tracing span.
    pub(crate) fn begin_task(work: impl Future<Output = T> + Send + 'static) -> Self {
        let work = work.in_current_span();
        match Handle::try_current() {
            Ok(runtime) => Self::Task(runtime.spawn(work)),
            Err(_) => Self::Own(Box::pin(work)),
        }
    }
}

impl<T> Future for TaskOrFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let task = match &mut *self {
            Self::Own(work) => return work.as_mut().poll(context),
            Self::Task(task) => task,
        };
        match ready!(Pin::new(task).poll(context)) {
            Ok(done) => Poll::Ready(done),
            Err(ended) if ended.is_panic() => resume_unwind(ended.into_panic()),
            // The runtime shuts down, and drops the task that waits too.
            Err(_) => Poll::Pending,
        }
    }
}

impl<T> Drop for TaskOrFuture<T> {
    fn drop(&mut self) {
        if let Self::Task(task) = self {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        task::Waker,
    };

    use super::*;

    #[test]
    fn work_ends_with_and_without_a_runtime() {
        let mut context = Context::from_waker(Waker::noop());
        let alone = Pin::new(&mut TaskOrFuture::begin_task(async { 1 })).poll(&mut context);
        assert_eq!(alone, Poll::Ready(1));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(async { TaskOrFuture::begin_task(async { 2 }).await }), 2);
    }

    #[tokio::test]
    async fn work_goes_on_by_itself_and_ends_with_the_one_who_waits() {
        let held = Arc::new(Mutex::new(false));
        let seen = held.clone();
        let work = TaskOrFuture::begin_task(async move {
            *seen.lock().unwrap() = true;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        assert!(*held.lock().unwrap(), "it runs before anybody waits for it");
        drop(work);
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn a_panic_reaches_the_one_who_waits() {
        let work = TaskOrFuture::begin_task(async { panic!("found") });
        let waiting = tokio::spawn(work);
        assert!(waiting.await.unwrap_err().is_panic());
    }
}

//! A store in which something happens right before one write.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex},
};

use entable::{
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
    },
    batch::{Batch, Operation, Written},
    prelude::*,
    row::Row,
};

type Event = BoxFuture<'static, ()>;

/// A store that runs an event before the first write which it waits for.
pub(crate) struct Hooked {
    inner: Box<dyn Backend>,
    is_awaited: Box<dyn Fn(&Operation) -> bool + Send + Sync>,
    event: Mutex<Option<Event>>,
    /// The answer to the awaited write, which is not carried out then.
    answer: Mutex<Option<Error>>,
    /// The awaited write.
    kept: Arc<Mutex<Option<Batch>>>,
}

impl Hooked {
    /// A store that runs `event` before the first transaction with an operation that is awaited.
    pub(crate) fn before(
        inner: impl Backend + 'static,
        is_awaited: impl Fn(&Operation) -> bool + Send + Sync + 'static,
        event: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let event = Mutex::new(Some(Box::pin(event) as Event));
        let is_awaited = Box::new(is_awaited);
        Self {
            inner: Box::new(inner),
            is_awaited,
            event,
            answer: Mutex::default(),
            kept: Arc::default(),
        }
    }

    /// A store in which the first transaction with an operation that is awaited stays on its way until its
    /// writer is dropped. Returns the place where that transaction is kept, to be carried out late.
    pub(crate) fn holding(
        inner: impl Backend + 'static,
        is_awaited: impl Fn(&Operation) -> bool + Send + Sync + 'static,
    ) -> (Self, Arc<Mutex<Option<Batch>>>) {
        let held = Self::before(inner, is_awaited, std::future::pending());
        let kept = held.kept.clone();
        (held, kept)
    }

    /// Lets the awaited write fail with `error` instead of being carried out.
    pub(crate) fn failing(self, error: Error) -> Self {
        Self { answer: Mutex::new(Some(error)), ..self }
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooked").finish_non_exhaustive()
    }
}

impl Backend for Hooked {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let event = if batch.operations().iter().any(&self.is_awaited) {
                self.event.lock().unwrap().take()
            } else {
                None
            };
            if let Some(event) = event {
                *self.kept.lock().unwrap() = Some(batch.clone());
                event.await;
                if let Some(error) = self.answer.lock().unwrap().take() {
                    return Err(error);
                }
            }
            self.inner.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

//! A store in which something happens right before one write.

use std::{fmt, future::Future, sync::Mutex};

use entable::{
    backend::{
        Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest,
        layer::FaultInjector,
    },
    batch::{Batch, Operation, Written},
    prelude::*,
    row::Row,
};

type Event = BoxFuture<'static, ()>;

/// A store that runs an event before the first write which it waits for.
pub(super) struct Hooked {
    inner: FaultInjector,
    is_awaited: Box<dyn Fn(&Operation) -> bool + Send + Sync>,
    event: Mutex<Option<Event>>,
    /// The answer to the awaited write, which is not carried out then.
    answer: Mutex<Option<Error>>,
}

impl Hooked {
    /// A store that runs `event` before the first transaction with an operation that is awaited.
    pub(super) fn before(
        inner: FaultInjector,
        is_awaited: impl Fn(&Operation) -> bool + Send + Sync + 'static,
        event: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let event = Mutex::new(Some(Box::pin(event) as Event));
        Self { inner, is_awaited: Box::new(is_awaited), event, answer: Mutex::default() }
    }

    /// Lets the awaited write fail with `error` instead of being carried out.
    pub(super) fn failing(self, error: Error) -> Self {
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

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let event = match batch.operations().iter().any(&self.is_awaited) {
                true => self.event.lock().unwrap().take(),
                false => None,
            };
            if let Some(event) = event {
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

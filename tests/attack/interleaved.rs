//! A store that runs a step of another writer before a chosen request.

use std::{
    future::Future,
    sync::{Arc, Mutex},
};

use entable::{
    Batch, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
    },
    prelude::*,
};

type Interruption = BoxFuture<'static, ()>;

/// The step that runs before the request of that kind and number.
type Script = Vec<(&'static str, usize, Interruption)>;

#[derive(Clone, Default)]
pub(crate) struct Hooked {
    inner: Arc<Memory>,
    script: Arc<Mutex<Script>>,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl Hooked {
    /// A client that is interrupted.
    pub(crate) fn client(&self) -> Client {
        Client::builder().backend(self.clone()).build().unwrap()
    }

    /// The other writer, who is not.
    pub(crate) fn other(&self) -> Client {
        Client::builder().backend(self.inner.clone()).build().unwrap()
    }

    /// Lets the other writer in before the `nth` request of that kind from now on, counted from 0:
    /// `read`, `scan` or `apply`.
    pub(crate) fn before(
        &self,
        kind: &'static str,
        nth: usize,
        other: impl Future<Output = ()> + Send + 'static,
    ) {
        self.script.lock().unwrap().push((kind, nth, Box::pin(other)));
    }

    /// Whether every interruption took place.
    pub(crate) fn is_done(&self) -> bool {
        self.script.lock().unwrap().is_empty()
    }

    async fn interrupted(&self, kind: &str) {
        let mut due = Vec::new();
        {
            let mut script = self.script.lock().unwrap();
            let mut at = 0;
            while at < script.len() {
                if script[at].0 != kind {
                    at += 1;
                } else if script[at].1 == 0 {
                    due.push(script.remove(at).2);
                } else {
                    script[at].1 -= 1;
                    at += 1;
                }
            }
        }
        for other in due {
            other.await;
        }
    }
}

impl Backend for Hooked {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        Box::pin(async move {
            self.interrupted("read").await;
            self.inner.read(request).await
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move {
            self.interrupted("scan").await;
            self.inner.scan(request).await
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            self.interrupted("apply").await;
            self.inner.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

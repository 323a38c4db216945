//! The memory that bodies may take, shared by all requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::failure::Failure;

/// The most bytes that a page of a store takes: 16 MiB and the row that passes them.
const PAGE_BYTES: usize = 17 * 1024 * 1024;

/// The memory that is left for bodies. Half of it is for pages while a store reads them.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: Arc<Semaphore>,
    pages: Semaphore,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        let pages = (bytes / 2 / PAGE_BYTES).max(1);
        Self { bytes: Arc::new(Semaphore::new(bytes / 2)), pages: Semaphore::new(pages) }
    }

    /// Returns no room yet, to be enlarged as bytes come.
    pub(crate) fn room(&self) -> Room {
        Room { memory: self.bytes.clone(), taken: None }
    }

    /// Waits for the memory of one page. Queries are short, so they wait rather than fail.
    pub(crate) async fn turn_to_read(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes the semaphore, so this never fails.
        self.pages.acquire().await.ok()
    }
}

/// Memory that a request has taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Takes memory for this many bytes more. Fails with 503 if too little is free.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let busy = || Failure::new(503, "ServerBusy");
        let bytes = u32::try_from(bytes).map_err(|_| busy())?;
        let more = self.memory.clone().try_acquire_many_owned(bytes).map_err(|_| busy())?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }
}

//! A layer that injects faults on demand, to test how a program copes with a broken network, a throttled
//! service or a slow disk.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::forward::forward_to_inner,
    },
    batch::{Batch, Written},
    error::{Error, Result},
    page::Continuation,
    row::Row,
};

/// The kind of request that an injected fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Requests of every kind.
    Any,
    /// Point reads.
    Read,
    /// Pages of queries.
    Scan,
    /// Single writes and entity group transactions.
    Apply,
    /// Requests that create, delete or list tables.
    Tables,
}

/// A fault of one request.
#[derive(Debug)]
#[non_exhaustive]
pub enum InjectedFault {
    /// The request fails with this error and is not carried out.
    Before(Error),
    /// The request is carried out, its answer is lost, and the caller gets this error.
    After(Error),
    /// The request waits for this time before it is carried out.
    Delay(Duration),
    /// The page has no rows, and a continuation of the layer to the place where it began. No effect on other
    /// requests.
    EmptyPage,
    /// The page has at most this many rows. No effect on other requests.
    ShortPage(u32),
}

/// A layer that makes requests fail as planned with [`inject`](Self::inject). Clones share the plan.
///
/// ```
/// use entable_core::{
///     Error, ErrorKind,
///     backend::{Backend, Memory, TableRequest, layer::{FaultInjector, RequestKind, InjectedFault}},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let fault = FaultInjector::around(Memory::new());
/// fault.inject(RequestKind::Tables, 0, InjectedFault::After(Error::new(ErrorKind::Backend, "connection lost")));
/// assert!(fault.tables(TableRequest::Create("Staff")).await.unwrap_err().is_backend());
/// assert!(fault.tables(TableRequest::Create("Staff")).await.unwrap_err().is_conflict());
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct FaultInjector {
    inner: Arc<dyn Backend>,
    plan: Arc<Mutex<FaultPlan>>,
}

#[derive(Debug, Default)]
struct FaultPlan {
    faults: Vec<PlannedFault>,
    requests: usize,
    page_rows: Option<u32>,
    empty_pages: bool,
    /// Continuations that were answered with an empty page. The next request for each returns the rows.
    emptied: HashSet<Option<Continuation>>,
}

/// A fault that waits for its request.
#[derive(Debug)]
struct PlannedFault {
    kind: RequestKind,
    /// Number of requests of the fault's kind that pass before the fault.
    requests_before: usize,
    fault: InjectedFault,
}

impl FaultInjector {
    /// Makes a layer in front of `backend`, without planned faults.
    pub fn around(backend: impl Backend) -> Self {
        Self { inner: Arc::new(backend), plan: Arc::default() }
    }

    fn lock_plan(&self) -> MutexGuard<'_, FaultPlan> {
        // A poisoned lock is used on: nothing that is done under it can panic half way.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a fault for the `nth` request of a kind from now on, counted from 0. Several faults for one request take
    /// effect in the order they were added, up to the first `Before`, which fails the request. If there are several
    /// `After`, the caller gets the last error.
    pub fn inject(&self, kind: RequestKind, nth: usize, fault: InjectedFault) {
        self.lock_plan().faults.push(PlannedFault { kind, requests_before: nth, fault });
    }

    /// Limits every page from now on to this many rows. `None` removes the limit.
    pub fn shorten_pages(&self, rows: Option<u32>) {
        self.lock_plan().page_rows = rows;
    }

    /// Sets whether the first request for each page returns no rows, but a continuation to the same
    /// page. The request with that continuation returns the rows.
    pub fn empty_pages(&self, empty: bool) {
        self.lock_plan().empty_pages = empty;
    }

    /// Returns the number of requests so far, including failed ones.
    pub fn requests(&self) -> usize {
        self.lock_plan().requests
    }

    /// Returns the number of planned faults that have not taken effect yet.
    pub fn pending(&self) -> usize {
        self.lock_plan().faults.len()
    }

    /// Removes all planned faults, row limits of pages and empty pages. Keeps the count of
    /// requests.
    pub fn clear(&self) {
        let mut plan = self.lock_plan();
        *plan = FaultPlan { requests: plan.requests, ..FaultPlan::default() };
    }

    /// Counts a request and returns the faults that are planned for it.
    fn take_faults(&self, kind: RequestKind) -> Vec<InjectedFault> {
        let mut plan = self.lock_plan();
        plan.requests += 1;
        let mut now = Vec::new();
        for mut planned in std::mem::take(&mut plan.faults) {
            let counts = planned.kind == RequestKind::Any || planned.kind == kind;
            // Below zero: the request is of this kind, and no other has to pass before the fault.
            match planned.requests_before.checked_sub(usize::from(counts)) {
                Some(left) => {
                    planned.requests_before = left;
                    plan.faults.push(planned);
                }
                None => now.push(planned.fault),
            }
        }
        now
    }

    /// Makes a request with its faults. A request that fails before it is carried out never reaches the inner backend,
    /// so a recorder there does not see it.
    async fn run_with_faults<'a, T>(
        &self,
        faults: Vec<InjectedFault>,
        request: impl FnOnce() -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut lost = None;
        for fault in faults {
            match fault {
                InjectedFault::Before(error) => return Err(error),
                InjectedFault::After(error) => lost = Some(error),
                InjectedFault::Delay(time) => tokio::time::sleep(time).await,
                InjectedFault::EmptyPage | InjectedFault::ShortPage(_) => {}
            }
        }
        let answer = request().await;
        lost.map_or(answer, Err)
    }

    /// Returns the continuation of the wrapped backend that is packed in a continuation of this
    /// layer. A test that predicts the pages of the wrapped backend needs it. `None` means the first
    /// page.
    ///
    /// ```
    /// use entable_core::backend::layer::FaultInjector;
    ///
    /// assert_eq!(FaultInjector::backend_continuation(None), None);
    /// ```
    pub fn backend_continuation(from: Option<&Continuation>) -> Option<Continuation> {
        OwnPlace::from_continuation(from).place
    }

    /// If the requested page has to come without its rows, returns the continuation that leads to
    /// the same page again. Otherwise returns `None`.
    fn empty_page_continuation(
        &self,
        scan: &ScanRequest<'_>,
        faults: &[InjectedFault],
    ) -> Option<Continuation> {
        let here = OwnPlace::from_continuation(scan.from);
        if faults.iter().any(|fault| matches!(fault, InjectedFault::EmptyPage)) {
            return Some(here.to_continuation());
        }
        let mut plan = self.lock_plan();
        // The second request gets the rows. Removing the place makes the next scan find an empty page there again.
        if !plan.empty_pages || plan.emptied.remove(&here.place) {
            return None;
        }
        plan.emptied.insert(here.place.clone());
        Some(here.to_continuation())
    }

    /// Returns the row limit of a page: the lowest of the planned limits and the request's own
    /// limit. `None` if there is none.
    fn page_limit(&self, scan: &ScanRequest<'_>, faults: &[InjectedFault]) -> Option<u32> {
        let once = faults.iter().filter_map(|fault| match fault {
            InjectedFault::ShortPage(rows) => Some(*rows),
            _ => None,
        });
        once.chain(self.lock_plan().page_rows).chain(scan.top).min()
    }
}

/// The place where a page begins, and the number of empty pages that have led to it. The continuation of an empty page
/// is the layer's own, because a server only accepts continuations that it has returned itself.
#[derive(Debug, PartialEq, Eq)]
struct OwnPlace {
    empty_pages: u64,
    place: Option<Continuation>,
}

/// The beginning of the layer's own continuations. No key and no service's continuation has a U+0001.
const OWN: &str = "\u{1}empty page ";

impl OwnPlace {
    /// Unpacks a continuation of this layer. Any other continuation is taken as one of the wrapped
    /// backend, with no empty pages before it.
    fn from_continuation(from: Option<&Continuation>) -> Self {
        let own = from.and_then(|from| {
            let (number, partition_key) = from.partition_key.strip_prefix(OWN)?.split_once(':')?;
            let place = partition_key.strip_prefix('=').map(|partition_key| Continuation {
                partition_key: partition_key.to_owned(),
                row_key: from.row_key.clone(),
            });
            Some(Self { empty_pages: number.parse().ok()?, place })
        });
        own.unwrap_or_else(|| Self { empty_pages: 0, place: from.cloned() })
    }

    /// Returns the continuation for an empty page at this place: the same place, with the count of
    /// empty pages one higher.
    fn to_continuation(&self) -> Continuation {
        let number = self.empty_pages + 1;
        let partition_key = match &self.place {
            Some(place) => format!("{OWN}{number}:={}", place.partition_key),
            None => format!("{OWN}{number}:"),
        };
        let row_key = self.place.as_ref().and_then(|place| place.row_key.clone());
        Continuation { partition_key, row_key }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for FaultInjector {
    forward_to_inner!(origin);
    forward_to_inner!(store);

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(
            self.run_with_faults(self.take_faults(RequestKind::Read), move || {
                self.inner.read(request)
            }),
        )
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        let faults = self.take_faults(RequestKind::Scan);
        let emptied = self.empty_page_continuation(&request, &faults);
        let top = self.page_limit(&request, &faults);
        Box::pin(async move {
            let place = OwnPlace::from_continuation(request.from).place;
            // The backend behind sees no continuation but its own.
            let behind = ScanRequest { top, from: place.as_ref(), ..request };
            let page = self.run_with_faults(faults, || self.inner.scan(behind)).await?;
            let date = page.date;
            Ok(emptied.map_or(page, |here| Rows { rows: Vec::new(), next: Some(here), date }))
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(
            self.run_with_faults(self.take_faults(RequestKind::Apply), move || {
                self.inner.apply(batch)
            }),
        )
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(self.run_with_faults(self.take_faults(RequestKind::Tables), move || {
            self.inner.tables(request)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        backend::{Capabilities, Memory, layer::Recorder},
        batch::Operation,
        error::ErrorKind,
        filter::Filter,
    };

    fn broken() -> Error {
        Error::new(ErrorKind::Backend, "connection lost")
    }

    async fn staff() -> (FaultInjector, Recorder) {
        let recorder = Recorder::around(Memory::new());
        recorder.tables(TableRequest::Create("Staff")).await.unwrap();
        recorder.clear();
        (FaultInjector::around(recorder.clone()), recorder)
    }

    async fn insert(fault: &FaultInjector, row_key: &str) -> Result<Vec<Written>> {
        let row = Row::build("p", row_key).finish().unwrap();
        fault.apply(&Batch::single("Staff", Operation::insert(row)).unwrap()).await
    }

    async fn page(fault: &FaultInjector, top: Option<u32>, from: Option<&Continuation>) -> Rows {
        let filter = Filter::Constant(true);
        let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top, from };
        fault.scan(scan).await.unwrap()
    }

    #[tokio::test]
    async fn before_is_never_made_and_after_is() {
        let (fault, recorder) = staff().await;
        fault.inject(RequestKind::Apply, 0, InjectedFault::Before(broken()));
        fault.inject(RequestKind::Apply, 1, InjectedFault::After(broken()));
        assert!(insert(&fault, "a").await.unwrap_err().is_backend());
        assert_eq!(recorder.count(), 0);
        assert!(insert(&fault, "a").await.unwrap_err().is_backend());
        assert_eq!(recorder.count(), 1);
        assert!(insert(&fault, "a").await.unwrap_err().is_conflict());
        assert_eq!((fault.pending(), fault.requests()), (0, 3));
    }

    #[tokio::test]
    async fn the_nth_request_is_of_its_kind() {
        let (fault, _) = staff().await;
        fault.inject(RequestKind::Apply, 1, InjectedFault::Before(broken()));
        fault.inject(RequestKind::Any, 3, InjectedFault::Before(broken()));
        insert(&fault, "a").await.unwrap();
        page(&fault, None, None).await;
        insert(&fault, "b").await.unwrap_err();
        insert(&fault, "b").await.unwrap_err();
        insert(&fault, "b").await.unwrap();
    }

    #[tokio::test]
    async fn what_was_planned_can_be_forgotten() {
        let (fault, _) = staff().await;
        fault.inject(RequestKind::Any, 0, InjectedFault::Before(broken()));
        fault.empty_pages(true);
        fault.clear();
        insert(&fault, "a").await.unwrap();
        assert_eq!(page(&fault, None, None).await.rows.len(), 1);
    }

    #[tokio::test]
    async fn pages_come_short_or_empty_once() {
        let (fault, recorder) = staff().await;
        for key in ["a", "b", "c"] {
            insert(&fault, key).await.unwrap();
        }
        recorder.clear();
        fault.inject(RequestKind::Scan, 0, InjectedFault::EmptyPage);
        fault.inject(RequestKind::Scan, 1, InjectedFault::ShortPage(2));
        let empty = page(&fault, Some(10), None).await;
        assert_eq!((empty.rows.len(), recorder.count()), (0, 1));
        let short = page(&fault, Some(10), empty.next.as_ref()).await;
        assert_eq!(short.rows.len(), 2);
        let rest = page(&fault, Some(10), short.next.as_ref()).await;
        assert_eq!((rest.rows.len(), rest.next), (1, None));
    }

    #[test]
    fn the_continuation_of_an_empty_page_leads_back_to_its_place() {
        let place = |partition_key: &str, row_key: Option<&str>| Continuation {
            partition_key: partition_key.to_owned(),
            row_key: row_key.map(str::to_owned),
        };
        for from in [
            None,
            Some(place("1!4!Y2E-", Some("1!4!YQ--"))),
            Some(place("", None)),
            Some(place("a:=b", None)),
        ] {
            let mut sent = from.clone();
            for pages in 1..4 {
                let next = OwnPlace::from_continuation(sent.as_ref()).to_continuation();
                let read = OwnPlace::from_continuation(Some(&next));
                assert_eq!((read.empty_pages, &read.place), (pages, &from));
                assert_ne!(sent.as_ref(), Some(&next), "a reader gets on");
                sent = Some(next);
            }
        }
    }

    /// A server that takes only continuations that it made.
    #[derive(Debug)]
    struct Opaque(Memory);

    impl Backend for Opaque {
        fn capabilities(&self) -> Capabilities {
            self.0.capabilities()
        }

        fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
            self.0.read(request)
        }

        fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
            Box::pin(async move {
                let from = request.from.map(|from| {
                    let partition_key =
                        from.partition_key.strip_prefix("opaque ").map(str::to_owned);
                    let message = "the continuation is not this server's";
                    let partition_key =
                        partition_key.ok_or_else(|| Error::new(ErrorKind::Invalid, message))?;
                    Ok(Continuation { partition_key, row_key: from.row_key.clone() })
                });
                let from = from.transpose()?;
                let mut page = self.0.scan(ScanRequest { from: from.as_ref(), ..request }).await?;
                if let Some(next) = &mut page.next {
                    next.partition_key.insert_str(0, "opaque ");
                }
                Ok(page)
            })
        }

        fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
            self.0.apply(batch)
        }

        fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
            self.0.tables(request)
        }
    }

    #[tokio::test]
    async fn a_server_gets_only_continuations_that_it_made() {
        let fault = FaultInjector::around(Opaque(Memory::new()));
        fault.tables(TableRequest::Create("Staff")).await.unwrap();
        for key in ["a", "b"] {
            insert(&fault, key).await.unwrap();
        }
        fault.empty_pages(true);
        let (mut rows, mut pages, mut from) = (0, 0, None);
        loop {
            let page = page(&fault, Some(1), from.as_ref()).await;
            (rows, pages) = (rows + page.rows.len(), pages + 1);
            let Some(next) = page.next else { break };
            from = Some(next);
        }
        assert_eq!((rows, pages), (2, 4));
    }

    #[tokio::test]
    async fn a_delay_waits() {
        let (fault, _) = staff().await;
        fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(Duration::from_millis(20)));
        let start = std::time::Instant::now();
        insert(&fault, "a").await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

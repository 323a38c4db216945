//! Failures on demand: what a network, a throttled service or a slow disk does to a program.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    backend::{Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest},
    batch::{Batch, Written},
    error::{Error, Result},
    page::Continuation,
    row::Row,
};

/// Which requests a trouble is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Any request.
    Any,
    /// Point reads.
    Read,
    /// Pages of a query.
    Scan,
    /// Writes.
    Apply,
    /// Requests about tables.
    Tables,
}

/// What goes wrong with one request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The request fails and was not carried out.
    Before(Error),
    /// The request is carried out, and its answer is lost: the caller sees this error.
    After(Error),
    /// The request waits before it is carried out.
    Delay(Duration),
    /// The page comes without its rows, and with a continuation to where it began; nothing for
    /// other requests.
    EmptyPage,
    /// A page of at most so many rows; nothing for other requests.
    ShortPage(u32),
}

/// A layer that makes requests fail by a script. Clones share the script.
///
/// ```
/// use entable::{
///     Error, ErrorKind,
///     backend::{Backend, Memory, TableRequest, layer::{Fault, On, Trouble}},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let fault = Fault::around(Memory::new());
/// fault.inject(On::Tables, 0, Trouble::After(Error::new(ErrorKind::Backend, "connection lost")));
/// assert!(fault.tables(TableRequest::Create("Staff")).await.unwrap_err().is_backend());
/// assert!(fault.tables(TableRequest::Create("Staff")).await.unwrap_err().is_conflict());
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Fault {
    inner: Arc<dyn Backend>,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    troubles: Vec<Planned>,
    requests: usize,
    page_rows: Option<u32>,
    empty_pages: bool,
    /// Where an empty page sent its caller, who gets rows there next time.
    emptied: HashSet<Continuation>,
}

/// A trouble for the request that comes after `wait` others of its kind.
#[derive(Debug)]
struct Planned {
    on: On,
    wait: usize,
    trouble: Trouble,
}

impl Fault {
    /// A layer without troubles in front of `backend`.
    pub fn around(backend: impl Backend) -> Self {
        Self { inner: Arc::new(backend), script: Arc::default() }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a trouble for the `nth` request of that kind from now on, counted from 0. A request
    /// with several troubles has them all.
    pub fn inject(&self, on: On, nth: usize, trouble: Trouble) {
        self.script().troubles.push(Planned { on, wait: nth, trouble });
    }

    /// Every page from now on has at most so many rows; `None`: as the backend likes.
    pub fn shorten_pages(&self, rows: Option<u32>) {
        self.script().page_rows = rows;
    }

    /// Whether from now on every page comes empty the first time that it is asked for.
    pub fn empty_pages(&self, empty: bool) {
        self.script().empty_pages = empty;
    }

    /// How many requests came so far, failed ones included.
    pub fn requests(&self) -> usize {
        self.script().requests
    }

    /// How many troubles are still to come.
    pub fn pending(&self) -> usize {
        self.script().troubles.len()
    }

    /// Forgets all that was planned.
    pub fn clear(&self) {
        let mut script = self.script();
        *script = Script { requests: script.requests, ..Script::default() };
    }

    /// The troubles of the request that begins now.
    fn begin(&self, kind: On) -> Vec<Trouble> {
        let mut script = self.script();
        script.requests += 1;
        let mut now = Vec::new();
        for mut planned in std::mem::take(&mut script.troubles) {
            let meant = planned.on == On::Any || planned.on == kind;
            match planned.wait.checked_sub(usize::from(meant)) {
                Some(wait) => {
                    planned.wait = wait;
                    script.troubles.push(planned);
                }
                None => now.push(planned.trouble),
            }
        }
        now
    }

    /// Carries a request out under its troubles. A request that fails before is never made, so
    /// that a recorder behind this layer does not see it.
    async fn run<'a, T>(
        &self,
        troubles: Vec<Trouble>,
        request: impl FnOnce() -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut lost = None;
        for trouble in troubles {
            match trouble {
                Trouble::Before(error) => return Err(error),
                Trouble::After(error) => lost = Some(error),
                Trouble::Delay(time) => tokio::time::sleep(time).await,
                Trouble::EmptyPage | Trouble::ShortPage(_) => {}
            }
        }
        let answer = request().await;
        lost.map_or(answer, Err)
    }

    /// The continuation of an empty page in place of the real one, if there is to be one.
    fn emptied(&self, scan: &Scan<'_>, troubles: &[Trouble]) -> Option<Continuation> {
        let start = || Continuation { partition_key: String::new(), row_key: None };
        let here = scan.from.cloned().unwrap_or_else(start);
        if troubles.iter().any(|trouble| matches!(trouble, Trouble::EmptyPage)) {
            return Some(here);
        }
        let mut script = self.script();
        if !script.empty_pages || script.emptied.remove(&here) {
            return None;
        }
        script.emptied.insert(here.clone());
        Some(here)
    }

    fn page_rows(&self, scan: &Scan<'_>, troubles: &[Trouble]) -> Option<u32> {
        let once = troubles.iter().filter_map(|trouble| match trouble {
            Trouble::ShortPage(rows) => Some(*rows),
            _ => None,
        });
        once.chain(self.script().page_rows).chain(scan.top).min()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Fault {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(self.run(self.begin(On::Read), move || self.inner.read(request)))
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows>> {
        let troubles = self.begin(On::Scan);
        let emptied = self.emptied(&request, &troubles);
        let top = self.page_rows(&request, &troubles);
        let scan = self.run(troubles, move || self.inner.scan(Scan { top, ..request }));
        Box::pin(async move {
            let page = scan.await?;
            let date = page.date;
            Ok(emptied.map_or(page, |here| Rows { rows: Vec::new(), next: Some(here), date }))
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(self.run(self.begin(On::Apply), move || self.inner.apply(batch)))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(self.run(self.begin(On::Tables), move || self.inner.tables(request)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        backend::{Memory, layer::Recorder},
        batch::Operation,
        error::ErrorKind,
        filter::Filter,
    };

    fn broken() -> Error {
        Error::new(ErrorKind::Backend, "connection lost")
    }

    async fn staff() -> (Fault, Recorder) {
        let recorder = Recorder::around(Memory::new());
        recorder.tables(TableRequest::Create("Staff")).await.unwrap();
        recorder.clear();
        (Fault::around(recorder.clone()), recorder)
    }

    async fn insert(fault: &Fault, row_key: &str) -> Result<Vec<Written>> {
        let row = Row::build("p", row_key).finish().unwrap();
        fault.apply(&Batch::single("Staff", Operation::insert(row)).unwrap()).await
    }

    async fn page(fault: &Fault, top: Option<u32>, from: Option<&Continuation>) -> Rows {
        let filter = Filter::Constant(true);
        let scan = Scan { table: "Staff", filter: &filter, select: None, top, from };
        fault.scan(scan).await.unwrap()
    }

    #[tokio::test]
    async fn before_is_never_made_and_after_is() {
        let (fault, recorder) = staff().await;
        fault.inject(On::Apply, 0, Trouble::Before(broken()));
        fault.inject(On::Apply, 1, Trouble::After(broken()));
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
        fault.inject(On::Apply, 1, Trouble::Before(broken()));
        fault.inject(On::Any, 3, Trouble::Before(broken()));
        insert(&fault, "a").await.unwrap();
        page(&fault, None, None).await;
        insert(&fault, "b").await.unwrap_err();
        insert(&fault, "b").await.unwrap_err();
        insert(&fault, "b").await.unwrap();
    }

    #[tokio::test]
    async fn what_was_planned_can_be_forgotten() {
        let (fault, _) = staff().await;
        fault.inject(On::Any, 0, Trouble::Before(broken()));
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
        fault.inject(On::Scan, 0, Trouble::EmptyPage);
        fault.inject(On::Scan, 1, Trouble::ShortPage(2));
        let empty = page(&fault, Some(10), None).await;
        assert_eq!((empty.rows.len(), recorder.count()), (0, 1));
        let short = page(&fault, Some(10), empty.next.as_ref()).await;
        assert_eq!(short.rows.len(), 2);
        let rest = page(&fault, Some(10), short.next.as_ref()).await;
        assert_eq!((rest.rows.len(), rest.next), (1, None));
    }

    #[tokio::test]
    async fn a_delay_waits() {
        let (fault, _) = staff().await;
        fault.inject(On::Apply, 0, Trouble::Delay(Duration::from_millis(20)));
        let start = std::time::Instant::now();
        insert(&fault, "a").await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

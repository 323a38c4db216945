//! A store whose requests are slow, fail, take effect although they seem to fail, or take effect
//! late; and whose callers die.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    Batch, Clock, Row, Ticks, ValueRef, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
    },
    object_store::{ObjectMeta, ObjectStore, memory::InMemory, path::Path},
    prelude::*,
};
use futures_util::TryStreamExt;
use tokio::time::{Instant, sleep};

/// A small generator: the same numbers for the same seed, on every machine.
#[derive(Debug, Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Mostly short, seldom long.
    pub(super) fn pause(&mut self, scale: u64) -> Duration {
        let bound = match self.below(20) {
            0 => 60 * scale,
            1..=3 => 10 * scale,
            _ => scale,
        };
        Duration::from_millis(self.below(bound))
    }
}

/// The clock of the runtime, which is paused and steps from timer to timer.
#[derive(Debug)]
pub(super) struct VirtualClock(Instant);

impl VirtualClock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Ticks {
        let gone = Instant::now().duration_since(self.0).as_nanos() / 100;
        Ticks::new(630_000_000_000_000_000 + gone as i64).unwrap()
    }
}

/// A client's own clock, hours before or after the store's.
#[derive(Debug)]
pub(super) struct SkewedClock(pub(super) Arc<VirtualClock>, pub(super) i64);

impl Clock for SkewedClock {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.now().get() + self.1 * 36_000_000_000).unwrap()
    }
}

/// The state that all actors share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) memory: Memory,
    pub(super) blobs: InMemory,
    random: Mutex<Random>,
    /// Of how many requests three are troubled; `None`: all are good.
    trouble: Mutex<Option<u64>>,
    /// For how many milliseconds at most an actor is suspended right before a copy is sent; 0: never.
    suspension: AtomicU64,
    /// Requests that are given up and still to be carried out.
    pub(super) late: AtomicUsize,
    pub(super) log: Mutex<Vec<String>>,
    /// When each blob was written.
    dates: Mutex<HashMap<Path, Duration>>,
    begin: Instant,
    /// Removals of blobs to which a primary pointed.
    pub(super) broken: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn new(seed: u64, clock: Arc<VirtualClock>) -> Arc<Self> {
        Arc::new(Self {
            memory: Memory::with_clock(clock),
            blobs: InMemory::new(),
            random: Mutex::new(Random(seed ^ 0x0073_746f_7265)),
            trouble: Mutex::new(None),
            suspension: AtomicU64::new(0),
            late: AtomicUsize::new(0),
            log: Mutex::default(),
            dates: Mutex::default(),
            begin: Instant::now(),
            broken: Mutex::default(),
        })
    }

    pub(super) fn trouble(&self, of: Option<u64>) {
        *self.trouble.lock().unwrap() = of;
    }

    /// Suspends actors right before copies in other partitions are sent, for as long as `most`.
    pub(super) fn suspend(&self, most: Duration) {
        self.suspension.store(most.as_millis() as u64, Ordering::SeqCst);
    }

    fn troubled(&self) -> Option<u64> {
        *self.trouble.lock().unwrap()
    }

    pub(super) fn late(&self) -> usize {
        self.late.load(Ordering::SeqCst)
    }

    /// Dates a blob that was written now.
    pub(super) fn date(&self, blob: &Path) {
        self.dates.lock().unwrap().insert(blob.clone(), self.begin.elapsed());
    }

    /// Returns what is told of a blob, with its date by the clock of the history.
    pub(super) fn dated(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let dates = self.dates.lock().unwrap();
        meta.last_modified += dates.get(&meta.location).copied().unwrap_or_default();
        meta
    }

    /// Returns the names of all blobs of rows.
    pub(super) async fn blob_names(&self) -> BTreeSet<String> {
        let all: Vec<ObjectMeta> = self.blobs.list(None).try_collect().await.unwrap();
        let names = all.into_iter().map(|meta| meta.location.to_string());
        names.filter(|name| name.contains('/')).collect()
    }

    /// Notes the removal of a blob if a primary points to it.
    pub(super) async fn check_removal(&self, blob: &Path) {
        let filter = Filter::Constant(true);
        let all =
            ScanRequest { table: "Photos", filter: &filter, select: None, top: None, from: None };
        for row in self.memory.scan(all).await.unwrap().into_rows().unwrap() {
            for name in ["Photo", "Letter"] {
                let pointer = row.get(name).unwrap();
                let points = pointer == Some(ValueRef::String(blob.as_ref()));
                if points && row.row_key().starts_with("photo_") {
                    let broken = format!("{blob} is removed, {:?} points to it", row.keys());
                    self.broken.lock().unwrap().push(broken);
                }
            }
        }
    }

    pub(super) fn draw(&self, bound: u64) -> u64 {
        self.random.lock().unwrap().below(bound)
    }
}

/// The actor whose requests take no time and never fail.
pub(super) const WATCHER: &str = "watcher";

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Good,
    /// Not carried out.
    Refused,
    /// Carried out, the answer is lost.
    Unanswered,
    /// Given up, and carried out later.
    Late,
}

/// One actor's way to the store.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) shared: Arc<Shared>,
    pub(super) actor: &'static str,
    /// Requests that the actor makes before it dies.
    lives: Arc<Mutex<Option<u64>>>,
    /// Whether what it reads comes, however late.
    reads_well: bool,
}

impl Way {
    pub(super) fn new(shared: &Arc<Shared>, actor: &'static str, lives: Option<u64>) -> Self {
        Self {
            shared: shared.clone(),
            actor,
            lives: Arc::new(Mutex::new(lives)),
            reads_well: false,
        }
    }

    /// Chooses faults for an actor that reads too much to succeed if every other read fails.
    pub(super) fn reading_well(self) -> Self {
        Self { reads_well: true, ..self }
    }

    fn is_dead(&self) -> bool {
        match &mut *self.lives.lock().unwrap() {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }

    /// Time before a request arrives, and what becomes of it. A dead actor waits for ever.
    pub(super) async fn fate(&self) -> Fate {
        if self.actor == WATCHER {
            return Fate::Good;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
        let Some(of) = self.shared.troubled() else { return Fate::Good };
        let pause = self.shared.random.lock().unwrap().pause(400);
        sleep(pause).await;
        match self.shared.draw(of) {
            0 => Fate::Refused,
            1 => Fate::Unanswered,
            2 => Fate::Late,
            _ => Fate::Good,
        }
    }

    pub(super) async fn answered(&self) {
        if self.actor != WATCHER && self.shared.troubled().is_some() {
            let pause = self.shared.random.lock().unwrap().pause(400);
            sleep(pause).await;
        }
    }

    pub(super) fn say(&self, what: &str) {
        let at = Instant::now();
        self.shared.log.lock().unwrap().push(format!("{at:?} {} {what}", self.actor));
    }

    fn note(&self, batch: &Batch, outcome: &str) {
        let operations: Vec<String> = batch
            .operations()
            .iter()
            .map(|operation| format!("{:?} {}", operation.verb(), operation.row().row_key()))
            .collect();
        let (table, partition_key) = (batch.table(), batch.partition_key());
        let operations = operations.join(", ");
        self.say(&format!("{table} {partition_key}: {operations} -> {outcome}"));
    }

    /// Returns for how long the actor is suspended before it sends the batch.
    fn suspension_before(&self, batch: &Batch) -> Option<Duration> {
        let most = self.shared.suspension.load(Ordering::SeqCst);
        let is_copy = batch.partition_key().starts_with("email_")
            || ["Teams", "Badges"].contains(&batch.table());
        let is_suspended =
            most > 0 && is_copy && self.shared.troubled().is_some() && self.shared.draw(4) == 0;
        is_suspended.then(|| Duration::from_millis(self.shared.draw(most)))
    }

    /// Sends a batch after a suspension, unless its deadline is over by then.
    fn send_after(&self, time: Duration, batch: Batch) {
        let way = self.clone();
        self.shared.late.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            sleep(time).await;
            if batch.check_deadline().is_ok() {
                let _ = way.apply_now(&batch.with_deadline(None), ", after a suspension").await;
            }
            way.shared.late.fetch_sub(1, Ordering::SeqCst);
        });
    }

    async fn apply_now(&self, batch: &Batch, note: &str) -> Result<Vec<Written>, Error> {
        let written = self.shared.memory.apply(batch).await;
        let outcome = match &written {
            Ok(_) => "done".to_owned(),
            Err(error) => error.code().unwrap_or("error").to_owned(),
        };
        self.note(batch, &format!("{outcome}{note}"));
        written
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Backend, "connection lost")
}

impl Backend for Way {
    fn capabilities(&self) -> Capabilities {
        self.shared.memory.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        Box::pin(async move {
            if self.fate().await == Fate::Refused && !self.reads_well {
                return Err(lost());
            }
            let row = self.shared.memory.read(request).await;
            self.answered().await;
            row
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move {
            if self.fate().await == Fate::Refused && !self.reads_well {
                return Err(lost());
            }
            let rows = self.shared.memory.scan(request).await;
            self.answered().await;
            rows
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            if let Some(time) = self.suspension_before(batch) {
                self.send_after(time, batch.clone());
                return Err(lost());
            }
            // The client looks at the deadline right before the bytes leave; the store knows of none.
            batch.check_deadline()?;
            let batch = &batch.clone().with_deadline(None);
            match self.fate().await {
                Fate::Refused => Err(lost()),
                Fate::Unanswered => {
                    let _ = self.apply_now(batch, ", unanswered").await;
                    self.answered().await;
                    Err(lost())
                }
                Fate::Late => {
                    // Within the service's own limit after the client gave up.
                    let wait = Duration::from_millis(self.shared.draw(29_000));
                    let (way, batch) = (self.clone(), batch.clone());
                    self.shared.late.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(async move {
                        sleep(wait).await;
                        let _ = way.apply_now(&batch, ", late").await;
                        way.shared.late.fetch_sub(1, Ordering::SeqCst);
                    });
                    Err(lost())
                }
                Fate::Good => {
                    let written = self.apply_now(batch, "").await;
                    self.answered().await;
                    written
                }
            }
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.shared.memory.tables(request)
    }
}

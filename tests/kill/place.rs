//! The store of the run, and clients whose clocks are wrong.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use entable::{
    Clock, OutboxOptions, SystemClock, Ticks,
    backend::{Backend, Embedded},
    prelude::*,
};

const SECOND: i64 = 10_000_000;

/// The clock of the system, and some seconds more. It can be set forward.
#[derive(Debug)]
pub(crate) struct Ahead(AtomicI64);

impl Ahead {
    pub(crate) fn by(seconds: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(seconds)))
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn now(&self) -> Ticks {
        Ticks::new(SystemClock.now().get() + self.seconds() * SECOND).unwrap()
    }
}

/// A clock that is some seconds off another.
#[derive(Debug)]
struct Skewed(Arc<Ahead>, i64);

impl Clock for Skewed {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.now().get() + self.1 * SECOND).unwrap()
    }
}

/// The store of the run.
#[derive(Clone)]
pub(crate) struct Place {
    store: Arc<dyn Backend>,
    /// The clock of an embedded store. The emulator has its own.
    pub(crate) clock: Arc<Ahead>,
}

/// Returns whether the run is on the emulator.
pub(crate) fn is_emulator() -> bool {
    cfg!(feature = "azure-wire") && std::env::var_os("ENTABLE_AZURITE").is_some()
}

impl Place {
    /// Opens the store: an embedded one in a folder, or the emulator's. The clock of an embedded store is
    /// `ahead` seconds ahead of the system's.
    pub(crate) fn open(folder: &Path, ahead: i64) -> Self {
        let clock = Ahead::by(if is_emulator() { 0 } else { ahead });
        #[cfg(feature = "azure-wire")]
        if let Ok(connection) = std::env::var("ENTABLE_AZURITE") {
            let options = AzureOptions::from_connection_string(&connection).unwrap();
            return Self { store: Arc::new(entable::Azure::new(options).unwrap()), clock };
        }
        let options = Embedded::options().clock(clock.clone());
        let store = options.open(folder.join("people.db")).unwrap();
        Self { store: Arc::new(store), clock }
    }

    /// A client whose clock is some seconds off.
    pub(crate) fn client(&self, skew: i64) -> Client {
        let outbox = OutboxOptions::default()
            .grace(Duration::from_millis(200))
            .claim_time(Duration::from_secs(2))
            .close_idle_after(Duration::from_secs(2));
        // Each second look on the emulator takes a write deadline of real time.
        let outbox = if is_emulator() {
            outbox.request_timeout(Duration::from_secs(4)).write_deadline(Duration::from_secs(36))
        } else {
            outbox
        };
        Client::builder()
            .backend(self.store.clone())
            .clock(Arc::new(Skewed(self.clock.clone(), skew)))
            .outbox(outbox)
            .build()
            .unwrap()
    }
}

//! `Lookup` caches a small, rarely changing table in memory for joins.

use std::{collections::HashMap, fmt, hash::Hash, sync::Arc, time::Duration};

use super::build::Query;
use crate::{
    clock::{Clock, SystemClock},
    edm::Ticks,
    entity::{Point, Stored, TableEntity},
    error::{Error, Result},
    single_flight::FlightSlot,
};

/// Caches the entities of a query in memory for a limited time. The first access reads the store, later ones
/// use the cache.
///
/// Clones share the cache. Accesses during a read wait for it and get the same result, even an error. If the
/// reading task is dropped, the next access reads.
///
/// ```
/// use entable::{Lookup, prelude::*};
/// use std::time::Duration;
///
/// #[derive(Debug, TableEntity)]
/// #[table(name = "Departments", partition_key = "departments", row_key = "{id:04}")]
/// pub struct Department { pub id: u32, pub name: String }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// let table = client.table::<Department>();
/// table.create().await?;
/// table.insert(&Department { id: 7, name: "Sales".into() }).await?;
///
/// let departments = Lookup::new(table.query(Department::primary()), Duration::from_secs(600));
/// let sales = departments.get(&Department::primary().id(7)).await?.expect("it is there");
/// assert_eq!(sales.name, "Sales");
/// let by_name = departments.index(|department| department.name.clone()).await?;
/// assert_eq!(by_name["Sales"].id, 7);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lookup<E>(Arc<Inner<E>>);

struct Inner<E> {
    query: Query<E, Stored<E>>,
    ttl: Duration,
    clock: Arc<dyn Clock>,
    slot: FlightSlot<LookupState<E>>,
}

/// The cached entities, and the state of the reads that fill the cache.
struct LookupState<E> {
    kept: Option<Arc<CachedEntities<E>>>,
    /// How many times the cache was cleared. A read that began before a clearing must not fill the cache.
    forgotten: u64,
    /// The number of reads that have begun. Reads are numbered from 1.
    begun: u64,
    /// The highest number of a finished read, or 0 if none has finished.
    answered: u64,
    /// The error of read `answered`, or `None` if it succeeded.
    failed: Option<Error>,
}

/// The cached entities, and when their read began.
struct CachedEntities<E> {
    at: Ticks,
    rows: Vec<Arc<Stored<E>>>,
    by_keys: HashMap<(String, String), usize>,
}

impl<E> Default for LookupState<E> {
    fn default() -> Self {
        Self { kept: None, forgotten: 0, begun: 0, answered: 0, failed: None }
    }
}

impl<E> Clone for Lookup<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> fmt::Debug for Lookup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup")
            .field("query", &self.0.query)
            .field("ttl", &self.0.ttl)
            .finish_non_exhaustive()
    }
}

impl<E: TableEntity> Lookup<E> {
    /// Creates a cache for the entities of a query. Sends nothing until the first access. An access reads the
    /// entities again if they are older than `ttl`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let ttl = std::time::Duration::from_secs(60);
    /// let lookup = Lookup::new(staff().await?.query(sales()), ttl);
    /// assert_eq!(lookup.all().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(query: Query<E, Stored<E>>, ttl: Duration) -> Self {
        Self::with_clock(query, ttl, Arc::new(SystemClock))
    }

    /// Creates a cache that measures the age of its entities with `clock` instead of the system clock.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// use std::{sync::Arc, time::Duration};
    ///
    /// let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
    /// let staff = staff().await?;
    /// let lookup = Lookup::with_clock(staff.query(sales()), Duration::from_secs(60), clock.clone());
    /// assert_eq!(lookup.all().await?.len(), 3);
    /// staff.insert(&employee(300, "King")).await?;
    /// assert_eq!(lookup.all().await?.len(), 3, "as they were read");
    /// clock.advance(Duration::from_secs(61));
    /// assert_eq!(lookup.all().await?.len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_clock(query: Query<E, Stored<E>>, ttl: Duration, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { query, ttl, clock, slot: FlightSlot::default() }))
    }

    /// Returns the entity at a point, or `None` if it did not exist when the entities were read.
    ///
    /// # Errors
    ///
    /// Fails with the query's error if the store has to be read, and with `is_invalid` for a point with a value
    /// that does not fit its key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let ttl = std::time::Duration::from_secs(60);
    /// let lookup = Lookup::new(staff().await?.query(sales()), ttl);
    /// assert_eq!(lookup.get(&at(7)).await?.map(|cao| cao.id), Some(7));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self, point: &Point<E>) -> Result<Option<Arc<Stored<E>>>> {
        let request = &self.0.query.request;
        let schema = request.schema_of_keys();
        let access = request.store.path_with_key_tokens(schema, point.as_access()).await?;
        let (partition_key, row_key) = access.point()?;
        let kept = self.cached_or_read().await?;
        let at = kept.by_keys.get(&(partition_key.to_owned(), row_key.to_owned()));
        Ok(at.and_then(|at| kept.rows.get(*at)).cloned())
    }

    /// Returns all entities in query order.
    ///
    /// # Errors
    ///
    /// Fails with the query's error if the store has to be read.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let ttl = std::time::Duration::from_secs(60);
    /// assert_eq!(Lookup::new(staff().await?.query(sales()), ttl).all().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn all(&self) -> Result<Vec<Arc<Stored<E>>>> {
        Ok(self.cached_or_read().await?.rows.clone())
    }

    /// Returns a map of the entities by a value other than their keys. If several entities have the same value,
    /// the last one wins.
    ///
    /// # Errors
    ///
    /// Fails with the query's error if the store has to be read.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let ttl = std::time::Duration::from_secs(60);
    /// let lookup = Lookup::new(staff().await?.query(sales()), ttl);
    /// let by_name = lookup.index(|employee| employee.last_name.clone()).await?;
    /// assert_eq!(by_name["Hall"].id, 223);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn index<K: Eq + Hash>(
        &self,
        key: impl Fn(&E) -> K,
    ) -> Result<HashMap<K, Arc<Stored<E>>>> {
        let kept = self.cached_or_read().await?;
        Ok(kept.rows.iter().map(|row| (key(row), row.clone())).collect())
    }

    /// Reads the entities again immediately. Calls during a read share the next read.
    ///
    /// # Errors
    ///
    /// Fails with the query's error and keeps the cached entities.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let lookup = Lookup::new(staff.query(sales()), std::time::Duration::from_secs(60));
    /// assert_eq!(lookup.all().await?.len(), 3);
    /// staff.insert(&employee(8, "Kwok")).await?;
    /// lookup.refresh().await?;
    /// assert_eq!(lookup.all().await?.len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refresh(&self) -> Result<()> {
        let begun = self.0.slot.lock_state().begun;
        let find = |state: &LookupState<E>| {
            // A read that began after this call sees everything written before the call.
            (state.answered > begun).then(|| state.failed.clone().map_or(Ok(()), Err))
        };
        self.0.slot.find_or_run(find, async || self.read_entities().await.map(drop)).await
    }

    /// Clears the cache. The next access reads the store.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let lookup = Lookup::new(staff.query(sales()), std::time::Duration::from_secs(60));
    /// assert_eq!(lookup.all().await?.len(), 3);
    /// staff.delete_at(at(7)).await?;
    /// lookup.forget();
    /// assert_eq!(lookup.all().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn forget(&self) {
        let mut state = self.0.slot.lock_state();
        state.kept = None;
        state.forgotten += 1;
    }

    async fn cached_or_read(&self) -> Result<Arc<CachedEntities<E>>> {
        // Noted before waiting, because only a read that ends after this point answers this access.
        let answered = self.0.slot.lock_state().answered;
        let find = |state: &LookupState<E>| {
            if let Some(kept) = self.cached_if_fresh(state) {
                return Some(Ok(kept));
            }
            // If a read failed while this access waited, another read would fail too. Return the same error.
            state.failed.clone().filter(|_| state.answered > answered).map(Err)
        };
        self.0.slot.find_or_run(find, async || self.read_entities().await).await
    }

    fn cached_if_fresh(&self, state: &LookupState<E>) -> Option<Arc<CachedEntities<E>>> {
        let kept = state.kept.as_ref()?;
        let age = self.0.clock.now().get().checked_sub(kept.at.get())?;
        // If the clock went back, the age is unknown.
        let age = Duration::from_nanos(u64::try_from(age).ok()?.saturating_mul(100));
        (age < self.0.ttl).then(|| kept.clone())
    }

    /// Reads the entities and stores the result for the accesses that wait for this read.
    async fn read_entities(&self) -> Result<Arc<CachedEntities<E>>> {
        let (number, forgotten) = {
            let mut state = self.0.slot.lock_state();
            state.begun += 1;
            (state.begun, state.forgotten)
        };
        let result = self.read_store().await;
        let mut state = self.0.slot.lock_state();
        // A read that was not polled for a while may end after a later one, whose result is newer.
        if number > state.answered {
            state.answered = number;
            state.failed = result.as_ref().err().cloned();
            // If the cache was cleared during the read, its result may be older than the clearing.
            if let Ok(read) = &result
                && state.forgotten == forgotten
            {
                state.kept = Some(read.clone());
            }
        }
        result
    }

    async fn read_store(&self) -> Result<Arc<CachedEntities<E>>> {
        // Taken before the read: the entities are as old as its request.
        let at = self.0.clock.now();
        let rows: Vec<Arc<Stored<E>>> =
            self.0.query.collect().await?.into_iter().map(Arc::new).collect();
        let keys = |row: &Stored<E>| (row.partition_key().to_owned(), row.row_key().to_owned());
        let by_keys = rows.iter().enumerate().map(|(at, row)| (keys(row), at)).collect();
        Ok(Arc::new(CachedEntities { at, rows, by_keys }))
    }
}

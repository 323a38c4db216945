//! `ClientBuilder`: puts a client together from a backend, keys and options.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

#[cfg(feature = "azure-wire")]
use super::account::ClientAccount;
use super::client::Client;
#[cfg(feature = "blob")]
use crate::blob::{Blobs, UserBlobStore};
#[cfg(feature = "conformance")]
use crate::guard::Guard;
use crate::{
    authentic::{Authenticity, WorkCodes},
    backend::{
        Backend,
        layer::{AdaptiveRate, Retry, RetryPolicy},
    },
    blob_port::BlobStore,
    clock::{Clock, SystemClock},
    error::{Error, ErrorKind, Result},
    guard::ActiveGuards,
    metering::Metering,
    outbox::{options::OutboxOptions, state::Outbox},
    plan::outbox::WriterRun,
    random::RandomSource,
    server_clock::ServerClock,
    store::{
        Store, StoreParts,
        sealing::{PlaintextPolicy, RowSealer},
        usage::UsageCounters,
    },
};

/// Builds a [`Client`] from a backend, keys and options.
///
/// ```
/// use entable::{backend::{Memory, layer::Recorder}, prelude::*};
///
/// let recorder = Recorder::around(Memory::new());
/// let client = Client::builder().backend(recorder.clone()).build()?;
/// assert_eq!(recorder.count(), 0);
/// # let _ = client;
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct ClientBuilder {
    backend: Option<Arc<dyn Backend>>,
    retry: Option<RetryPolicy>,
    adaptive_rate: bool,
    #[cfg(feature = "azure-wire")]
    account: Option<crate::Azure>,
    outbox: OutboxOptions,
    writer_id: Option<String>,
    clock: Option<Arc<dyn Clock>>,
    seed: Option<u64>,
    metering: Metering,
    guards: ActiveGuards,
    authenticity: Authenticity,
    sealing: RowSealer,
    #[cfg(feature = "blob")]
    blobs: Option<UserBlobStore>,
}

impl Client {
    /// Returns a builder for a client.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::builder().backend(Memory::new()).build()?;
    /// assert!(client.tables().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl ClientBuilder {
    /// Sets the backend, or a layer around one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let recorder = backend::layer::Recorder::around(Memory::new());
    /// let client = Client::builder().backend(recorder.clone()).build()?;
    /// client.create_table("Staff").await?;
    /// assert_eq!(recorder.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backend = Some(Arc::new(backend));
        self
    }

    /// Sets the account for signatures, stored access policies and Azure Storage queues. It is also the
    /// backend, unless you set a layer around it with [`backend`](Self::backend).
    ///
    /// ```
    /// use entable::{Azure, AzureOptions, backend::layer::Recorder, prelude::*};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// let client = Client::builder().account(&azure).build()?;
    /// assert_eq!(client.table_url("Staff")?, "http://127.0.0.1:10002/devstoreaccount1/Staff");
    ///
    /// let recorder = Recorder::around(azure.clone());
    /// let client = Client::builder().backend(recorder).account(&azure).build()?;
    /// assert_eq!(client.table_url("Staff")?, "http://127.0.0.1:10002/devstoreaccount1/Staff");
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(feature = "azure-wire")]
    #[must_use]
    pub fn account(mut self, azure: &crate::Azure) -> Self {
        self.account = Some(azure.clone());
        self
    }

    /// Retries requests that fail temporarily, according to `policy`. If the answer to a write was lost,
    /// the client reads the row before it decides whether to send the write again.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::builder().backend(Memory::new()).retry(RetryPolicy::new()).build()?;
    /// assert!(client.tables().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Lets the client send as fast as its store takes: requests wait for their turn from the first refusal
    /// on, for a hot partition or for the account. Off by default. It needs [`retry`](Self::retry), which
    /// repeats what was refused.
    ///
    /// Bulk writes, `get_many`, `query_many` and workers then keep as many requests in flight as the store welcomes,
    /// between 1 and about 1,000. They share that number, and a bound such as
    /// [`Bulk::concurrency`](crate::Bulk::concurrency) can only lower it.
    ///
    /// ```
    /// use entable::{backend::Memory, prelude::*};
    ///
    /// let client = Client::builder().backend(Memory::new()).retry(RetryPolicy::new());
    /// assert!(client.adaptive_rate(true).build().is_ok());
    /// ```
    #[must_use]
    pub fn adaptive_rate(mut self, is_adaptive: bool) -> Self {
        self.adaptive_rate = is_adaptive;
        self
    }

    /// Sets the provider of encryption keys: a [`Keyring`](crate::Keyring), or a key store behind
    /// [`CachedKeys`](crate::CachedKeys). The provider also decides which key scope each partition uses.
    ///
    /// ```
    /// use entable::{Keyring, backend::Memory, prelude::*};
    ///
    /// let keys = Keyring::parse(&Keyring::generate_text()?)?;
    /// assert!(Client::builder().backend(Memory::new()).keys(keys).build().is_ok());
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn keys(mut self, keys: impl crate::seal::KeyProvider) -> Self {
        self.sealing.keys = Some(Arc::new(keys));
        self
    }

    /// Sets how reads treat a plain value in a property that is declared encrypted or chosen by
    /// [`encrypt_if`](Self::encrypt_if). By default, its row is refused.
    ///
    /// ```
    /// use entable::{PlaintextPolicy, backend::Memory, prelude::*};
    ///
    /// let builder = Client::builder().backend(Memory::new());
    /// assert!(builder.plaintext(PlaintextPolicy::Allow).build().is_ok());
    /// ```
    #[must_use]
    pub fn plaintext(mut self, policy: PlaintextPolicy) -> Self {
        self.sealing.plaintext = policy;
        self
    }

    /// Sets how the client treats messages and moves without an authenticity code, which proves that their sender
    /// had the keys. By default, a client with keys refuses them.
    ///
    /// ```
    /// use entable::{Authenticity, Keyring, backend::Memory, prelude::*};
    ///
    /// // Until every writer has keys and no older work is left.
    /// let keys = Keyring::parse(&Keyring::generate_text()?)?;
    /// let builder = Client::builder().backend(Memory::new()).keys(keys);
    /// assert!(builder.authenticity(Authenticity::Accept).build().is_ok());
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn authenticity(mut self, authenticity: Authenticity) -> Self {
        self.authenticity = authenticity;
        self
    }

    /// Encrypts more properties than the declared ones. The closure receives the PartitionKey, the RowKey and the
    /// name of each property that is written, including properties of dynamic entities. It is not called for the
    /// property that holds the row's type.
    ///
    /// Readers need only the keys, because an encrypted value is marked as encrypted. A client with the closure also
    /// refuses plain values of the properties that it chooses wherever it reads a type, unless
    /// [`plaintext`](Self::plaintext) allows them. A client without the closure encrypts such a property only if it
    /// read the property encrypted in the same row before. Otherwise it stores plain values.
    ///
    /// ```
    /// use entable::{Client, backend::Memory};
    ///
    /// let builder = Client::builder()
    ///     .backend(Memory::new())
    ///     .encrypt_if(|partition_key, _, property| property == "Ssn" || partition_key == "HR");
    /// assert!(builder.build().is_ok());
    /// ```
    #[must_use]
    pub fn encrypt_if(
        mut self,
        choose: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.sealing.encrypt_if = Some(Arc::new(choose));
        self
    }

    /// Sets the object store for blobs of entities and for lists in blobs, from the crate `object_store`: a cloud
    /// store, memory or a directory. All programs that use the same tables need the same store.
    ///
    /// A directory cannot compare versions when it replaces a blob, which makes it safe only for a single writing
    /// process: the one that has the embedded store open. [`build`](Self::build) refuses a directory if other
    /// processes may write the tables. It cannot recognise a directory behind a type of your own or a
    /// `dyn ObjectStore`. For these, the client sends one request to the store before it first writes a list, and
    /// refuses the write with `is_unsupported` if the store cannot compare versions.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use entable::{backend::Memory, object_store::memory::InMemory, prelude::*};
    ///
    /// let blobs = Arc::new(InMemory::new());
    /// assert!(Client::builder().backend(Memory::new()).blobs(blobs).build().is_ok());
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(feature = "blob")]
    #[must_use]
    pub fn blobs<S: object_store::ObjectStore + ?Sized>(mut self, store: Arc<S>) -> Self {
        self.blobs = Some(UserBlobStore::new(store));
        self
    }

    /// Sets the times and limits of work in other partitions, such as the write deadline and the number of
    /// failures after which work is moved to the poison table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let options = OutboxOptions::default().grace(std::time::Duration::from_secs(30));
    /// let client = Client::builder().backend(Memory::new()).outbox(options).build()?;
    /// assert_eq!(client.worker().stats().open, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn outbox(mut self, options: OutboxOptions) -> Self {
        self.outbox = options;
        self
    }

    /// Gives the writer a name. After a crash, a client with the same name takes over the writer's claims.
    ///
    /// A write of a value that is unique across partitions first claims the value. If the writer crashes, its claim
    /// blocks the same entity until a worker removes it after [`OutboxOptions::claim_time`], five minutes by default. A
    /// client with the same name, such as a restarted import, ends the claim at once.
    ///
    /// Only one process at a time should use a name. Two processes with one name lose no data, but they end each
    /// other's claims, and the writes that lose their claims fail and have to be repeated.
    ///
    /// ```
    /// use entable::{backend::Memory, prelude::*};
    ///
    /// assert!(Client::builder().backend(Memory::new()).writer_id("import-1").build().is_ok());
    /// ```
    #[must_use]
    pub fn writer_id(mut self, name: impl Into<String>) -> Self {
        self.writer_id = Some(name.into());
        self
    }

    /// Sets the client's clock. The clock dates messages and outbox rows, which workers process in that order. With
    /// the timers, it decides when a write deadline or a lease ends. Until the client has learned the store's
    /// time, this clock is used in its place. It does not change the clocks of stores.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use entable::{SteppedClock, Ticks, backend::Memory, prelude::*};
    ///
    /// let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
    /// assert!(Client::builder().backend(Memory::new()).clock(clock).build().is_ok());
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Reports measurements to the recorder of the `metrics` facade: the duration of verbs
    /// (`db.client.operation.duration`), requests, rows, bytes, throttling, and the open work that workers see.
    /// [Who reads my table](https://github.com/entable/entable/blob/main/docs/who-reads-my-table.md) lists
    /// them. Without this call the client measures nothing and does not read the clock.
    ///
    /// ```
    /// use entable::{backend::Memory, prelude::*};
    ///
    /// assert!(Client::builder().backend(Memory::new()).report_metrics().build().is_ok());
    /// ```
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn report_metrics(mut self) -> Self {
        self.metering = Metering::enabled();
        self
    }

    /// Seeds the random ids and waiting times, which lets a test repeat a history.
    #[doc(hidden)]
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Turns off one guard, a safety condition of the outbox or of queues. Tests use it to show what the guard
    /// prevents.
    #[doc(hidden)]
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn without_guard(mut self, guard: Guard) -> Self {
        self.guards = ActiveGuards::with_guard_disabled(guard);
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if no backend is set, or if the write deadline in the options of
    /// [`outbox`](Self::outbox) is too short for a request. Fails with `is_unsupported` if the blobs are in a
    /// directory and other processes may write the tables.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert!(Client::builder().build().is_err_and(|error| error.is_invalid()), "no backend");
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<Client> {
        #[cfg(feature = "azure-wire")]
        let of_account = self.account.clone().map(|azure| Arc::new(azure) as Arc<dyn Backend>);
        #[cfg(not(feature = "azure-wire"))]
        let of_account = None;
        let Some(backend) = self.backend.or(of_account) else {
            let message = "a client needs a backend: call `backend(..)`, or `account(..)` for Azure Table storage";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        #[cfg(feature = "azure-wire")]
        // Requests for the account do not pass through the backend and need their own retries.
        let account = self.account.map(|azure| ClientAccount::new(azure, self.retry.clone()));
        let adaptive_rate = self.adaptive_rate.then(|| AdaptiveRate::around(backend.clone()));
        let backend: Arc<dyn Backend> = match adaptive_rate.clone() {
            Some(layer) => Arc::new(layer),
            None => backend,
        };
        let backend = match self.retry {
            Some(policy) => Arc::new(Retry::around(backend, policy)),
            None => backend,
        };
        let blobs: Option<Arc<dyn BlobStore>> = None;
        #[cfg(feature = "blob")]
        let blobs = match self.blobs {
            Some(store) => {
                let tables = backend.capabilities();
                Some(Arc::new(Blobs::new(store, tables.exclusive, tables.name)?) as _)
            }
            None => blobs,
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let usage = UsageCounters::new(self.metering, &backend);
        let shared = StoreParts {
            sealing: self.sealing,
            random: Arc::new(self.seed.map_or_else(RandomSource::default, RandomSource::seeded)),
            usage,
            time: ServerClock::new(clock.clone()),
            is_time_watched: AtomicBool::default(),
            blobs,
            adaptive_rate,
        };
        let store = Store::new(backend, shared);
        let codes = WorkCodes::default();
        let codes = codes.with_keys(store.sealing.keys.clone(), self.authenticity);
        let run = store.random.random_id();
        let writer = self.writer_id.map(|writer| WriterRun { writer, run });
        let outbox = Outbox::new(store, self.outbox.checked()?, clock, self.guards, codes);
        let outbox = Outbox { writer, ..outbox };
        Ok(Client {
            outbox: Arc::new(outbox),
            #[cfg(feature = "azure-wire")]
            account,
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}

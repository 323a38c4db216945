//! The client: a store, and the state of its work in other partitions.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

#[cfg(feature = "azure-wire")]
use super::account::ClientAccount;
#[cfg(feature = "azure-wire")]
use crate::backend::layer::RetryPolicy;
use crate::{
    authentic::WorkCodes,
    backend::{Backend, Capabilities},
    clock::{Clock, SystemClock},
    error::Result,
    guard::ActiveGuards,
    outbox::{options::OutboxOptions, state::Outbox},
    server_clock::ServerClock,
    store::{
        Store, StoreParts,
        sealing::RowSealer,
        usage::{Usage, UsageCounters},
    },
};

/// A handle to a store of tables in memory, in a file, or in a service.
///
/// Cheap to clone; all clones share their state.
///
/// ```
/// use entable::prelude::*;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// client.create_table_if_not_exists("Staff").await?;
/// assert_eq!(client.tables().await?, ["Staff"]);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    /// The outbox, which does the client's work in other partitions, with the store that it uses.
    pub(super) outbox: Arc<Outbox>,
    #[cfg(feature = "azure-wire")]
    pub(super) account: Option<ClientAccount>,
}

impl Client {
    /// Creates a client that shares the outbox of another client.
    pub(super) const fn sharing_outbox(outbox: Arc<Outbox>) -> Self {
        Self {
            outbox,
            #[cfg(feature = "azure-wire")]
            account: None,
        }
    }

    /// Returns a client with a new store in memory, for tests.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::memory();
    /// assert!(client.tables().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory() -> Self {
        Self::on_backend(Arc::new(crate::backend::Memory::new()))
    }

    /// Opens the embedded store in the given file. Creates the file if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails with `is_locked` if another process has the file open, with `is_corrupt` if the file has another
    /// format, and with `is_backend` if it cannot be read or created.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let directory = std::env::temp_dir().join(format!("entable-open-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let path = directory.join("staff.db");
    /// let client = Client::open(&path)?;
    /// client.create_table("Staff").await?;
    /// assert!(Client::open(&path).is_err_and(|error| error.is_locked()));
    /// # drop(client);
    /// # std::fs::remove_dir_all(directory).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "embedded")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Ok(Self::on_backend(Arc::new(crate::backend::Embedded::open(path)?)))
    }

    /// Returns a client of Azure Table storage, an emulator, or any store that speaks the same protocol.
    /// Retries requests that fail temporarily. See [`Retry`](crate::backend::layer::Retry).
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// let client = Client::azure(AzureOptions::emulator())?;
    /// assert!(client.table_url("Staff")?.ends_with("/devstoreaccount1/Staff"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the endpoint is not a URL.
    #[cfg(feature = "azure-wire")]
    pub fn azure(options: crate::AzureOptions) -> Result<Self> {
        let azure = crate::Azure::new(options)?;
        Self::builder().account(&azure).retry(RetryPolicy::default()).build()
    }

    /// Returns a read-only client of an Azure account that has a readable copy in another region (RA-GRS,
    /// RA-GZRS). It reads from the primary region, and from the copy if the primary does not answer. Writes are
    /// refused. [`Stored::location`](crate::Stored::location) returns where a value was read.
    /// [`PrimaryThenSecondary`](crate::backend::azure::PrimaryThenSecondary) lists the rules.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let reader = Client::azure_reader(options.clone())?;
    /// let elsewhere = options.endpoint("https://tables.example.com")?;
    /// assert!(Client::azure_reader(elsewhere).is_err_and(|error| error.is_invalid()), "no secondary");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the options do not contain the account or the address of the copy.
    #[cfg(feature = "azure-wire")]
    pub fn azure_reader(options: crate::AzureOptions) -> Result<Self> {
        let reads = crate::backend::azure::PrimaryThenSecondary::new(options)?;
        Self::builder().backend(reads).retry(RetryPolicy::default()).build()
    }

    fn on_backend(backend: Arc<dyn Backend>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let shared = StoreParts {
            sealing: RowSealer::default(),
            random: Arc::default(),
            usage: UsageCounters::default(),
            time: ServerClock::new(clock.clone()),
            is_time_watched: AtomicBool::default(),
            blobs: None,
            adaptive_rate: None,
        };
        let options = OutboxOptions::default();
        Self {
            outbox: Arc::new(Outbox::new(
                Store::new(backend, shared),
                options,
                clock,
                ActiveGuards::default(),
                WorkCodes::default(),
            )),
            #[cfg(feature = "azure-wire")]
            account: None,
        }
    }

    /// Returns the store that rows are read from and written to.
    pub(crate) fn store(&self) -> &Store {
        &self.outbox.store
    }

    /// Returns the client's outbox, which writes remote copies and lists.
    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Waits until this client has no background work left. Work that its writes started in other partitions is
    /// then done, or left to a worker.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.insert(&employee(8, "Kwok")).await?;
    /// staff.client().wait_for_copies().await;
    /// assert_eq!(staff.client().worker().drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_copies(&self) {
        self.outbox.background.wait_until_idle().await;
    }

    /// Closes the client's store: waits for background work, then stops the backend. Later requests of this
    /// client and its clones fail. The file of the embedded store can be opened again as soon as this returns,
    /// even if clones exist. Has no effect on a service or a store in memory.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # #[cfg(feature = "embedded")] {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("staff.db");
    /// let client = Client::open(&path)?;
    /// client.create_table("Staff").await?;
    /// client.close().await?;
    /// let again = Client::open(&path)?;
    /// assert_eq!(again.tables().await?, ["Staff"]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_backend` if acknowledged writes cannot be written to disk.
    pub async fn close(&self) -> Result<()> {
        // Background work still writes rows.
        self.wait_for_copies().await;
        self.store().backend.close().await
    }

    /// Returns the counts of the requests that this client and its clones have sent since it was built.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// client.create_table("Staff").await?;
    /// client.dynamic("Staff").insert(&DynamicEntity::new("Sales", "1")).await?;
    /// let usage = client.usage();
    /// assert_eq!((usage.table_requests, usage.writes, usage.reads), (1, 1, 0));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn usage(&self) -> Usage {
        self.store().usage.usage_so_far()
    }

    /// Returns what the backend can do.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert!(Client::memory().capabilities().ordered, "rows come in the order of their keys");
    /// # Ok(())
    /// # }
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        self.store().capabilities()
    }

    /// Returns the backend.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::memory();
    /// assert_eq!(client.backend().capabilities().name, client.capabilities().name);
    /// # Ok(())
    /// # }
    /// ```
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.store().backend
    }

    /// Creates a table.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if the table exists, and with `is_invalid` for a name that the
    /// service refuses.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::memory();
    /// client.create_table("Staff").await?;
    /// assert!(client.create_table("staff").await.is_err_and(|error| error.is_conflict()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_table(&self, name: &str) -> Result<()> {
        self.store().create_table(name).await
    }

    /// Creates a table if it does not exist. Returns `true` if it was created.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a name that the service refuses.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::memory();
    /// assert!(client.create_table_if_not_exists("Staff").await?);
    /// assert!(!client.create_table_if_not_exists("Staff").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_table_if_not_exists(&self, name: &str) -> Result<bool> {
        self.store().create_table_if_not_exists(name).await
    }

    /// Deletes a table with all its entities, in one request.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the table does not exist.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// client.delete_table("Staff").await?;
    /// assert!(client.delete_table("Staff").await.is_err_and(|error| error.is_not_found()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_table(&self, name: &str) -> Result<()> {
        self.store().delete_table(name).await
    }

    /// Deletes a table if it exists. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// Returns the backend's error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = Client::memory();
    /// assert!(!client.delete_table_if_exists("Staff").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_table_if_exists(&self, name: &str) -> Result<bool> {
        self.store().delete_table_if_exists(name).await
    }

    /// Lists the names of the tables.
    ///
    /// # Errors
    ///
    /// Returns the backend's error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// assert_eq!(client.tables().await?, ["Staff"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn tables(&self) -> Result<Vec<String>> {
        self.store().list_table_names(None).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("backend", &self.capabilities().name).finish_non_exhaustive()
    }
}

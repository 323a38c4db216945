//! The options of a server.

use std::{io, net::SocketAddr, sync::Arc};

use entable_azure::AccountKey;
use entable_core::{
    Clock, SystemClock,
    backend::{Backend, layer::ReadOnly},
};
use tokio::net::{TcpListener, lookup_host};

use crate::{
    budget::Budget,
    host::{Hosts, host_name},
    listen::Server,
    service::Service,
};

/// The memory of bodies by default.
const MEMORY: usize = 512 * 1024 * 1024;
/// The least memory of bodies: a few of the largest batches and pages fit.
const LEAST_MEMORY: usize = 64 * 1024 * 1024;

/// Options of a [`Server`], made by [`Server::builder`].
#[derive(Debug)]
#[must_use]
pub struct ServerBuilder {
    address: String,
    backend: Arc<dyn Backend>,
    key: AccountKey,
    is_emulator: bool,
    hosts: Vec<String>,
    memory: usize,
    clock: Arc<dyn Clock>,
}

impl ServerBuilder {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            address: "127.0.0.1:10002".to_owned(),
            backend,
            key: AccountKey::emulator(),
            is_emulator: false,
            hosts: Vec::new(),
            memory: MEMORY,
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets the address and port to listen on. The default is `127.0.0.1:10002`. Port 0 takes a free one.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = address.into();
        self
    }

    /// Sets the name of the account and its key. The default is the well-known account and key of the storage emulator.
    pub fn key(mut self, key: AccountKey) -> Self {
        self.key = key;
        self
    }

    /// Accepts the well-known key also on an address that other machines can reach. Everybody who reaches the address
    /// can then read and change all rows, so use it in a closed network, such as that of a few containers.
    pub fn emulator(mut self) -> Self {
        self.is_emulator = true;
        self
    }

    /// Accepts requests that call the server by this name in addition to `localhost` and IP addresses, such as the name
    /// of a container. Only a server with the well-known key looks at names.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Refuses every request that changes rows, tables or settings.
    pub fn read_only(mut self) -> Self {
        self.backend = Arc::new(ReadOnly::around(self.backend));
        self
    }

    /// Sets how many bytes the bodies of requests and answers may take at one time. Requests beyond that are answered
    /// with 503, which clients repeat later. The default is 512 MiB, and 64 MiB the least.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes.max(LEAST_MEMORY);
        self
    }

    /// Sets the clock that the dates of requests are compared with. The default is the clock of the system.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the port. Clients that connect wait until [`Server::run`] is called.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use entable::backend::Memory;
    /// use entable_server::Server;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let server = || Server::builder(Arc::new(Memory::new()));
    /// let local = server().address("127.0.0.1:0").bind().await?;
    /// assert!(local.endpoint().ends_with("/devstoreaccount1"));
    ///
    /// let refused = server().address("0.0.0.0:0").bind().await.unwrap_err();
    /// assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    /// let containers = server().address("0.0.0.0:0").emulator().allow_host("tables");
    /// assert!(containers.bind().await.is_ok());
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be opened. Fails with `InvalidInput` if other machines can reach the address, the key
    /// is the well-known one and [`emulator`](Self::emulator) was not called, and for a host that is not a name.
    pub async fn bind(self) -> io::Result<Server> {
        let addresses: Vec<SocketAddr> = lookup_host(&self.address).await?.collect();
        let is_public = addresses.iter().any(|address| !address.ip().is_loopback());
        let is_well_known = is_well_known(&self.key);
        if is_public && is_well_known && !self.is_emulator {
            return Err(invalid(
                "other machines can reach this address and know the emulator's key; set a key of your own, or call \
                 `emulator`",
            ));
        }
        if self.hosts.iter().any(|host| host_name(host) != host || host.is_empty()) {
            return Err(invalid("a host is a name without port, such as `tables`"));
        }
        let hosts = if is_well_known { Hosts::Named(self.hosts) } else { Hosts::All };
        let listener = TcpListener::bind(&*addresses).await?;
        let budget = Budget::new(self.memory);
        let service = Service { backend: self.backend, key: self.key, clock: self.clock, budget };
        Server::new(listener, service, hosts)
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Returns whether the key is the emulator's, which everybody knows, under whatever account name.
pub(crate) fn is_well_known(key: &AccountKey) -> bool {
    key.sign_text("") == AccountKey::emulator().sign_text("")
}

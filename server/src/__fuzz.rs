//! Requests without connections, for fuzz targets. Not for programs: this follows no rules of versions.

use std::{net::Ipv4Addr, sync::Arc};

use bytes::Bytes;
use entable_azure::AccountKey;
use entable_core::{Clock, backend::Backend};

use crate::{
    access::authorize,
    address::options_of,
    budget::Budget,
    failure::Failure,
    grant::Grant,
    host::Hosts,
    request::{Answer, Request},
    routes,
    service::Service,
};

/// The memory for bodies.
const MEMORY: usize = 64 * 1024 * 1024;

/// A server without a port, of the emulator's account.
#[derive(Debug)]
pub struct Unconnected(Service);

impl Unconnected {
    /// Makes a server for the rows of `backend`, whose time is that of `clock`.
    pub fn new(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>) -> Self {
        let (key, budget) = (AccountKey::emulator(), Budget::new(MEMORY));
        Self(Service { backend, key, clock, budget })
    }

    /// Answers a request as if it were signed with the key. Returns the status and the body.
    pub async fn answer(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, Vec<u8>) {
        let answered = async {
            let request = request(method, target, headers)?;
            let (body, grant) = (Bytes::copy_from_slice(body), Arc::new(Grant::Everything));
            routes::answer(&self.0, &Request { body, grant, ..request }).await
        };
        match answered.await {
            Ok(Answer { status, body, .. }) => (status, body),
            Err(failure) => {
                let answer = failure.answer(None, "", self.0.clock.now());
                (answer.status, answer.body)
            }
        }
    }

    /// Returns 200 if a request from the loopback address is let in, and the status of its refusal otherwise.
    pub async fn admit(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        let admitted = async {
            let request = request(method, target, headers)?;
            Hosts::Named(Vec::new()).check(&request)?;
            let client = Ipv4Addr::LOCALHOST.into();
            authorize(&self.0, &request, client, self.0.clock.now()).await
        };
        admitted.await.map_or_else(|failure| failure.status, |_| 200)
    }
}

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<Request, Failure> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    Ok(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        options: options_of(query)?,
        base: "http://localhost/devstoreaccount1".to_owned(),
        headers: headers.iter().map(owned).collect(),
        ..Request::default()
    })
}

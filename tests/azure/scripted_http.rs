//! An HTTP client inside the process that answers by a script and records requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use azure_core::{Body, BytesStream, HttpClient, Request, Response, StatusCode, headers::Headers};
use entable::{Azure, AzureOptions};

/// The scripted answer to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// An answer of that status, headers and body.
    Answer(u16, Vec<(&'static str, &'static str)>, String),
    /// The connection breaks.
    Reset,
    /// Nothing, ever.
    Silence,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) body: String,
    headers: Headers,
}

impl Asked {
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get_optional_str(&name.into())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Fake {
    script: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Asked>>,
}

pub(crate) const KEY: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA==";

impl Fake {
    pub(crate) fn new(script: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let script = Mutex::new(script.into_iter().collect());
        Arc::new(Self { script, asked: Mutex::default() })
    }

    /// A backend that asks this client.
    pub(crate) fn azure(self: &Arc<Self>) -> Azure {
        self.with(AzureOptions::from_account_key("myaccount", KEY).unwrap())
    }

    pub(crate) fn with(self: &Arc<Self>, options: AzureOptions) -> Azure {
        Azure::new(options.http_client(Arc::clone(self) as Arc<dyn HttpClient>)).unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// An answer without a body.
pub(crate) fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> Reply {
    Reply::Answer(status, headers.to_vec(), String::new())
}

/// An error as the service words it, with the code in the body alone.
pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Reply {
    let body = format!(
        r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"en-US","value":"{message}\nRequestId:1\nTime:2"}}}}}}"#
    );
    Reply::Answer(status, Vec::new(), body)
}

#[async_trait]
impl HttpClient for Fake {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        let body = match request.body() {
            Body::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Body::SeekableStream(_) => String::new(),
        };
        self.asked.lock().unwrap().push(Asked {
            method: request.method().to_string(),
            url: request.url().to_string(),
            body,
            headers: request.headers().clone(),
        });
        let reply = self.script.lock().unwrap().pop_front().expect("a reply for each request");
        match reply {
            Reply::Answer(status, headers, body) => {
                let mut all = Headers::new();
                headers.into_iter().for_each(|(name, value)| all.insert(name, value));
                let status = StatusCode::try_from(status).unwrap();
                Ok(Response::new(status, all, Box::pin(BytesStream::new(body))))
            }
            Reply::Reset => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()),
            Reply::Silence => std::future::pending().await,
        }
    }
}

//! An HTTP client inside the process that answers by a script and records requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use entable::{
    Azure, AzureOptions,
    backend::{
        BoxFuture,
        azure::{HttpAnswer, HttpRequest, SendFailure, Transport},
    },
};

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
    headers: Vec<(&'static str, String)>,
}

impl Asked {
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| &**value)
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
        Azure::new(options.transport(Arc::clone(self) as Arc<dyn Transport>)).unwrap()
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

impl Transport for Fake {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
        self.asked.lock().unwrap().push(Asked {
            method: request.method().as_str().to_owned(),
            url: request.url().to_owned(),
            body: String::from_utf8_lossy(request.body()).into_owned(),
            headers: request.headers().map(|(name, value)| (name, value.to_owned())).collect(),
        });
        let reply = self.script.lock().unwrap().pop_front().expect("a reply for each request");
        Box::pin(async move {
            match reply {
                Reply::Answer(status, headers, body) => {
                    let answer = HttpAnswer::new(status).with_body(body);
                    let add = |answer: HttpAnswer, (name, value): (&str, &str)| {
                        answer.with_header(name, value)
                    };
                    Ok(headers.into_iter().fold(answer, add))
                }
                Reply::Reset => Err(SendFailure::Lost("the connection was reset".into())),
                Reply::Silence => std::future::pending().await,
            }
        })
    }
}

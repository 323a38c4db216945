//! The requests of Azure Storage queues, through the transport of the tables.
//!
//! `azure_storage_queues` cannot say that a message does not expire, and has the faults of
//! `azure_data_tables` beside; its successor takes neither keys nor connection strings.

use std::time::Duration;

use azure_core::Method;

use super::{
    Azure, AzureOptions,
    account::Account,
    call::{Call, Effect},
    credential::Service,
    transport::Answer,
    wire::{escaped, query_value, unescaped},
};
use crate::error::{Error, ErrorKind, Result};

/// The queues of an account.
#[derive(Debug, Clone)]
pub(crate) struct Queues(Azure);

/// A message as the service hands it out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pub(crate) id: String,
    /// Empty where it was only looked at.
    pub(crate) receipt: String,
    pub(crate) count: u32,
    pub(crate) text: String,
}

impl Azure {
    /// The queues of the same account.
    pub(crate) fn queues(&self) -> Result<Queues> {
        Queues::new(self.0.options.clone())
    }
}

impl Queues {
    pub(crate) fn new(options: AzureOptions) -> Result<Self> {
        let tables = options.endpoint.as_ref();
        let endpoint =
            options.queues.clone().or_else(|| tables.and_then(super::endpoint::Endpoint::queues));
        let Some(endpoint) = endpoint else {
            let message = "the address of the tables does not tell that of the queues; name it with `AzureOptions::queue_endpoint`";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let options = AzureOptions { endpoint: Some(endpoint), cosmos: Some(false), ..options };
        let account = Account::of(options, Some(Service::Queues))?;
        Ok(Self(Azure(std::sync::Arc::new(account))))
    }

    /// The account, for requests to be made again.
    pub(crate) fn azure(&self) -> &Azure {
        &self.0
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &str,
        body: Option<String>,
    ) -> Result<Answer> {
        let effect = if method == Method::Get { Effect::Reads } else { Effect::Writes };
        let call = if effect == Effect::Reads { Call::reading() } else { Call::writing() };
        let call = call.header("accept", "application/xml");
        let call = match (effect, body) {
            (Effect::Reads, _) => call,
            (Effect::Writes, Some(body)) => {
                call.header("content-type", "application/xml").body(body)
            }
            // A length is asked for, if none.
            (Effect::Writes, None) => call.body(Vec::new()),
        };
        let answer = self.0.0.own(call, method, path, query).await?;
        self.0.0.succeeded(answer, effect)
    }

    /// Creates a queue; one that is there is left as it is.
    pub(crate) async fn create(&self, queue: &str) -> Result<()> {
        self.ask(Method::Put, queue, "", None).await.map(drop)
    }

    /// Adds a message that does not expire.
    pub(crate) async fn put(&self, queue: &str, text: &str, delay: Duration) -> Result<Text> {
        // The service forgets after 7 days unless it is told.
        let query = format!("messagettl=-1&visibilitytimeout={}", seconds(delay));
        let path = format!("{queue}/messages");
        let answer = self.ask(Method::Post, &path, &query, Some(body(text))).await?;
        let message = messages(&answer)?.pop().unwrap_or_default();
        Ok(Text { text: text.to_owned(), ..message })
    }

    /// Takes messages for a while.
    pub(crate) async fn get(
        &self,
        queue: &str,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<Text>> {
        let query = format!("numofmessages={most}&visibilitytimeout={}", seconds(visibility));
        let answer = self.ask(Method::Get, &format!("{queue}/messages"), &query, None).await?;
        messages(&answer)
    }

    /// Looks at messages.
    pub(crate) async fn peek(&self, queue: &str, most: usize) -> Result<Vec<Text>> {
        let query = format!("peekonly=true&numofmessages={most}");
        let answer = self.ask(Method::Get, &format!("{queue}/messages"), &query, None).await?;
        messages(&answer)
    }

    /// Changes when a message is visible, and what it says; the new receipt.
    pub(crate) async fn update(
        &self,
        queue: &str,
        (id, receipt): (&str, &str),
        text: &str,
        visibility: Duration,
    ) -> Result<String> {
        let seconds = seconds(visibility);
        let query = format!("popreceipt={}&visibilitytimeout={seconds}", query_value(receipt));
        let path = path(queue, id);
        let answer = self.ask(Method::Put, &path, &query, Some(body(text))).await?;
        answer.header("x-ms-popreceipt").map(str::to_owned).ok_or_else(|| {
            Error::new(ErrorKind::Ambiguous, "the answer has no receipt; the message comes again")
        })
    }

    /// Removes a message.
    pub(crate) async fn delete(&self, queue: &str, (id, receipt): (&str, &str)) -> Result<()> {
        let query = format!("popreceipt={}", query_value(receipt));
        self.ask(Method::Delete, &path(queue, id), &query, None).await.map(drop)
    }
}

/// Whole seconds, of which the service knows no parts: rather more than less.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn path(queue: &str, id: &str) -> String {
    format!("{queue}/messages/{}", query_value(id))
}

/// The body of a message.
fn body(text: &str) -> String {
    format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", escaped(text))
}

/// The messages of an answer.
fn messages(answer: &Answer) -> Result<Vec<Text>> {
    let xml = String::from_utf8_lossy(&answer.body);
    if !xml.contains("QueueMessagesList") {
        let message = "the service's answer is not a list of messages";
        return Err(Error::new(ErrorKind::Backend, message));
    }
    let mut messages = Vec::new();
    let mut rest = &*xml;
    while let Some((_, after)) = rest.split_once("<QueueMessage>") {
        let (one, after) = after.split_once("</QueueMessage>").unwrap_or((after, ""));
        rest = after;
        messages.push(Text {
            id: element(one, "MessageId"),
            receipt: element(one, "PopReceipt"),
            count: element(one, "DequeueCount").parse().unwrap_or(0),
            text: element(one, "MessageText"),
        });
    }
    Ok(messages)
}

fn element(xml: &str, name: &str) -> String {
    let text = || {
        let (_, rest) = xml.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
    };
    unescaped(text().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_services_form_is_read() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>5974b586-0df3-4e2d-ad0c-18e3892bfca2</MessageId><InsertionTime>Fri, 09 Oct 2009 21:04:30 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt>YzQ4Yzg1MDIt+A==</PopReceipt><TimeNextVisible>Fri, 09 Oct 2009 23:29:20 GMT</TimeNextVisible><DequeueCount>2</DequeueCount><MessageText>{&quot;a&quot;: 1}</MessageText></QueueMessage></QueueMessagesList>";
        let answer = |body: &'static str| Answer {
            status: 200,
            headers: azure_core::headers::Headers::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        let found = messages(&answer(xml)).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].count, found[0].text.as_str()), (2, "{\"a\": 1}"));
        assert_eq!(found[0].receipt, "YzQ4Yzg1MDIt+A==");
        assert!(messages(&answer("<QueueMessagesList />")).unwrap().is_empty());
        assert!(messages(&answer("<html>sign in</html>")).is_err());
    }
}

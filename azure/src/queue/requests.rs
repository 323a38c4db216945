//! Requests to Azure Storage queues, through the transport that the tables use.
//!
//! No crate for queues is used: `azure_storage_queues` 0.21 cannot send a message that never
//! expires, and its successor accepts neither account keys nor connection strings.

use std::time::Duration;

use bytes::Bytes;
use entable_core::error::{Error, ErrorKind, Result};

use crate::{
    account::AccountConnection,
    backend::Azure,
    call::{RequestTarget, ServiceCall},
    credential::Service,
    options::AzureOptions,
    transport::{HttpAnswer, Method},
    wire::{encode_query_value, escape_xml, unescape_xml},
};

/// The queue service of an account.
#[derive(Debug, Clone)]
pub(crate) struct AzureQueues(Azure);

/// A message as the queue service returns it.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueMessage {
    pub(crate) id: String,
    /// The pop receipt; empty for a message that was only peeked at.
    pub(crate) receipt: String,
    pub(crate) count: u32,
    pub(crate) text: String,
}

impl Azure {
    /// Returns the queue service of the account. Fails if the options name no queue endpoint and
    /// none follows from the table endpoint.
    pub(crate) fn queues(&self) -> Result<AzureQueues> {
        AzureQueues::new(self.0.options.clone())
    }
}

impl AzureQueues {
    pub(crate) fn new(options: AzureOptions) -> Result<Self> {
        let tables = options.endpoint.as_ref();
        let endpoint = options
            .queues
            .clone()
            .or_else(|| tables.and_then(crate::endpoint::Endpoint::queue_endpoint));
        let Some(endpoint) = endpoint else {
            let message = "the queues' address cannot be derived from the table endpoint; set it with \
                           `AzureOptions::queue_endpoint`";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let options = AzureOptions { endpoint: Some(endpoint), cosmos: Some(false), ..options };
        let account = AccountConnection::for_service(options, Some(Service::Queues))?;
        Ok(Self(Azure(std::sync::Arc::new(account))))
    }

    /// Returns the account as a backend, for a retry layer around the requests.
    pub(crate) fn azure_backend(&self) -> &Azure {
        &self.0
    }

    async fn send(&self, call: ServiceCall<'_>) -> Result<HttpAnswer> {
        self.0.0.send_expecting_success(call).await
    }

    /// Creates a queue. An existing queue stays as it is.
    pub(crate) async fn create_queue(&self, queue: &str) -> Result<()> {
        self.send(queue_call(Method::Put, queue)).await.map(drop)
    }

    /// Adds a message that never expires and becomes visible after `delay`.
    pub(crate) async fn put_message(
        &self,
        queue: &str,
        text: &str,
        delay: Duration,
    ) -> Result<QueueMessage> {
        // Without a time to live of -1, the service deletes the message after 7 days.
        let path = messages_path(queue);
        let call = queue_call(Method::Post, &path)
            .with_query("messagettl", "-1")
            .with_query("visibilitytimeout", whole_seconds(delay));
        let answer = self.send(call.with_body("application/xml", message_xml(text))).await?;
        // The status says that the message is in the queue. An answer that does not describe it
        // leaves only its id unknown.
        let message = read_messages(&answer)?.pop().unwrap_or_default();
        Ok(QueueMessage { text: text.to_owned(), ..message })
    }

    /// Receives up to `most` messages, which other receivers do not see for the time `visibility`.
    pub(crate) async fn get_messages(
        &self,
        queue: &str,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<QueueMessage>> {
        // A GET counts as a read and may be retried: if the answer is lost, its messages become visible again after
        // `visibility`.
        let path = messages_path(queue);
        let call = queue_call(Method::Get, &path)
            .with_query("numofmessages", most.to_string())
            .with_query("visibilitytimeout", whole_seconds(visibility));
        read_messages(&self.send(call).await?)
    }

    /// Reads up to `most` messages without hiding them from receivers.
    pub(crate) async fn peek_messages(
        &self,
        queue: &str,
        most: usize,
    ) -> Result<Vec<QueueMessage>> {
        let path = messages_path(queue);
        let call = queue_call(Method::Get, &path)
            .with_query("peekonly", "true")
            .with_query("numofmessages", most.to_string());
        read_messages(&self.send(call).await?)
    }

    /// Replaces the text of a message and hides it for the time `visibility`. Returns its new pop receipt.
    pub(crate) async fn update_message(
        &self,
        queue: &str,
        (id, receipt): (&str, &str),
        text: &str,
        visibility: Duration,
    ) -> Result<String> {
        let path = message_path(queue, id);
        let call = queue_call(Method::Put, &path)
            .with_query("popreceipt", receipt)
            .with_query("visibilitytimeout", whole_seconds(visibility));
        let answer = self.send(call.with_body("application/xml", message_xml(text))).await?;
        answer.header("x-ms-popreceipt").map(str::to_owned).ok_or_else(|| {
            Error::new(
                ErrorKind::Ambiguous,
                "the answer has no pop receipt; the message will become visible again",
            )
        })
    }

    /// Deletes a message under its newest pop receipt. Fails if the message is gone, or was received or
    /// updated since the receipt was given.
    pub(crate) async fn delete_message(
        &self,
        queue: &str,
        (id, receipt): (&str, &str),
    ) -> Result<()> {
        let path = message_path(queue, id);
        let call = queue_call(Method::Delete, &path).with_query("popreceipt", receipt);
        self.send(call).await.map(drop)
    }
}

/// Prepares a request to the queue service, whose bodies are XML.
fn queue_call(method: Method, path: &str) -> ServiceCall<'_> {
    ServiceCall::new(method, RequestTarget::Path(path)).with_header("accept", "application/xml")
}

/// Rounds a time up to whole seconds, the unit of the service.
fn whole_seconds(time: Duration) -> String {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).to_string()
}

fn messages_path(queue: &str) -> String {
    format!("{queue}/messages")
}

fn message_path(queue: &str, id: &str) -> String {
    format!("{queue}/messages/{}", encode_query_value(id))
}

/// Returns the XML body of a request with the text of a message.
fn message_xml(text: &str) -> Bytes {
    format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", escape_xml(text)).into()
}

/// Reads the messages of an answer.
fn read_messages(answer: &HttpAnswer) -> Result<Vec<QueueMessage>> {
    let xml = String::from_utf8_lossy(answer.body());
    if !xml.contains("QueueMessagesList") {
        let message = "the service's answer is not a list of messages";
        return Err(Error::new(ErrorKind::Backend, message));
    }
    let mut messages = Vec::new();
    let mut rest = &*xml;
    while let Some((_, after)) = rest.split_once("<QueueMessage>") {
        let (one, after) = after.split_once("</QueueMessage>").unwrap_or((after, ""));
        rest = after;
        messages.push(QueueMessage {
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
    unescape_xml(text().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_form_is_read() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>5974b586-0df3-4e2d-ad0c-18e3892bfca2</MessageId><InsertionTime>Fri, 09 Oct 2009 21:04:30 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt>YzQ4Yzg1MDIt+A==</PopReceipt><TimeNextVisible>Fri, 09 Oct 2009 23:29:20 GMT</TimeNextVisible><DequeueCount>2</DequeueCount><MessageText>{&quot;a&quot;: 1}</MessageText></QueueMessage></QueueMessagesList>";
        let answer = |body: &'static str| HttpAnswer::new(200).with_body(body);
        let found = read_messages(&answer(xml)).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].count, found[0].text.as_str()), (2, "{\"a\": 1}"));
        assert_eq!(found[0].receipt, "YzQ4Yzg1MDIt+A==");
        assert!(read_messages(&answer("<QueueMessagesList />")).unwrap().is_empty());
        assert!(read_messages(&answer("<html>sign in</html>")).is_err());
    }
}

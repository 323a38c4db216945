//! Enforces the key ranges of signatures in front of the emulator, which ignores them (semantics
//! 8.3): requests for rows outside are refused, queries are narrowed.

use std::{cmp::Ordering, sync::Arc};

use entable::backend::{
    BoxFuture,
    azure::{HttpAnswer, HttpRequest, Method, SendFailure, Transport},
};
use reqwest::Url;

/// A client in front of the emulator that goes by the range of each request's signature.
#[derive(Debug)]
pub struct Gate(Arc<dyn Transport>);

impl Gate {
    pub fn around(inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(Self(inner))
    }
}

impl Transport for Gate {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
        Box::pin(async move {
            let mut url = Url::parse(request.url()).unwrap();
            let range = Range::of(&url);
            match keys_of(request, &url) {
                Some((partition_key, row_key)) if !range.holds(&partition_key, &row_key) => {
                    let body = r#"{"odata.error":{"code":"AuthorizationFailure","message":{"lang":"en-US","value":"This request is not authorized to perform this operation."}}}"#;
                    return Ok(HttpAnswer::new(403).with_body(body));
                }
                Some(_) => {}
                None => range.narrow(&mut url),
            }
            self.0.send(&request.clone().with_url(url.as_str())).await
        })
    }
}

/// `spk`, `srk`, `epk`, `erk`; an empty one is none.
struct Range([String; 4]);

impl Range {
    fn of(url: &Url) -> Self {
        Self(["spk", "srk", "epk", "erk"].map(|name| {
            let found = url.query_pairs().find(|(found, _)| found == name);
            found.map(|(_, value)| value.into_owned()).unwrap_or_default()
        }))
    }

    fn holds(&self, partition_key: &str, row_key: &str) -> bool {
        let Self([spk, srk, epk, erk]) = self;
        let order = |a: &str, b: &str| a.encode_utf16().cmp(b.encode_utf16());
        let after = match order(partition_key, spk) {
            Ordering::Less => false,
            Ordering::Equal => order(row_key, srk).is_ge(),
            Ordering::Greater => true,
        };
        let before = match order(partition_key, epk) {
            _ if epk.is_empty() => true,
            Ordering::Less => true,
            Ordering::Equal => erk.is_empty() || order(row_key, erk).is_le(),
            Ordering::Greater => false,
        };
        after && before
    }

    /// The range as a part of the query's own filter.
    fn narrow(&self, url: &mut Url) {
        let Self([spk, srk, epk, erk]) = self;
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let side = |partition_key: &str, row_key: &str, past: &str, at: &str| {
            let key = quoted(partition_key);
            match row_key {
                "" => format!("(PartitionKey {at} {key})"),
                row => format!(
                    "(PartitionKey {past} {key} or PartitionKey eq {key} and RowKey {at} {})",
                    quoted(row)
                ),
            }
        };
        let mut parts = Vec::new();
        if !spk.is_empty() {
            parts.push(side(spk, srk, "gt", "ge"));
        }
        if !epk.is_empty() {
            parts.push(side(epk, erk, "lt", "le"));
        }
        let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        if let Some(at) = pairs.iter().position(|(name, _)| name == "$filter") {
            parts.push(format!("({})", pairs.remove(at).1));
        }
        if !parts.is_empty() {
            pairs.push(("$filter".to_owned(), parts.join(" and ")));
        }
        url.query_pairs_mut().clear().extend_pairs(pairs);
        // The emulator's signature takes a blank for a blank alone.
        let query = url.query().unwrap_or_default().replace('+', "%20");
        url.set_query(Some(&query));
    }
}

/// The keys of a request about one row.
fn keys_of(request: &HttpRequest, url: &Url) -> Option<(String, String)> {
    let path = url.path();
    if request.method() == Method::Post {
        let row: serde_json::Value = serde_json::from_slice(request.body()).ok()?;
        let key = |name: &str| row[name].as_str().map(str::to_owned);
        return Some((key("PartitionKey")?, key("RowKey")?));
    }
    let (_, keys) = path.split_once("(PartitionKey='")?;
    let (partition_key, rest) = keys.split_once("',RowKey='")?;
    let text = |encoded: &str| decoded(encoded).replace("''", "'");
    Some((text(partition_key), text(rest.strip_suffix("')")?)))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || (rest.next().unwrap() as char).to_digit(16).unwrap();
        bytes.push((digit() * 16 + digit()).try_into().unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

//! Writes entities as the service's JSON, with no, minimal or full metadata.

use std::{fmt::Write, str::from_utf8};

use base64::{Engine, engine::general_purpose::STANDARD};
use entable_azure::wire::{row_address, text_of_not_finite};
use entable_core::{Result, Row, ValueRef};

use crate::request::Metadata;

/// Where an answer's entities live, and which of their properties it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub(crate) base: &'a str,
    pub(crate) account: &'a str,
    pub(crate) table: &'a str,
    pub(crate) metadata: Metadata,
    pub(crate) select: Option<&'a [String]>,
    /// The selected names as the client wrote them.
    pub(crate) select_text: &'a str,
}

impl Shape<'_> {
    /// Returns the address of the metadata: of one entity or of a set.
    pub(crate) fn metadata_address(&self, single: bool) -> String {
        // The service echoes the client's text.
        let select = self.select.map(|_| format!("&$select={}", self.select_text));
        let (select, element) = (select.unwrap_or_default(), if single { "/@Element" } else { "" });
        format!("{}/$metadata#{}{element}{select}", self.base, self.table)
    }

    /// Writes one entity, as the whole answer or as an item of a page.
    pub(crate) fn entity(&self, row: &Row, alone: bool) -> Result<String> {
        let mut members = Members::default();
        if alone && self.metadata != Metadata::None {
            members.text("odata.metadata", &self.metadata_address(true));
        }
        self.describe(&mut members, row);
        let wanted = |name: &str| self.select.is_none_or(|names| names.iter().any(|n| n == name));
        if wanted("PartitionKey") {
            members.text("PartitionKey", row.partition_key());
        }
        if wanted("RowKey") {
            members.text("RowKey", row.row_key());
        }
        if let Some(timestamp) = row.timestamp().filter(|_| wanted("Timestamp")) {
            if self.metadata == Metadata::Full {
                members.text("Timestamp@odata.type", "Edm.DateTime");
            }
            members.text("Timestamp", &timestamp.to_string());
        }
        self.properties(&mut members, row)?;
        Ok(members.finish())
    }

    fn describe(&self, members: &mut Members, row: &Row) {
        let address = || row_address(self.table, row.partition_key(), row.row_key());
        if self.metadata == Metadata::Full {
            members.text("odata.type", &format!("{}.{}", self.account, self.table));
            members.text("odata.id", &format!("{}/{}", self.base, address()));
        }
        if let Some(etag) = row.etag().filter(|_| self.metadata != Metadata::None) {
            members.text("odata.etag", &etag.to_string());
        }
        if self.metadata == Metadata::Full {
            members.text("odata.editLink", &address());
        }
    }

    fn properties(&self, members: &mut Members, row: &Row) -> Result<()> {
        let Some(names) = self.select else {
            let mut properties = row.properties();
            while let Some((name, value)) = properties.next()? {
                members.value(from_utf8(name).unwrap_or_default(), value, self.metadata);
            }
            return Ok(());
        };
        for name in names {
            if matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp") {
                continue;
            }
            match row.get(name)? {
                Some(value) => members.value(name, value, self.metadata),
                // The service answers null for a selected property that the entity lacks.
                None => members.raw(name, "null"),
            }
        }
        Ok(())
    }
}

/// The members of a JSON object.
#[derive(Default)]
struct Members(String);

impl Members {
    fn raw(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        push_quoted(&mut self.0, name);
        self.0.push(':');
        self.0.push_str(json);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.raw(name, &quoted(text));
    }

    fn typed(&mut self, name: &str, edm: &str, text: &str, metadata: Metadata) {
        if metadata != Metadata::None {
            self.text(&format!("{name}@odata.type"), edm);
        }
        self.text(name, text);
    }

    fn value(&mut self, name: &str, value: ValueRef<'_>, metadata: Metadata) {
        match value {
            ValueRef::Boolean(v) => self.raw(name, &v.to_string()),
            ValueRef::Int32(v) => self.raw(name, &v.to_string()),
            // Debug prints a point or an exponent, which tells a Double from an Int32.
            ValueRef::Double(v) if v.is_finite() => self.raw(name, &format!("{v:?}")),
            ValueRef::Double(v) => {
                self.typed(name, "Edm.Double", text_of_not_finite(v), metadata);
            }
            ValueRef::String(v) => self.text(name, v),
            ValueRef::Int64(v) => self.typed(name, "Edm.Int64", &v.to_string(), metadata),
            ValueRef::DateTime(v) => self.typed(name, "Edm.DateTime", &v.to_string(), metadata),
            ValueRef::Guid(v) => self.typed(name, "Edm.Guid", &v.to_string(), metadata),
            ValueRef::Binary(v) => self.typed(name, "Edm.Binary", &STANDARD.encode(v), metadata),
        }
    }

    fn finish(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// Returns the JSON of a page with these items. `address` is that of the page's metadata.
pub(crate) fn page_of(items: &[String], metadata: Metadata, address: &str) -> String {
    let described = match metadata {
        Metadata::None => String::new(),
        Metadata::Minimal | Metadata::Full => format!("\"odata.metadata\":{},", quoted(address)),
    };
    format!("{{{described}\"value\":[{}]}}", items.join(","))
}

/// Returns the JSON string of a text, in ASCII as the service writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(character),
            character => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a String never fails.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

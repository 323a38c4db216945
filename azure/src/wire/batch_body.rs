//! Writes an entity group transaction as the multipart body of `POST /$batch`. Lines end with CRLF,
//! each operation has its absolute address, and each multipart boundary has its closing line.

use entable_core::{
    __runtime::row::json::JsonRow,
    batch::{Batch, Condition, Operation, Verb},
    error::{Error, ErrorKind, Result},
};
use uuid::Uuid;

use super::push_row_address;

/// The body of a batch request, and the Content-Type that names its boundary.
#[derive(Debug)]
pub(crate) struct BatchBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) content_type: String,
}

/// The headers at the begin of every part.
const PART: &[u8] =
    b"\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";

impl BatchBody {
    /// Writes the batch for the account at `endpoint`, which has no `/` at its end.
    pub(crate) fn new(endpoint: &str, batch: &Batch) -> Result<Self> {
        // Random, so no value of a row can contain the boundary, not even on purpose.
        let id = Uuid::new_v4();
        let id = id.simple();
        let mut bytes = Vec::with_capacity(batch.len() * 768 + 512);
        bytes.extend_from_slice(
            format!(
                "--batch_{id}\r\nContent-Type: multipart/mixed; boundary=changeset_{id}\r\n\r\n"
            )
            .as_bytes(),
        );
        let boundary = format!("--changeset_{id}");
        let mut json = Vec::new();
        for operation in batch.operations() {
            bytes.extend_from_slice(boundary.as_bytes());
            bytes.extend_from_slice(PART);
            push_part(&mut bytes, &mut json, endpoint, batch.table(), operation)?;
        }
        bytes.extend_from_slice(format!("{boundary}--\r\n--batch_{id}--\r\n").as_bytes());
        Ok(Self { bytes, content_type: format!("multipart/mixed; boundary=batch_{id}") })
    }
}

fn push_part(
    out: &mut Vec<u8>,
    json: &mut Vec<u8>,
    endpoint: &str,
    table: &str,
    operation: &Operation,
) -> Result<()> {
    let row = operation.row();
    let method = match operation.verb() {
        Verb::Insert => "POST ",
        Verb::Replace | Verb::InsertOrReplace => "PUT ",
        Verb::Merge | Verb::InsertOrMerge => "MERGE ",
        Verb::Delete => "DELETE ",
    };
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(endpoint.as_bytes());
    out.push(b'/');
    if operation.verb() == Verb::Insert {
        out.extend_from_slice(table.as_bytes());
    } else {
        push_row_address(out, table, row.partition_key(), row.row_key());
    }
    out.extend_from_slice(
        b" HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n",
    );
    // Without this header, the answer repeats the row that was sent.
    if operation.verb() == Verb::Insert {
        out.extend_from_slice(b"Prefer: return-no-content\r\n");
    }
    // Only this header distinguishes an update from an upsert: without it, PUT and MERGE insert a missing row.
    match operation.condition() {
        None => {}
        Some(Condition::Any) => out.extend_from_slice(b"If-Match: *\r\n"),
        Some(Condition::Match(etag)) => {
            out.extend_from_slice(format!("If-Match: {etag}\r\n").as_bytes());
        }
    }
    if operation.verb() == Verb::Delete {
        out.extend_from_slice(b"\r\n");
        return Ok(());
    }
    // The length precedes the body, so write the JSON to a separate buffer first.
    json.clear();
    serde_json::to_writer(&mut *json, &JsonRow(row)).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "the row cannot be written as JSON").with_source(error)
    })?;
    out.extend_from_slice(b"Content-Type: application/json\r\nContent-Length: ");
    out.extend_from_slice(json.len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(json);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use entable_core::{
        edm::ValueRef,
        row::{ETag, Row},
    };

    use super::*;

    #[test]
    fn a_batch_has_crlf_absolute_addresses_and_closed_boundaries() {
        let mut batch = Batch::new("People");
        let row = Row::build("o'brien", "a").with("Age", ValueRef::Int32(1)).unwrap();
        batch.push(Operation::insert(row.finish().unwrap())).unwrap();
        let etag = ETag::from("W/\"x\"");
        batch.push(Operation::delete("o'brien", "b%", Condition::Match(etag)).unwrap()).unwrap();
        let body = BatchBody::new("https://a.table.core.windows.net", &batch).unwrap();
        let text = String::from_utf8(body.bytes).unwrap();
        let id = body.content_type.strip_prefix("multipart/mixed; boundary=batch_").unwrap();
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
        assert!(text.ends_with(&format!("--changeset_{id}--\r\n--batch_{id}--\r\n")));
        assert!(text.contains("POST https://a.table.core.windows.net/People HTTP/1.1\r\n"));
        assert!(text.contains("Prefer: return-no-content\r\n"));
        assert!(text.contains(
            "DELETE https://a.table.core.windows.net/People(PartitionKey='o''brien',RowKey='b%25') HTTP/1.1\r\n"
        ));
        assert!(text.contains("If-Match: W/\"x\"\r\n"));
        assert!(text.contains("Content-Length: 51\r\n\r\n{\"PartitionKey\":\"o'brien\",\"RowKey\":\"a\",\"Age\":1}\r\n") || text.contains("\"Age\":1}\r\n"));
    }
}

//! Entities in bodies, as a server of the protocol reads and writes them.

use entable_core::{
    __runtime::row::json::{self, EntityMembers},
    error::{Error, Result, ServiceCode},
    row::Row,
};
use serde::de::DeserializeSeed;

/// Reads the entity in the body of a request. `keys` are the keys in the request's address, which replace keys in
/// the body; without them, the body must contain both keys. A Timestamp and an ETag in the body are ignored.
///
/// # Errors
///
/// `InvalidInput` for text that is not the JSON of an entity, for a value that does not have its declared type, and for a
/// key in the body that is not text.
/// `DuplicatePropertiesSpecified` for a member that is given twice, and `PropertiesNeedValue` for a missing key or one that is null.
pub fn read_entity_body(body: &[u8], keys: Option<(&str, &str)>) -> Result<Row> {
    let mut members = EntityMembers::default();
    let mut json = serde_json::Deserializer::from_slice(body);
    (&mut members).deserialize(&mut json).and_then(|()| json.end()).map_err(|_| not_an_entity())?;
    if let Some(name) = members.repeated_name() {
        let message = "the entity has a property twice";
        let error = Error::service(ServiceCode::DuplicatePropertiesSpecified, message);
        return Err(error.in_property(name));
    }
    if let Some((partition_key, row_key)) = keys {
        members = members.with_keys(partition_key, row_key);
    } else if members.has_key_of_other_type() {
        let message = "the entity has a PartitionKey or RowKey that is not text";
        return Err(Error::service(ServiceCode::InvalidInput, message));
    } else if !members.has_keys() {
        let message = "the entity lacks a PartitionKey or RowKey";
        return Err(Error::service(ServiceCode::PropertiesNeedValue, message));
    }
    let row = members.to_row().map_err(|error| match error.service_code() {
        Some(_) => error,
        None => error.with_code(ServiceCode::InvalidInput),
    })?;
    Ok(row.without_timestamp_and_etag())
}

fn not_an_entity() -> Error {
    Error::service(ServiceCode::InvalidInput, "the body is not the JSON of an entity")
}

/// Returns the protocol's text of a number that JSON has no form for: `NaN`, `Infinity` or `-Infinity`.
pub fn text_of_not_finite(value: f64) -> &'static str {
    json::text_of_not_finite(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_address_and_else_from_the_body() {
        let body = br#"{"PartitionKey":7,"RowKey":"r","A":1,"Timestamp":null}"#;
        let row = read_entity_body(body, Some(("p", "q"))).unwrap();
        assert_eq!((row.keys(), row.property_count().unwrap()), (("p", "q"), 1));
        let code = |body: &str| read_entity_body(body.as_bytes(), None).unwrap_err();
        assert_eq!(code(r#"{"RowKey":"r"}"#).code(), Some("PropertiesNeedValue"));
        assert_eq!(
            code(r#"{"PartitionKey":null,"RowKey":"r"}"#).code(),
            Some("PropertiesNeedValue")
        );
        for key in ["7", "true", "1.5", "[]"] {
            let body = format!(r#"{{"PartitionKey":{key},"RowKey":"r"}}"#);
            assert_eq!(code(&body).code(), Some("InvalidInput"), "{key}");
        }
        assert_eq!(
            code(r#"{"PartitionKey":"7","RowKey@odata.type":"Edm.Int64","RowKey":"7"}"#).code(),
            Some("InvalidInput")
        );
        assert_eq!(code(r#"{"PartitionKey":"p","RowKey":"r""#).code(), Some("InvalidInput"));
        assert_eq!(
            code(r#"{"PartitionKey":"p","RowKey":"r","A":1,"A":2}"#).code(),
            Some("DuplicatePropertiesSpecified")
        );
        assert_eq!(
            code(r#"{"PartitionKey":"p","RowKey":"r","A":3000000000}"#).code(),
            Some("InvalidInput")
        );
    }

    #[test]
    fn a_timestamp_in_the_body_is_ignored() {
        let body = br#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2021-05-26T15:48:25Z","odata.etag":"x"}"#;
        let row = read_entity_body(body, None).unwrap();
        assert_eq!((row.timestamp(), row.etag()), (None, None));
    }
}

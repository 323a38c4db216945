//! Writes the request for a user delegation key, and reads the answer, as XML.

use std::ops::Range;

use entable_core::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};
use zeroize::Zeroizing;

use super::xml::element_text;

/// A user delegation key as the service sends it. The texts are signed as they came.
pub(crate) struct DelegationKeyAnswer {
    pub(crate) object_id: String,
    pub(crate) tenant_id: String,
    pub(crate) start: String,
    pub(crate) expiry: String,
    pub(crate) service: String,
    pub(crate) version: String,
    /// The key in base64.
    pub(crate) value: Zeroizing<String>,
}

/// Writes the body of `POST /?restype=service&comp=userdelegationkey`, with times in whole seconds: the
/// service refuses fractions.
pub(crate) fn write_key_info(valid: &Range<Ticks>) -> String {
    // Times have no character that XML escapes.
    let (start, expiry) = (valid.start.to_text_in_seconds(), valid.end.to_text_in_seconds());
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>"
    )
}

/// Reads the answer to the request for a user delegation key. The error quotes nothing of the answer,
/// which may hold a key.
pub(crate) fn read_delegation_key(body: &[u8]) -> Result<DelegationKeyAnswer> {
    let xml = std::str::from_utf8(body).map_err(|_| no_key_error("UTF-8"))?;
    let element = |name: &'static str| {
        let text = element_text(xml, name).filter(|text| !text.is_empty());
        // Each text is one line of the signed text: a line break in one would move all others.
        text.filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| no_key_error(name))
    };
    Ok(DelegationKeyAnswer {
        object_id: element("SignedOid")?,
        tenant_id: element("SignedTid")?,
        start: element("SignedStart")?,
        expiry: element("SignedExpiry")?,
        service: element("SignedService")?,
        version: element("SignedVersion")?,
        value: Zeroizing::new(element("Value")?),
    })
}

fn no_key_error(lacks: &str) -> Error {
    let message = format!(
        "the answer contains no user delegation key: it lacks `{lacks}`; check the endpoint and proxies"
    );
    Error::new(ErrorKind::Backend, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer that "Get User Delegation Key" shows, with made-up values.
    const ANSWER: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey>\
        <SignedOid>11111111-2222-3333-4444-555555555555</SignedOid>\
        <SignedTid>66666666-7777-8888-9999-aaaaaaaaaaaa</SignedTid>\
        <SignedStart>2026-04-01T00:00:00Z</SignedStart><SignedExpiry>2026-04-02T00:00:00Z</SignedExpiry>\
        <SignedService>t</SignedService><SignedVersion>2025-07-05</SignedVersion>\
        <Value>c2VjcmV0</Value></UserDelegationKey>";

    #[test]
    fn times_are_asked_for_in_whole_seconds() {
        let time = |text: &str| text.parse::<Ticks>().unwrap();
        let valid = time("2026-04-01T00:00:00.5Z")..time("2026-04-02T00:00:00Z");
        assert_eq!(
            write_key_info(&valid),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo>\
             <Start>2026-04-01T00:00:00Z</Start><Expiry>2026-04-02T00:00:00Z</Expiry></KeyInfo>"
        );
    }

    #[test]
    fn the_key_is_read_and_an_answer_without_a_part_of_it_is_refused() {
        let key = read_delegation_key(ANSWER.as_bytes()).unwrap();
        assert_eq!(
            (&*key.object_id, &*key.service, &**key.value),
            ("11111111-2222-3333-4444-555555555555", "t", "c2VjcmV0",)
        );
        assert_eq!((&*key.start, &*key.version), ("2026-04-01T00:00:00Z", "2025-07-05"));
        for (part, instead) in [
            ("<SignedOid>11111111", "<SignedOid>1&#10;1111111"),
            ("SignedTid>", "Other>"),
            (">t<", "> <"),
            ("</Value>", ""),
        ] {
            let error =
                read_delegation_key(ANSWER.replace(part, instead).as_bytes()).err().unwrap();
            assert!(error.is_backend() && !error.to_string().contains("c2VjcmV0"), "{error}");
        }
        assert!(read_delegation_key(b"\xff").is_err_and(|error| error.is_backend()));
    }
}

//! Reads the multipart answer to a batch, which has one part per operation or one part for a failure.

/// The part of a batch answer that answers one operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BatchAnswerPart<'a> {
    pub(crate) status: u16,
    pub(crate) etag: Option<&'a str>,
    pub(crate) error_code: Option<&'a str>,
    pub(crate) body: &'a str,
}

/// Reads the parts of a batch answer, in order. Line ends may be CRLF or LF; boundaries and MIME headers
/// between the parts are ignored.
pub(crate) fn batch_answer_parts(body: &str) -> Vec<BatchAnswerPart<'_>> {
    // The message of an error may contain these words, but not at the beginning of a line.
    body.match_indices("HTTP/1.1 ")
        .filter(|(at, _)| begins_a_line(body, *at))
        .filter_map(|(at, _)| read_part(body.get(at..)?))
        .collect()
}

fn begins_a_line(body: &str, at: usize) -> bool {
    body.get(..at).is_none_or(|before| before.is_empty() || before.ends_with('\n'))
}

fn read_part(text: &str) -> Option<BatchAnswerPart<'_>> {
    // A boundary begins a line. JSON escapes line breaks, so an error's text cannot contain a boundary.
    let text = text.split_once("\n--").map_or(text, |(part, _)| part);
    let (head, body) =
        text.split_once("\r\n\r\n").or_else(|| text.split_once("\n\n")).unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next()?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let mut found = BatchAnswerPart { status, etag: None, error_code: None, body: body.trim() };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.trim().eq_ignore_ascii_case("etag") {
            found.etag = Some(value.trim());
        } else if name.trim().eq_ignore_ascii_case("x-ms-error-code") {
            found.error_code = Some(value.trim());
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "--batchresponse_x\r\nContent-Type: multipart/mixed; boundary=changesetresponse_y\r\n\r\n\
        --changesetresponse_y\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
        HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nETag: W/\"datetime'a%3A'\"\r\n\r\n\r\n\
        --changesetresponse_y\r\nContent-Type: application/http\r\n\r\n\
        HTTP/1.1 204 No Content\r\nDataServiceVersion: 1.0;\r\n\r\n\r\n--changesetresponse_y--\r\n--batchresponse_x--\r\n";

    #[test]
    fn a_success_has_a_part_per_operation() {
        let found = batch_answer_parts(OK);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].etag, Some("W/\"datetime'a%3A'\""));
        assert_eq!((found[1].status, found[1].etag), (204, None));
    }

    #[test]
    fn a_failure_has_one_part_with_a_body() {
        let text = "--b\n--c\nContent-Type: application/http\n\nHTTP/1.1 409 Conflict\nContent-Type: application/json\n\n{\"odata.error\":{\"code\":\"X\",\"message\":{\"value\":\"1:HTTP/1.1 no\"}}}\n--c--\n--b--";
        let found = batch_answer_parts(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].status, 409);
        assert!(found[0].body.starts_with('{') && found[0].body.ends_with('}'));
    }
}

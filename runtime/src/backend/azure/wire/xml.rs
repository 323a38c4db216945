//! Text of XML elements.

/// A text as XML has it; of line ends a reader would make others.
pub(in crate::backend::azure) fn escape_xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\r', "&#xD;")
}

/// The text of an element, with its references resolved.
pub(in crate::backend::azure) fn unescape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let meant = after.split_once(';').and_then(|(name, after)| Some((named(name)?, after)));
        let (character, after) = meant.unwrap_or(('&', after));
        out.push(character);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The character of a reference, by name or by number.
fn named(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_once() {
        let text = "{&quot;a&quot;:&#xD;&#10;&amp;lt; &amp;#65; & &no; &#x110000;}";
        assert_eq!(unescape_xml(text), "{\"a\":\r\n&lt; &#65; & &no; &#x110000;}");
        assert_eq!(unescape_xml(&escape_xml("a\r\n<&>")), "a\r\n<&>");
    }
}

//! Escapes, unescapes and finds the text of XML elements.

/// Escapes a text for XML. A carriage return becomes a reference, because XML readers replace it.
pub fn escape_xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\r', "&#xD;")
}

/// Replaces the references in the text of an element, such as `&lt;` and `&#10;`, by their characters.
pub(crate) fn unescape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let meant =
            after.split_once(';').and_then(|(name, after)| Some((character_of(name)?, after)));
        let (character, after) = meant.unwrap_or(('&', after));
        out.push(character);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the character of a reference, given by name or by number.
fn character_of(name: &str) -> Option<char> {
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

/// Returns the text of the first element with this name, without blanks around it. `None` if there is none.
pub(super) fn element_text(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(unescape_xml(text.trim()))
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

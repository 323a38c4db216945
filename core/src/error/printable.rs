//! Writes texts that stores, services and rows put into errors. Escapes characters that could forge lines of a
//! log or steer a terminal, and cuts long names and long errors of other libraries.

use std::fmt::{self, Write};

/// The most characters of a name in an error. PartitionKey and RowKey, the longest, have 512 UTF-16 units.
const NAME_CHARACTERS: usize = 1024;
/// The most characters of the text of another library's error.
const SOURCE_CHARACTERS: usize = 2000;

/// Returns whether a character can be shown without affecting other text. Control characters, line
/// separators, invisible characters and direction marks cannot.
pub fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes a message of this library. Keeps line breaks. Escapes other characters that are not
/// printable, because a message may quote texts of others.
pub(super) fn write_printable_message(f: &mut fmt::Formatter<'_>, message: &str) -> fmt::Result {
    let is_plain = |character| is_printable(character) || character == '\n';
    if message.chars().all(is_plain) {
        return f.write_str(message);
    }
    for character in message.chars() {
        if is_plain(character) {
            f.write_char(character)?
        } else {
            write!(f, "{}", character.escape_unicode())?
        }
    }
    Ok(())
}

/// Writes a name that rows, programs or services gave, in backquotes.
pub(super) fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let end = name.char_indices().nth(NAME_CHARACTERS).map(|(at, _)| at);
    let shown = end.and_then(|end| name.get(..end)).unwrap_or(name);
    write!(f, "`{}{}`", shown.escape_debug(), if end.is_some() { "\u{2026}" } else { "" })
}

/// Writes the error of another library, on one line.
pub(super) fn write_source(f: &mut fmt::Formatter<'_>, source: &dyn fmt::Display) -> fmt::Result {
    let mut line = OneLine { f, left: SOURCE_CHARACTERS };
    match write!(line, "{source}") {
        // `OneLine` stops the writer with an error when no more characters are allowed.
        Err(fmt::Error) if line.left == 0 => f.write_char('\u{2026}'),
        written => written,
    }
}

/// Writes the first characters of a text, up to a maximum number.
struct OneLine<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    left: usize,
}

impl Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            if is_printable(character) {
                self.f.write_char(character)?
            } else {
                write!(self.f, "{}", character.escape_unicode())?
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::{Error, ErrorKind, ServiceCode};

    #[test]
    fn no_text_of_others_steers_a_terminal_or_fills_a_log() {
        let evil = "\u{0}\u{1b}[2J\r\u{7}\u{202e}\u{85}";
        let (name, long) = (format!("a{evil}\n`b"), "x".repeat(100_000));
        let error = Error::new(ErrorKind::Backend, format!("it says {evil}"))
            .with_code(ServiceCode::parse(&name, 400))
            .in_table(&name)
            .at_keys(&name, &long)
            .in_property(&name)
            .with_index(&name)
            .with_source(std::io::Error::other(format!("{name}{long}")));
        for shown in [error.to_string(), format!("{error:?}")] {
            let is_bad = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!shown.contains(is_bad) && shown.len() < 8000, "{shown}");
        }
        assert!(error.to_string().starts_with("it says \\u{0}\\u{1b}[2J"), "{error}");
        assert!(error.to_string().contains(r"table `a\0\u{1b}[2J"), "{error}");
        // The accessors return the names in full.
        assert_eq!((error.table(), error.keys()), (Some(&*name), Some((&*name, &*long))));
    }

    #[test]
    fn a_message_of_lines_and_a_key_of_full_length_stay_whole() {
        let key = "k".repeat(512);
        let error = Error::new(ErrorKind::Invalid, "first\nsecond \u{e9}").at_keys(&key, &key);
        let wanted = format!("first\nsecond \u{e9} (PartitionKey `{key}`, RowKey `{key}`)");
        assert_eq!(error.to_string(), wanted);
    }
}

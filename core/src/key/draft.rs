//! Writes a key whose parts are given one by one, most often in template order.

use super::{Segment, Template, TemplatePart, walk::length_of_part_text, write::finish_part};
use crate::edm::InvalidValue;

/// A key under construction. The text already holds the unbroken run of parts from the first one.
#[derive(Debug, Clone)]
pub struct KeyDraft {
    template: &'static Template,
    /// The key through the last of the first `given` parts.
    text: String,
    given: usize,
    /// Parts that were given before an earlier one.
    later: Vec<LaterPart>,
    /// Where the part that is being written begins in its text.
    from: usize,
}

/// A part that was given before an earlier one.
#[derive(Debug, Clone)]
struct LaterPart {
    number: usize,
    text: String,
}

impl KeyDraft {
    /// Creates the draft of a key with no part given.
    pub const fn new(template: &'static Template) -> Self {
        Self { template, text: String::new(), given: 0, later: Vec::new(), from: 0 }
    }

    /// Begins part number `number` and returns the text buffer. The caller appends the part, then calls
    /// [`end_part`](Self::end_part).
    pub fn begin_part(&mut self, number: usize) -> &mut String {
        if number == self.given {
            self.push_literals();
            self.from = self.text.len();
            return &mut self.text;
        }
        self.from = 0;
        self.later.retain(|later| later.number != number);
        self.later.push(LaterPart { number, text: String::new() });
        match self.later.last_mut() {
            Some(later) => &mut later.text,
            // A part was pushed, so this is never reached.
            None => &mut self.text,
        }
    }

    /// Ends part number `number`, which [`begin_part`](Self::begin_part) began. The part is empty if it
    /// could not be encoded.
    ///
    /// # Errors
    ///
    /// Returns the error of the encoding, and fails for a text of another width than the part's.
    pub fn end_part(
        &mut self,
        number: usize,
        encoded: Result<(), InvalidValue>,
    ) -> Result<(), InvalidValue> {
        let (template, from) = (self.template, self.from);
        let terminator = template.terminator_char_of_part(number);
        let is_next = number == self.given;
        let text = match self.later.last_mut() {
            Some(later) if !is_next => &mut later.text,
            _ => &mut self.text,
        };
        let part = template.parts().nth(number).ok_or_else(|| template.no_such_part_error());
        let ended = encoded.and(part).and_then(|part| finish_part(part, terminator, from, text));
        if ended.is_err() {
            text.truncate(from);
        }
        if is_next {
            self.given += 1;
            self.append_later_parts();
        }
        ended
    }

    /// Appends the parts that were given before the one that was missing until now.
    fn append_later_parts(&mut self) {
        while let Some(at) = self.later.iter().position(|later| later.number == self.given) {
            let later = self.later.swap_remove(at);
            self.push_literals();
            self.text.push_str(&later.text);
            self.given += 1;
        }
    }

    /// Appends the literals before the next part.
    fn push_literals(&mut self) {
        let template = self.template;
        if self.text.capacity() == 0 {
            // Most keys are not longer, and are allocated once.
            self.text.reserve_exact(template.text.len() + 16);
        }
        let mut parts = 0;
        for segment in template.segments {
            match segment {
                Segment::Literal(text) if parts == self.given => self.text.push_str(text),
                Segment::Literal(_) => {}
                Segment::Part(_) if parts == self.given => return,
                Segment::Part(_) => parts += 1,
            }
        }
    }

    /// Returns the encoded text of part number `number`, or `None` if the part has not been given.
    pub fn part_text(&self, number: usize) -> Option<&str> {
        if number >= self.given {
            return self.later.iter().find(|later| later.number == number).map(|one| &*one.text);
        }
        let range = self.template.range_of_part(&self.text, number, self.given)?;
        self.text.get(range)
    }

    /// Replaces the text of a part that is given.
    pub fn replace_part_text(&mut self, number: usize, text: &str) {
        if let Some(later) = self.later.iter_mut().find(|later| later.number == number) {
            text.clone_into(&mut later.text);
        } else if let Some(range) = self.template.range_of_part(&self.text, number, self.given) {
            self.text.replace_range(range, text);
        }
    }

    /// Returns whether all parts are given.
    pub fn is_complete(&self) -> bool {
        self.template.parts().nth(self.given).is_none()
    }

    /// Returns whether a part is given.
    pub fn has_part(&self) -> bool {
        self.given > 0 || !self.later.is_empty()
    }

    /// Returns the text that all keys with the given parts begin with: literals and parts up to the
    /// first part that is not given. It is the key if all parts are given.
    pub fn into_prefix(mut self) -> String {
        self.push_literals();
        self.text
    }

    /// Returns the prefix as [`into_prefix`](Self::into_prefix) does, without the literal after the last
    /// given part if that part has fixed width. No other value of such a part begins with the same text,
    /// so `ge 'empid_000123'` selects the same keys as `ge 'empid_000123_'`, and the table design guide
    /// writes the shorter text.
    pub fn into_shortest_prefix(self) -> String {
        let last = self.given.checked_sub(1).and_then(|last| self.template.parts().nth(last));
        match last {
            Some(TemplatePart { width: Some(_), .. }) => self.text,
            _ => self.into_prefix(),
        }
    }
}

impl Template {
    /// Returns the position of part number `number` within a key prefix whose last part is number `given - 1`.
    fn range_of_part(
        &self,
        key: &str,
        number: usize,
        given: usize,
    ) -> Option<std::ops::Range<usize>> {
        let (mut at, mut parts) = (0, 0);
        for (segment_at, segment) in self.segments.iter().enumerate() {
            let rest = key.get(at..)?;
            at += match segment {
                Segment::Literal(text) => text.len(),
                // The text ends with that part.
                Segment::Part(_) if parts + 1 == given => rest.len(),
                Segment::Part(part) => {
                    length_of_part_text(part, self.terminator_char_of_segment(segment_at), rest)?
                }
            };
            if matches!(segment, Segment::Part(_)) {
                if parts == number {
                    return Some(key.len() - rest.len()..at);
                }
                parts += 1;
            }
        }
        None
    }
}

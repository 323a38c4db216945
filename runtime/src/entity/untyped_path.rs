//! Defines untyped access paths: the keys that a path builder gathers ([`PathDraft`]) and the finished path
//! ([`UntypedPath`]).

use std::ops::Bound;

use super::{Range, dated::TimeWindow};
use crate::{
    access::{KeyFault, Keys, RowKeys},
    edm::{EdmCow, Input, InvalidValue, OutOfRangeSide, Ticks, ValueRef},
    error::Result,
    filter::BlindValue,
    key::{
        KeyDraft, PrefixInput, RangeInput, RowFamily, TOKEN_PLACEHOLDER, Template, bucket,
        encode_ticks_in_form, escape, lower, push_bucket, successor,
    },
};

/// An untyped path: a row family and the selected keys.
#[derive(Debug, Clone)]
pub struct UntypedPath {
    pub(crate) family: Option<&'static RowFamily>,
    pub(crate) keys: Keys,
    pub(crate) parts: GivenParts,
    pub(crate) fault: Option<KeyFault>,
    /// The draft that the keys were made from. Only present if the keys lack blind tokens, which a verb adds to the
    /// draft.
    pub(crate) open: Option<Box<PathDraft>>,
    /// The times that the path selects. They determine the tables if the entity has dated tables.
    pub(crate) window: Option<TimeWindow>,
}

/// The parts of the keys that a path gives.
#[derive(Debug, Clone)]
pub(crate) enum GivenParts {
    /// None: the path was made from keys.
    None,
    /// All parts of the PartitionKey, which is in the path's keys.
    OfPartition,
    /// All parts of both keys, which are in the path's keys.
    OfBoth,
    /// All parts that the drafts contain.
    OfDrafts(Box<KeyDrafts>),
}

/// Both keys of a path while it is being built.
#[derive(Debug, Clone)]
pub(crate) struct KeyDrafts {
    partition: KeyDraft,
    row: KeyDraft,
}

impl UntypedPath {
    /// Creates the path to the rows that the keys select. `family` is their row family, if it is known.
    pub(crate) const fn of_keys(family: Option<&'static RowFamily>, keys: Keys) -> Self {
        Self { family, keys, parts: GivenParts::None, fault: None, open: None, window: None }
    }

    /// Returns the keys, unless a value did not fit.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` and the field's name for the first value that does not fit its part.
    pub fn checked_keys(&self) -> Result<&Keys> {
        match &self.fault {
            None => Ok(&self.keys),
            Some(fault) => Err(fault.to_error()),
        }
    }

    /// Returns the keys without the path. Keeps an error of the path in the keys, and the verb that receives them
    /// fails with it.
    pub(crate) fn into_keys(self) -> Keys {
        let fault = self.fault.or_else(|| {
            let message =
                "contains the blind token of a secret value; pass the path itself, because only a verb can make the \
                 token";
            self.open.map(|_| KeyFault::new("the key", InvalidValue::new(message)))
        });
        let fault = fault.or_else(|| self.window.and_then(TimeWindow::fault_in_untyped_query));
        Keys { fault, ..self.keys }
    }

    /// Returns whether the keys lack blind tokens, which only a verb can make.
    pub(crate) fn needs_key_tokens(&self) -> bool {
        self.open.is_some()
    }

    /// Returns the row family that the path leads to: `family`, or else the family of the draft in `open`. Returns
    /// `None` for keys that were made without a path.
    pub(crate) fn family_of_path(&self) -> Option<&'static RowFamily> {
        self.family.or_else(|| self.open.as_deref().map(PathDraft::family))
    }

    /// Returns the text of part number `part` in the path's keys, as the key contains it. The parts of the
    /// PartitionKey come first.
    pub(crate) fn given_part(&self, part: usize) -> Option<&str> {
        let family = self.family?;
        let in_row = part.checked_sub(family.partition.parts().count());
        match (&self.parts, in_row) {
            (GivenParts::OfPartition | GivenParts::OfBoth, None) => {
                family.partition.part_text(self.keys.partition.as_deref()?, part).ok()?
            }
            (GivenParts::OfBoth, Some(part)) => {
                family.row.part_text(self.keys.as_point()?.1, part).ok()?
            }
            (GivenParts::OfDrafts(drafts), None) => drafts.partition.part_text(part),
            (GivenParts::OfDrafts(drafts), Some(part)) => drafts.row.part_text(part),
            (GivenParts::None, _) | (GivenParts::OfPartition, Some(_)) => None,
        }
    }

    /// Replaces the placeholders in the path by blind tokens. `token` makes a blind token from a field's name and
    /// value.
    pub(crate) fn with_tokens(
        &self,
        token: impl Fn(&str, ValueRef<'_>) -> Result<String>,
    ) -> Result<Self> {
        match &self.open {
            Some(draft) => Ok(PathDraft::clone(draft).with_tokens(token)?.into_untyped_path()),
            None => Ok(self.clone()),
        }
    }

    /// Returns PartitionKey and RowKey of a path to one row.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` or `is_too_large` for keys that the service refuses.
    pub fn point(&self) -> Result<(&str, &str)> {
        let (partition_key, row_key) = self.checked_keys()?.as_point().unwrap_or_default();
        crate::limits::check_key("PartitionKey", partition_key)?;
        crate::limits::check_key("RowKey", row_key)?;
        Ok((partition_key, row_key))
    }
}

/// The keys that a path builder has gathered so far. Builders never fail. The draft keeps the first value that
/// does not fit, and the verb that receives the path returns its error.
#[derive(Debug, Clone)]
pub struct PathDraft {
    family: &'static RowFamily,
    keys: KeyDrafts,
    /// The bounds of the first RowKey part without a value.
    bounds: Option<Bounds>,
    /// Secret values with the index of their part. The verb makes their blind tokens.
    secrets: Vec<(usize, BlindValue)>,
    fault: Option<KeyFault>,
    window: Option<TimeWindow>,
}

/// The positions of a part's values at the lower and the upper bound of a range of texts.
const ASCENDING: (OutOfRangeSide, OutOfRangeSide) = (OutOfRangeSide::Below, OutOfRangeSide::Above);

/// Bounds of one part of the RowKey, as texts of that part.
#[derive(Debug, Clone)]
enum Bounds {
    Between(usize, Bound<String>, Bound<String>),
    /// Selects texts that begin with this prefix.
    Prefix(String),
}

impl PathDraft {
    /// Creates a draft for the keys of a row family, with no part given.
    pub const fn new(family: &'static RowFamily) -> Self {
        let keys = KeyDrafts {
            partition: KeyDraft::new(&family.partition),
            row: KeyDraft::new(&family.row),
        };
        Self { family, keys, bounds: None, secrets: Vec::new(), fault: None, window: None }
    }

    /// Returns the row family of the keys.
    pub const fn family(&self) -> &'static RowFamily {
        self.family
    }

    fn partition_parts(&self) -> usize {
        self.family.partition.parts().count()
    }

    /// Returns the template that part number `part` belongs to, and the part's index in that
    /// template.
    fn template_of_part(&self, part: usize) -> (&'static Template, usize) {
        let family: &'static RowFamily = self.family;
        match part.checked_sub(self.partition_parts()) {
            None => (&family.partition, part),
            Some(part) => (&family.row, part),
        }
    }

    /// Returns the draft of the key that part number `part` belongs to, and the part's number in that
    /// key.
    fn draft_of_part(&mut self, part: usize) -> (&mut KeyDraft, usize) {
        match part.checked_sub(self.partition_parts()) {
            None => (&mut self.keys.partition, part),
            Some(part) => (&mut self.keys.row, part),
        }
    }

    /// Ends a part that was begun in its key's draft. Keeps an error for the verb. The part is then empty, which
    /// preserves the path's cost class.
    fn end_part(&mut self, part: usize, encoded: Result<(), InvalidValue>) {
        let (draft, at) = self.draft_of_part(part);
        if let Err(invalid) = draft.end_part(at, encoded) {
            let (template, at) = self.template_of_part(part);
            self.keep_first_fault(template, at, invalid);
        }
    }

    /// Keeps the first value that does not fit for the verb.
    fn keep_first_fault(&mut self, template: &Template, at: usize, invalid: InvalidValue) {
        let field = template.parts().nth(at).map_or("", |part| part.field);
        self.fault.get_or_insert_with(|| KeyFault::new(field, invalid));
    }

    /// Fixes a part to a value. Parts are counted from 0, starting with the PartitionKey. Keeps an error of `encode`
    /// for the verb.
    #[must_use]
    pub fn encode_part_at(
        mut self,
        part: usize,
        encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        let (draft, at) = self.draft_of_part(part);
        let encoded = encode(draft.begin_part(at));
        self.end_part(part, encoded);
        self
    }

    /// Selects the table of a single time, the value of `field`. Called by generated code for dated tables. Keeps an
    /// error for the verb.
    #[must_use]
    pub fn in_table_of(mut self, field: &'static str, time: Result<Ticks, InvalidValue>) -> Self {
        match time {
            Ok(time) => self.window = Some(TimeWindow::at_time(time)),
            Err(invalid) => {
                self.fault.get_or_insert_with(|| KeyFault::new(field, invalid));
            }
        }
        self
    }

    /// Selects the tables of a window of times of `field`, from `from` (inclusive) to `until` (exclusive). Keeps an
    /// error for the verb.
    #[must_use]
    pub fn between_tables(
        mut self,
        field: &'static str,
        from: Result<Ticks, InvalidValue>,
        until: Result<Ticks, InvalidValue>,
    ) -> Self {
        match (from, until) {
            (Ok(from), Ok(until)) if from <= until => {
                self.window = Some(TimeWindow { from, until, is_time: false });
            }
            (Ok(_), Ok(_)) => {
                let message = "the window ends before it begins; give the earlier time first";
                self.fault.get_or_insert_with(|| KeyFault::new(field, InvalidValue::new(message)));
            }
            (Err(invalid), _) | (_, Err(invalid)) => {
                self.fault.get_or_insert_with(|| KeyFault::new(field, invalid));
            }
        }
        self
    }

    /// Fixes a part with the encoder of its form, such as [`KeyPart::encode`](crate::key::KeyPart).
    #[must_use]
    pub fn set_value_part<T>(
        self,
        part: usize,
        value: &T,
        encode: fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        self.encode_part_at(part, |out| encode(value, out))
    }

    /// Sets key part number `part` to the value that the caller gave to a step of the path, such as `"Sales"` in
    /// `.department("Sales")`. `encode` writes a value in the part's form. An error is kept for the verb.
    #[must_use]
    pub fn set_input_part<T>(
        self,
        part: usize,
        value: impl Input<T>,
        encode: fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        self.encode_part_at(part, |out| value.encode_input(encode, out))
    }

    /// Fixes a part in the form `{f:06}` to the argument of a path step.
    #[must_use]
    pub fn set_padded_input_part<T>(
        self,
        part: usize,
        value: impl Input<T>,
        width: usize,
        encode: fn(&T, usize, &mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        self.set_padded_part(part, &value.input(), width, encode)
    }

    /// Fixes a part in the form `{f:06}`.
    #[must_use]
    pub fn set_padded_part<T>(
        self,
        part: usize,
        value: &T,
        width: usize,
        encode: fn(&T, usize, &mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        self.encode_part_at(part, |out| encode(value, width, out))
    }

    /// Fixes a part in a date form.
    #[must_use]
    pub fn set_date_part(
        self,
        part: usize,
        ticks: Result<Ticks, InvalidValue>,
        form: &str,
    ) -> Self {
        self.encode_part_at(part, |out| encode_ticks_in_form(ticks?, form, out))
    }

    /// Fixes a part in the form `{f:lower}`.
    #[must_use]
    pub fn set_lowercase_part(self, part: usize, text: &str) -> Self {
        self.encode_part_at(part, |out| {
            lower(text, out);
            Ok(())
        })
    }

    /// Fixes a part in the form `{f:bucket(n)}` to the bucket of a value: a number below `count`, from a hash of the
    /// value's text.
    #[must_use]
    pub fn set_bucket_part<T>(
        self,
        part: usize,
        value: &T,
        count: u32,
        encode: fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        self.encode_part_at(part, |out| {
            let mut text = String::new();
            encode(value, &mut text)?;
            push_bucket(bucket(&text, count), count, out);
            Ok(())
        })
    }

    /// Fixes a part in the form `{f:bucket(n)}` to bucket `number`, which is below `count`.
    #[must_use]
    pub fn set_bucket_number_part(self, part: usize, number: u32, count: u32) -> Self {
        self.encode_part_at(part, |out| {
            push_bucket(number, count, out);
            Ok(())
        })
    }

    /// Requires that a key part is the blind token of a secret value. The verb that receives the path makes the token
    /// later, because that needs the blind token key.
    #[must_use]
    pub fn set_token_part(mut self, part: usize, value: Result<EdmCow<'_>, InvalidValue>) -> Self {
        let (template, at) = self.template_of_part(part);
        match value {
            Ok(value) => self.secrets.push((part, BlindValue::new(value.into_value()))),
            Err(invalid) => {
                let field = template.parts().nth(at).map_or("", |part| part.field);
                self.fault.get_or_insert_with(|| KeyFault::new(field, invalid.redacted()));
            }
        }
        self.encode_part_at(part, |out| {
            out.push_str(TOKEN_PLACEHOLDER);
            Ok(())
        })
    }

    /// Replaces the placeholders in the path's keys by blind tokens, which are keyed hashes of secret values. `token`
    /// makes one from a field's name and value.
    fn with_tokens(mut self, token: impl Fn(&str, ValueRef<'_>) -> Result<String>) -> Result<Self> {
        for (part, value) in std::mem::take(&mut self.secrets) {
            let (template, at) = self.template_of_part(part);
            let field = template.parts().nth(at).map_or("", |part| part.field);
            let token = token(field, value.expose_plaintext().as_ref())?;
            let (draft, at) = self.draft_of_part(part);
            draft.replace_part_text(at, &token);
        }
        Ok(self)
    }

    /// Restricts the path to rows whose key part is between two values. The encoded texts must sort in the order of
    /// the values.
    pub fn between<T, E, V, const LAST: bool>(
        self,
        part: usize,
        range: impl RangeInput<T, LAST>,
        encode: fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Range<E, V> {
        Range::from_path_draft(self.bound_part(part, range.bounds(), ASCENDING, encode))
    }

    /// Sets bounds on a part. A bound may be a value that the part cannot hold. If all values of the part are on
    /// its included side, it has no effect; otherwise the range is empty.
    fn bound_part<T>(
        mut self,
        part: usize,
        (lower, upper): (Bound<T>, Bound<T>),
        (before, behind): (OutOfRangeSide, OutOfRangeSide),
        encode: impl Fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Self {
        let lower = self.encode_bound(part, lower, before, &encode);
        let upper = self.encode_bound(part, upper, behind, &encode);
        let (lower, upper) = lower
            .zip(upper)
            .unwrap_or_else(|| (Bound::Included(String::new()), Bound::Excluded(String::new())));
        self.bounds = Some(Bounds::Between(part, lower, upper));
        self
    }

    /// Encodes one bound of a part. The value may be beyond all values that the part can hold. On the side `open`, the
    /// bound then excludes nothing, and `Bound::Unbounded` is returned. On the other side the range is empty, and
    /// `None` is returned.
    fn encode_bound<T>(
        &mut self,
        part: usize,
        bound: Bound<T>,
        open: OutOfRangeSide,
        encode: impl Fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Option<Bound<String>> {
        let (template, at) = self.template_of_part(part);
        let text = bound.map(|value| template.encode_part(at, |out| encode(&value, out)));
        Some(match text {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(Ok(text)) => Bound::Included(text),
            Bound::Excluded(Ok(text)) => Bound::Excluded(text),
            Bound::Included(Err(invalid)) | Bound::Excluded(Err(invalid)) => {
                match invalid.out_of_range_side() {
                    Some(side) if side == open => Bound::Unbounded,
                    Some(_) => return None,
                    None => {
                        self.keep_first_fault(template, at, invalid);
                        // An empty text preserves the path's cost class.
                        Bound::Included(String::new())
                    }
                }
            }
        })
    }

    /// Sets bounds on a part in the form `{f:06}`.
    pub fn between_zero_padded<T, E, V, const LAST: bool>(
        self,
        part: usize,
        range: impl RangeInput<T, LAST>,
        width: usize,
        encode: fn(&T, usize, &mut String) -> Result<(), InvalidValue>,
    ) -> Range<E, V> {
        Range::from_path_draft(
            self.bound_part(part, range.bounds(), ASCENDING, |value, out| {
                encode(value, width, out)
            }),
        )
    }

    /// Sets bounds on a part in a date form.
    pub fn between_date<T, E, V, const LAST: bool>(
        self,
        part: usize,
        range: impl RangeInput<T, LAST>,
        form: &str,
        to_ticks: fn(&T) -> Result<Ticks, InvalidValue>,
    ) -> Range<E, V> {
        Range::from_path_draft(self.bound_part(part, range.bounds(), ASCENDING, |value, out| {
            encode_ticks_in_form(to_ticks(value)?, form, out)
        }))
    }

    /// Sets bounds on a part whose values are written in descending order. The lower bound of the values becomes the
    /// upper bound of the texts, and vice versa.
    pub fn between_descending<T, E, V, const LAST: bool>(
        self,
        part: usize,
        range: impl RangeInput<T, LAST>,
        encode: fn(&T, &mut String) -> Result<(), InvalidValue>,
    ) -> Range<E, V> {
        let (lower, upper) = range.bounds();
        let sides = (OutOfRangeSide::Above, OutOfRangeSide::Below);
        Range::from_path_draft(self.bound_part(part, (upper, lower), sides, encode))
    }

    /// Restricts a text part to a prefix, which is converted to lower case if the part is.
    pub fn starting_with<T, E, V>(
        self,
        part: usize,
        prefix: impl PrefixInput<T>,
        lower_case: bool,
    ) -> Range<E, V> {
        Range::from_path_draft(self.bound_by_prefix(part, prefix.prefix(), lower_case))
    }

    fn bound_by_prefix(mut self, part: usize, prefix: &str, lower_case: bool) -> Self {
        let (template, at) = self.template_of_part(part);
        let mut text = String::new();
        if lower_case {
            lower(prefix, &mut text);
        } else {
            text.push_str(prefix);
        }
        self.bounds = Some(Bounds::Prefix(escape(&text, template.terminator_char_of_part(at))));
        self
    }

    /// Converts the bounds of a part into bounds of the RowKey.
    fn row_bounds(
        &self,
        part: usize,
        (lower, upper): (Bound<String>, Bound<String>),
    ) -> (Bound<String>, Bound<String>) {
        let (template, at) = self.template_of_part(part);
        let last = template.is_last_segment(at);
        let prefix = self.row_prefix();
        let whole = |text: String| [prefix.as_str(), &text].concat();
        let lower = match lower {
            Bound::Included(text) => Bound::Included(whole(text)),
            Bound::Excluded(text) if last => Bound::Excluded(whole(text)),
            Bound::Excluded(text) => match successor(&whole(text)) {
                Some(next) => Bound::Included(next),
                None => Bound::Unbounded,
            },
            Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
            Bound::Unbounded => Bound::Included(prefix.clone()),
        };
        let upper = match upper {
            Bound::Included(text) if last => Bound::Included(whole(text)),
            Bound::Included(text) => bound_above_prefix(&whole(text)),
            Bound::Excluded(text) => Bound::Excluded(whole(text)),
            Bound::Unbounded => bound_above_prefix(&prefix),
        };
        (lower, upper)
    }

    /// Returns the common prefix of all RowKeys of the path: literals and fixed parts, up to the first part without
    /// a value.
    fn row_prefix(&self) -> String {
        self.keys.row.clone().into_prefix()
    }

    /// Builds the path that a query runs: the PartitionKey, and one RowKey or a range of RowKeys.
    pub(super) fn into_untyped_path(mut self) -> UntypedPath {
        let open = (!self.secrets.is_empty()).then(|| Box::new(self.clone()));
        let is_row_given = self.bounds.is_none() && self.keys.row.is_complete();
        let parts = match (self.keys.partition.is_complete(), is_row_given) {
            (true, true) => GivenParts::OfBoth,
            (true, false) if !self.keys.row.has_part() => GivenParts::OfPartition,
            _ => GivenParts::OfDrafts(Box::new(self.keys.clone())),
        };
        let rows = match self.bounds.take() {
            Some(Bounds::Between(part, lower, upper)) => {
                let (lower, upper) = self.row_bounds(part, (lower, upper));
                RowKeys::between(lower, upper)
            }
            Some(Bounds::Prefix(text)) => with_prefix([self.row_prefix(), text].concat()),
            None if is_row_given => RowKeys::One(self.keys.row.into_prefix()),
            None => match self.keys.row.into_shortest_prefix() {
                // Every RowKey begins with the empty prefix.
                prefix if prefix.is_empty() => RowKeys::ALL,
                prefix => with_prefix(prefix),
            },
        };
        let partition = Some(self.keys.partition.into_prefix());
        // Its parts are escaped and contain no character that the service forbids.
        let keys = Keys { partition, rows, fault: None };
        UntypedPath {
            family: Some(self.family),
            keys,
            parts,
            fault: self.fault,
            open,
            window: self.window,
        }
    }
}

/// Returns the RowKeys that begin with a text.
fn with_prefix(prefix: String) -> RowKeys {
    let upper = bound_above_prefix(&prefix);
    RowKeys::between(Bound::Included(prefix), upper)
}

fn bound_above_prefix(prefix: &str) -> Bound<String> {
    successor(prefix).map_or(Bound::Unbounded, Bound::Excluded)
}

//! Derives an entity's key from another entity's key, for one-to-one relationships by convention.

use super::{
    Point, RowSource, Stored, TableEntity, UntypedPath,
    dated::TimeWindow,
    home::{entity_as_read, table_of_stored},
    untyped_path::GivenParts,
};
use crate::{
    access::{KeyFault, Keys},
    address::Names,
    edm::InvalidValue,
    key::{Form, RowFamily, Segment, Template, TemplatePart, unescape},
};

impl<A: TableEntity> Point<A> {
    /// Returns the point of another entity whose key only contains fields of this key, in equal forms. Examples
    /// are a row in another table for each employee, and a row for the department in its employees' partition.
    ///
    /// Fails to compile if the other key has a part that is not in this key.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32 }
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Photos", partition_key = "{department}", row_key = "photo_{id:06}")]
    /// pub struct Photo { pub department: String, pub id: u32, pub jpeg: Vec<u8> }
    ///
    /// let employee = Employee::primary().department("Sales").id(223);
    /// let photo: Point<Photo> = employee.related();
    /// assert_eq!((photo.partition_key(), photo.row_key()), ("Sales", "photo_000223"));
    /// ```
    ///
    /// ```compile_fail
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32 }
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Photos", partition_key = "{department}", row_key = "photo_{id:08}")]
    /// pub struct Photo { pub department: String, pub id: u32, pub jpeg: Vec<u8> }
    ///
    /// let photo: Point<Photo> = Employee::primary().department("Sales").id(223).related();
    /// ```
    pub fn related<B: TableEntity>(&self) -> Point<B> {
        const { assert!(is_derivable(A::SCHEMA.families, B::SCHEMA.families), "{}", NOT_DERIVABLE) };
        let mut access = self.as_access().clone();
        let derived = match (A::SCHEMA.families.first(), B::SCHEMA.families.first()) {
            (Some(from), Some(to)) => derive_keys(from, to, (self.partition_key(), self.row_key())),
            _ => Err(InvalidValue::new("the schema has no families")),
        };
        match derived {
            Ok((partition_key, row_key)) => access.keys = Keys::point(partition_key, row_key),
            Err(invalid) => {
                // Building a path cannot fail, so the verb that receives the path reports the fault.
                access.fault.get_or_insert_with(|| KeyFault::new("RowKey", invalid));
            }
        }
        Point::from_access(UntypedPath {
            family: B::SCHEMA.families.first(),
            parts: GivenParts::None,
            // The tables of the two entities may depend on different times.
            window: None,
            ..access
        })
    }
}

impl<A: TableEntity> Stored<A> {
    /// Returns the path to the entity's primary row, from the values that were read. Later changes to the value
    /// have no effect.
    ///
    /// If the value was read from a copy through an index, [`partition_key`](Self::partition_key) and
    /// [`row_key`](Self::row_key) return the copy's own keys. This path leads to the primary entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let by_email = Employee::by_email().department("Sales").email("cao7@contoso.com");
    /// let cao = staff.get(by_email).await?.expect("Cao is there");
    /// assert_eq!(cao.row_key(), "email_cao7@contoso.com");
    /// assert_eq!(cao.point().row_key(), "empid_000007");
    /// # Ok(())
    /// # }
    /// ```
    pub fn point(&self) -> Point<A> {
        match self.source() {
            RowSource::Primary => self.point_of_primary_row(),
            // The keys may lack blind tokens, which the verb that receives the path makes.
            RowSource::Caller => (**self).point(),
            RowSource::Copy(family) => match entity_as_read(self, family) {
                Ok(entity) => entity.point(),
                Err(_) => Point::with_fault("RowKey", InvalidValue::new(UNREADABLE_COPY)),
            },
        }
    }

    fn point_of_primary_row(&self) -> Point<A> {
        let point = Point::at(self.partition_key(), self.row_key());
        match &A::SCHEMA.dated {
            None => point,
            // Any time in the table's period determines the table.
            Some(dated) => point.with_window(table_of_stored(self).ok().and_then(|table| {
                let period = dated.period_of(Names::ANY_CASE.name(&table))?;
                Some(TimeWindow::at_time(period.start))
            })),
        }
    }

    /// Returns the point of an entity whose key consists of fields of this key. See [`Point::related`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Photos", partition_key = "{department}", row_key = "photo_{id:06}")]
    /// # struct Photo { department: String, id: u32 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let hall = staff().await?.get(at(223)).await?.expect("Hall is there");
    /// assert_eq!(hall.related::<Photo>().row_key(), "photo_000223");
    /// # Ok(())
    /// # }
    /// ```
    pub fn related<B: TableEntity>(&self) -> Point<B> {
        self.point().related()
    }
}

const UNREADABLE_COPY: &str =
    "the primary's keys cannot be restored from the copy that the entity was read through";

const NOT_DERIVABLE: &str = "the other entity's key has a part that this entity's key lacks; both need the same field \
                             in the same form";

/// Derives the keys of an entity's row in row family `to` from the keys of its row in row family `from`. Fails
/// if the keys lack a field that `to` needs in the same form.
pub(crate) fn derive_keys(
    from: &'static RowFamily,
    to: &'static RowFamily,
    (partition_key, row_key): (&str, &str),
) -> Result<(String, String), InvalidValue> {
    let write = |template: &Template| -> Result<String, InvalidValue> {
        let mut texts = Vec::new();
        for (at, part) in template.parts().enumerate() {
            let text = text_of_part(from, part, partition_key, row_key)?;
            texts.push(template.encode_part(at, |out| {
                out.push_str(&text);
                Ok(())
            })?);
        }
        let mut texts = texts.iter();
        let mut key = String::new();
        for segment in template.segments {
            match segment {
                Segment::Literal(text) => key.push_str(text),
                // `texts` has a text for each part, so the fallback is unreachable.
                Segment::Part(_) => key.push_str(texts.next().map_or("", String::as_str)),
            }
        }
        Ok(key)
    };
    Ok((write(&to.partition)?, write(&to.row)?))
}

/// Returns the text of the field of `part` from the keys of a row of row family `from`. Fails if neither key
/// has a part with this field in the same form.
pub(super) fn text_of_part(
    from: &'static RowFamily,
    part: &TemplatePart,
    partition_key: &str,
    row_key: &str,
) -> Result<String, InvalidValue> {
    for (template, key) in [(&from.partition, partition_key), (&from.row, row_key)] {
        let Some(at) = template.parts().position(|own| writes_same_text(own, part)) else {
            continue;
        };
        let text = template.part_text(key, at)?.unwrap_or_default();
        return match part.width {
            Some(_) => Ok(text.to_owned()),
            // The other key may end the text with a different character and escape that one.
            None => unescape(text).map(std::borrow::Cow::into_owned),
        };
    }
    Err(InvalidValue::new(format!(
        "the key does not contain the field `{}` in the form that the other key needs",
        part.field
    )))
}

/// Returns whether the keys of one row family contain all parts that the keys of another need.
pub(crate) const fn can_derive_keys(from: &RowFamily, to: &RowFamily) -> bool {
    has_all(from, to.partition.segments) && has_all(from, to.row.segments)
}

/// Returns whether this entity's primary key contains all parts of the other entity's primary key.
const fn is_derivable(from: &[RowFamily], to: &[RowFamily]) -> bool {
    match (from, to) {
        ([from, ..], [to, ..]) => can_derive_keys(from, to),
        _ => false,
    }
}

const fn has_all(from: &RowFamily, segments: &[Segment]) -> bool {
    let mut rest = segments;
    while let [first, after @ ..] = rest {
        if let Segment::Part(part) = first
            && !has_part(from.partition.segments, part)
            && !has_part(from.row.segments, part)
        {
            return false;
        }
        rest = after;
    }
    true
}

const fn has_part(segments: &[Segment], wanted: &TemplatePart) -> bool {
    let mut rest = segments;
    while let [first, after @ ..] = rest {
        if let Segment::Part(part) = first
            && writes_same_text(part, wanted)
        {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns whether two parts write equal texts for equal values.
const fn writes_same_text(a: &TemplatePart, b: &TemplatePart) -> bool {
    let same_form = match (&a.form, &b.form) {
        (Form::Plain, Form::Plain)
        | (Form::Descending, Form::Descending)
        | (Form::Lower, Form::Lower)
        | (Form::Hmac, Form::Hmac) => true,
        (Form::Width(a), Form::Width(b)) => *a == *b,
        (Form::Bucket(a), Form::Bucket(b)) => *a == *b,
        (Form::Date(a), Form::Date(b)) => super::set::const_str_eq(a, b),
        _ => false,
    };
    let same_width = match (a.width, b.width) {
        (Some(a), Some(b)) => a == b,
        (None, None) => true,
        _ => false,
    };
    same_form && same_width && super::set::const_str_eq(a.field, b.field)
}

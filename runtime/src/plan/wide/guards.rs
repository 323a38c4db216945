//! A wide entity is stored in several rows, its parts. Joins their ETags into one ETag of the entity, and splits it again. Each part is then written
//! under its own ETag.

use crate::{
    batch::{Condition, Written},
    entity::Schema,
    error::{Error, ErrorKind, Result},
    row::{ETag, Location},
};

/// Replaces the ETag of a missing part in the joined ETag of a torn entity.
pub(super) const MISSING: &str = "-";

/// The condition of a write on one part.
#[derive(Debug, Clone)]
pub(super) enum PartCondition {
    /// The part exists.
    Any,
    /// The part has this ETag.
    Match(ETag),
    /// The part does not exist.
    Missing,
}

impl PartCondition {
    pub(super) fn write_condition(&self) -> Condition {
        match self {
            Self::Match(etag) => Condition::Match(etag.clone()),
            Self::Any | Self::Missing => Condition::Any,
        }
    }
}

/// Splits the ETag of a joined row into the conditions of its parts. An entity of an older version may have a
/// different number of parts. The service's ETags contain no spaces.
pub(super) fn split_etag_by_part(
    schema: &'static Schema,
    etag: &ETag,
) -> Result<Vec<PartCondition>> {
    let text = etag.to_string();
    let guards = text.split(' ').map(|etag| match etag {
        MISSING => PartCondition::Missing,
        etag => PartCondition::Match(ETag::from(etag)),
    });
    let guards: Vec<PartCondition> = guards.collect();
    if schema.versions().any(|version| version.parts.len() == guards.len()) {
        return Ok(guards);
    }
    Err(incomplete_etag_error(schema, guards.len()))
}

/// Returns the error for an ETag that was read from only some parts of a wide entity.
pub(super) fn incomplete_etag_error(schema: &Schema, found: usize) -> Error {
    let message = format!(
        "the ETag covers {found} of the entity's {} rows; read the whole entity before you write it",
        schema.parts.len()
    );
    Error::new(ErrorKind::Invalid, message)
}

/// Joins the ETags of a wide entity's parts into the entity's ETag. Returns `None` if a part has none.
pub(super) fn joined_etag(etags: impl Iterator<Item = Option<ETag>>) -> Option<ETag> {
    let mut location = Location::Primary;
    let texts = etags.map(|etag| {
        let etag = etag?;
        // An entity with one part from the secondary is from there.
        if etag.location_read_from() == Location::Secondary {
            location = Location::Secondary;
        }
        Some(etag.to_string())
    });
    let texts: Option<Vec<String>> = texts.collect();
    texts.map(|texts| ETag::from(texts.join(" ").as_str()).with_location_read_from(location))
}

/// Joins the store's answers for an entity's rows into one answer for the entity. The joined answer has no ETag
/// unless all parts were written.
pub(crate) fn join_part_answers(
    schema: Option<&'static Schema>,
    answers: &[&Written],
) -> Option<Written> {
    let last = (*answers.last()?).clone();
    let Some(schema) = schema.filter(|schema| schema.is_wide()) else { return Some(last) };
    // The ETag of some parts cannot protect a write of the whole entity.
    let is_whole = answers.len() == schema.parts.len();
    let etag = joined_etag(answers.iter().map(|answer| answer.etag.clone()));
    Some(Written {
        status: answers.first()?.status,
        etag: etag.filter(|_| is_whole),
        timestamp: answers.iter().filter_map(|answer| answer.timestamp).max(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_with_one_part_of_the_secondary_is_from_there() {
        let part = |location| Some(ETag::from("W/\"a\"").with_location_read_from(location));
        let (here, there) = (Location::Primary, Location::Secondary);
        for (parts, expected) in
            [([here, here], here), ([here, there], there), ([there, here], there)]
        {
            let joined = joined_etag(parts.into_iter().map(part)).unwrap();
            assert_eq!(
                (joined.location_read_from(), joined.to_string()),
                (expected, "W/\"a\" W/\"a\"".into())
            );
        }
        assert_eq!(joined_etag([part(there), None].into_iter()), None);
    }
}

//! Which rows may be reservations of a unique index in another partition, and what tells whose.

use crate::{entity::set::Members, key::Family, plan::outbox::OWNER_PROPERTIES};

/// Whether rows of the family may be reservations.
pub(crate) fn may_be_claimed(family: &Family) -> bool {
    family.unique && family.is_remote
}

/// The properties with what tells whose a reservation is, where rows of the family may be some.
pub(crate) fn with_owner(mut columns: Vec<String>, family: Option<&'static Family>) -> Vec<String> {
    if family.is_some_and(may_be_claimed) {
        columns.extend(OWNER_PROPERTIES.map(str::to_owned));
    }
    columns
}

/// A kind of copies of the set whose rows may be claimed.
pub(crate) fn claimed_family(members: &'static Members) -> Option<&'static Family> {
    let families = members.schemas().iter().flat_map(|schema| schema.families);
    families.into_iter().find(|family| may_be_claimed(family))
}

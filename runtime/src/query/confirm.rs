//! Confirms rows that were read through a unique remote index: a reserved row shows what its
//! primary derives now.

use super::{
    columns::{find_family_with_reservations, may_be_reserved},
    request::Request,
};
use crate::{
    entity::Schema,
    error::Result,
    filter::Filter,
    key::Family,
    plan::outbox::{CopyAddress, owner_of_copy, previous_owner, reserving_claim},
    row::Row,
    store::{
        derive::{OwnerHoldsKey, find_owner_holding_key},
        rows::Store,
    },
};

/// Returns a decrypted row of `family` as readers may see it: a reserved row is replaced by the
/// copy of the entity that derives its key. Returns `None` if no entity does.
pub(crate) async fn replace_if_reserved(
    store: &Store,
    table: &str,
    schema: &'static Schema,
    family: &'static Family,
    row: Row,
) -> Result<Option<Row>> {
    if !may_be_reserved(family) || reserving_claim(&row)?.is_none() {
        return Ok(Some(row));
    }
    let Some(kinds) = schema.find_remote_copy_family(family.name, |_| true) else {
        return Ok(Some(row));
    };
    let name = CopyAddress::for_copy_in_family(table, family, &row);
    let owner = owner_of_copy(&row, kinds, table)?;
    // The owner first: while a key changes hands, both may derive it.
    for place in owner.into_iter().chain(previous_owner(&row)?) {
        // Where the owner's table is missing there is nothing to show. Only who takes the key has to
        // tell that from a key that nobody holds.
        if let OwnerHoldsKey::Holds(held) =
            find_owner_holding_key(store, place.as_row_at(), schema, &name).await?
        {
            // With the ETag of the row that was read, under which a writer may change it.
            return Ok(Some(match row.etag() {
                Some(etag) => held.copy.with_etag(etag),
                None => held.copy,
            }));
        }
    }
    // Nobody derives the key, at least not yet: the transaction of the reservation may still fail.
    Ok(None)
}

impl Request {
    /// Replaces reserved rows by the copies that their primaries derive now, and leaves out those
    /// whose key no entity derives. Costs a read for each reserved row, and nothing for other rows.
    pub(crate) async fn replace_reserved_rows(&self, rows: Vec<Result<Row>>) -> Vec<Result<Row>> {
        let family = self.access.family.filter(|family| may_be_reserved(family));
        let may_have_reserved = match self.members {
            Some(members) => self.copies && find_family_with_reservations(members).is_some(),
            None => family.is_some(),
        };
        if !may_have_reserved {
            return rows;
        }
        let mut confirmed = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(row) => {
                    confirmed.extend(self.replace_reserved_row(family, row).await.transpose())
                }
                Err(error) => confirmed.push(Err(error)),
            }
        }
        confirmed
    }

    /// Confirms one row of a typed request or of a set.
    async fn replace_reserved_row(
        &self,
        family: Option<&'static Family>,
        row: Row,
    ) -> Result<Option<Row>> {
        let known = match (self.schema.zip(family), self.members) {
            (Some(known), _) => Some(known),
            (None, Some(members)) => members.match_row(&row)?.and_then(|matched| {
                let schema = members.schemas().get(matched.member_index())?;
                Some((*schema, matched.family()))
            }),
            (None, None) => None,
        };
        match known {
            Some((schema, family)) if reserving_claim(&row)?.is_some() => {
                let row =
                    replace_if_reserved(&self.store, &self.table, schema, family, row).await?;
                // The reserved row met the conditions; the copy that the primary derives may not.
                let wanted = match self.schema {
                    Some(_) => self.conditions_as_filter(family)?,
                    None => Filter::all(self.conditions.clone()),
                };
                Ok(row.map(|row| Ok(wanted.matches(&row)?.then_some(row))).transpose()?.flatten())
            }
            _ => Ok(Some(row)),
        }
    }
}

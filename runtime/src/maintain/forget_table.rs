//! Frees the unique keys that rows of a deleted table hold in the tables of remote indexes.
//!
//! A key is not free because the table of its owner does not exist. Somebody may create the table
//! again. Or the row names the table in lower case, as earlier releases did, and on a store where case
//! counts the table has another name. So only a program that knows that the table is deleted for good
//! can free its keys.

use crate::{
    address::RowAddress,
    batch::{Condition, Operation},
    entity::{CopyAndPrimaryFamily, RowKind, RowVersion, Schema},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    outbox::state::Outbox,
    plan::outbox::{CopyAddress, owner_of_copy, previous_owner, reservation_row, reserving_claim},
    row::Row,
    store::{
        backoff::{self, Attempt},
        derive::{ClaimState, OwnerHoldsKey, find_owner_holding_key, read_claim_state},
    },
    table::Client,
};

impl Client {
    /// Frees the keys that entities of a deleted table hold in remote indexes with tables of their
    /// own, and returns how many rows it deleted or gave to another entity. Give the name as these
    /// rows name it. Where case counts in names, rows of older versions of this library name the table
    /// in lower case.
    ///
    /// Before this call, a unique value of the deleted table's entities is refused as a violation,
    /// and workers leave the reservations of its entities alone. The call reads the index tables of
    /// the types that this client knows, those whose tables it has opened, from beginning to end.
    /// Entries of remote lists are left; a query passes over them.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// client.create_table("Staff2024").await?;
    /// client.delete_table("Staff2024").await?;
    /// assert_eq!(client.forget_table("Staff2024").await?, 0);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if the table exists, and with `is_contended` if writers keep changing
    /// a row.
    pub async fn forget_table(&self, name: &str) -> Result<u64> {
        let (outbox, store) = (&**self.outbox(), self.store());
        for table in self.tables().await? {
            if store.table_case().is_same_table(&table, name) {
                let message = "the table exists: delete it first";
                return Err(Error::new(ErrorKind::Conflict, message).in_table(name));
            }
            // A row that names its owner's table in the old form may mean any of them.
            store.known_tables.add_table(&table);
        }
        let mut freed = 0;
        for (table, schemas) in outbox.known_types.types_by_index_table() {
            let mut pages = store.pages(table, Filter::all([])).empty_without_table();
            while let Some(page) = pages.next_page().await? {
                for row in page.rows {
                    freed += u64::from(free_key(outbox, &schemas, row?, name).await?);
                }
            }
        }
        Ok(freed)
    }
}

/// Frees the key of a row if the row names the deleted table. Returns whether it did.
async fn free_key(
    outbox: &Outbox,
    schemas: &[&'static Schema],
    row: Row,
    name: &str,
) -> Result<bool> {
    for schema in schemas {
        let kind = schema.row_kind_of(&row, None)?;
        let RowKind::Copy(copy, RowVersion::Known(_)) = kind else { continue };
        let (true, Some(primary)) = (copy.is_remote, schema.primary_family_of_copy(copy)) else {
            continue;
        };
        let kinds = CopyAndPrimaryFamily { copy, primary, schema };
        let address = &CopyAddress::for_copy_in_family(schema.table, copy, &row);
        // The row as scanned decides only whether to look; each attempt reads it again.
        let named = NamedOwners::owners_named_in_row(&row, kinds)?;
        if !named.iter().any(|named| is_of(outbox, named, name)) {
            return Ok(false);
        }
        let freed = backoff::retry(&outbox.store.random, backoff::ATTEMPTS, || {
            free_key_once(outbox, kinds, address, name)
        });
        return freed.await?.ok_or_else(|| backoff::contended_error().at_row(address.as_row_at()));
    }
    Ok(false)
}

/// The primaries that a row names: its owner, and the primary that its key was taken over from.
struct NamedOwners {
    owner: Option<RowAddress>,
    previous: Option<RowAddress>,
}

impl NamedOwners {
    fn owners_named_in_row(row: &Row, kinds: CopyAndPrimaryFamily) -> Result<Self> {
        let owner = owner_of_copy(row, kinds, kinds.schema.table)?;
        Ok(Self { owner, previous: previous_owner(row)? })
    }

    fn iter(&self) -> impl Iterator<Item = &RowAddress> {
        self.owner.iter().chain(&self.previous)
    }
}

fn is_of(outbox: &Outbox, named: &RowAddress, table: &str) -> bool {
    outbox.store.table_case().is_same_table(&named.table, table)
}

/// Makes one attempt to free the key of the row at an address.
async fn free_key_once(
    outbox: &Outbox,
    kinds: CopyAndPrimaryFamily,
    address: &CopyAddress,
    name: &str,
) -> Result<Attempt<bool>> {
    let store = &outbox.store;
    // The deadline starts before the owners are read, as for every remote write.
    let deadline = outbox.start_deadline();
    let Some(found) = store.row_if_table_exists(address.as_row_at()).await? else {
        return Ok(Attempt::Done(false));
    };
    let named = NamedOwners::owners_named_in_row(&found, kinds)?;
    if !named.iter().any(|named| is_of(outbox, named, name)) {
        return Ok(Attempt::Done(false));
    }
    let seen = Condition::for_etag(found.etag());
    let Some(owner) = &named.owner else { return Ok(Attempt::Done(false)) };
    let claim = reserving_claim(&found)?;
    let written = if is_of(outbox, owner, name) {
        if let Some(id) = claim
            && read_claim_state(store, owner.as_row_at(), id).await? == ClaimState::Alive
        {
            // A table of another case has the claim, and its transaction may be committed.
            return Ok(Attempt::Done(false));
        }
        let mut operation =
            Operation::delete(found.partition_key(), found.row_key(), seen.clone())?;
        let mut kinds = kinds;
        // Owner first, then the entity that the key was taken from.
        for named in named.iter() {
            match find_owner_holding_key(store, named.as_row_at(), kinds.schema, address).await? {
                OwnerHoldsKey::Holds(copy) => {
                    operation = Operation::replace(copy.to_row()?, seen);
                    kinds = copy.kinds;
                    break;
                }
                OwnerHoldsKey::Nobody => {}
                OwnerHoldsKey::TableMissing if is_of(outbox, named, name) => {}
                // Another deleted table may have the key: it has to be forgotten as well.
                OwnerHoldsKey::TableMissing => return Ok(Attempt::Done(false)),
            }
        }
        deadline.write_copy(store, &address.row.table, kinds, operation).await
    } else {
        // The owner's own table exists: only the entity is forgotten that the key was taken from.
        let Some(id) = claim else { return Ok(Attempt::Done(false)) };
        let row = reservation_row(&found, id, None)?;
        // The row is written as it is stored: nothing of it is sealed again.
        deadline.write_unsealed(store, &address.row.table, Operation::replace(row, seen)).await
    };
    match written {
        Err(error) if error.lost_race() => Ok(Attempt::Raced),
        answer => answer.map(|_| Attempt::Done(true)),
    }
}

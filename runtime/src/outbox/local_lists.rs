//! The stage of local lists: reads the lists that a transaction changes.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::try_join_all;

use super::state::Outbox;
use crate::{
    error::{Error, Result},
    plan::{ChangedList, Effect, list_deltas},
    store::lists::read_local_list,
};

/// Reads every local list that the effects change. Returns each list with its change, by the RowKey of its head row.
pub(super) async fn read_changed_lists(
    outbox: &Outbox,
    table: &str,
    effects: &[Arc<Effect>],
) -> Result<BTreeMap<String, ChangedList>> {
    let partition_key = effects
        .iter()
        .find_map(|effect| effect.primary.first())
        .map(|operation| operation.row().partition_key())
        .unwrap_or_default();
    let lists = list_deltas(effects).into_iter().map(|(row_key, delta)| async move {
        let stored = read_local_list(&outbox.store, table, partition_key, &row_key).await?;
        Ok::<_, Error>((row_key, ChangedList { delta, stored }))
    });
    Ok(try_join_all(lists).await?.into_iter().collect())
}

//! Reads the row of a claim, to find out whether its transaction may still be committed.

use crate::{
    address::RowAt,
    error::Result,
    plan::outbox::{claim_row_key, is_claim_alive},
    row::Row,
    store::Store,
};

/// Whether the transaction that a claim row reserves unique keys for may still be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// The transaction of the claim may still be committed.
    Alive,
    /// The claim is marked dead, and its transaction can no longer be committed.
    Dead,
    /// The claim does not exist: its transaction was committed, it was resolved, or its table was deleted.
    Gone,
}

/// Reads the row of claim `id` and returns whether the claim is alive. `named` is the address of any row in the claim's
/// partition, such as the primary that claims a key. Its RowKey is not used.
pub(crate) async fn read_claim_state(
    store: &Store,
    named: RowAt<'_>,
    id: &str,
) -> Result<ClaimState> {
    read_claim_with_state(store, named, id).await.map(|(state, _)| state)
}

/// Reads the row of claim `id` as [`read_claim_state`] does, and returns it with its state.
pub(crate) async fn read_claim_with_state(
    store: &Store,
    named: RowAt<'_>,
    id: &str,
) -> Result<(ClaimState, Option<Row>)> {
    let row_key = claim_row_key(id);
    let claim = store.row_if_table_exists(named.with_row_key(&row_key)).await?;
    let state = match &claim {
        Some(claim) if is_claim_alive(claim)? => ClaimState::Alive,
        Some(_) => ClaimState::Dead,
        None => ClaimState::Gone,
    };
    Ok((state, claim))
}

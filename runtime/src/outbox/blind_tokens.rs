//! Builds changes and effects whose keys may need blind tokens, before they are committed.

use futures_util::future::BoxFuture;

use super::{state::Outbox, unreadable::drop_copies_of_other_owners};
use crate::{
    entity::Schema,
    error::Result,
    plan::{Change, Effect, TokenMaker},
};

/// Replaces the placeholders for blind tokens in the keys of a change. Fetches the blind token key only if there are
/// placeholders.
///
/// # Errors
///
/// Fails if the blind token key is not available, or if the keys cannot be completed.
pub(crate) async fn fill_tokens_of_change(
    outbox: &Outbox,
    table: &str,
    change: Change,
) -> Result<Change> {
    if !change.needs_tokens() {
        return Ok(change);
    }
    // Fetch the blind token key before any read: without it the keys are unknown.
    let filled = match outbox.store.shared_token_maker().await {
        Ok(tokens) => fill_tokens(outbox, &tokens, &change).await,
        Err(error) => Err(error),
    };
    filled.map_err(|error| error.in_table(table))
}

// In a function of its own, so that programs do not compile the lookup of keys.
pub(crate) fn fill_tokens_of_change_boxed<'c>(
    outbox: &'c Outbox,
    table: &'c str,
    change: Change,
) -> BoxFuture<'c, Result<Change>> {
    Box::pin(fill_tokens_of_change(outbox, table, change))
}

/// Adds blind tokens to the keys of all changes. Fetches the blind token key only if a change needs it.
///
/// # Errors
///
/// Fails if the blind token key is not available. Fails with the position of the change if a change's keys cannot be
/// completed.
pub(crate) async fn fill_tokens_of_changes(
    outbox: &Outbox,
    table: &str,
    mut changes: Vec<Change>,
) -> Result<Vec<Change>> {
    if !changes.iter().any(Change::needs_tokens) {
        return Ok(changes);
    }
    let tokens = outbox.store.shared_token_maker().await.map_err(|error| error.in_table(table))?;
    let lacking = changes.iter_mut().enumerate().filter(|(_, change)| change.needs_tokens());
    for (index, change) in lacking {
        *change = fill_tokens(outbox, &tokens, change)
            .await
            .map_err(|error| error.in_table(table).at_operation(index))?;
    }
    Ok(changes)
}

/// Adds blind tokens to the keys of a change, which may need the blind token key of another scope.
async fn fill_tokens(outbox: &Outbox, tokens: &TokenMaker, change: &Change) -> Result<Change> {
    outbox.store.run_with_blind_token_keys(tokens, || change.with_tokens(tokens)).await
}

/// Plans the effect on a stored entity whose rows may have blind tokens in their keys. Calls `plan` with the
/// maker of these tokens, and again after fetching blind token keys that the maker lacked.
pub(crate) async fn plan_effect_with_tokens(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    plan: impl Fn(TokenMaker) -> Result<Effect>,
) -> Result<Effect> {
    let tokens = outbox.store.token_maker_of_type(schema).await?;
    plan_effect_with_token_maker(outbox, table, &tokens, || plan(tokens.clone())).await
}

/// Plans an effect as [`plan_effect_with_tokens`] does, with an existing token maker.
pub(crate) async fn plan_effect_with_token_maker(
    outbox: &Outbox,
    table: &str,
    tokens: &TokenMaker,
    plan: impl FnMut() -> Result<Effect>,
) -> Result<Effect> {
    let effect = outbox.store.run_with_blind_token_keys(tokens, plan).await?;
    if effect.is_old_unconfirmed {
        // Boxed because it is rare, and the future of every commit would reserve space for it.
        Box::pin(drop_copies_of_other_owners(outbox, table, effect)).await
    } else {
        Ok(effect)
    }
}

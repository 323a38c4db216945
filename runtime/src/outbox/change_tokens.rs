//! Makes changes and effects whose keys may need blind tokens, before they are committed.

use super::{state::Outbox, unreadable::confirm_old_copies};
use crate::{
    entity::Schema,
    error::Result,
    plan::{Change, Effect, TokenMaker, Unresolved, VerbWithoutTokens},
};

/// Puts blind tokens in place of their placeholders in the keys of a verb. Fetches the index key
/// only if there are placeholders.
///
/// # Errors
///
/// Fails if the index key cannot be had, or if the keys cannot be completed.
pub(crate) async fn fill_tokens_of_change(
    outbox: &Outbox,
    table: &str,
    verb: Unresolved,
) -> Result<Change> {
    let verb = match verb {
        Unresolved::Ready(change) => return Ok(change),
        Unresolved::NeedsTokens(verb) => verb,
    };
    // The index key is fetched before any read: without it the keys are unknown.
    let change = match outbox.store.shared_token_maker().await {
        Ok(tokens) => fill_tokens_of_verb(outbox, &tokens, &verb).await,
        Err(error) => Err(error),
    };
    change.map_err(|error| error.in_table(table))
}

/// Puts blind tokens into the keys of all verbs. Fetches the index key only if a verb needs blind
/// tokens.
///
/// # Errors
///
/// Fails if the index key cannot be had, or with the index of the verb whose keys cannot be
/// completed.
pub(crate) async fn fill_tokens_of_changes(
    outbox: &Outbox,
    table: &str,
    verbs: Vec<Unresolved>,
) -> Result<Vec<Change>> {
    let tokens = match verbs.iter().any(Unresolved::needs_tokens) {
        true => outbox.store.shared_token_maker().await.map_err(|error| error.in_table(table))?,
        false => TokenMaker::without_keys(),
    };
    let mut changes = Vec::with_capacity(verbs.len());
    for (index, verb) in verbs.into_iter().enumerate() {
        changes.push(match verb {
            Unresolved::Ready(change) => change,
            Unresolved::NeedsTokens(verb) => fill_tokens_of_verb(outbox, &tokens, &verb)
                .await
                .map_err(|error| error.in_table(table).at_operation(index))?,
        });
    }
    Ok(changes)
}

/// Puts blind tokens into the keys of a verb, which may need the index key of another scope.
async fn fill_tokens_of_verb(
    outbox: &Outbox,
    tokens: &TokenMaker,
    verb: &VerbWithoutTokens,
) -> Result<Change> {
    outbox.store.run_with_index_keys(tokens, || verb.clone().fill_tokens(tokens)).await
}

/// Plans the effect on a stored entity of the type, whose rows may have blind tokens in their keys. Calls
/// `plan` with the maker of these tokens, and once more after it has fetched index keys that the maker
/// lacked.
pub(crate) async fn plan_effect_with_tokens(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    plan: impl Fn(TokenMaker) -> Result<Effect>,
) -> Result<Effect> {
    let tokens = outbox.store.token_maker_of_type(schema).await?;
    plan_effect(outbox, table, &tokens, || plan(tokens.clone())).await
}

/// Plans an effect as [`plan_effect_with_tokens`] does, with a maker of tokens that exists already.
pub(crate) async fn plan_effect(
    outbox: &Outbox,
    table: &str,
    tokens: &TokenMaker,
    plan: impl FnMut() -> Result<Effect>,
) -> Result<Effect> {
    let effect = outbox.store.run_with_index_keys(tokens, plan).await?;
    match effect.is_old_unconfirmed {
        // Boxed: it is rare, and the future of a commit would have room for it.
        true => Box::pin(confirm_old_copies(outbox, table, effect)).await,
        false => Ok(effect),
    }
}

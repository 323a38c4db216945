//! The stage that determines the effects of changes. Reads the stored primary of each change that depends on it.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::{
    blind_tokens::plan_effect_with_token_maker, expired::ExpiredRowsInTheWay, state::Outbox,
};
use crate::{
    error::Result,
    plan::{Change, Effect, EffectOrVerb},
};

/// Returns the effects of changes in order. An insert whose key was occupied by an expired row in `expired`
/// replaces that row.
pub(super) async fn effects_of_changes(
    outbox: &Outbox,
    table: &str,
    changes: &[Change],
    expired: &ExpiredRowsInTheWay,
) -> Result<Vec<Arc<Effect>>> {
    let effects = changes.iter().enumerate().map(|(verb, change)| async move {
        match expired.effect_replacing_expired_row(verb) {
            Some(effect) => Ok(effect),
            None => effect_of_change(outbox, table, verb, change).await,
        }
    });
    try_join_all(effects).await
}

/// Returns the effect of a change. Reads the primary first if the change depends on it.
async fn effect_of_change(
    outbox: &Outbox,
    table: &str,
    index: usize,
    change: &Change,
) -> Result<Arc<Effect>> {
    let verb = match change.effect_or_verb() {
        EffectOrVerb::Effect(effect) => return Ok(effect.clone()),
        EffectOrVerb::Verb(verb) => verb,
    };
    // Read again in each attempt, because the effect depends on the primary.
    let (keys, may_end_torn) = (verb.keys(), verb.may_end_torn_entity());
    let row = outbox.store.read_to_overwrite(table, keys, verb.schema(), may_end_torn).await?;
    let plan = || verb.effect_on_primary(row.as_ref());
    let effect = plan_effect_with_token_maker(outbox, table, verb.token_maker(), plan).await;
    effect.map(Arc::new).map_err(|error| error.in_table(table).at_operation(index))
}

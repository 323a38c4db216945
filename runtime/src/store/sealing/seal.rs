//! Rows on their way to the store.

#[cfg(feature = "encrypt")]
use std::sync::Arc;

#[cfg(feature = "encrypt")]
use super::plan::{How, Intent, looks_sealed, text_of};
use super::{Vault, keyless, plan::Placed};
use crate::{batch::Operation, error::Result};
#[cfg(feature = "encrypt")]
use crate::{
    edm::ValueRef,
    entity::SEAL,
    error::{Error, ErrorKind},
    plan::{BITS, Home, Tokens},
    row::{Row, RowBuilder},
    seal::{DataKey, IndexKey, KeyScope, ValueBinding, properties_of},
};

#[cfg(not(feature = "encrypt"))]
impl Vault {
    /// What makes the tokens of keys.
    #[allow(clippy::unused_async, reason = "the other form asks for keys")]
    pub(crate) async fn tokens(&self) -> Result<crate::plan::Tokens> {
        Err(keyless("the entity's keys have tokens, which need the feature `encrypt`"))
    }

    /// The operations as they are sent.
    #[allow(clippy::unused_async, reason = "the other form asks for keys")]
    pub(crate) async fn seal(&self, _: &str, placed: Vec<Placed>) -> Result<Vec<Operation>> {
        for placed in &placed {
            if !self.intent(placed)?.is_nothing() {
                return Err(keyless(
                    "the entity has encrypted properties, which need the feature `encrypt`",
                ));
            }
        }
        Ok(placed.into_iter().map(|placed| placed.operation).collect())
    }
}

#[cfg(feature = "encrypt")]
impl Vault {
    /// The operations as they are sent: each row is sealed for its own keys. They are of one
    /// partition.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` without a key, `is_too_large` for a value that is too large when sealed;
    /// nothing is written in the clear instead.
    pub(crate) async fn seal(&self, table: &str, placed: Vec<Placed>) -> Result<Vec<Operation>> {
        let mut intents = Vec::with_capacity(placed.len());
        for placed in &placed {
            let intent = self.intent(placed)?;
            self.check_plain(placed, &intent)?;
            intents.push(intent);
        }
        if intents.iter().all(Intent::is_nothing) {
            return Ok(placed.into_iter().map(|placed| placed.operation).collect());
        }
        let keys = self.keys.as_ref().ok_or_else(|| keyless("a property is to be encrypted"))?;
        let partition_key =
            placed.first().map_or("", |placed| placed.operation.row().partition_key());
        let scope = keys.scope_of(partition_key);
        let key = keys.primary(&scope).await?;
        let index = match intents.iter().any(Intent::has_companions) {
            true => Some(self.index_key(None).await?),
            false => None,
        };
        let sealed = placed.into_iter().zip(intents).map(|(placed, intent)| {
            if intent.is_nothing() {
                return Ok(placed.operation);
            }
            let (table, own) = match placed.home {
                Home::Entity(schema, family) => (schema.bound_table(Some(family)), schema.table),
                Home::Untyped | Home::Framework => (table, table),
            };
            let sealer = Sealer { table, own, key: &key, index: index.as_deref() };
            let row = sealer.row(placed.operation.row(), &intent)?;
            Ok(placed.operation.with_row(row))
        });
        sealed.collect()
    }

    /// What makes the tokens of keys.
    pub(crate) async fn tokens(&self) -> Result<Tokens> {
        self.index_key(None).await.map(Tokens::with)
    }

    /// The key for tokens, which are alike in all partitions: of a version, or the one in use.
    pub(crate) async fn index_key(&self, version: Option<u32>) -> Result<Arc<IndexKey>> {
        let keys = self.keys.as_ref().ok_or_else(|| keyless("a token is to be made"))?;
        keys.index(&KeyScope::default_scope(), version).await
    }

    /// Plain bytes that begin as sealed ones do could not be read back.
    fn check_plain(&self, placed: &Placed, intent: &Intent) -> Result<()> {
        if self.keys.is_none() || matches!(placed.home, Home::Framework) {
            return Ok(());
        }
        let row = placed.operation.row();
        let mut properties = row.properties();
        let mut each = intent.each.iter();
        while let Some((name, value)) = properties.next()? {
            if each.next().and_then(Option::as_ref).is_none() && looks_sealed(value) {
                let message = "the bytes begin as a sealed value does, and would be taken for one when they are read";
                return Err(Error::new(ErrorKind::Invalid, message)
                    .in_property(text_of(name)?)
                    .at_keys(row.partition_key(), row.row_key()));
            }
        }
        Ok(())
    }
}

/// What seals the rows of one transaction.
#[cfg(feature = "encrypt")]
struct Sealer<'k> {
    table: &'k str,
    /// The table that tokens are of: the entity's, for a copy in a table of its own too.
    own: &'k str,
    key: &'k DataKey,
    index: Option<&'k IndexKey>,
}

#[cfg(feature = "encrypt")]
impl Sealer<'_> {
    fn row(&self, row: &Row, intent: &Intent) -> Result<Row> {
        let place = |property| ValueBinding {
            table: self.table,
            partition_key: row.partition_key(),
            row_key: row.row_key(),
            property,
        };
        let mut out = Row::build(row.partition_key(), row.row_key());
        let mut properties = row.properties();
        let mut each = intent.each.iter();
        while let Some((name, value)) = properties.next()? {
            let name = text_of(name)?;
            match each.next().and_then(Option::as_ref) {
                None => out.put(name, value),
                Some(how) => self.put(&mut out, &place(name), Some(value), how)?,
            }
        }
        for (name, how) in &intent.absent {
            self.put(&mut out, &place(name), None, how)?;
        }
        if !intent.vouched {
            return out.finish();
        }
        let whole = out.clone().finish()?;
        let seal = self.key.seal(&place(SEAL), &properties_of(&whole)?)?;
        out.put(SEAL, ValueRef::Binary(&seal));
        out.finish()
    }

    fn put(
        &self,
        out: &mut RowBuilder,
        place: &ValueBinding<'_>,
        value: Option<ValueRef<'_>>,
        how: &How,
    ) -> Result<()> {
        let envelope = self.key.encrypt(place, value, how.pad)?;
        out.put(place.property, ValueRef::Binary(&envelope));
        if let (Some((name, chars)), Some(value), Some(index)) = (&how.companion, value, self.index)
        {
            let token =
                index.short_token(self.own, place.property, value, chars.saturating_mul(BITS));
            out.put(name, ValueRef::String(&token));
        }
        Ok(())
    }
}

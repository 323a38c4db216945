//! Encrypts rows before they are sent.

use std::{collections::HashMap, sync::Arc};

use super::{
    RowSealer, no_keys_error,
    plan::{OperationToSeal, PropertyEncryption, SealPlan, would_read_as_encrypted},
};
use crate::{
    batch::Operation,
    edm::ValueRef,
    entity::SEAL,
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    plan::{StoredAs, TOKEN_CHARACTER_BITS, TokenMaker, blind_token_scope},
    row::{Row, RowBuilder, property_name_from_utf8},
    seal::{BlindTokenKey, DataKey, KeyScope, ValueBinding, properties_to_seal},
};

impl RowSealer {
    /// Encrypts each row for its own keys and returns the operations to send. All rows must be in one partition.
    ///
    /// # Errors
    ///
    /// Fails with `is_key_unavailable` without a key, and with `is_too_large` if a value is too large after encryption.
    /// Never falls back to plain values.
    pub(crate) async fn seal_operations(
        &self,
        table: &str,
        to_seal: Vec<OperationToSeal>,
    ) -> Result<Vec<Operation>> {
        if to_seal.iter().all(|to_seal| self.stores_unchanged(to_seal)) {
            return Ok(to_seal.into_iter().map(|to_seal| to_seal.operation).collect());
        }
        let mut plans = Vec::with_capacity(to_seal.len());
        for to_seal in &to_seal {
            let plan = self.plan_seal(to_seal)?;
            // Before any key is fetched: a refused row costs no request.
            self.refuse_envelope_like_values(to_seal, &plan)?;
            if let (StoredAs::Entity(schema, family), false) = (to_seal.stored_as, plan.is_empty())
            {
                self.check_copy_before_sealing(schema, family, to_seal.operation.row())?;
            }
            plans.push(plan);
        }
        // Nothing to encrypt: fetch no key, which also lets a client without keys write.
        if plans.iter().all(SealPlan::is_empty) {
            return Ok(to_seal.into_iter().map(|to_seal| to_seal.operation).collect());
        }
        let keys =
            self.keys.as_ref().ok_or_else(|| no_keys_error("a property must be encrypted"))?;
        let partition_key =
            to_seal.first().map_or("", |to_seal| to_seal.operation.row().partition_key());
        let scope = keys.scope_of(partition_key);
        // One key for the whole transaction: all its rows are in one partition and therefore in one scope.
        let key = keys.primary(&scope).await?;
        let blind_token_keys = self.blind_token_keys_of(&to_seal, &plans).await?;
        let sealed = to_seal.into_iter().zip(plans).map(|(to_seal, plan)| {
            if plan.is_empty() {
                return Ok(to_seal.operation);
            }
            let (table, own) = match to_seal.stored_as {
                StoredAs::Entity(schema, family) => {
                    (schema.table_for_encryption(Some(family)), schema.table)
                }
                StoredAs::Untyped | StoredAs::Framework => (table, table),
            };
            let scope =
                if plan.makes_tokens() { self.token_scope_of_operation(&to_seal) } else { None };
            let index = scope.and_then(|scope| blind_token_keys.get(&scope)).map(|key| &**key);
            let sealer = TransactionSealer { table, own, key: &key, index };
            let row = sealer.seal_row(to_seal.operation.row(), &plan)?;
            Ok(to_seal.operation.with_row(row))
        });
        sealed.collect()
    }

    /// Returns whether a row can be stored unchanged without further checks: its type encrypts nothing, and the
    /// client has neither keys nor an `encrypt_if`.
    fn stores_unchanged(&self, to_seal: &OperationToSeal) -> bool {
        let declared = to_seal.stored_as.type_and_family();
        self.keys.is_none()
            && self.encrypt_if.is_none()
            && to_seal.kept_version.is_none()
            && to_seal.operation.row().encrypted_names().is_empty()
            && declared.is_none_or(|(schema, _)| !schema.is_sealed())
    }

    /// Returns the maker of blind tokens in keys. It has the blind token key that all partitions share. If scopes have
    /// their own keys, it has none yet.
    pub(crate) async fn shared_token_maker(&self) -> Result<TokenMaker> {
        if let Some(keys) = self.keys.as_ref().filter(|keys| keys.has_blind_token_key_per_scope()) {
            return Ok(TokenMaker::with_key_per_scope(keys.clone()));
        }
        self.fetch_blind_token_key(&KeyScope::default_scope(), None)
            .await
            .map(TokenMaker::with_single_key)
    }

    /// Returns the scope whose blind token key makes the blind tokens of a row.
    pub(crate) fn blind_token_scope(&self, family: &RowFamily, partition_key: &str) -> KeyScope {
        let keys = self.keys.as_ref();
        keys.map_or_else(KeyScope::default_scope, |keys| {
            blind_token_scope(&**keys, family, partition_key)
        })
    }

    /// Fetches a blind token key of a scope: the given version, or for `None` the version that makes new blind tokens.
    pub(crate) async fn fetch_blind_token_key(
        &self,
        scope: &KeyScope,
        version: Option<u32>,
    ) -> Result<Arc<BlindTokenKey>> {
        let keys = self.keys.as_ref().ok_or_else(|| no_keys_error("a blind token must be made"))?;
        keys.fetch_blind_token_key(scope, version).await
    }

    /// Fetches the blind token keys for the short blind tokens of rows in one partition. These rows have one scope,
    /// unless some have a blind token in the PartitionKey.
    async fn blind_token_keys_of(
        &self,
        to_seal: &[OperationToSeal],
        plans: &[SealPlan],
    ) -> Result<HashMap<KeyScope, Arc<BlindTokenKey>>> {
        let mut keys = HashMap::new();
        let making = to_seal.iter().zip(plans).filter(|(_, plan)| plan.makes_tokens());
        for (to_seal, _) in making {
            if let Some(scope) = self.token_scope_of_operation(to_seal)
                && !keys.contains_key(&scope)
            {
                let key = self.fetch_blind_token_key(&scope, None).await?;
                keys.insert(scope, key);
            }
        }
        Ok(keys)
    }

    /// Returns the scope whose blind token key makes the short blind tokens of a row, or `None` for a row without a
    /// declared type.
    fn token_scope_of_operation(&self, to_seal: &OperationToSeal) -> Option<KeyScope> {
        let (_, family) = to_seal.stored_as.type_and_family()?;
        Some(self.blind_token_scope(family, to_seal.operation.row().partition_key()))
    }

    /// Refuses plain bytes that begin like an encrypted value, because they could not be read back.
    fn refuse_envelope_like_values(
        &self,
        to_seal: &OperationToSeal,
        plan: &SealPlan,
    ) -> Result<()> {
        if self.keys.is_none() || matches!(to_seal.stored_as, StoredAs::Framework) {
            return Ok(());
        }
        let row = to_seal.operation.row();
        let mut properties = row.properties();
        let mut each = plan.each.iter();
        while let Some((name, value)) = properties.next()? {
            if each.next().and_then(Option::as_ref).is_none() && would_read_as_encrypted(value) {
                let message = "the bytes begin like a sealed value and would be read as one; choose another beginning";
                return Err(Error::new(ErrorKind::Invalid, message)
                    .in_property(property_name_from_utf8(name)?)
                    .at_keys(row.partition_key(), row.row_key()));
            }
        }
        Ok(())
    }
}

/// Encrypts the rows of one transaction.
struct TransactionSealer<'k> {
    table: &'k str,
    /// The table that blind tokens are bound to: the entity's own, even for a copy in another table.
    own: &'k str,
    key: &'k DataKey,
    index: Option<&'k BlindTokenKey>,
}

impl TransactionSealer<'_> {
    fn seal_row(&self, row: &Row, plan: &SealPlan) -> Result<Row> {
        let place = |property| ValueBinding {
            table: self.table,
            partition_key: row.partition_key(),
            row_key: row.row_key(),
            property,
        };
        let mut out = Row::build(row.partition_key(), row.row_key());
        let mut properties = row.properties();
        let mut each = plan.each.iter();
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            match each.next().and_then(Option::as_ref) {
                None => out.put(name, value),
                Some(column) => self.put_sealed(&mut out, &place(name), Some(value), column)?,
            }
        }
        for (name, column) in &plan.absent {
            self.put_sealed(&mut out, &place(name), None, column)?;
        }
        if !plan.has_seal {
            return out.finish();
        }
        // The seal covers every other property, so it is made last.
        let whole = out.clone().finish()?;
        let seal = self.key.seal(&place(SEAL), &properties_to_seal(&whole)?)?;
        out.put(SEAL, ValueRef::Binary(&seal));
        out.finish()
    }

    fn put_sealed(
        &self,
        out: &mut RowBuilder,
        place: &ValueBinding<'_>,
        value: Option<ValueRef<'_>>,
        column: &PropertyEncryption,
    ) -> Result<()> {
        let envelope = self.key.encrypt(place, value, column.pad)?;
        out.put(place.property, ValueRef::Binary(&envelope));
        if let (Some((name, chars)), Some(value), Some(index)) =
            (&column.companion, value, self.index)
        {
            let token = index.short_token(
                self.own,
                place.property,
                value,
                chars.saturating_mul(TOKEN_CHARACTER_BITS),
            );
            out.put(name, ValueRef::String(&token));
        }
        Ok(())
    }
}

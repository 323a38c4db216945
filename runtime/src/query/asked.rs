//! What a request asks the service for: its path and conditions, with the tokens that they need.

use super::{
    encrypted_filter::{has_blind, no_token},
    request::{Request, SYSTEM},
};
use crate::{
    edm::Value,
    entity::{Access, Discriminator},
    error::{Error, ErrorKind, Result},
    filter::Filter,
};

impl Request {
    /// The condition on the token that stands beside a property.
    pub(crate) fn companion(&self, property: &str, token: &str) -> Result<Filter> {
        let column = self.schema.and_then(|schema| schema.sealed_column(property));
        match column.and_then(|column| column.companion) {
            Some((name, _)) => Ok(Filter::eq(name, token)),
            None => Err(no_token(property)),
        }
    }

    /// Refuses a condition that is known to ask for what is stored encrypted.
    pub(crate) fn check_plain(&self, condition: &Filter) -> Result<()> {
        let mut refused = Ok(());
        condition.visit_properties(&mut |property| {
            let is_declared = || {
                self.members.is_some_and(|members| {
                    members.schemas().iter().any(|schema| schema.sealed_column(property).is_some())
                })
            };
            if is_declared() || self.is_chosen(property) {
                let message = "the property is stored encrypted, which a filter cannot look into; compare it after it was read";
                refused = Err(Error::new(ErrorKind::Invalid, message).in_property(property));
            }
        });
        refused
    }

    /// Whether the client chooses to encrypt a property, as far as the path tells of its rows. A
    /// column that the entity declares so has conditions of its own.
    fn is_chosen(&self, property: &str) -> bool {
        let marker = match self.schema.map(|schema| schema.discriminator) {
            Some(Discriminator::Property(name)) => name,
            Some(Discriminator::RowKey) => "",
            None => "EntityType",
        };
        let is_declared = self.schema.is_some_and(|of| of.sealed_column(property).is_some());
        let partition_key = self.access.keys.partition.as_deref().unwrap_or_default();
        !is_declared
            && property != marker
            && !SYSTEM.contains(&property)
            && self.store.sealing.chooses(partition_key, "", property)
    }

    /// The path with the tokens of its keys.
    pub(crate) async fn keyed(&self, access: &Access) -> Result<Access> {
        match self.schema.or(self.tokens) {
            Some(schema) if access.is_open() => self.store.tokens().await?.path(schema, access),
            _ if access.is_open() => {
                let message =
                    "the path has a token in its keys, which only a query of its own type can make";
                Err(Error::new(ErrorKind::Invalid, message))
            }
            _ => Ok(access.clone()),
        }
    }

    /// What rows have to meet once they are open, where the service is asked for more.
    pub(crate) fn after_opening(&self) -> Result<Option<Filter>> {
        if self.is_list() || !self.conditions.iter().any(has_blind) {
            return Ok(None);
        }
        self.condition_on(self.access.family.map_or_else(
            || match self.schema {
                Some(schema) => schema.primary(),
                None => Err(Error::new(ErrorKind::Invalid, "the path has no rows")),
            },
            Ok,
        )?)
        .map(Some)
    }

    /// The filter with all tokens that it needs.
    pub(crate) async fn sent_filter(&self) -> Result<Filter> {
        let access = self.keyed(&self.access).await?;
        if !self.conditions.iter().any(has_blind) {
            return self.filter_of(&access, &|property, _| Err(no_token(property)));
        }
        let tokens = self.store.tokens().await?;
        let token = |property: &str, value: &Value| {
            let column = self.schema.and_then(|schema| schema.sealed_column(property));
            let companion = column.and_then(|column| column.companion);
            let (Some(schema), Some((name, chars))) = (self.schema, companion) else {
                return Err(no_token(property));
            };
            let token = tokens.short(schema.table, property, value.as_ref(), chars)?;
            Ok(Filter::eq(name, token))
        };
        self.filter_of(&access, &token)
    }
}

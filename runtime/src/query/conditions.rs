//! Builds the filter of a request from key bounds, type condition and the caller's conditions.

use super::{
    columns::SYSTEM,
    encrypted_filter::{
        MakeTokenCondition, distinguishing_text, has_encrypted_condition, no_token_error,
        wider_filter_with_tokens,
    },
    plan::ItemParts,
    request::{Request, TOKEN_IN_EXPLAIN},
};
use crate::{
    access::Keys,
    edm::Value,
    entity::{Schema, TYPE_NAME, UntypedPath},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::RowFamily,
    plan::{
        self,
        wide::{self, WidePartsRead},
    },
};

/// The filter that a request sends, and the part of the query that is not in the filter.
pub(crate) struct SentFilter {
    pub(crate) filter: Filter,
    /// Distinguishes queries that send equal filters. Empty if the filter contains the whole query.
    pub(crate) unsent: String,
}

impl Request {
    /// Returns the filter for `explain`, with a placeholder for each blind token.
    pub(crate) fn filter_to_explain(&self, parts: ItemParts) -> Result<Filter> {
        let token = |property: &str, _: &Value| self.token_condition(property, TOKEN_IN_EXPLAIN);
        self.filter_of(&self.access, parts, &token)
    }

    /// Combines key bounds, type condition and the caller's conditions into one filter.
    fn filter_of(
        &self,
        access: &UntypedPath,
        parts: ItemParts,
        token: MakeTokenCondition<'_>,
    ) -> Result<Filter> {
        let keys = access.checked_keys()?;
        let mut filter = match parts {
            ItemParts::OfType(schema, _) => wide::bounds_with_all_parts(schema, keys).filter(),
            ItemParts::Single | ItemParts::OfMembers(_) => keys.filter(),
        };
        if let Some(condition) = self.type_condition(parts) {
            filter = filter.and_all(condition);
        }
        // A list contains ids, and the conditions apply to its entities.
        let conditions = if self.reads_list() { &[] } else { self.conditions.as_slice() };
        for condition in conditions {
            let condition = plan::rewrite_key_conditions(condition, access)?;
            let condition = match parts {
                ItemParts::OfType(schema, _) => wide::condition_on_all_parts(schema, &condition),
                ItemParts::Single | ItemParts::OfMembers(_) => condition,
            };
            self.refuse_encrypted(&condition)?;
            filter = filter.and_all(wider_filter_with_tokens(&condition, token)?);
        }
        Ok(filter)
    }

    /// Returns only the caller's conditions, as a filter on the properties that rows of `family` store.
    pub(crate) fn conditions_as_filter(&self, family: &'static RowFamily) -> Result<Filter> {
        let access = UntypedPath::of_keys(Some(family), Keys::whole_table());
        let mut filter = Filter::Constant(true);
        for condition in &self.conditions {
            filter = filter.and_all(plan::rewrite_key_conditions(condition, &access)?);
        }
        Ok(filter)
    }

    /// Returns the condition on the blind token that is stored with an encrypted property.
    fn token_condition(&self, property: &str, token: &str) -> Result<Filter> {
        let column = self.schema.and_then(|schema| schema.sealed_column(property));
        match column.and_then(|column| column.companion) {
            Some((name, _)) => Ok(Filter::eq(name, token)),
            None => Err(no_token_error(property)),
        }
    }

    /// Refuses a condition on an encrypted property, for which the service would compare encrypted bytes and
    /// find nothing.
    fn refuse_encrypted(&self, condition: &Filter) -> Result<()> {
        let mut refused = Ok(());
        condition.visit_properties(&mut |property| {
            let is_declared = || {
                self.members.is_some_and(|members| {
                    members.schemas().iter().any(|schema| schema.sealed_column(property).is_some())
                })
            };
            if is_declared() || self.is_property_chosen(property) {
                let message = "the property is stored encrypted, so a filter cannot compare it; compare it after \
                               reading";
                refused = Err(Error::new(ErrorKind::Invalid, message).in_property(property));
            }
        });
        refused
    }

    /// Returns whether the client's `encrypt_if` encrypts a property in the rows that the path reads. Returns
    /// `false` for a property that is declared as encrypted, because a condition on it compares its blind token.
    fn is_property_chosen(&self, property: &str) -> bool {
        let type_property = self.schema.map_or(Some(TYPE_NAME), Schema::type_property);
        let is_declared = self.schema.is_some_and(|of| of.sealed_column(property).is_some());
        let partition_key = self.access.keys.partition.as_deref().unwrap_or_default();
        !is_declared
            && type_property != Some(property)
            && !SYSTEM.contains(&property)
            && self.store.sealing.is_undeclared_property_chosen(partition_key, "", property)
    }

    /// Returns the caller's conditions as they apply to decrypted rows.
    pub(crate) fn filter_on_opened_rows(&self) -> Result<Filter> {
        match (self.schema, self.members) {
            (Some(schema), _) => {
                self.conditions_as_filter(self.family().map_or_else(|| schema.primary(), Ok)?)
            }
            (None, Some(_)) => Ok(Filter::all(self.conditions.clone())),
            (None, None) => Err(Error::new(ErrorKind::Invalid, "the path has no rows")),
        }
    }

    /// Returns whether decrypted rows must be compared with the caller's conditions, because the filter that
    /// is sent compares blind tokens and finds more rows.
    pub(crate) fn compares_opened_rows(&self) -> bool {
        !self.reads_list() && self.conditions.iter().any(has_encrypted_condition)
    }

    /// Returns whether the request finds rows through blind tokens, in its path or in a condition.
    pub(crate) fn looks_up_by_token(&self) -> bool {
        self.access.needs_key_tokens() || self.conditions.iter().any(has_encrypted_condition)
    }

    /// Returns the filter with its blind tokens, and a text that distinguishes this query from others with an
    /// equal filter.
    fn filter_with_unsent(
        &self,
        access: &UntypedPath,
        parts: ItemParts,
        token: MakeTokenCondition<'_>,
    ) -> Result<SentFilter> {
        let filter = self.filter_of(access, parts, token)?;
        let mut unsent = String::new();
        for condition in &self.conditions {
            // The ids in a list are not compared, only its entities. The filter omits an encrypted condition under a
            // negation.
            if self.reads_list() || has_encrypted_condition(condition) {
                unsent.push('\u{0}');
                unsent.push_str(&distinguishing_text(condition, token)?);
            }
        }
        if let Some(names) = &self.select_of_entities {
            unsent.push('\u{1}');
            unsent.push_str(&names.join(","));
        }
        Ok(SentFilter { filter, unsent })
    }

    /// Returns the filter to send, with its blind tokens. Returns `None` if it cannot match, because all keys of
    /// the scopes are permanently deleted. `access` is the path with the blind tokens of its keys.
    pub(crate) async fn filter_to_send(
        &self,
        access: &UntypedPath,
        parts: ItemParts,
    ) -> Result<Option<SentFilter>> {
        if self.conditions.iter().any(has_encrypted_condition) {
            return self.filter_with_tokens(access, parts).await;
        }
        self.filter_without_tokens(access, parts).map(Some)
    }

    /// Returns the filter to send for a request without conditions on encrypted properties.
    pub(crate) fn filter_without_tokens(
        &self,
        access: &UntypedPath,
        parts: ItemParts,
    ) -> Result<SentFilter> {
        let token = |property: &str, _: &Value| Err(no_token_error(property));
        self.filter_with_unsent(access, parts, &token)
    }

    /// Returns the filter to send for a request with conditions on encrypted properties.
    async fn filter_with_tokens(
        &self,
        access: &UntypedPath,
        parts: ItemParts,
    ) -> Result<Option<SentFilter>> {
        let tokens = self.store.shared_token_maker().await?;
        let asked = tokens.scope_of_path_or_query_scopes(access, &self.scopes)?;
        let mut scopes = Vec::with_capacity(asked.len());
        for scope in &asked {
            let key = self
                .store
                .run_with_blind_token_keys(&tokens, || tokens.check_blind_token_key_of_scope(scope))
                .await;
            match key {
                Err(error)
                    if self.store.is_lookup_of_shredded_scope(&error, access, scope).await => {}
                // Kept: making the token fails with the same error, which the caller then receives.
                _ => scopes.push(scope),
            }
        }
        let token = |property: &str, value: &Value| {
            let column = self.schema.and_then(|schema| schema.sealed_column(property));
            let companion = column.and_then(|column| column.companion);
            let (Some(schema), Some((name, chars))) = (self.schema, companion) else {
                return Err(no_token_error(property));
            };
            // The rows may belong to any of the scopes, so a match with one of the tokens is enough.
            let mut terms = Vec::with_capacity(scopes.len());
            for &scope in &scopes {
                let token =
                    tokens.property_token(scope, schema.table, property, value.as_ref(), chars)?;
                terms.push(Filter::eq(&*name, token));
            }
            Ok(Filter::any(terms))
        };
        let filter = self
            .store
            .run_with_blind_token_keys(&tokens, || self.filter_with_unsent(access, parts, &token))
            .await?;
        // Every requested scope is shredded, so no row can match a condition that needs a token.
        let finds_nothing = scopes.is_empty() && self.needs_a_token(&token)?;
        Ok((!finds_nothing).then_some(filter))
    }

    /// Returns whether a condition cannot match because it needs a blind token. Called if all scopes are
    /// shredded; `token` then returns a filter that matches nothing.
    fn needs_a_token(&self, token: MakeTokenCondition<'_>) -> Result<bool> {
        for condition in &self.conditions {
            if wider_filter_with_tokens(condition, token)? == Filter::Constant(false) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the filter alone selects the rows of the queried type: it compares the type, and the type
    /// has a single version. The type property then need not be read. Expired rows, reserved copies and rows that
    /// do not match an encrypted condition are dropped elsewhere.
    pub(crate) fn filter_alone_selects_type(&self, parts: ItemParts) -> bool {
        let is_only_version = self.schema.is_some_and(|schema| schema.older.is_none());
        is_only_version && self.type_condition(parts).is_some()
    }

    /// Returns the condition on the EntityType, or `None` if the key bounds exclude rows of other types.
    fn type_condition(&self, parts: ItemParts) -> Option<Filter> {
        let schema = self.schema?;
        let family = self.access.family?;
        // The range also contains the other parts of each entity.
        if let (ItemParts::OfType(_, read @ WidePartsRead::One(_)), Some(name)) =
            (parts, schema.type_property())
        {
            return Some(part_condition(name, schema, read));
        }
        match schema.type_property() {
            Some(name) if self.only_older => Some(older_condition(name, schema)),
            _ => type_condition(schema, family, &self.access.keys),
        }
    }
}

/// Returns the condition on the EntityType of rows of `family`, or `None` if the key bounds exclude rows of
/// other types.
pub(crate) fn type_condition(
    schema: &'static Schema,
    family: &RowFamily,
    keys: &Keys,
) -> Option<Filter> {
    let name = schema.type_property()?;
    let apart = !schema.shares_keys
        && keys.partition.is_some()
        && (keys.bounds_row_key() || !family.partition.literal_prefix().is_empty());
    (!apart).then(|| {
        if schema.is_wide() && family.is_primary() {
            part_condition(name, schema, WidePartsRead::All)
        } else {
            versions_condition(name, schema, family)
        }
    })
}

/// Returns a condition that finds the parts of wide entities that a query reads. If the type has older
/// versions, the condition also finds rows of unknown later versions, which cause an error instead of being
/// missed.
fn part_condition(name: &str, schema: &'static Schema, read: WidePartsRead) -> Filter {
    let markers = wide::type_markers_of_parts(schema, read).into_iter();
    let known = Filter::any(markers.map(|marker| Filter::eq(name, marker)));
    if schema.older.is_none() {
        return known;
    }
    known | written_version_condition(name, schema)
}

/// Returns a condition that finds rows whose discriminator contains a version, such as `Employee.v2`. These are
/// all rows of version 2 and later: primaries, copies and parts. It also finds rows of version 1 that contain
/// `.v1`.
pub(crate) fn written_version_condition(name: &str, schema: &Schema) -> Filter {
    // `.w` is the smallest text that follows every text beginning with `.v`.
    let versions = [schema.entity_type, ".v"].concat();
    let after = [schema.entity_type, ".w"].concat();
    Filter::ge(name, versions) & Filter::lt(name, after)
}

/// Returns a condition that matches all rows of a family in any version. If the type has no older versions, it
/// matches no other row. Otherwise it also matches rows of other families from version 2 on, which decoding
/// skips, and rows of unknown later versions, which cause an error instead of being missed.
fn versions_condition(name: &str, schema: &Schema, family: &RowFamily) -> Filter {
    if schema.older.is_none() {
        return Filter::eq(name, family.marker);
    }
    // The marker of a primary has no `#` with an index after it.
    let copy = family.marker.find('#').and_then(|at| family.marker.get(at..)).unwrap_or_default();
    Filter::eq(name, [schema.entity_type, copy].concat()) | written_version_condition(name, schema)
}

/// Returns the condition on the primaries of older versions, and on the later parts of wide ones. `name` is
/// the property with the discriminator.
fn older_condition(name: &str, schema: &'static Schema) -> Filter {
    let markers = schema.versions().skip(1).flat_map(|older| {
        // Version 1 may be written with or without its number.
        let another = (older.version == 1).then(|| [schema.entity_type, ".v1"].concat());
        let later = older.parts.iter().skip(1).map(|marker| (*marker).to_owned());
        [older.marker.to_owned()].into_iter().chain(another).chain(later)
    });
    Filter::any(markers.map(|marker| Filter::eq(name, marker)))
}

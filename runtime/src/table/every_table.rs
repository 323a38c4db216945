//! The tables of an entity, for jobs that process all of them: its only table, or each existing dated table.

use std::sync::Arc;

use super::typed::Table;
use crate::{
    address::Names,
    entity::{
        TableEntity,
        dated::{DatedTables, Period},
    },
    error::{Error, Result},
    query::tables::{Periods, QueriedTables},
    store::dated::is_dated_table_missing,
};

impl<E: TableEntity> Table<E> {
    /// Returns how the entity's tables are dated if this handle represents all of them, otherwise `None`.
    pub(crate) fn dated_tables_if_all_periods(&self) -> Option<&'static DatedTables> {
        E::SCHEMA.dated.as_ref().filter(|dated| dated.template == self.name)
    }

    /// Returns the periods and names of the existing dated tables, earliest first. Costs one request for each
    /// page of the names of all tables.
    pub(crate) async fn existing_tables(
        &self,
        dated: &DatedTables,
    ) -> Result<Vec<(Period, String)>> {
        Ok(dated_tables_among_names(
            dated,
            &self.client.tables().await?,
            self.client.store().names(),
        ))
    }

    /// Returns the tables that this handle represents: its own table, or all existing dated tables, earliest first.
    pub(crate) async fn every_table(&self) -> Result<Vec<Self>> {
        let Some(dated) = self.dated_tables_if_all_periods() else { return Ok(vec![self.clone()]) };
        let tables = self.existing_tables(dated).await?.into_iter();
        Ok(tables.map(|(_, name)| self.sibling_table(&name)).collect())
    }

    /// Returns the existing dated tables for a query if this handle represents all of them. Returns `None` for
    /// a handle of a single table.
    pub(crate) async fn all_tables_to_query(&self) -> Result<Option<QueriedTables>> {
        let Some(dated) = self.dated_tables_if_all_periods() else { return Ok(None) };
        let existing = self.existing_tables(dated).await?.into_iter();
        let periods = Periods::Existing(existing.map(|(period, _)| period).collect::<Arc<[_]>>());
        Ok(Some(QueriedTables { dated, periods, newest_first: false }))
    }

    /// Returns the dated table `name` of the same entity.
    pub(crate) fn sibling_table(&self, name: &str) -> Self {
        Self::new(self.client.clone(), name.to_owned())
    }

    /// Returns whether an error means that this dated table is gone. A job over all tables ignores such an
    /// error, because the table's rows are gone too.
    pub(crate) fn is_dated_table_gone(&self, error: &Error) -> bool {
        self.period_of_table().is_some() && is_dated_table_missing(error)
    }
}

/// Returns the periods and names of the dated tables in a list of names, earliest first.
pub(crate) fn dated_tables_among_names(
    dated: &DatedTables,
    names: &[String],
    rule: Names,
) -> Vec<(Period, String)> {
    let of_name = |name: &String| Some((dated.period_of(rule.name(name))?, name.clone()));
    let mut tables: Vec<_> = names.iter().filter_map(of_name).collect();
    tables.sort();
    tables
}

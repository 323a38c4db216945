//! The part of a typed table's verbs that does not depend on the type: it reads and writes rows.
//!
//! The futures are boxed in plain functions, so that programs only call them and do not compile them for each type.

use std::{
    borrow::Cow,
    future::ready,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    access::Keys,
    backend::BoxFuture,
    batch::Written,
    entity::{
        BackgroundWork, Schema, UntypedPath,
        dated::{Period, check_home_table},
        etag_if_unchanged,
        home::table_of_path,
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    key::RowFamily,
    outbox::{
        blind_tokens::fill_tokens_of_change_boxed,
        commit::{Commit, CommittedChange, CommittedChanges},
        state::Outbox,
    },
    plan::Change,
    query::plan::{ReadPlan, RowType},
    row::Row,
    store::{backoff, dated::is_dated_table_missing, replace_by_table_name_error, rows::RowRead},
};

/// The rows of one entity type in one table.
#[derive(Clone, Copy)]
pub(super) struct TypedRows<'t> {
    pub(super) outbox: &'t Arc<Outbox>,
    pub(super) table: &'t str,
    pub(super) of: RowType,
}

/// A row after it was written, with the answer to the write.
pub(super) struct WrittenRow {
    pub(super) row: Row,
    pub(super) status: u16,
    /// The writes of remote copies and lists that are still running.
    pub(super) pending: BackgroundWork,
}

/// The value of an entity that is being written, decoded from its row. So it equals what the next read returns: times
/// have the precision of the store, and skipped fields their default.
pub(super) trait ReadBack: Send {
    /// Decodes the value from the row.
    fn read_back(&mut self, row: &Row) -> Result<()>;
}

/// A change of an entity by its caller.
pub(super) trait ChangeRow: ReadBack {
    /// Decodes the entity from a row of `rows`, changes it and plans the write. Returns `None` if nothing changed.
    fn change_row(&mut self, rows: TypedRows<'_>, row: Row) -> Result<Option<Change>>;
}

/// The value that a read returns.
pub(super) trait TakeRow: Send {
    /// Decodes the value from a row of `family`.
    fn take_row(&mut self, row: Row, family: &'static RowFamily) -> Result<()>;
}

impl<'t> TypedRows<'t> {
    /// Creates the table, and the tables of remote copies.
    pub(super) fn create_tables(self) -> BoxFuture<'t, Result<()>> {
        Box::pin(async move {
            self.outbox.store.create_table(self.table).await?;
            self.create_tables_of_copies().await
        })
    }

    /// Creates the table, and the tables of remote copies. Returns `true` if the table did not exist.
    pub(super) fn create_tables_if_not_exist(self) -> BoxFuture<'t, Result<bool>> {
        Box::pin(async move {
            let created = self.outbox.store.create_table_if_not_exists(self.table).await?;
            self.create_tables_of_copies().await?;
            Ok(created)
        })
    }

    /// Creates the tables of remote copies. Tables that exist are accepted, because entities may share them.
    async fn create_tables_of_copies(self) -> Result<()> {
        let families: &'static [RowFamily] = self.of.schema.families;
        for family in families.iter().filter(|family| family.table.is_some()) {
            let table = family.table_given_primary_table(self.table);
            self.outbox.store.create_table_if_not_exists(&table).await?;
        }
        Ok(())
    }

    /// Writes a change, under a verb's name.
    pub(super) fn write_change(
        self,
        verb: &'static str,
        change: Result<Change>,
    ) -> BoxFuture<'t, Result<(CommittedChange, BackgroundWork)>> {
        Box::pin(async move {
            let written = pin!(self.commit_change(change));
            self.outbox.store.usage.begin_verb(verb, self.table).run(written).await
        })
    }

    /// Writes an entity, under a verb's name.
    pub(super) fn put(
        self,
        verb: &'static str,
        change: Result<Change>,
        value: &'t mut dyn ReadBack,
    ) -> BoxFuture<'t, Result<WrittenRow>> {
        Box::pin(self.put_row(verb, change, value))
    }

    /// Reads the entity on a path to one row, changes it, and writes it under the ETag that was read, until no other
    /// writer is faster. Returns `None` if nothing changed.
    pub(super) fn update(
        self,
        access: &'t UntypedPath,
        change: &'t mut dyn ChangeRow,
    ) -> BoxFuture<'t, Result<Option<WrittenRow>>> {
        Box::pin(async move {
            let table = self.table_of_point(access)?;
            let rows = TypedRows { table: &table, ..self };
            let access = rows.add_tokens_to_path(access).await?;
            let keys = access.point().map_err(|error| error.in_table(&table))?;
            rows.update_at_keys(keys, change).await
        })
    }

    /// Updates the entity at these keys, as [`update`](Self::update) does.
    pub(super) fn update_at_keys(
        self,
        keys: (&'t str, &'t str),
        change: &'t mut dyn ChangeRow,
    ) -> BoxFuture<'t, Result<Option<WrittenRow>>> {
        let locks = &self.outbox.locks;
        // This only avoids lost races between tasks of one client. The ETag protects against all writers.
        let lock = vec![locks.key_of_row(self.table, keys)];
        Box::pin(locks.run_with_locks(lock, self.update_in_turn(keys, change)))
    }

    /// Reads the row that a plan leads to, under a verb's name. Passes it to `found` if there is one.
    pub(super) fn read_point(
        self,
        verb: &'static str,
        plan: &'t mut Result<ReadPlan>,
        found: &'t mut dyn TakeRow,
    ) -> PointRead<'t> {
        let store = &self.outbox.store;
        let verb = store.usage.begin_verb(verb, self.table);
        let is_plain = plan.as_ref().is_ok_and(ReadPlan::reads_plain_row);
        if is_plain
            && !verb.is_observed()
            && self.of.schema.dated.is_none()
            && let Ok(plan) = plan
        {
            return match plan.send_plain_read(store, self.table) {
                Ok(read) => PointRead::Plain { read, plan, rows: self, found },
                Err(error) => PointRead::InStages(Box::pin(ready(Err(error)))),
            };
        }
        PointRead::InStages(Box::pin(async move {
            verb.run(pin!(self.find_row(plan.as_mut(), found))).await
        }))
    }

    async fn find_row(
        self,
        plan: Result<&mut ReadPlan, &mut Error>,
        found: &mut dyn TakeRow,
    ) -> Result<()> {
        let plan = plan.map_err(|error| error.clone())?;
        let table = self.table_of_point(&plan.access)?;
        let rows = TypedRows { table: &table, ..self };
        match plan.read_point(&self.outbox.store, &table).await {
            Err(error) if rows.is_dated_table_gone(&error) => Ok(()),
            row => rows.pass_row(row?, plan, found),
        }
    }

    /// Passes a row that a plan has read.
    fn pass_row(self, row: Option<Row>, plan: &ReadPlan, found: &mut dyn TakeRow) -> Result<()> {
        let Some(row) = row else { return Ok(()) };
        let family = plan.access.family.map_or_else(|| self.of.schema.primary(), Ok)?;
        found
            .take_row(row, family)
            .map_err(|error| error.in_table(&family.table_given_primary_table(self.table)))
    }

    /// Reads a primary, whether expired or not. Writes and maintenance do not check the time.
    pub(super) fn read_primary<'k>(
        self,
        keys: (&'k str, &'k str),
    ) -> BoxFuture<'k, Result<Option<Row>>>
    where
        't: 'k,
    {
        Box::pin(self.read_primary_row(keys))
    }

    async fn put_row(
        self,
        verb: &'static str,
        change: Result<Change>,
        value: &mut dyn ReadBack,
    ) -> Result<WrittenRow> {
        let written = pin!(self.commit_and_read_back(change, value));
        let verb = self.outbox.store.usage.begin_verb(verb, self.table);
        let (row, mut written, pending) = verb.run(written).await?;
        if written.etag.is_none() {
            // Boxed because few answers lack an ETag, and every write would reserve space for this future.
            written.etag = etag_if_unchanged(self.read_primary(row.keys()).await, &row);
        }
        let status = written.status;
        Ok(WrittenRow { row: written.row_with_written_etag(row), status, pending })
    }

    async fn commit_and_read_back(
        self,
        change: Result<Change>,
        value: &mut dyn ReadBack,
    ) -> Result<(Row, Written, BackgroundWork)> {
        let change = self.add_tokens(change).await?;
        let primary = change.known_primary().ok_or_else(no_answer_error)?;
        // Decode before the write: a verb that took effect must not fail because its row does not decode.
        value.read_back(primary).map_err(|error| {
            unreadable_value_error(error)
                .in_table(self.table)
                .at_keys(primary.partition_key(), primary.row_key())
        })?;
        let (outcome, pending) = self.commit(&change).await?;
        let CommittedChange { written: Some(written), row: Some(row) } = outcome else {
            return Err(no_answer_error());
        };
        if row != *primary {
            // A commit may add properties that only the stored entity had, and the names of blobs. The added
            // properties were decoded before, so the row decodes.
            value.read_back(&row).ok();
        }
        Ok((row, written, pending))
    }

    async fn update_in_turn(
        self,
        (partition_key, row_key): (&str, &str),
        change: &mut dyn ChangeRow,
    ) -> Result<Option<WrittenRow>> {
        let attempts = self.outbox.options.attempts;
        for attempt in 0..attempts {
            let Some(row) = self.read_primary_row((partition_key, row_key)).await? else {
                return Err(missing_error(self.of.schema)
                    .in_table(self.table)
                    .at_keys(partition_key, row_key));
            };
            let Some(planned) = change.change_row(self, row)? else { return Ok(None) };
            match self.put_row("update", Ok(planned), change).await {
                Err(error) if error.is_precondition_failed() => {
                    backoff::wait_before_retry(&self.outbox.store.random, attempt).await;
                }
                updated => return updated.map(Some),
            }
        }
        let contended = backoff::contended_attempts_error(attempts);
        Err(contended.in_table(self.table).at_keys(partition_key, row_key))
    }

    async fn read_primary_row(self, (partition_key, row_key): (&str, &str)) -> Result<Option<Row>> {
        let store = &self.outbox.store;
        let access = UntypedPath::of_keys(None, Keys::whole_table());
        let plan = ReadPlan::for_row(store, self.of, access)?.with_expired();
        let at = store.names().row_at(self.table, partition_key, row_key);
        match plan.read_row(store, at).await {
            Err(error) if self.is_dated_table_gone(&error) => Ok(None),
            row => row,
        }
    }

    async fn commit_change(
        self,
        change: Result<Change>,
    ) -> Result<(CommittedChange, BackgroundWork)> {
        self.commit(&self.add_tokens(change).await?).await
    }

    async fn commit(self, change: &Change) -> Result<(CommittedChange, BackgroundWork)> {
        let changes = std::slice::from_ref(change);
        let landed = Commit::new(self.outbox, self.table, changes).run().await;
        // The caller wrote a single entity and knows nothing of positions in a transaction.
        let CommittedChanges { mut outcomes, pending } =
            landed.map_err(Error::without_operation)?;
        Ok((outcomes.pop().ok_or_else(no_answer_error)?, pending))
    }

    /// Adds the blind tokens that a change's keys lack.
    pub(super) async fn add_tokens(self, change: Result<Change>) -> Result<Change> {
        let change = change.map_err(|error| error.in_table(self.table))?;
        if change.needs_tokens() {
            // Boxed because few types have tokens in keys, and every write would reserve space for this future.
            fill_tokens_of_change_boxed(self.outbox, self.table, change).await
        } else {
            Ok(change)
        }
    }

    /// Adds the blind tokens that the keys of a path lack.
    pub(super) async fn add_tokens_to_path<'a>(
        self,
        access: &'a UntypedPath,
    ) -> Result<Cow<'a, UntypedPath>> {
        let access = self.outbox.store.path_with_key_tokens(Some(self.of.schema), access).await;
        access.map_err(|error| error.in_table(self.table))
    }

    /// Returns the period of the table, if it is a dated table.
    pub(super) fn period(self) -> Option<Period> {
        let name = self.outbox.store.names().name(self.table);
        self.of.schema.dated.as_ref()?.period_of(name)
    }

    fn is_dated_table_gone(self, error: &Error) -> bool {
        self.period().is_some() && is_dated_table_missing(error)
    }

    /// Returns whether this is one table. The template of dated tables represents all of them, among which each write
    /// chooses one.
    fn is_one_table(self) -> bool {
        self.of.schema.dated.is_none_or(|dated| dated.template != self.table)
    }

    /// Returns the table of an entity: this table, or the entity's dated table if this table represents all dated
    /// tables. `home` returns the name of the entity's table. Fails with `is_invalid` if this is another dated table.
    pub(super) fn home_table(
        self,
        home: &mut dyn FnMut() -> Result<Cow<'static, str>>,
    ) -> Result<Cow<'t, str>> {
        if self.of.schema.dated.is_none() {
            return Ok(Cow::Borrowed(self.table));
        }
        if !self.is_one_table() {
            return home().map_err(|error| error.in_table(self.table));
        }
        if self.period().is_some() {
            check_home_table(self.table, &home()?)?;
        }
        Ok(Cow::Borrowed(self.table))
    }

    /// Returns the table of a path to one row.
    pub(super) fn table_of_point(self, access: &UntypedPath) -> Result<Cow<'t, str>> {
        self.home_table(&mut || match access.window {
            // Keys are enough if the caller opened a single table.
            None if self.is_one_table() => Ok(Cow::Owned(self.table.to_owned())),
            _ => table_of_path(access, self.of.schema),
        })
    }
}

/// A read of one row, which passes the row to its caller.
// Not an async function, so that programs do not compile it: they only call `poll`.
pub(super) enum PointRead<'t> {
    /// One request, whose row is an item as it is stored.
    Plain { read: RowRead<'t>, plan: &'t ReadPlan, rows: TypedRows<'t>, found: &'t mut dyn TakeRow },
    /// Any other read.
    InStages(BoxFuture<'t, Result<()>>),
}

impl Future for PointRead<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::InStages(read) => read.as_mut().poll(context),
            Self::Plain { read, plan, rows, found } => {
                let row = ready!(Pin::new(read).poll(context));
                let row = row.map_err(|error| replace_by_table_name_error(error, rows.table))?;
                Poll::Ready(rows.pass_row(row, plan, &mut **found))
            }
        }
    }
}

fn missing_error(schema: &Schema) -> Error {
    let message = format!("there is no such `{}`", schema.entity);
    Error::service(ServiceCode::ResourceNotFound, message)
}

/// Returns the error for a value that its own row does not decode to. Nothing is stored, so an error about
/// an undecodable row would be misleading.
fn unreadable_value_error(error: Error) -> Error {
    if !error.is_decode() {
        return error;
    }
    let message = format!("the value would not read back: {}", error.message());
    let refused = Error::new(ErrorKind::Invalid, message);
    match error.property() {
        Some(property) => refused.in_property(property),
        None => refused,
    }
}

pub(super) fn no_answer_error() -> Error {
    Error::new(ErrorKind::Backend, "the backend returned no answer")
}

//! A layer that gives all tables of a client a prefix.

use std::{fmt, sync::Arc};

use entable::{
    Batch, Result, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, NameRange, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
    },
};

/// A view of a store that shows only tables whose names begin with a prefix, without that prefix. A client of
/// it, with the tables that the library creates for itself, touches no other table.
pub(super) struct Isolated {
    inner: Arc<dyn Backend>,
    prefix: String,
}

impl Isolated {
    pub(super) fn around(inner: Arc<dyn Backend>, prefix: &str) -> Arc<Self> {
        Arc::new(Self { inner, prefix: prefix.to_owned() })
    }

    fn name(&self, table: &str) -> String {
        format!("{}{table}", self.prefix)
    }

    fn shown(&self, names: TableNames) -> TableNames {
        let own = names.names.iter().filter_map(|name| name.strip_prefix(&self.prefix));
        TableNames { names: own.map(str::to_owned).collect(), ..names }
    }
}

impl fmt::Debug for Isolated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Isolated").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Backend for Isolated {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            let table = self.name(request.table);
            self.inner.read(ReadRequest { table: &table, ..request }).await
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            let table = self.name(request.table);
            self.inner.scan(ScanRequest { table: &table, ..request }).await
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            let mut renamed = Batch::new(self.name(batch.table()));
            for operation in batch.operations() {
                renamed.push(operation.clone())?;
            }
            self.inner.apply(&renamed.with_deadline(batch.deadline().cloned())).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(table) => {
                    self.inner.tables(TableRequest::Create(&self.name(table))).await
                }
                TableRequest::Delete(table) => {
                    self.inner.tables(TableRequest::Delete(&self.name(table))).await
                }
                TableRequest::List { from, within } => {
                    let ends = within.map(|range| (self.name(range.first), self.name(range.last)));
                    let within = ends.as_ref().map(|(first, last)| NameRange { first, last });
                    let list = TableRequest::List { from, within };
                    Ok(self.shown(self.inner.tables(list).await?))
                }
            }
        })
    }
}

//! Holds the backend and table that a promise is tried on, and short functions for its requests.

use std::{fmt, sync::Arc};

use uuid::Uuid;

use entable_core::{
    backend::{Backend, NameRange, ReadRequest, Rows, ScanRequest, TableRequest},
    batch::{Batch, Condition, Operation, Written},
    edm::Value,
    error::{Error, Result},
    filter::Filter,
    page::Continuation,
    row::{ETag, Row},
};

/// A backend and an empty table of it, which no other promise uses.
#[derive(Debug, Clone)]
pub struct Setup {
    backend: Arc<dyn Backend>,
    table: String,
    /// The beginning of the names of all tables that the promise creates.
    prefix: Arc<str>,
}

/// Returns a row with these properties. Writes nothing.
pub(super) fn row(partition_key: &str, row_key: &str, properties: &[(&str, Value)]) -> Row {
    let mut builder = Row::build(partition_key, row_key);
    for (name, value) in properties {
        builder.put(name, value.as_ref());
    }
    builder.finish().expect("the row can be built")
}

/// Returns a row without properties. Writes nothing.
pub(super) fn bare(partition_key: &str, row_key: &str) -> Row {
    row(partition_key, row_key, &[])
}

/// Returns the condition that the stored row has this ETag.
pub(super) fn version(etag: &ETag) -> Condition {
    Condition::Match(etag.clone())
}

/// Returns the ETag in the answer to a write. Panics if there is none.
pub(super) fn etag(written: &Written) -> ETag {
    written.etag.clone().expect("a write that leaves a row has an ETag")
}

/// Returns the operation that deletes a row. Sends nothing.
pub(super) fn delete(partition_key: &str, row_key: &str, condition: Condition) -> Operation {
    Operation::delete(partition_key, row_key, condition).expect("the delete can be built")
}

/// Parses the text of a filter.
pub(super) fn filter(text: &str) -> Filter {
    Filter::parse(text).expect("the filter can be read")
}

/// Returns the error of a request. Panics if the request succeeded, or if the error has another
/// status or code.
pub(super) fn refused<T: fmt::Debug>(result: Result<T>, status: u16, code: &str) -> Error {
    let error = result.expect_err("the service refuses this");
    assert_eq!((error.status(), error.code()), (Some(status), Some(code)), "{error:?}");
    error
}

/// Returns the RowKeys of rows.
pub(super) fn row_keys(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(Row::row_key).collect()
}

/// A page whose rows all decode.
pub(super) struct GoodPage {
    pub(super) rows: Vec<Row>,
    pub(super) next: Option<Continuation>,
}

impl Setup {
    /// Creates a table of `backend`. Panics if that fails.
    pub async fn new(backend: impl Backend) -> Self {
        Self::with_prefix(Arc::new(backend), "T").await
    }

    /// Creates a table of `backend` whose name begins with `prefix`, of at most 20 letters and digits. Panics
    /// if that fails.
    pub(super) async fn with_prefix(backend: Arc<dyn Backend>, prefix: &str) -> Self {
        let mut setup = Self { backend, table: String::new(), prefix: prefix.into() };
        setup.table = setup.fresh_name();
        setup.create(&setup.table).await.expect("the table can be created");
        setup
    }

    /// Returns a table name that nobody has used. It begins with the setup's prefix.
    pub(super) fn fresh_name(&self) -> String {
        format!("{}{}", self.prefix, Uuid::new_v4().simple())
    }

    /// Returns a setup of the same table whose requests go through `backend`, a layer.
    pub(super) fn through(&self, backend: impl Backend) -> Self {
        Self { backend: Arc::new(backend), ..self.clone() }
    }

    /// Returns a setup of the same backend with another table, which need not exist.
    pub(super) fn at(&self, table: &str) -> Self {
        Self { table: table.to_owned(), ..self.clone() }
    }

    pub(super) fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    pub(super) fn table(&self) -> &str {
        &self.table
    }

    pub(super) async fn create(&self, table: &str) -> Result<()> {
        self.backend.tables(TableRequest::Create(table)).await.map(drop)
    }

    pub(super) async fn drop_table(&self, table: &str) -> Result<()> {
        self.backend.tables(TableRequest::Delete(table)).await.map(drop)
    }

    /// Returns the names of all tables.
    pub(super) async fn table_names(&self) -> Vec<String> {
        self.table_names_within(None).await
    }

    /// Returns the names of the tables in a range, and others that the store lists with them.
    pub(super) async fn table_names_within(&self, within: Option<NameRange<'_>>) -> Vec<String> {
        let mut names = Vec::new();
        let mut from = None;
        loop {
            let request = TableRequest::List { from: from.as_deref(), within };
            let page = self.backend.tables(request).await.expect("tables can be listed");
            names.extend(page.names);
            from = page.next;
            if from.is_none() {
                return names;
            }
        }
    }

    /// Sends one operation to the table.
    pub(super) async fn one(&self, operation: Operation) -> Result<Written> {
        let batch = Batch::single(&self.table, operation)?;
        let written = self.backend.apply(&batch).await?;
        assert_eq!(written.len(), 1, "one answer to one operation");
        Ok(written.into_iter().next().expect("there is one"))
    }

    /// Sends an entity group transaction. Fails, too, for operations that a [`Batch`] refuses, since
    /// the service refuses them as well.
    pub(super) async fn all_of(
        &self,
        operations: impl IntoIterator<Item = Operation>,
    ) -> Result<Vec<Written>> {
        let mut batch = Batch::new(&self.table);
        for operation in operations {
            batch.push(operation)?;
        }
        let written = self.backend.apply(&batch).await?;
        assert_eq!(written.len(), batch.len(), "an answer to each operation");
        Ok(written)
    }

    /// Inserts a row and returns its ETag. Panics if that fails.
    pub(super) async fn given(
        &self,
        partition_key: &str,
        row_key: &str,
        properties: &[(&str, Value)],
    ) -> ETag {
        let insert = Operation::insert(row(partition_key, row_key, properties));
        etag(&self.one(insert).await.expect("the row can be inserted"))
    }

    /// Inserts rows without properties into one partition.
    pub(super) async fn given_rows<K: AsRef<str>>(&self, partition_key: &str, row_keys: &[K]) {
        for hundred in row_keys.chunks(100) {
            let inserts =
                hundred.iter().map(|key| Operation::insert(bare(partition_key, key.as_ref())));
            self.all_of(inserts).await.expect("the rows can be inserted");
        }
    }

    pub(super) async fn try_get(&self, partition_key: &str, row_key: &str) -> Result<Option<Row>> {
        let table = &self.table;
        self.backend.read(ReadRequest { table, partition_key, row_key, select: None }).await
    }

    /// Reads a row, or `None` if it does not exist.
    pub(super) async fn get(&self, partition_key: &str, row_key: &str) -> Option<Row> {
        self.try_get(partition_key, row_key).await.expect("the row can be read")
    }

    /// Reads the properties of a row, by name. Panics if the row does not exist.
    pub(super) async fn properties(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Vec<(String, Value)> {
        let row = self.get(partition_key, row_key).await.expect("the row is there");
        properties(&row)
    }

    pub(super) async fn try_page(
        &self,
        filter: &Filter,
        top: Option<u32>,
        from: Option<&Continuation>,
    ) -> Result<Rows> {
        let table = &self.table;
        self.backend.scan(ScanRequest { table, filter, select: None, top, from }).await
    }

    /// Reads one page of the rows that match.
    pub(super) async fn page(
        &self,
        filter: &Filter,
        top: Option<u32>,
        from: Option<&Continuation>,
    ) -> GoodPage {
        let page = self.try_page(filter, top, from).await.expect("the page can be read");
        let next = page.next.clone();
        GoodPage { rows: page.into_rows().expect("each row decodes"), next }
    }

    /// Reads all rows that match, page by page. Returns them and the number of pages.
    pub(super) async fn pages(&self, filter: &Filter, top: Option<u32>) -> (Vec<Row>, usize) {
        let (mut rows, mut pages, mut from) = (Vec::new(), 0, None);
        loop {
            let page = self.page(filter, top, from.as_ref()).await;
            rows.extend(page.rows);
            pages += 1;
            assert!(pages < 10_000, "the pages come to an end");
            from = page.next;
            if from.is_none() {
                return (rows, pages);
            }
        }
    }

    /// Reads all rows that match the filter.
    pub(super) async fn matching(&self, text: &str) -> Vec<Row> {
        self.pages(&filter(text), None).await.0
    }

    /// Asserts that the filter finds rows of these RowKeys and no other, in this order.
    pub(super) async fn finds(&self, text: &str, expected: &[&str]) {
        let rows = self.matching(text).await;
        assert_eq!(row_keys(&rows), expected, "{text}");
    }
}

/// Returns the properties of a row sorted by name: stores return them in any order.
pub(super) fn properties(row: &Row) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next().expect("the row is whole") {
        all.push((String::from_utf8_lossy(name).into_owned(), value.to_value()));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Returns expected properties in the form that [`properties`] returns: sorted by name.
pub(super) fn expected(properties: &[(&str, Value)]) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

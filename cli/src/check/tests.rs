//! A store that keeps every promise has no differences, and each planted difference is found and named.

use entable::{
    Batch, Condition, Operation, Result, Row, Verb, Written,
    backend::{
        BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
    },
};

use super::{outcome::Finding, *};

/// A deviation of a store.
#[derive(Debug, Clone, Copy)]
enum Planted {
    /// Conditions on ETags are ignored.
    IgnoresEtags,
    /// A deletion of a row that does not exist succeeds.
    DeletesWhatIsMissing,
    /// A replacement of a row that does not exist inserts it.
    InsertsOnReplace,
    /// A merge drops the properties that it does not name.
    ReplacesOnMerge,
    /// Each operation of a transaction is applied separately.
    SplitsTransactions,
    /// A page ends the query, although more rows match.
    LosesContinuations,
    /// Rows come in descending order.
    ReversesPages,
    /// Tables that exist are created again.
    CreatesTwice,
}

/// A store that differs from the service in one way.
#[derive(Debug)]
struct Differing {
    inner: Memory,
    planted: Planted,
}

impl Differing {
    async fn apply_one(&self, table: &str, operation: &Operation) -> Result<Written> {
        let (row, condition) = (operation.row().clone(), operation.condition().cloned());
        let condition = condition.unwrap_or(Condition::Any);
        let changed = match (self.planted, operation.verb()) {
            (Planted::IgnoresEtags, Verb::Replace) => Operation::replace(row, Condition::Any),
            (Planted::IgnoresEtags, Verb::Merge) => Operation::merge(row, Condition::Any),
            (Planted::IgnoresEtags, Verb::Delete) => {
                Operation::delete(row.partition_key(), row.row_key(), Condition::Any)?
            }
            (Planted::InsertsOnReplace, Verb::Replace) if condition == Condition::Any => {
                Operation::insert_or_replace(row)
            }
            (Planted::ReplacesOnMerge, Verb::Merge) => Operation::replace(row, condition),
            _ => operation.clone(),
        };
        let written = self.inner.apply(&Batch::single(table, changed)?).await;
        match written {
            Err(error)
                if error.code() == Some("ResourceNotFound")
                    && matches!(self.planted, Planted::DeletesWhatIsMissing)
                    && operation.verb() == Verb::Delete =>
            {
                Ok(Written::new(204, None))
            }
            written => Ok(written?.remove(0)),
        }
    }
}

impl Backend for Differing {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            let mut page = self.inner.scan(request).await?;
            match self.planted {
                Planted::LosesContinuations => page.next = None,
                Planted::ReversesPages => page.rows.reverse(),
                _ => {}
            }
            Ok(page)
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            let splits = matches!(self.planted, Planted::SplitsTransactions);
            if batch.len() != 1 && !splits {
                return self.inner.apply(batch).await;
            }
            let mut all = Vec::new();
            for operation in batch.operations() {
                all.push(self.apply_one(batch.table(), operation).await?);
            }
            Ok(all)
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            let is_creation = matches!(request, TableRequest::Create(_));
            match self.inner.tables(request).await {
                Err(error)
                    if matches!(self.planted, Planted::CreatesTwice)
                        && is_creation
                        && error.is_conflict() =>
                {
                    Ok(TableNames::default())
                }
                answer => answer,
            }
        })
    }
}

/// Runs the parts that need no connection.
async fn checked(backend: Arc<dyn Backend>) -> Report {
    let service = Service { backend, options: None };
    run(&service, "Check01", &[CheckPart::Promises, CheckPart::Patterns], |_| ()).await.unwrap()
}

async fn table_names(backend: &dyn Backend) -> Vec<String> {
    backend.tables(TableRequest::List { from: None, within: None }).await.unwrap().names
}

#[tokio::test]
async fn a_store_that_keeps_every_promise_has_no_differences() {
    let memory = Arc::new(Memory::new());
    // One name that only resembles the check's tables, and two tables of a program.
    for name in ["Check", "Staff", "EntableDirectory"] {
        memory.tables(TableRequest::Create(name)).await.unwrap();
    }
    let report = checked(memory.clone()).await;
    let differences: Vec<_> = report.differences().collect();
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(report.promises_kept, PROMISES.len());
    assert_eq!(report.patterns.len(), 12);
    assert!(report.requests > 2_000, "{}", report.requests);
    assert_eq!(table_names(&*memory).await, ["Check", "EntableDirectory", "Staff"]);
}

#[tokio::test]
async fn each_planted_difference_is_found_and_named() {
    for (planted, promise, pattern) in [
        (Planted::IgnoresEtags, "condition::replace_stale", Some("optimistic concurrency")),
        (Planted::DeletesWhatIsMissing, "crud::delete_missing", None),
        (Planted::InsertsOnReplace, "crud::replace_missing", None),
        (
            Planted::ReplacesOnMerge,
            "crud::merge_keeps_absent",
            Some("merge keeps what it does not name"),
        ),
        (Planted::SplitsTransactions, "batch::conflict_rolls_back", None),
        (
            Planted::LosesContinuations,
            "page::page_of_a_thousand",
            Some("pages of a large partition"),
        ),
        (Planted::ReversesPages, "order::rows_ascend", Some("log tail")),
        (Planted::CreatesTwice, "table::create_twice", None),
    ] {
        let backend = Arc::new(Differing { inner: Memory::new(), planted });
        let report = checked(backend.clone()).await;
        let names: Vec<_> = report.differences().map(|one| one.name.as_str()).collect();
        assert!(names.contains(&promise), "{planted:?}: {names:?}");
        assert!(pattern.is_none_or(|pattern| names.contains(&pattern)), "{planted:?}: {names:?}");
        // Most of what is tried does not meet the difference.
        assert!(names.len() < PROMISES.len() / 2, "{planted:?}: {names:?}");
        assert!(table_names(&backend.inner).await.is_empty(), "{planted:?}");
    }
}

#[tokio::test]
async fn tables_are_deleted_also_if_the_check_fails() {
    // A table with the prefix exists, and the check cannot distinguish it from its own.
    let memory = Arc::new(Memory::new());
    memory.tables(TableRequest::Create("Check01PStaff")).await.unwrap();
    let service = Service { backend: memory.clone(), options: None };
    let error = run(&service, "Check01", &CheckPart::ALL, |_| ()).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert!(table_names(&*memory).await.is_empty());
}

#[test]
fn a_report_names_differences_and_hides_the_account() {
    let finding = |name: &str, found: Option<&str>| Finding {
        name: name.to_owned(),
        found: found.map(str::to_owned),
    };
    let report = Report {
        promises_kept: 3,
        promises_broken: vec![finding("crud::insert", Some("at contoso.table: ```key c2VjcmV0"))],
        patterns: vec![finding("log tail", None)],
        requests: 7,
        ..Report::default()
    };
    let hidden = ["contoso".to_owned(), "c2VjcmV0".to_owned(), "e".to_owned()];
    let scrubber = Scrubber::new(hidden);
    let markdown = report.to_markdown("a service", &scrubber);
    assert!(markdown.contains("Differences from what is promised: 1."), "{markdown}");
    assert!(markdown.contains("Tried 4, as promised 3."), "{markdown}");
    assert!(markdown.contains("at <hidden>.table: ` ` `key <hidden>"), "{markdown}");
    let json = report.to_json("a service", &scrubber);
    assert_eq!(json["differences"], 1);
    assert_eq!(json["promises"]["broken"][0]["found"], "at <hidden>.table: ```key <hidden>");
    assert_eq!(json["patterns"][0]["found"], serde_json::Value::Null);
    assert!(!json.to_string().contains("contoso") && !json.to_string().contains("c2VjcmV0"));
}

#[test]
fn prefixes_are_random_and_short() {
    let prefix = random_prefix();
    assert_eq!(prefix.len(), 13);
    assert!(prefix.starts_with("Check") && prefix != random_prefix());
}

//! Reads of an account with read access to its copy in another region (RA-GRS, RA-GZRS).

use entable_core::{
    __runtime::backend::layer::is_read_worth_repeating,
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, Snapshot, TableNames,
        TableRequest, no_settings_error, no_snapshots_error,
    },
    batch::{Batch, Written},
    error::{Error, ErrorKind, Result},
    page::Continuation,
    row::{Location, Row},
};

use crate::{backend::Azure, options::AzureOptions};

/// A backend that only reads: from an account's primary region, and from its read-only copy in another
/// region if the primary does not answer.
///
/// The copy lags: it may lack the last minutes. So this backend refuses every write, and nothing that is
/// written is ever planned from what it reads. Keep the client of the primary for verbs, transactions and
/// workers. `Stored::location` says where a value was read.
///
/// * Each read asks the primary first. The secondary is asked after a failure that may pass: no connection,
///   no answer in time, "too busy", a server error.
/// * Rows are returned from the secondary only if it has them. A row that it lacks may not have arrived yet,
///   so the error of the primary is returned.
/// * The pages of a query come from the place of its first page. If that place fails later, the query fails.
/// * Pages of the secondary have no date, because its clock is not the one of the rows' Timestamps.
///
/// ```
/// use entable_azure::{AzureOptions, PrimaryThenSecondary};
/// use entable_core::{RetryPolicy, backend::{Backend, layer::Retry}};
///
/// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
/// let reads = PrimaryThenSecondary::new(options)?;
/// assert_eq!(reads.secondary_endpoint(), "https://myaccount-secondary.table.core.windows.net");
/// let reader = Retry::around(reads, RetryPolicy::default());
/// assert_eq!(reader.server_address(), Some("myaccount.table.core.windows.net"));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PrimaryThenSecondary {
    primary: Azure,
    secondary: Azure,
}

/// The beginning of continuations of the secondary. No header of an answer has a U+0001.
const SECONDARY: &str = "\u{1}secondary ";

impl PrimaryThenSecondary {
    /// Makes the backend for the account that the options name, without sending a request.
    ///
    /// # Errors
    ///
    /// `is_invalid` if the options contain no endpoint or no account, or if the address of the secondary
    /// does not follow from the endpoint and [`AzureOptions::secondary_endpoint`] does not give it.
    pub fn new(options: AzureOptions) -> Result<Self> {
        let primary = Azure::new(options.clone())?;
        let follows = || primary.0.endpoint.secondary_endpoint();
        let endpoint = options.secondary.clone().or_else(follows).ok_or_else(|| {
            let message = "the secondary's address cannot be derived from the endpoint; set it with \
                           `secondary_endpoint`";
            Error::new(ErrorKind::Invalid, message)
        })?;
        // A signature names the account of the primary, also where the address of the copy has another.
        let account = Some(primary.0.name().to_owned());
        let secondary = AzureOptions { endpoint: Some(endpoint), account, ..options };
        Ok(Self { primary, secondary: Azure::new(secondary)? })
    }

    /// Returns the address of the tables in the other region, without `/` at the end.
    pub fn secondary_endpoint(&self) -> &str {
        self.secondary.endpoint()
    }

    async fn read_row(&self, request: ReadRequest<'_>) -> Result<Option<Row>> {
        let failure = match self.primary.read(request).await {
            Err(error) if is_read_worth_repeating(&error) => error,
            outcome => return outcome,
        };
        match self.secondary.read(request).await {
            Ok(Some(row)) => Ok(Some(mark_row(row))),
            Ok(None) | Err(_) => Err(failure),
        }
    }

    async fn scan_page(&self, request: ScanRequest<'_>) -> Result<Rows> {
        let from = match request.from {
            None => None,
            Some(from) => match from.partition_key.strip_prefix(SECONDARY) {
                Some(own) => {
                    let partition_key = own.to_owned();
                    Some(Continuation { partition_key, row_key: from.row_key.clone() })
                }
                None => return self.primary.scan(request).await,
            },
        };
        let mut failure = None;
        if from.is_none() {
            match self.primary.scan(request).await {
                Err(error) if is_read_worth_repeating(&error) => failure = Some(error),
                outcome => return outcome,
            }
        }
        let page = self.secondary.scan(ScanRequest { from: from.as_ref(), ..request }).await;
        page.map(mark_page).map_err(|error| failure.unwrap_or(error))
    }
}

fn mark_row(row: Row) -> Row {
    match row.etag() {
        Some(etag) => row.with_etag(etag.with_location_read_from(Location::Secondary)),
        None => row,
    }
}

fn mark_page(page: Rows) -> Rows {
    let next = page.next.map(|next| Continuation {
        partition_key: format!("{SECONDARY}{}", next.partition_key),
        ..next
    });
    // The Timestamps come from the other region's clock, not from the clock of the answer's date.
    Rows { rows: page.rows.into_iter().map(|row| row.map(mark_row)).collect(), next, date: None }
}

fn read_only_error() -> Error {
    let message =
        "this client reads from the secondary and cannot write; write with a client of the primary";
    Error::new(ErrorKind::Unsupported, message)
}

#[deny(clippy::missing_trait_methods)]
impl Backend for PrimaryThenSecondary {
    fn capabilities(&self) -> Capabilities {
        self.primary.capabilities().lagging_reads()
    }

    fn server_address(&self) -> Option<&str> {
        self.primary.server_address()
    }

    fn server_port(&self) -> Option<u16> {
        self.primary.server_port()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(self.read_row(request))
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(self.scan_page(request))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async { Err(read_only_error().in_table(batch.table())) })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        match request {
            // The names of the primary: a list that lags would miss a table.
            TableRequest::List { .. } => self.primary.tables(request),
            TableRequest::Create(_) | TableRequest::Delete(_) => {
                Box::pin(async { Err(read_only_error()) })
            }
        }
    }

    fn settings<'a>(&'a self, _table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(async { Err(no_settings_error()) })
    }

    fn set_settings<'a>(
        &'a self,
        _table: Option<&'a str>,
        _text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(no_settings_error()) })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async { Err(no_snapshots_error()) })
    }
}

//! Writes whose connection is cut before or after the service has carried them out.

use std::{io, sync::Arc, time::Duration};

use entable::{
    Azure, AzureOptions, Batch, BoxError, Condition, ETag, Error, ErrorKind, Operation,
    RetryPolicy, Row, ValueRef, Verb, Written,
    backend::{Backend, ReadRequest, TableRequest, layer::Retry},
};

use super::{
    outcome::{Finding, Unexpected, expect},
    relay::{Cut, Relay, Route},
};

/// A time limit that is short: a cut connection fails at once, and nothing else is slow.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A write whose answer is lost.
#[derive(Debug, Clone, Copy)]
enum Write {
    One(Verb),
    /// A replacement, an insert and a delete in one transaction.
    Transaction,
}

const WRITES: [Write; 7] = [
    Write::One(Verb::Insert),
    Write::One(Verb::Replace),
    Write::One(Verb::Merge),
    Write::One(Verb::InsertOrReplace),
    Write::One(Verb::InsertOrMerge),
    Write::One(Verb::Delete),
    Write::Transaction,
];

/// The service directly, and through a relay that cuts.
struct Paths {
    direct: Arc<dyn Backend>,
    cut: Retry,
    relay: Relay,
    table: String,
}

/// Tries every write with both cuts.
///
/// # Errors
///
/// `is_backend` if cannot open a loopback port; errors of the service when the table is created.
pub(super) async fn try_all(
    direct: &Arc<dyn Backend>,
    options: &AzureOptions,
    table: &str,
    progress: &impl Fn(&str),
) -> Result<Vec<Finding>, Error> {
    let (relay, cut) = through_relay(options).await?;
    let (direct, table) = (Arc::clone(direct), table.to_owned());
    direct.tables(TableRequest::Create(&table)).await?;
    let paths = Paths { direct, cut, relay, table };
    let mut findings = Vec::new();
    for write in WRITES {
        for cut in [Cut::BeforeRequest, Cut::BeforeAnswer] {
            let name = name_of(write, cut);
            progress(&name);
            findings.push(Finding::new(name, paths.try_write(write, cut).await));
        }
    }
    Ok(findings)
}

fn name_of(write: Write, cut: Cut) -> String {
    let write = match write {
        Write::One(verb) => format!("{verb:?}"),
        Write::Transaction => "a transaction".to_owned(),
    };
    let when = match cut {
        Cut::BeforeRequest => "before the service got it",
        Cut::BeforeAnswer => "after the service carried it out",
    };
    format!("{write}, cut {when}")
}

/// Opens the service through a relay. Operation ids let a write find out what became of it.
async fn through_relay(options: &AzureOptions) -> Result<(Relay, Retry), Error> {
    let endpoint = Azure::new(options.clone())?.endpoint().to_owned();
    let start = |route| async { Relay::start(route).await.map_err(unusable) };
    let (relay, options) = match endpoint.strip_prefix("http://") {
        // A plain connection: the relay takes the place of the service.
        Some(rest) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let with_port = if authority
                .rsplit_once(':')
                .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
            {
                authority.to_owned()
            } else {
                format!("{authority}:80")
            };
            let relay = start(Route::Direct(with_port)).await?;
            let options =
                options.clone().endpoint(&format!("http://{}/{path}", relay.address()))?;
            (relay, options)
        }
        // Under TLS the relay is the proxy: it sees no request, and cuts all the same.
        None => {
            let relay = start(Route::Connect).await?;
            let options = options.clone().proxy(&format!("http://{}", relay.address()))?;
            (relay, options)
        }
    };
    let azure = Azure::new(options.timeout(TIMEOUT))?;
    Ok((relay, Retry::around(azure, RetryPolicy::default().operation_ids(true))))
}

fn unusable(error: io::Error) -> Error {
    let error: BoxError = Box::new(error);
    Error::new(ErrorKind::Backend, "cannot open a loopback port").with_source(error)
}

impl Paths {
    async fn try_write(&self, write: Write, cut: Cut) -> Result<(), Unexpected> {
        let key = format!("{write:?}{cut:?}").replace(|c: char| !c.is_ascii_alphanumeric(), "");
        let operations = self.operations(write, &key).await?;
        let mut batch = Batch::new(&self.table);
        for operation in operations {
            batch.push(operation)?;
        }
        // Opens the connection that the write will use.
        self.cut.read(self.request(&key)).await?;
        self.relay.set_cut(Some(cut));
        let result = self.cut.apply(&batch).await;
        if self.relay.is_cut_left() {
            self.relay.set_cut(None);
            return Err(Unexpected("not tried: the connection was not cut".to_owned()));
        }
        self.judge(write, cut, &key, result).await
    }

    async fn operations(&self, write: Write, key: &str) -> Result<Vec<Operation>, Error> {
        let new = row(key, "new")?;
        Ok(match write {
            Write::One(Verb::Insert) => vec![Operation::insert(new)],
            Write::One(Verb::Replace) => vec![Operation::replace(new, self.given(key).await?)],
            Write::One(Verb::Merge) => vec![Operation::merge(new, self.given(key).await?)],
            Write::One(Verb::Delete) => vec![Operation::delete("p", key, self.given(key).await?)?],
            Write::One(Verb::InsertOrReplace) => {
                self.given(key).await?;
                vec![Operation::insert_or_replace(new)]
            }
            Write::One(Verb::InsertOrMerge) => {
                self.given(key).await?;
                vec![Operation::insert_or_merge(new)]
            }
            Write::Transaction => {
                let condition = self.given(key).await?;
                let gone = format!("{key}Gone");
                let delete = Operation::delete("p", &gone, self.given(&gone).await?)?;
                let insert = Operation::insert(row(&format!("{key}Also"), "new")?);
                vec![Operation::replace(new, condition), insert, delete]
            }
        })
    }

    /// Inserts a row, and returns the condition that it has not changed since.
    async fn given(&self, key: &str) -> Result<Condition, Error> {
        let insert = Batch::single(&self.table, Operation::insert(row(key, "old")?))?;
        let written = self.direct.apply(&insert).await?;
        let etag: Option<ETag> = written.into_iter().next().and_then(|written| written.etag);
        Ok(etag.map_or(Condition::Any, Condition::Match))
    }

    /// Compares the result with what the service shows: a success has to be one, and an unknown outcome is
    /// allowed only where nobody can know.
    async fn judge(
        &self,
        write: Write,
        cut: Cut,
        key: &str,
        result: Result<Vec<Written>, Error>,
    ) -> Result<(), Unexpected> {
        let is_delete = matches!(write, Write::One(Verb::Delete));
        let is_blind = matches!(write, Write::One(Verb::InsertOrReplace | Verb::InsertOrMerge));
        let new = (!is_delete).then(|| "new".to_owned());
        let is_unknowable =
            (is_blind && cut == Cut::BeforeRequest) || (is_delete && cut == Cut::BeforeAnswer);
        match result {
            Ok(_) => {
                expect("the row after a success", new, self.text(key).await?)?;
                if matches!(write, Write::Transaction) {
                    let others = (
                        self.text(&format!("{key}Also")).await?,
                        self.text(&format!("{key}Gone")).await?,
                    );
                    expect("the other rows", (Some("new".to_owned()), None), others)?;
                }
                Ok(())
            }
            Err(error) if error.is_ambiguous() && is_unknowable => Ok(()),
            Err(error) => Err(Unexpected(format!("expected success, found: {error}"))),
        }
    }

    fn request<'a>(&'a self, key: &'a str) -> ReadRequest<'a> {
        ReadRequest { table: &self.table, partition_key: "p", row_key: key, select: None }
    }

    async fn text(&self, key: &str) -> Result<Option<String>, Error> {
        let row = self.direct.read(self.request(key)).await?;
        Ok(row.and_then(|row| match row.get("Text") {
            Ok(Some(ValueRef::String(text))) => Some(text.to_owned()),
            _ => None,
        }))
    }
}

fn row(key: &str, text: &str) -> Result<Row, Error> {
    Row::build("p", key).with("Text", ValueRef::String(text))?.finish()
}

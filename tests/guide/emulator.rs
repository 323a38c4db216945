//! Connects to the service's emulator, with tables of its own for each test.

use entable::{
    Azure, AzureOptions, Batch, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, NameRange, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
    },
    prelude::*,
};

/// The variable that names the emulator.
const VARIABLE: &str = "ENTABLE_AZURITE";

/// The options for the emulator. `None`, said aloud, where there is none.
#[allow(clippy::print_stdout, reason = "a test that is not run says so")]
pub fn options() -> Option<AzureOptions> {
    let Ok(connection) = std::env::var(VARIABLE) else {
        println!("not run: {VARIABLE} names no emulator");
        return None;
    };
    Some(AzureOptions::from_connection_string(&connection).unwrap())
}

/// The emulator, where every table has another name than that of any other test.
pub fn backend() -> Option<Renamed> {
    let azure = Azure::new(options()?).unwrap();
    Some(Renamed { azure, prefix: format!("G{}", uuid::Uuid::new_v4().simple()) })
}

/// Tables under names of their own.
#[derive(Debug, Clone)]
pub struct Renamed {
    azure: Azure,
    prefix: String,
}

impl Renamed {
    fn name(&self, table: &str) -> String {
        format!("{}{table}", self.prefix)
    }
}

impl Backend for Renamed {
    fn capabilities(&self) -> Capabilities {
        self.azure.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        Box::pin(async move {
            let table = self.name(request.table);
            self.azure.read(ReadRequest { table: &table, ..request }).await
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move {
            let table = self.name(request.table);
            self.azure.scan(ScanRequest { table: &table, ..request }).await
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let mut renamed = Batch::new(self.name(batch.table()));
            for operation in batch.operations() {
                renamed.push(operation.clone())?;
            }
            self.azure.apply(&renamed).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(name) => {
                    self.azure.tables(TableRequest::Create(&self.name(name))).await
                }
                TableRequest::Delete(name) => {
                    self.azure.tables(TableRequest::Delete(&self.name(name))).await
                }
                TableRequest::List { from, within } => {
                    let names = within.map(|range| (self.name(range.first), self.name(range.last)));
                    let within = names.as_ref().map(|(first, last)| NameRange { first, last });
                    let mut answer = self.azure.tables(TableRequest::List { from, within }).await?;
                    let own = |name: &String| name.strip_prefix(&self.prefix).map(str::to_owned);
                    answer.names = answer.names.iter().filter_map(own).collect();
                    Ok(answer)
                }
            }
        })
    }
}

//! Serves an empty store in memory on a free port, and prints the connection string for clients.

use std::{io::Write, sync::Arc};

use entable::backend::Memory;
use entable_server::Server;

/// The emulator's key, which is public.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let rows = Arc::new(Memory::new());
    let server = Server::builder(rows).address("127.0.0.1:0").bind().await?;
    let endpoint = server.endpoint();
    writeln!(
        std::io::stdout(),
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={endpoint};"
    )?;
    server.run(std::future::pending()).await
}

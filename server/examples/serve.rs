//! Serves an empty store in memory on a free port, and prints the connection string for clients.

use std::{io::Write, sync::Arc};

use entable::backend::Memory;
use entable_server::Server;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let rows = Arc::new(Memory::new());
    let server = Server::builder(rows).address("127.0.0.1:0").bind().await?;
    writeln!(std::io::stdout(), "{}", server.connection_string())?;
    server.run(std::future::pending()).await
}

//! Serves the employees of a store: `entable-example-web staff.db`, or a store in memory without a file.
//!
//! `ADDRESS` says where, 127.0.0.1:8080 by default. Ctrl-C, or SIGTERM, stops it.

use entable::{BoxError, Client};
use entable_example_web::serve::serve;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt().init();
    let client = match std::env::args().nth(1) {
        Some(file) => Client::open(file)?,
        None => Client::memory(),
    };
    let address = std::env::var("ADDRESS").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "serving");
    serve(listener, client, stopped()).await
}

#[cfg(unix)]
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        return drop(tokio::signal::ctrl_c().await);
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

#[cfg(not(unix))]
async fn stopped() {
    drop(tokio::signal::ctrl_c().await);
}

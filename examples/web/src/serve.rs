//! Runs the server and the worker, and stops both in order.

use entable::{BoxError, Client};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{employee::Employee, routes::app};

/// Serves until `stop` is done: then no connection is accepted, requests that are under way are answered, the
/// worker finishes its round, and the store is closed.
///
/// # Errors
///
/// Fails if the table cannot be created, or if the server or the store fails.
pub async fn serve(
    listener: TcpListener,
    client: Client,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), BoxError> {
    client.table::<Employee>().create_if_not_exists().await?;
    let (stop_worker, stopped) = oneshot::channel::<()>();
    let worker = client.worker().with::<Employee>();
    let working = tokio::spawn(async move { worker.run(async { drop(stopped.await) }).await });
    let served = axum::serve(listener, app(&client)).with_graceful_shutdown(stop).await;
    // The worker comes second: it finishes what the last requests have begun.
    drop(stop_worker);
    working.await?;
    client.wait_for_copies().await;
    client.close().await?;
    Ok(served?)
}

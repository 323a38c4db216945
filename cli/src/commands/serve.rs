//! The command `serve`.

use std::{path::Path, sync::Arc, time::Duration};

use entable::{
    AccountKey,
    backend::{Backend, Durability, Embedded, Memory},
};
use entable_server::Server;
use serde_json::json;

use crate::{
    args::Serve,
    failure::Failure,
    output::Output,
    store::{self, variable, variable_or_file},
};

/// The variables with the key that clients sign with: the key itself, or the path of a file.
const KEY: &str = "ENTABLE_SERVE_KEY";
const KEY_FILE: &str = "ENTABLE_SERVE_KEY_FILE";
/// The variable with the name of the account.
const ACCOUNT: &str = "ENTABLE_SERVE_ACCOUNT";
pub(crate) async fn serve(output: &Output, args: Serve) -> Result<(), Failure> {
    let own_key = own_key()?;
    let rows = rows(&args)?;
    let is_public_key = own_key.is_none();
    let key = own_key.unwrap_or_else(AccountKey::emulator);
    let account = key.account().to_owned();
    let mut server = Server::builder(rows.clone()).address(&*args.listen).key(key);
    if args.emulator {
        server = server.emulator();
    }
    if args.read_only {
        server = server.read_only();
    }
    for host in args.hosts {
        server = server.allow_host(host);
    }
    let listening = |error| Failure::io(&format!("listening on `{}`", args.listen), &error);
    let server = server.bind().await.map_err(listening)?;
    if args.emulator && is_public_key {
        output.remark(
            "the emulator's key is public: everybody who reaches this address can read and change every row",
        );
    }
    announce(output, args.store.as_deref(), &account, &server)?;
    let served = server.run(stop_signal()).await;
    // The file is complete before the process ends.
    rows.close().await?;
    served.map_err(|error| Failure::io("accepting connections", &error))
}

/// Opens the file, or a store in memory.
fn rows(args: &Serve) -> Result<Arc<dyn Backend>, Failure> {
    let Some(file) = &args.store else { return Ok(Arc::new(Memory::new())) };
    let name = file.to_string_lossy();
    store::check_is_file(&name, !args.read_only)?;
    let options = Embedded::options();
    let options = match args.relaxed.map(Duration::from_millis) {
        Some(delay) => options.durability(Durability::Relaxed { delay }),
        None => options,
    };
    Ok(Arc::new(options.open(file)?))
}

/// Returns the key in the environment, if there is one.
fn own_key() -> Result<Option<AccountKey>, Failure> {
    match (variable_or_file(KEY, KEY_FILE)?, variable(ACCOUNT)) {
        (Some(key), Some(account)) => Ok(Some(AccountKey::new(account, key.trim())?)),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage(format!(
            "{ACCOUNT} is not set; set it to the name of the account that clients sign for"
        ))),
        (None, Some(_)) => Err(Failure::usage(format!(
            "{ACCOUNT} is set, but no key; set {KEY}, or {KEY_FILE} to the path of a file with a key in base64"
        ))),
    }
}

/// Says where the server listens, and how clients connect. A key of one's own is not shown.
fn announce(
    output: &Output,
    store: Option<&Path>,
    account: &str,
    server: &Server,
) -> Result<(), Failure> {
    let (endpoint, connection) = (server.endpoint(), server.connection_string());
    let rows = store.map_or_else(|| "rows in memory".to_owned(), |file| file.display().to_string());
    output.say(
        || format!("serving {rows} at {endpoint}\nconnection string: {connection}"),
        || json!({ "endpoint": endpoint, "account": account, "connectionString": connection }),
    )
}

/// Waits until the process is asked to end, by Ctrl-C or by SIGTERM.
async fn stop_signal() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut terminate) =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
    {
        tokio::select! {
            _ = interrupted => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    // Without handlers, a signal ends the process at once.
    if interrupted.await.is_err() {
        std::future::pending::<()>().await;
    }
}

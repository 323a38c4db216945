//! Runs workers until a signal, looks at a message that was put aside, and puts it back.
//!
//! `cargo run --example worker -- --wait` runs the two workers until Ctrl-C.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints what it shows")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use entable::{Worker, prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Welcome", version = 1)]
struct Welcome {
    email: String,
}

/// Creates a worker that sends mails, unless the mail server refuses them.
fn mailer(client: &Client, refuses: &Arc<AtomicBool>) -> Worker {
    let refuses = refuses.clone();
    client
        .worker()
        .interval(Duration::from_millis(50))
        // After the signal: nothing new is taken, handlers have 20 s, and leases are given back.
        .stop_timeout(Duration::from_secs(20))
        .on_error(|error| eprintln!("the worker tries again: {error}"))
        .on(move |_, welcome: Welcome| {
            let refuses = refuses.load(Ordering::SeqCst);
            async move {
                if refuses {
                    return Err("the mail server refuses the address".into());
                }
                println!("mail to {}", welcome.email);
                Ok(())
            }
        })
}

async fn hire(staff: &Table<Employee>, id: u32) -> Result<(), Error> {
    let email = format!("employee{id}@contoso.com");
    let mut egt = staff.transaction();
    egt.insert(&Employee { department: "Sales".into(), id, email: email.clone() })?;
    egt.emit(&Welcome { email })?;
    egt.commit().await.map(drop)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::memory();
    let staff = client.table::<Employee>();
    staff.create().await?;
    let refuses = Arc::new(AtomicBool::new(true));
    let worker = mailer(&client, &refuses);

    // A handler that fails for good: after five tries the message is put aside.
    hire(&staff, 1).await?;
    let done = worker.drain().await?;
    println!("open {}, put aside {}", done.open, done.poisoned);
    assert_eq!((done.open, done.poisoned), (0, 1));

    // An operator looks at it, has the cause mended, and puts it back.
    let poisoned = worker.poisoned().await?;
    for one in &poisoned {
        println!("put aside in {} of {}: {}", one.partition_key, one.table, one.error);
        assert!(one.error.contains("refuses the address"));
        refuses.store(false, Ordering::SeqCst);
        worker.requeue(one).await?;
    }
    assert_eq!(poisoned.len(), 1);
    let status = client.outbox_status().await?;
    println!("waiting now: {} message of {} partition", status.messages, status.partitions);
    assert_eq!(status.messages, 1);

    // Two workers share the work until the signal. In a server they are two processes.
    for id in 2..10 {
        hire(&staff, id).await?;
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let run = |worker: Worker| {
        let mut stopped = stopped.clone();
        tokio::spawn(async move {
            worker.run(async { drop(stopped.wait_for(|stopped| *stopped).await) }).await;
            worker.stats()
        })
    };
    let workers = [worker, mailer(&client, &refuses)].map(run);
    if std::env::args().any(|argument| argument == "--wait") {
        tokio::signal::ctrl_c().await?;
    } else {
        while client.outbox_status().await?.messages > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    stop.send(true)?;
    let mut applied = 0;
    for worker in workers {
        applied += worker.await?.applied;
    }
    println!("both workers stopped after {applied} mails");
    assert_eq!(applied, 9);
    assert_eq!(client.outbox_status().await?.messages, 0);
    Ok(())
}

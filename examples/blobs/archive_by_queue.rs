//! Archives through a queue: the message "archive employee 456" waits in a queue, and a worker takes
//! the employee out of a table and puts it into a directory.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::{path::PathBuf, sync::Arc, time::Duration};

use entable::{Queue, backend::BoxFuture, prelude::*, table::Target};
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TableEntity)]
#[table(name = "Current", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "ArchiveEmployee", version = 1)]
struct ArchiveEmployee {
    department: String,
    id: u32,
}

/// Keeps archived employees: in a directory here, in a container of blobs with another `ObjectStore`.
#[derive(Clone)]
struct Archive(Arc<dyn ObjectStore>);

impl Target<Employee> for Archive {
    /// Writes the employee under a name that depends only on its keys, so that a repetition does no harm.
    fn put<'a>(&'a self, one: &'a Stored<Employee>) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let path = format!("{}/{:06}.json", one.department, one.id);
            self.0.put(&path.into(), serde_json::to_vec(&**one)?.into()).await?;
            Ok(())
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let directory = tempfile::tempdir()?;
    let file = |name: &str| -> PathBuf { directory.path().join(name) };
    let archive = Archive(Arc::new(LocalFileSystem::new_with_prefix(directory.path())?));

    let client = Client::memory();
    let current = client.table::<Employee>();
    current.create().await?;
    for (id, name) in [(456, "Don Jones"), (457, "Ann Hall")] {
        let department = "Sales".to_owned();
        current.insert(&Employee { department, id, name: name.to_owned() }).await?;
    }

    // The queue consists of rows of a table and works on every store. `client.azure_queue(..)` opens
    // one of Azure Storage instead; the rest of this program would not change.
    let queue = client.queue("archive");
    queue.send(&ArchiveEmployee { department: "Sales".into(), id: 456 }).await?;

    println!("sent: archive employee 456");

    // A receiver takes the message for one second and dies. The message is hidden until then, and
    // becomes visible again with a higher dequeue count.
    let doomed = queue.port().receive(1, Duration::from_secs(1)).await?;
    assert_eq!(doomed.iter().map(|one| one.dequeue_count()).collect::<Vec<_>>(), [1]);
    assert!(queue.port().receive(1, Duration::from_secs(1)).await?.is_empty());
    println!("a receiver took the message and died; waiting until it is visible again");
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    // `transfer` writes the directory first, then deletes the entity; then the worker deletes the
    // message. A repetition from any point has one result.
    let target = archive.clone();
    let worker = client.worker().queue(&queue).on(move |cx, message: ArchiveEmployee| {
        let target = target.clone();
        async move {
            assert_eq!(cx.attempts(), 2, "the first one died");
            let point = Employee::primary().department(&*message.department).id(message.id);
            cx.client().table::<Employee>().transfer(point, &target).await?;
            Ok(())
        }
    });
    let stats = worker.drain().await?;
    assert_eq!((stats.applied, stats.poisoned), (1, 0));
    assert!(current.get(Employee::primary().department("Sales").id(456)).await?.is_none());
    assert!(current.get(Employee::primary().department("Sales").id(457)).await?.is_some());
    let archived: Employee = serde_json::from_slice(&std::fs::read(file("Sales/000456.json"))?)?;
    assert_eq!(archived.name, "Don Jones");
    println!("archived {} as Sales/000456.json at the second delivery", archived.name);

    // Poison: a message that fails five times is put aside and kept, with the reason.
    queue.send(&ArchiveEmployee { department: "Sales".into(), id: 457 }).await?;
    let worker = client
        .worker()
        .queue(&queue)
        .on(|_, _: ArchiveEmployee| async { Err("the archive is read-only".into()) });
    assert_eq!(worker.drain().await?.poisoned, 1);
    for poisoned in queue.poisoned(10).await? {
        println!("put aside after five deliveries: {:?}", poisoned.reason());
        assert_eq!(poisoned.reason(), Some("the archive is read-only"));
        queue.requeue(&poisoned).await?;
    }
    assert!(queue.poisoned(10).await?.is_empty());
    Ok(())
}

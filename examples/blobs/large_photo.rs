//! Keeps photos of employees in blobs: upload, range, replacement, and a sweep of what nobody needs.
//!
//! A photo does not fit a row. The field `photo` is kept in a store of blobs, here in memory; the row
//! says where it is, how large, and what it is. No row ever points to a blob that is not there.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::{sync::Arc, time::Duration};

use entable::{Blob, backend::Memory, prelude::*};
use futures_util::stream;
use object_store::memory::InMemory;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    #[table(blob)]
    photo: Option<Blob>,
}

fn don(photo: Option<Blob>) -> Employee {
    Employee { department: "Sales".into(), id: 223, name: "Don Hall".into(), photo }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let store = Arc::new(InMemory::new());
    let client = Client::builder().backend(Memory::new()).blobs(store).build()?;
    let staff: Table<Employee> = client.table();
    staff.create().await?;

    // The verb uploads the photo, then writes the row.
    let photo = Blob::new(vec![1; 3 << 20]).content_type("image/jpeg");
    let mut don = staff.insert(&don(Some(photo))).await?;
    let Some(first) = don.photo.clone() else { return Ok(()) };
    println!("{} bytes of {} are in", first.len(), first.media_type().unwrap_or("unknown type"));
    println!("  {}", first.name().unwrap_or_default());
    assert_eq!(first.len(), 3 << 20);

    // A reader takes what it needs: a beginning, or all, which is verified.
    let head = staff.blob(&first).range(0..16).await?;
    let all = staff.blob(&first).bytes().await?;
    println!("the first {} bytes, then all {}", head.len(), all.len());
    assert_eq!((head.len(), all.len()), (16, 3 << 20));

    // Another photo is another blob; the first one goes once the row points to the second.
    don.photo = Some(Blob::new(vec![2; 1 << 20]).content_type("image/png"));
    let don = staff.replace(&don).await?;
    client.wait_for_copies().await;
    let outlived = staff.blob(&first).bytes().await;
    println!(
        "the first photo now: {}",
        outlived.as_ref().err().map_or(String::new(), Error::to_string)
    );
    assert!(outlived.is_err_and(|error| error.is_stale()));

    // An upload whose row is never written is left over until a sweep meets it. A grace of nothing is for
    // hours in which nobody writes.
    let bytes = stream::once(async { Ok(vec![3; 1 << 20].into()) });
    staff.upload(&don, Employee::PHOTO, bytes).await?;
    let swept = staff.sweep_blobs().grace(Duration::ZERO).await?;
    println!("the sweep removed {} and kept {}", swept.removed, swept.kept);
    assert_eq!((swept.removed, swept.kept), (1, 1));

    staff.delete(&don).await?;
    client.wait_for_copies().await;
    let swept = staff.sweep_blobs().grace(Duration::ZERO).await?;
    assert_eq!((swept.removed, swept.kept), (0, 0), "the last photo went with its row");
    Ok(())
}

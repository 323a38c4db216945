//! Tests the embedded store with hostile files and a full disk.

use std::{fs, path::Path, time::Duration};

use entable::prelude::*;

use crate::{Employee, employee, point};

async fn filled(path: &Path) -> Result<Client, Error> {
    let client = Client::open(path)?;
    client.table::<Employee>().create_if_not_exists().await?;
    Ok(client)
}

#[tokio::test]
async fn a_store_is_there_when_it_is_opened_again() -> Result<(), Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("staff.db");
    let client = filled(&path).await?;
    let staff = client.table::<Employee>();
    let don = staff.insert(&employee(1)).await?;
    let query = staff.query(Employee::primary().department("Sales")).page_size(1);
    staff.insert(&employee(2)).await?;
    let cursor = query.page(None).await?.next.unwrap().to_string();
    let error = Client::open(&path).unwrap_err();
    println!("{error}");
    assert!(error.is_locked(), "{error}");
    drop((client, query));
    let error = Client::open(&path).map(drop);
    assert!(error.is_err_and(|e| e.is_locked()), "the table still holds the client");
    drop(staff);
    let client = Client::open(&path)?;
    let staff = client.table::<Employee>();
    let again = staff.get(point(1)).await?.unwrap();
    assert_eq!((&*again, again.etag()), (&*don, don.etag()));
    let query = staff.query(Employee::primary().department("Sales")).page_size(1);
    assert_eq!(query.page(Some(cursor.parse()?)).await?.items[0].id, 2);
    Ok(())
}

#[test]
fn what_cannot_be_opened_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("no/such/dir/staff.db");
    let error = Client::open(&missing).unwrap_err();
    println!("{error:?}");
    assert!(error.to_string().contains("staff.db"), "{error}");
    let error = Client::open(dir.path()).unwrap_err();
    println!("{error:?}");
    assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
    for (name, bytes) in [
        ("text.db", "Hello, I am a text file\n".repeat(1000).into_bytes()),
        ("short.db", b"x".to_vec()),
        ("zero.db", vec![0; 8192]),
        ("half.db", b"redb\x1A\x0A\xA9\x0D\x0A".to_vec()),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let error = Client::open(&path).unwrap_err();
        println!("{name}: {error:?}");
        assert!(error.is_corrupt(), "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name} was changed");
    }
    let empty = dir.path().join("empty.db");
    fs::write(&empty, b"").unwrap();
    println!("empty: {:?}", Client::open(&empty).map(drop));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_and_long_scans_share_a_file() -> Result<(), Error> {
    let dir = tempfile::tempdir().unwrap();
    let client = filled(&dir.path().join("staff.db")).await?;
    let staff = client.table::<Employee>();
    staff.bulk().insert_all((1..=2000).map(employee)).await?;
    staff.insert(&Employee { age: 0, ..employee(999_999) }).await?;
    let writers: Vec<_> = (0..64)
        .map(|w| {
            let staff = staff.clone();
            tokio::spawn(async move {
                for n in 0..4 {
                    staff.insert(&employee(10_000 + w * 10 + n)).await?;
                }
                loop {
                    match staff.update(point(999_999), |e| Ok(e.age += 1)).await {
                        Err(error) if error.is_contended() => {}
                        other => return other.map(drop),
                    }
                }
            })
        })
        .collect();
    let mut scans = 0;
    let mut rows = staff.query(Employee::scan()).page_size(37).stream();
    let mut last = 0;
    while let Some(row) = rows.next().await {
        let row = row?;
        assert!(row.id > last);
        last = row.id;
        scans += 1;
        if scans % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(scans >= 2001);
    for writer in writers {
        writer.await.unwrap()?;
    }
    assert_eq!(staff.get(point(999_999)).await?.unwrap().age, 64);
    assert_eq!(staff.query(Employee::scan()).collect().await?.len(), 2001 + 256);
    Ok(())
}

#[test]
fn a_client_that_is_dropped_amid_writes_leaves_a_good_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("staff.db");
    for round in 0..5_u32 {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = filled(&path).await.unwrap();
            let staff = client.table::<Employee>();
            for id in 0..40 {
                let staff = staff.clone();
                tokio::spawn(async move { staff.insert(&employee(round * 100 + id)).await });
            }
            tokio::time::sleep(Duration::from_millis(u64::from(round))).await;
        });
        drop(runtime);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = filled(&path).await.unwrap();
        let rows = client.table::<Employee>().query(Employee::scan()).collect().await.unwrap();
        println!("{} rows survived", rows.len());
    });
}

#[test]
fn a_client_works_after_its_first_runtime_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(dir.path().join("staff.db")).unwrap();
    let staff = client.table::<Employee>();
    for id in 1..=3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            staff.create_if_not_exists().await.unwrap();
            staff.insert(&employee(id)).await.unwrap();
            assert_eq!(staff.query(Employee::scan()).collect().await.unwrap().len(), id as usize);
        });
    }
}

/// Run by hand with a small file system: `ENTABLE_FULL=/mnt/small cargo test ...`.
#[tokio::test]
async fn a_full_disk_is_an_error_and_not_a_loss() -> Result<(), Error> {
    let Ok(dir) = std::env::var("ENTABLE_FULL") else { return Ok(()) };
    let path = Path::new(&dir).join("staff.db");
    let _ = fs::remove_file(&path);
    let client = filled(&path).await?;
    let staff = client.table::<Employee>();
    let mut written = 0;
    let error = loop {
        let note = Some("x".repeat(10_000));
        match staff.insert(&Employee { note, ..employee(written + 1) }).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    println!("after {written}: {error:?}");
    for _ in 0..3 {
        println!("again: {:?}", staff.insert(&employee(999_999)).await.map(drop));
    }
    println!("read: {:?}", staff.query(Employee::scan()).collect().await.map(|e| e.len()));
    println!("delete: {:?}", staff.delete_at(point(1)).await);
    drop((staff, client));
    let client = Client::open(&path);
    println!("reopen: {client:?}");
    let staff = client?.table::<Employee>();
    let found = staff.query(Employee::scan()).collect().await?;
    println!("{} of {written}", found.len());
    assert!(found.len() as u32 + 1 >= written);
    println!("write: {:?}", staff.delete_at(point(2)).await);
    Ok(())
}

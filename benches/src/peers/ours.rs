//! entable's store in a file.

use std::{hint::black_box, ops::Range, path::Path, sync::Arc, time::Duration};

use entable::{
    backend::{Durability, Embedded, EmbeddedOptions},
    prelude::*,
};

use super::peer::{CACHE, DEPARTMENT, Employee, Peer, Promise};

/// The most that a crash loses of a relaxed store.
const DELAY: Duration = Duration::from_millis(100);

pub(super) struct Entable {
    store: Arc<Embedded>,
    staff: Table<Employee>,
}

/// Opens the file of a folder with the options of the race.
pub(super) fn open_file(folder: &Path, promise: Promise) -> Arc<Embedded> {
    let durability = match promise {
        Promise::Durable => Durability::Sync,
        Promise::Relaxed => Durability::Relaxed { delay: DELAY },
    };
    let options = EmbeddedOptions::new().durability(durability).cache_bytes(CACHE);
    Arc::new(options.open(folder.join("staff.db")).unwrap())
}

impl Peer for Entable {
    fn open(folder: &Path, promise: Promise) -> Self {
        let store = open_file(folder, promise);
        let staff = Client::builder().backend(store.clone()).build().unwrap().table();
        Self { store, staff }
    }

    async fn get(&self, id: u32) -> u32 {
        let point = Employee::primary().department(id / DEPARTMENT).id(id);
        black_box(self.staff.get(point).await.unwrap().unwrap()).id
    }

    async fn find(&self, department: u32, email: &str) -> u32 {
        let point = Employee::by_email().department(department).email(email);
        black_box(self.staff.get(point).await.unwrap().unwrap()).id
    }

    async fn range(&self, ids: Range<u32>) -> usize {
        let path = Employee::primary().department(ids.start / DEPARTMENT).id_range(ids);
        black_box(self.staff.query(path).collect().await.unwrap()).len()
    }

    /// The store's transactions hold 100 rows, which are 50 entities with their copies.
    async fn load(&self, employees: Vec<Employee>, tasks: usize) {
        self.staff.create_if_not_exists().await.unwrap();
        let report = self.staff.bulk().concurrency(tasks).insert_all(employees).await.unwrap();
        report.into_result().unwrap();
    }

    async fn insert(&self, employee: Employee) {
        self.staff.insert(&employee).await.unwrap();
    }

    async fn change_email(&self, id: u32, email: String) {
        let point = Employee::primary().department(id / DEPARTMENT).id(id);
        let change = |employee: &mut Employee| {
            employee.email.clone_from(&email);
            Ok(())
        };
        self.staff.update(point, change).await.unwrap();
    }

    async fn settle(&self) {
        self.store.flush().await.unwrap();
    }
}

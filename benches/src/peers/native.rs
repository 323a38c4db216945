//! `native_db`: a typed store with a derive, on redb. Each commit is durable.

use std::{hint::black_box, ops::Range, path::Path, sync::LazyLock};

use native_db::{Builder, Database, Models};

use super::peer::{BATCH, CACHE, Employee, EmployeeKey, Peer, Promise};

static MODELS: LazyLock<Models> = LazyLock::new(|| {
    let mut models = Models::new();
    models.define::<Employee>().unwrap();
    models
});

pub(super) struct Native(Database<'static>);

impl Peer for Native {
    fn open(folder: &Path, _: Promise) -> Self {
        let path = folder.join("staff.db");
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE);
        let exists = path.exists();
        let opened =
            if exists { builder.open(&MODELS, path) } else { builder.create(&MODELS, path) };
        Self(opened.unwrap())
    }

    async fn get(&self, id: u32) -> u32 {
        let transaction = self.0.r_transaction().unwrap();
        let found: Employee = transaction.get().primary(id).unwrap().unwrap();
        black_box(found).id
    }

    async fn find(&self, _: u32, email: &str) -> u32 {
        let transaction = self.0.r_transaction().unwrap();
        let found: Option<Employee> =
            transaction.get().secondary(EmployeeKey::email, email).unwrap();
        black_box(found.unwrap()).id
    }

    async fn range(&self, ids: Range<u32>) -> usize {
        let transaction = self.0.r_transaction().unwrap();
        let scan = transaction.scan().primary().unwrap();
        let found: Vec<Employee> = scan.range(ids).unwrap().collect::<Result<_, _>>().unwrap();
        black_box(found).len()
    }

    async fn load(&self, employees: Vec<Employee>, _: usize) {
        for batch in employees.chunks(BATCH) {
            let transaction = self.0.rw_transaction().unwrap();
            for employee in batch {
                transaction.insert(employee.clone()).unwrap();
            }
            transaction.commit().unwrap();
        }
    }

    async fn insert(&self, employee: Employee) {
        let transaction = self.0.rw_transaction().unwrap();
        transaction.insert(employee).unwrap();
        transaction.commit().unwrap();
    }

    async fn change_email(&self, id: u32, email: String) {
        let transaction = self.0.rw_transaction().unwrap();
        let old: Employee = transaction.get().primary(id).unwrap().unwrap();
        let new = Employee { email, ..old.clone() };
        transaction.update(old, new).unwrap();
        transaction.commit().unwrap();
    }

    async fn settle(&self) {}
}

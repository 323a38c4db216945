//! redb without a layer: a table of rows and a table of e-mail addresses, kept in step by hand.

use std::{hint::black_box, ops::Range, path::Path};

use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction,
};

use super::peer::{BATCH, CACHE, Employee, Peer, Promise};

/// Department, first name, last name, age, e-mail address.
type Columns = (u32, &'static str, &'static str, i32, &'static str);

const STAFF: TableDefinition<'_, u32, Columns> = TableDefinition::new("staff");
const EMAILS: TableDefinition<'_, &str, u32> = TableDefinition::new("emails");

pub(super) struct Raw {
    database: Database,
    promise: Promise,
}

fn employee(id: u32, columns: (u32, &str, &str, i32, &str)) -> Employee {
    let (department, first_name, last_name, age, email) = columns;
    let [first_name, last_name, email] = [first_name, last_name, email].map(str::to_owned);
    Employee { department, id, first_name, last_name, age, email }
}

impl Raw {
    /// Commits one transaction, which does `work`.
    fn write(&self, work: impl FnOnce(&WriteTransaction)) {
        let mut transaction = self.database.begin_write().unwrap();
        if self.promise == Promise::Relaxed {
            transaction.set_durability(Durability::None).unwrap();
        }
        work(&transaction);
        transaction.commit().unwrap();
    }

    fn insert_all(&self, employees: &[Employee]) {
        self.write(|transaction| {
            let mut staff = transaction.open_table(STAFF).unwrap();
            let mut emails = transaction.open_table(EMAILS).unwrap();
            employees.iter().for_each(|employee| put(&mut staff, &mut emails, employee));
        });
    }
}

/// Writes a row, whose e-mail address nobody has.
fn put(
    staff: &mut Table<'_, u32, Columns>,
    emails: &mut Table<'_, &'static str, u32>,
    employee: &Employee,
) {
    let Employee { department, id, first_name, last_name, age, email } = employee;
    let holder = emails.insert(&**email, id).unwrap().map(|holder| holder.value());
    assert_eq!(holder, None, "{email} is taken");
    staff.insert(id, (*department, &**first_name, &**last_name, *age, &**email)).unwrap();
}

impl Peer for Raw {
    fn open(folder: &Path, promise: Promise) -> Self {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE);
        let database = builder.create(folder.join("staff.redb")).unwrap();
        let opened = Self { database, promise };
        opened.insert_all(&[]);
        opened
    }

    async fn get(&self, id: u32) -> u32 {
        let transaction = self.database.begin_read().unwrap();
        let staff = transaction.open_table(STAFF).unwrap();
        let found = staff.get(id).unwrap().unwrap();
        black_box(employee(id, found.value())).id
    }

    async fn find(&self, _: u32, email: &str) -> u32 {
        let transaction = self.database.begin_read().unwrap();
        let id = transaction.open_table(EMAILS).unwrap().get(email).unwrap().unwrap().value();
        let found = transaction.open_table(STAFF).unwrap().get(id).unwrap().unwrap();
        black_box(employee(id, found.value())).id
    }

    async fn range(&self, ids: Range<u32>) -> usize {
        let transaction = self.database.begin_read().unwrap();
        let staff = transaction.open_table(STAFF).unwrap();
        let rows = staff.range(ids).unwrap().map(|row| {
            let (id, columns) = row.unwrap();
            employee(id.value(), columns.value())
        });
        black_box(rows.collect::<Vec<_>>()).len()
    }

    async fn load(&self, employees: Vec<Employee>, _: usize) {
        employees.chunks(BATCH).for_each(|batch| self.insert_all(batch));
    }

    async fn insert(&self, employee: Employee) {
        self.insert_all(&[employee]);
    }

    async fn change_email(&self, id: u32, email: String) {
        self.write(|transaction| {
            let mut staff = transaction.open_table(STAFF).unwrap();
            let mut emails = transaction.open_table(EMAILS).unwrap();
            let old = employee(id, staff.get(id).unwrap().unwrap().value());
            emails.remove(&*old.email).unwrap();
            put(&mut staff, &mut emails, &Employee { email, ..old });
        });
    }

    async fn settle(&self) {
        if self.promise == Promise::Relaxed {
            self.database.begin_write().unwrap().commit().unwrap();
        }
    }
}

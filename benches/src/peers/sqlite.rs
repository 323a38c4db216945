//! SQLite with a write-ahead log: one connection behind a mutex, statements prepared once.

use std::{hint::black_box, ops::Range, path::Path, sync::Mutex};

use rusqlite::{Connection, Row, Transaction, params};

use super::peer::{BATCH, CACHE, Employee, Peer, Promise};

pub(super) struct Sqlite {
    connection: Mutex<Connection>,
    promise: Promise,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS staff (department INTEGER NOT NULL, id INTEGER PRIMARY KEY, \
    first_name TEXT NOT NULL, last_name TEXT NOT NULL, age INTEGER NOT NULL, email TEXT NOT NULL)";
const INDEX: &str = "CREATE UNIQUE INDEX IF NOT EXISTS by_email ON staff (email)";
const INSERT: &str = "INSERT INTO staff (department, id, first_name, last_name, age, email) VALUES (?, ?, ?, ?, ?, ?)";
const GET: &str =
    "SELECT department, id, first_name, last_name, age, email FROM staff WHERE id = ?";
const FIND: &str =
    "SELECT department, id, first_name, last_name, age, email FROM staff WHERE email = ?";
const RANGE: &str = "SELECT department, id, first_name, last_name, age, email FROM staff WHERE id >= ? AND id < ? ORDER BY id";
const CHANGE: &str = "UPDATE staff SET email = ? WHERE id = ?";

impl Sqlite {
    /// Opens the table without its index.
    pub(super) fn open_plain(folder: &Path, promise: Promise) -> Self {
        let connection = Connection::open(folder.join("staff.sqlite")).unwrap();
        let set = |name: &str, value: &str| {
            connection.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|error| {
                match error {
                    // Most settings answer with no row.
                    rusqlite::Error::QueryReturnedNoRows => Ok(()),
                    error => Err(error),
                }
            })
        };
        set("journal_mode", "WAL").unwrap();
        set("synchronous", if promise == Promise::Durable { "FULL" } else { "NORMAL" }).unwrap();
        connection
            .pragma_update(None, "cache_size", -i64::try_from(CACHE / 1024).unwrap())
            .unwrap();
        connection.execute(TABLE, ()).unwrap();
        Self { connection: Mutex::new(connection), promise }
    }

    fn read_one(&self, sql: &str, key: impl rusqlite::ToSql) -> u32 {
        let connection = self.connection.lock().unwrap();
        let mut statement = connection.prepare_cached(sql).unwrap();
        black_box(statement.query_row([key], employee).unwrap()).id
    }
}

fn employee(row: &Row<'_>) -> rusqlite::Result<Employee> {
    Ok(Employee {
        department: row.get(0)?,
        id: row.get(1)?,
        first_name: row.get(2)?,
        last_name: row.get(3)?,
        age: row.get(4)?,
        email: row.get(5)?,
    })
}

fn insert(connection: &Connection, employee: &Employee) {
    let Employee { department, id, first_name, last_name, age, email } = employee;
    let mut statement = connection.prepare_cached(INSERT).unwrap();
    statement.execute(params![department, id, first_name, last_name, age, email]).unwrap();
}

impl Peer for Sqlite {
    fn open(folder: &Path, promise: Promise) -> Self {
        let opened = Self::open_plain(folder, promise);
        opened.connection.lock().unwrap().execute(INDEX, ()).unwrap();
        opened
    }

    async fn get(&self, id: u32) -> u32 {
        self.read_one(GET, id)
    }

    async fn find(&self, _: u32, email: &str) -> u32 {
        self.read_one(FIND, email)
    }

    async fn range(&self, ids: Range<u32>) -> usize {
        let connection = self.connection.lock().unwrap();
        let mut statement = connection.prepare_cached(RANGE).unwrap();
        let rows = statement.query_map([ids.start, ids.end], employee).unwrap();
        black_box(rows.collect::<Result<Vec<_>, _>>().unwrap()).len()
    }

    async fn load(&self, employees: Vec<Employee>, _: usize) {
        let mut connection = self.connection.lock().unwrap();
        for batch in employees.chunks(BATCH) {
            let transaction: Transaction<'_> = connection.transaction().unwrap();
            batch.iter().for_each(|employee| insert(&transaction, employee));
            transaction.commit().unwrap();
        }
    }

    async fn insert(&self, employee: Employee) {
        insert(&self.connection.lock().unwrap(), &employee);
    }

    async fn change_email(&self, id: u32, email: String) {
        let connection = self.connection.lock().unwrap();
        let mut statement = connection.prepare_cached(CHANGE).unwrap();
        assert_eq!(statement.execute(params![email, id]).unwrap(), 1);
    }

    async fn settle(&self) {
        if self.promise == Promise::Relaxed {
            let connection = self.connection.lock().unwrap();
            let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
            connection.query_row(checkpoint, (), |_| Ok(())).unwrap();
        }
    }
}

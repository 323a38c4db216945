//! What the race asks of a store, and the entity that every store keeps.

use std::{future::Future, ops::Range, path::Path};

use entable::prelude::*;
use native_db::{ToKey, native_db};
use native_model::{Model, native_model};
use serde::{Deserialize, Serialize};

/// Employees of a department, which is a partition in entable and a column elsewhere.
pub(super) const DEPARTMENT: u32 = 10_000;
/// Bytes of memory in which each store may keep pages.
pub(super) const CACHE: usize = 64 * 1024 * 1024;
/// Entities of a transaction of a bulk load.
pub(super) const BATCH: usize = 100;

/// The entity of every store: entable and native_db derive their schemas from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "dept_{department:04}",
    row_key = "empid_{id:08}",
    index(ByEmail, row_key = "email_{email}", unique)
)]
#[native_model(id = 1, version = 1)]
#[native_db]
pub(super) struct Employee {
    pub(super) department: u32,
    #[primary_key]
    pub(super) id: u32,
    pub(super) first_name: String,
    pub(super) last_name: String,
    pub(super) age: i32,
    #[secondary_key(unique)]
    pub(super) email: String,
}

impl Employee {
    pub(super) fn new(id: u32) -> Self {
        Self {
            department: id / DEPARTMENT,
            id,
            first_name: format!("First{}", id % 977),
            last_name: format!("Last{}", id % 1009),
            age: i32::try_from(20 + id % 50).unwrap(),
            email: email(id),
        }
    }
}

/// Returns the address that the employee of that number has at first.
pub(super) fn email(id: u32) -> String {
    format!("person{id}@contoso.com")
}

/// Says whether an acknowledged write is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// The write is on disk.
    Durable,
    /// Readers see the write. It is on disk some time later.
    Relaxed,
}

impl Promise {
    /// Returns the word that the names of figures have.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Relaxed => "relaxed",
        }
    }
}

/// A store in the race. Each call makes its own transaction, and each read builds whole entities.
///
/// Stores that block do so inside the future: they have no other way to be called.
pub(super) trait Peer: Sized + Send + Sync + 'static {
    /// Opens the store in a folder, or creates it there. A store that is always durable ignores the promise.
    fn open(folder: &Path, promise: Promise) -> Self;

    /// Reads an entity by its key, and returns its number.
    fn get(&self, id: u32) -> impl Future<Output = u32> + Send;

    /// Reads the entity with that e-mail address by the index, and returns its number.
    fn find(&self, department: u32, email: &str) -> impl Future<Output = u32> + Send;

    /// Reads the entities of a range of keys, all of one department, and returns how many there are.
    fn range(&self, ids: Range<u32>) -> impl Future<Output = usize> + Send;

    /// Inserts entities in transactions of [`BATCH`]. Stores that let one transaction write at a time ignore `tasks`.
    fn load(&self, employees: Vec<Employee>, tasks: usize) -> impl Future<Output = ()> + Send;

    /// Inserts one entity.
    fn insert(&self, employee: Employee) -> impl Future<Output = ()> + Send;

    /// Changes the e-mail address of an entity, and with it the key of its index.
    fn change_email(&self, id: u32, email: String) -> impl Future<Output = ()> + Send;

    /// Puts all acknowledged writes on disk.
    fn settle(&self) -> impl Future<Output = ()> + Send;
}

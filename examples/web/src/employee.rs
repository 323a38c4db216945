//! The entity, and its forms in requests and responses.

use entable::prelude::*;
use serde::{Deserialize, Serialize};

use crate::etag;

/// An employee. The index in another partition makes its e-mail unique, and needs a worker.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "email", unique)
)]
pub struct Employee {
    /// The department, the first part of the address.
    pub department: String,
    /// The number, the second part of the address.
    pub id: u32,
    /// The name.
    pub name: String,
    /// The e-mail.
    pub email: String,
}

/// The body of a PUT. The address has the keys.
#[derive(Debug, Deserialize)]
pub struct Written {
    name: String,
    email: String,
}

impl Written {
    /// Returns the employee at an address.
    pub fn at(self, department: String, id: u32) -> Employee {
        Employee { department, id, name: self.name, email: self.email }
    }
}

/// The body of a response.
#[derive(Debug, Serialize)]
pub struct Shown {
    id: u32,
    name: String,
    email: String,
    /// The header `ETag` of the employee, so that a list is enough to begin a change.
    etag: String,
}

impl From<Stored<Employee>> for Shown {
    fn from(stored: Stored<Employee>) -> Self {
        let etag = etag::to_header(&Stored::etag(&stored));
        let Employee { id, name, email, .. } = stored.into_inner();
        Self { id, name, email, etag }
    }
}

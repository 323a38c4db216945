//! Tests that a crate which denies undocumented items can derive.

use entable::prelude::*;

/// An entity.
#[derive(Debug, TableEntity)]
#[table(name = "Docs", partition_key = "{id:bucket(2)}", row_key = "{at:%Y}_{id}_{at:desc}")]
pub struct Documented {
    /// Its number.
    pub id: u32,
    /// Its time.
    pub at: time::OffsetDateTime,
    /// Its text.
    pub text: Option<String>,
    /// Its list.
    #[table(json)]
    pub list: Vec<String>,
    /// Its part.
    #[table(flatten)]
    pub part: Part,
}

/// A part.
#[derive(Debug, Properties)]
pub struct Part {
    /// Its size.
    pub size: i32,
}

/// A kind.
#[derive(Debug, EdmEnum)]
pub enum Kind {
    /// One.
    One,
}

/// Some of it.
#[derive(Debug, Projection)]
#[table(of = Documented)]
pub struct Some {
    /// Its text.
    pub text: Option<String>,
}

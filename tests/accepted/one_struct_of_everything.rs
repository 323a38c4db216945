//! Everything that a struct may say.
#![deny(missing_docs, warnings)]
#![forbid(unsafe_code)]

use entable::prelude::*;
use time::{Date, OffsetDateTime};

/// An entity.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Everything",
    partition_key = "{group:lower}-{id:bucket(16)}",
    row_key = "{{{day:%Y%m%d}}}_{at:desc}_{id:08}",
    entity_type = "Thing",
    discriminator = "Kind",
    rename_all = "camelCase",
    validate = check,
    allow(hot_partition)
)]
pub struct Everything {
    /// Its group.
    pub group: String,
    /// Its number.
    #[table(store)]
    pub id: u32,
    /// Its day.
    pub day: Date,
    /// Its time.
    pub at: OffsetDateTime,
    /// Its state.
    pub state: Option<State>,
    /// Its words.
    #[table(json, default)]
    pub words: Vec<String>,
    /// Its place.
    #[table(flatten(prefix = "place_"))]
    pub place: Option<Place>,
    /// Its note.
    #[table(rename = "remark", default = no_note)]
    pub note: String,
    #[table(skip)]
    cache: Option<u8>,
    /// Its rest.
    #[table(extra)]
    pub rest: Bag,
}

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
pub enum State {
    /// At work.
    Open,
    /// Done.
    #[table(rename = "done")]
    Closed,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Place {
    /// Its town.
    pub town: String,
}

/// Some of it.
#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Everything)]
pub struct Some {
    /// Its day.
    pub day: Date,
    /// Its words.
    pub words: Vec<String>,
    /// Its place.
    pub place: Option<Place>,
}

fn check(_: &Everything) -> Result<(), Error> {
    Ok(())
}

fn no_note() -> String {
    String::new()
}

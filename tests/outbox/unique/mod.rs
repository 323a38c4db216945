//! Tests values that are unique across partitions.

mod etags;
mod lost;
mod reading;
mod table_case;
mod verbs;
mod worker;
mod world;

pub(crate) use self::world::{Person, World, by_email, person};

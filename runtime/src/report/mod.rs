//! Describes the layout of entity types for people: as Markdown, and as one HTML page with pictures,
//! with figures of a store if there is one.

mod example;
mod model;
mod paths;
mod warnings;
mod describe;
mod numbers;
mod figures;
mod markdown;
mod draw;
mod picture;
mod html;
mod page;

pub use page::Report;

//! Compiles what derives must accept and runs it. It is no test harness: in one, the compiler does not look for items
//! without documentation, which two of the modules deny.

#![allow(clippy::duplicated_attributes)]

pub mod deprecated;
pub mod list_elsewhere;
mod macro_fragments;
pub mod one_struct_of_everything;
pub mod private_in_public;
pub mod series;
mod settings_of_fragments;

fn main() {
    deprecated::main();
    list_elsewhere::main();
    macro_fragments::main();
    private_in_public::main();
    series::main();
    settings_of_fragments::main();
}

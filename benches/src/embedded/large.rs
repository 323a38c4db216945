//! A million rows.

pub(crate) fn run() {}
pub(crate) fn is_child(_arguments: &[String]) -> bool {
    false
}
pub(crate) fn child(_arguments: &[String]) {}

//! Catches panics of the engine, which panics on some damaged pages, and keeps their text from standard error.
//!
//! The text of a panic is written by the process's panic hook, before the panic can be caught. So the first catch
//! installs a hook in front of the present one. It is silent for panics of the engine, and calls the present one for
//! all others. A program that sets a hook of its own afterwards replaces it, and decides about the engine's text too.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::Once,
};

thread_local! {
    /// Whether this thread runs work of the engine whose panics are caught.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of the engine. Returns `None` if it panicked.
pub(crate) fn catch_engine_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(install_hook);
    run_with(true, work)
}

/// Runs code of the user inside work of the engine. Returns `None` if it panicked, with its text on standard error.
pub(crate) fn catch_user_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    run_with(false, work)
}

fn run_with<T>(is_caught: bool, work: impl FnOnce() -> T) -> Option<T> {
    let before = IS_CAUGHT.replace(is_caught);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.ok()
}

fn install_hook() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() {
            others(panic);
        } else if cfg!(panic = "abort") {
            say_why_process_ends();
        }
    }));
}

/// Prints the reason in a program that aborts on panic, since it cannot return an error.
fn say_why_process_ends() {
    use std::io::Write;

    let why = "entable: a page of a store's file is damaged. This program was built with `panic = \"abort\"`, so it \
               ends now. Check the file with `entable verify`, and restore it from a backup.";
    // Nothing is left to do if nobody reads standard error.
    let _ = writeln!(std::io::stderr(), "{why}");
}

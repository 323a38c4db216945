use entable::prelude::*;

fn main() {
    let _ = Client::memory().worker().on(|_, _: String| async { Ok(()) });
}

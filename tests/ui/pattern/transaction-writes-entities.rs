use entable::prelude::*;

struct Employee;

entable::access_patterns! {
    STAFF;
    "hire two" write transaction().insert::<Employee>().times(2) at 2/h;
}

fn main() {}

use entable::prelude::*;

struct Employee;

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {}

fn main() {}

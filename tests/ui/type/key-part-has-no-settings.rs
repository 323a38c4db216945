use entable::prelude::*;

#[derive(Clone, KeyPart)]
struct EmployeeId(#[table(rename = "Id")] u32);

fn main() {}

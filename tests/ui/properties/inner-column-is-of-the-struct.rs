use entable::prelude::*;

#[derive(Properties)]
struct Address {
    city: String,
    #[table(flatten)]
    geo: Geo,
}

#[derive(Properties)]
struct Geo {
    x: f64,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "r")]
struct Employee {
    #[table(flatten)]
    home: Address,
}

fn main() {
    let _ = Employee::HOME.at(Address::GEO).at(Geo::X).gt(1.0);
    let _ = Employee::HOME.at(Geo::X);
    let _ = Employee::HOME.at(Geo::X).gt(1.0);
}

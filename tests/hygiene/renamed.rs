//! Tests the runtime under another path.

mod storage {
    pub(crate) use ::entable as tables;
}

use storage::tables::{EdmEnum, FromRow, Projection, Properties, TableEntity};

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{id}",
    row_key = "r",
    crate = "crate::renamed::storage::tables"
)]
struct Employee {
    id: u32,
    kind: Kind,
    #[table(flatten)]
    home: Address,
}

#[derive(EdmEnum)]
#[table(crate = "crate::renamed::storage::tables")]
enum Kind {
    Full,
}

#[derive(Properties)]
#[table(crate = "crate::renamed::storage::tables")]
struct Address {
    city: String,
}

#[derive(Projection)]
#[table(of = Employee, crate = "crate::renamed::storage::tables")]
struct Contact {
    kind: Kind,
}

#[test]
fn a_row_and_back() {
    let home = Address { city: "Bonn".into() };
    let row = Employee { id: 1, kind: Kind::Full, home }.to_row().unwrap();
    let employee = Employee::from_row(&row).unwrap();
    assert_eq!((employee.id, employee.home.city.as_str()), (1, "Bonn"));
    assert!(matches!(employee.kind, Kind::Full));
    assert!(matches!(Contact::from_row(&row).unwrap().kind, Kind::Full));
}

//! Tests `validate`: the user's own check.

use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "r", validate = Employee::check_age)]
struct Employee {
    age: i32,
}

impl Employee {
    fn check_age(&self) -> Result<(), &'static str> {
        if self.age < 0 { Err("nobody is younger than 0") } else { Ok(()) }
    }
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "r")]
struct Unchecked {
    age: i32,
}

#[test]
fn what_it_says_is_what_check_says() {
    assert!(Employee { age: 1 }.check().is_ok());
    let error = Employee { age: -1 }.check().unwrap_err();
    assert_eq!(error.to_string(), "nobody is younger than 0");
    let unchecked = Unchecked { age: -1 };
    assert!(unchecked.check().is_ok() && unchecked.age == -1);
}

//! Declarations that a macro makes of fragments, each of which reaches the derive in an invisible group.
#![deny(warnings)]
#![allow(dead_code)]
#![forbid(unsafe_code)]

use entable::prelude::*;

macro_rules! declare {
    (
        $name:ident, $table:literal, $partition_key:literal, $row_key:literal, $slots:literal,
        $pattern:literal, $text:ty, $optional:ty, $reference:ty, $until:ty, $check:path,
        $field:ident, $version:literal, $default:expr, $visible:vis
    ) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = $table,
            partition_key = $partition_key,
            row_key = $row_key,
            entity_type = $table,
            version = $version,
            validate = $check,
            expires = until,
            crate = "::entable",
            index(ByAge, row_key = "age_{age:03}_{id:06}", only($field, until), when = $name::is_old)
        )]
        $visible struct $name {
            $visible id: u32,
            age: u8,
            $field: $text,
            #[table(series)]
            sent: [u32; $slots],
            #[table(series($pattern))]
            read: [$optional; $slots],
            #[table(split($slots))]
            notes: $text,
            #[table(encrypt(pad = $slots, hide_none))]
            secret: $optional,
            #[table(flatten)]
            manager: $reference,
            until: $until,
            #[table(default = $default)]
            level: u8,
        }

        impl $name {
            fn is_old(&self) -> bool {
                self.age > 60
            }
        }

        #[derive(Debug, Projection)]
        #[table(of = $name)]
        $visible struct Names {
            $visible id: u32,
            $field: $text,
        }

        #[derive(Debug, EntitySet)]
        $visible enum Rows {
            Employee(Box<$name>),
            #[table(other)]
            Other(DynamicEntity),
        }

        #[derive(Debug, EntitySet)]
        $visible struct Page {
            #[table(many)]
            employees: Vec<$name>,
        }
    };
}

declare!(
    Employee,
    "Staff",
    "all",
    "empid_{id:06}",
    4,
    "Day{:02}",
    String,
    Option<u32>,
    Option<KeyRef<Employee>>,
    Option<time::OffsetDateTime>,
    check,
    name,
    2,
    one,
    pub(crate)
);

fn check(employee: &Employee) -> Result<(), BoxError> {
    if employee.name.is_empty() { Err("a name is needed".into()) } else { Ok(()) }
}

fn one() -> u8 {
    1
}

/// The macro's entity has all properties and methods that it would have without the macro.
pub(crate) fn main() {
    let patch = Employee::patch().sent(3, 7_u32).remove_read(2).remove_secret().remove_until();
    let patch: entable::Patch<Employee> = patch.level(2).into();
    assert!(patch.into_changes().is_ok());
    let names: Vec<&str> = Employee::SCHEMA.columns.iter().map(|column| column.name).collect();
    for name in ["Sent3", "Day03", "Notes_4", "Secret", "Until"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    let page = Page { employees: Vec::new() };
    assert!(page.employees.is_empty());
}

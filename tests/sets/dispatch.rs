//! Tests how a row finds its member: many members, similar values, keys with common prefixes, wrong
//! types.

use entable::{EntitySet, Row, prelude::*};

mod keyed {
    use super::*;

    macro_rules! keyed {
        ($($name:ident $partition:literal $row:literal,)*) => {
            $(#[derive(Debug, Clone, PartialEq, TableEntity)]
            #[table(
                name = "Staff",
                partition_key = $partition,
                row_key = $row,
                discriminator = row_key
            )]
            pub struct $name {
                pub p: String,
                pub id: u32,
            })*

            #[derive(Debug, Clone, PartialEq, EntitySet)]
            pub enum Any { $($name($name)),* }

            pub fn all() -> Vec<Any> {
                vec![$(Any::$name($name { p: "Sales".into(), id: 7 })),*]
            }
        };
    }

    keyed! {
        Short "{p}" "a_{id:04}",
        Long "{p}" "a_b_{id:04}",
        Longer "{p}" "a_b_c_{id:04}",
        Two "{p}" "a_{id:02}",
        Below "{p}" "Z_{id:04}",
        Between "{p}" "a_a_{id:04}",
        Above "{p}" "a_b_z{id:04}",
        Wide "{p}" "\u{e9}t\u{e9}_{id:04}",
        ByPartition "other_{p}" "{id:09}",
        AlsoByPartition "third_{p}" "{id:09}",
    }
}

#[test]
fn keys_that_begin_alike_are_told_apart() {
    let rows: Vec<(Row, keyed::Any)> = keyed::all().into_iter().map(row_of).collect();
    for (row, any) in rows {
        assert_eq!(keyed::Any::from_row(&row).unwrap(), any, "{row:?}");
    }
    for key in ["", "a", "a_", "a_1", "a_12345", "a_b_", "a_b_c_d", "b", "Z_", "\u{10ffff}"] {
        let row = Row::build("Sales", key).finish().unwrap();
        let error = keyed::Any::from_row(&row).unwrap_err();
        assert!(error.is_unrecognized_entity(), "{key}: {error}");
    }
}

fn row_of(any: keyed::Any) -> (Row, keyed::Any) {
    use keyed::Any;
    let row = match &any {
        Any::Short(e) => e.to_row(),
        Any::Long(e) => e.to_row(),
        Any::Longer(e) => e.to_row(),
        Any::Two(e) => e.to_row(),
        Any::Below(e) => e.to_row(),
        Any::Between(e) => e.to_row(),
        Any::Above(e) => e.to_row(),
        Any::Wide(e) => e.to_row(),
        Any::ByPartition(e) => e.to_row(),
        Any::AlsoByPartition(e) => e.to_row(),
    };
    (row.unwrap(), any)
}

mod alike {
    use super::*;

    macro_rules! alike {
        ($($name:ident $entity_type:literal $row:literal,)*) => {
            $(#[derive(Debug, Clone, PartialEq, TableEntity)]
            #[table(
                name = "Staff",
                partition_key = "{p}",
                row_key = $row,
                entity_type = $entity_type
            )]
            pub struct $name {
                pub p: String,
                pub id: u32,
            })*

            #[derive(Debug, Clone, PartialEq, EntitySet)]
            pub enum Any { $($name($name)),* }

            pub fn all() -> Vec<(Row, Any, &'static str)> {
                vec![$({
                    let value = $name { p: "Sales".into(), id: 7 };
                    (value.to_row().unwrap(), Any::$name(value), $entity_type)
                }),*]
            }
        };
    }

    // The search compares the last eight bytes and the length first.
    alike! {
        A "AEmployees" "a_{id:04}",
        B "BEmployees" "b_{id:04}",
        C "Employees" "c_{id:04}",
        D "employees" "d_{id:04}",
        E "E" "e_{id:04}",
        F "\u{e9}" "f_{id:04}",
        G "it's a \"type\"" "g_{id:04}",
        H "Employee.w2" "h_{id:04}",
        I "Employee.vx" "i_{id:04}",
        J " " "j_{id:04}",
    }
}

#[tokio::test]
async fn types_that_look_alike_are_told_apart() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let staff = client.set::<alike::Any>("Staff");
    for (row, any, entity_type) in alike::all() {
        assert_eq!(alike::Any::from_row(&row).unwrap(), any, "{entity_type}");
        staff.insert(&any).await?;
        let lie = DynamicEntity::new("Sales", "lie").with("EntityType", format!("X{entity_type}"));
        let error = alike::Any::from_row(&lie.to_row()?).unwrap_err();
        assert!(error.is_unrecognized_entity());
        assert_eq!(error.entity_type().unwrap(), format!("X{entity_type}"));
    }
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    assert_eq!(rows.len(), 10);
    let typed = client.table::<alike::G>().query(alike::G::scan());
    assert_eq!(typed.collect().await?.len(), 1);
    Ok(())
}

mod versioned {
    use super::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(name = "Staff", partition_key = "{p}", row_key = "w_{id}", entity_type = "Worker")]
    pub struct Old {
        pub p: String,
        pub id: u32,
        pub name: String,
    }

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{p}",
        row_key = "w_{id}",
        version = 2,
        upgrade_from(Old)
    )]
    pub struct Worker {
        pub p: String,
        pub id: u32,
        pub full_name: String,
    }

    impl From<Old> for Worker {
        fn from(Old { p, id, name }: Old) -> Self {
            Self { p, id, full_name: name }
        }
    }

    #[derive(Debug, PartialEq, Projection)]
    #[table(of = Worker)]
    pub struct Name {
        pub full_name: String,
    }

    #[derive(Debug, EntitySet)]
    pub enum Any {
        Worker(Worker),
    }

    #[derive(Debug, PartialEq, EntitySet)]
    pub enum Names {
        Name(Name),
    }
}

#[tokio::test]
async fn a_selection_reads_old_rows_too() -> Result<(), Error> {
    use versioned::{Any, Name, Names, Old, Worker};
    let client = Client::memory();
    client.create_table("Staff").await?;
    let (p, name) = ("Sales".to_owned(), "Don".to_owned());
    client.table::<Old>().insert(&Old { p: p.clone(), id: 1, name: name.clone() }).await?;
    client.table::<Worker>().insert(&Worker { p, id: 2, full_name: name }).await?;
    let rows = client.set::<Any>("Staff").query(Keys::partition("Sales")).select::<Names>();
    assert!(rows.explain().select.is_empty(), "old rows have other properties");
    let don = || Names::Name(Name { full_name: "Don".into() });
    let found: Vec<Names> = rows.collect().await?.into_iter().map(Stored::into_inner).collect();
    assert_eq!(found, [don(), don()]);
    Ok(())
}

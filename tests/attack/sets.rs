//! Tests sets with hostile names, many members, and rows that name a wrong type.

use entable::{DynamicEntity, EntitySet, Row, prelude::*};

/// Names of the prelude, of the language, and of what derives call things.
#[allow(non_camel_case_types, clippy::enum_variant_names, reason = "users write them too")]
mod hostile {
    use entable::{EntitySet, TableEntity};

    macro_rules! members {
        ($($name:ident $variant:ident $row:literal,)*) => {
            $(#[derive(Debug, Clone, PartialEq, TableEntity)]
            #[table(name = "Staff", partition_key = "{p}", row_key = $row)]
            pub(crate) struct $name {
                pub(crate) p: std::string::String,
                pub(crate) id: u32,
            })*

            #[derive(Debug, Clone, PartialEq, EntitySet)]
            pub(crate) enum Row { $($variant($name),)* }

            pub(crate) fn all() -> std::vec::Vec<(Row, &'static str)> {
                std::vec![$((Row::$variant($name { p: "p".into(), id: 1 }), stringify!($name))),*]
            }
        };
    }

    members! {
        Option Ok "a_{id}",
        Result Err "b_{id}",
        Vec Some "c_{id}",
        String None "d_{id}",
        Claim Self_ "e_{id}",
        Members r#type "f_{id}",
        Marker Row "g_{id}",
        r#match Marker "h_{id}",
        Stored __claim "i_{id}",
        Größe Größe "j_{id}",
        Default EntitySet "k_{id}",
        Box Result "l_{id}",
    }
}

#[tokio::test]
async fn members_may_be_called_anything() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let staff = client.set::<hostile::Row>("Staff");
    let all = hostile::all();
    let mut egt = staff.transaction();
    for (row, _) in &all {
        egt.insert(row)?;
    }
    egt.commit().await?;
    let rows = staff.query(Keys::partition("p")).collect().await?;
    for (found, (row, name)) in rows.iter().zip(&all) {
        assert_eq!(**found, *row);
        assert_eq!(found.member_name(), name.trim_start_matches("r#"));
    }
    assert_eq!(rows.len(), all.len());
    let report = staff.bulk().update_all(staff.query(Keys::partition("p")), |_| Ok(())).await?;
    assert_eq!(report.done, 12, "{report:?}");
    assert_eq!(staff.bulk().delete_all(rows).await?.done, 0, "they changed since");
    let rows = staff.query(Keys::partition("p")).collect().await?;
    assert_eq!(staff.bulk().delete_all(rows).await?.done, 12);
    Ok(())
}

macro_rules! many {
    ($($name:ident $row:literal $how:tt,)*) => {
        $(many!(@one $name $row $how);)*

        #[derive(Debug, Clone, PartialEq, EntitySet)]
        enum Many { $($name($name),)* #[table(other)] Other(DynamicEntity) }

        #[derive(Debug, EntitySet)]
        #[allow(non_snake_case, dead_code, reason = "named by a macro, two of them read")]
        struct Fold { $(#[table(one)] $name: Option<$name>,)* #[table(other)] rest: Vec<DynamicEntity> }

        fn many() -> Vec<Many> {
            vec![$(Many::$name($name { p: "p".into(), id: 1 }),)*]
        }
    };
    (@one $name:ident $row:literal property) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "{p}", row_key = $row)]
        struct $name { p: String, id: u32 }
    };
    (@one $name:ident $row:literal key) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "{p}", row_key = $row, discriminator = row_key)]
        struct $name { p: String, id: u32 }
    };
}

many! {
    M00 "m00_{id}" property, M01 "m01_{id}" key, M02 "m02_{id}" property, M03 "m03_{id}" property,
    M04 "m04_{id}" property, M05 "m05_{id}" key, M06 "m06_{id}" property, M07 "m07_{id}" property,
    M08 "m08_{id}" property, M09 "m09_{id}" key, M10 "m10_{id}" property, M11 "m11_{id}" property,
    M12 "m12_{id}" property, M13 "m13_{id}" key, M14 "m14_{id}" property, M15 "m15_{id}" property,
    M16 "m16_{id}" property, M17 "m17_{id}" key, M18 "m18_{id}" property, M19 "m19_{id}" property,
    M20 "m20_{id}" property, M21 "m21_{id}" key, M22 "m22_{id}" property, M23 "m23_{id}" property,
    M24 "m24_{id}" property, M25 "m25_{id}" key, M26 "m26_{id}" property, M27 "m27_{id}" property,
    M28 "m28_{id}" property, M29 "m29_{id}" key, M30 "m30_{id}" property, M31 "m31_{id}" property,
    M32 "m32_{id}" property, M33 "m33_{id}" key, M34 "m34_{id}" property, M35 "m35_{id}" property,
    M36 "m36_{id}" property, M37 "m37_{id}" key, M38 "m38_{id}" property, M39 "m39_{id}" property,
    M40 "m40_{id}" property, M41 "m41_{id}" key, M42 "m42_{id}" property, M43 "m43_{id}" property,
    M44 "m44_{id}" property, M45 "m45_{id}" key, M46 "m46_{id}" property, M47 "m47_{id}" property,
    M48 "m48_{id}" property, M49 "m49_{id}" key, M50 "m50_{id}" property, M51 "m51_{id}" property,
    M52 "m52_{id}" property, M53 "m53_{id}" key, M54 "m54_{id}" property, M55 "m55_{id}" property,
    M56 "m56_{id}" property, M57 "m57_{id}" key, M58 "m58_{id}" property, M59 "m59_{id}" property,
}

#[tokio::test]
async fn sixty_members_are_told_apart() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let staff = client.set::<Many>("Staff");
    assert_eq!(staff.bulk().insert_all(many()).await?.done, 60);
    let rows = staff.query(Keys::partition("p")).collect().await?;
    assert!(rows.iter().map(|row| &**row).eq(&many()));
    let fold = client.set::<Fold>("Staff").load(Keys::partition("p")).await?;
    assert!(fold.M00.is_some() && fold.M57.is_some() && fold.rest.is_empty());
    let stray = DynamicEntity::new("p", "m61_1").with("EntityType", "M61");
    client.dynamic("Staff").insert(&stray).await?;
    assert_eq!(*staff.get(("p", "m61_1")).await?.unwrap(), Many::Other(stray));
    Ok(())
}

mod staff {
    use entable::{EntitySet, Projection, TableEntity};

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        index(ByEmail, row_key = "email_{email:lower}"),
        index(ByAge, row_key = "age_{age}_{id:06}", only(email))
    )]
    pub(crate) struct Employee {
        pub(crate) department: String,
        pub(crate) id: u32,
        pub(crate) age: i32,
        pub(crate) email: String,
        pub(crate) desk: String,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "intern_{id:06}",
        discriminator = "Kind"
    )]
    pub(crate) struct Intern {
        pub(crate) department: String,
        pub(crate) id: u32,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "review_{id:06}",
        discriminator = row_key
    )]
    pub(crate) struct Review {
        pub(crate) department: String,
        pub(crate) id: u32,
    }

    #[derive(Debug, Clone, PartialEq, EntitySet)]
    pub(crate) enum Row {
        Employee(Employee),
        Intern(Intern),
        Review(Review),
    }

    #[derive(Debug, PartialEq, Projection)]
    #[table(of = Employee)]
    pub(crate) struct Email {
        pub(crate) id: u32,
        pub(crate) email: String,
    }

    #[derive(Debug, PartialEq, EntitySet)]
    pub(crate) enum Emails {
        Email(Email),
    }
}

fn employee(id: u32) -> staff::Employee {
    staff::Employee {
        department: "Sales".into(),
        id,
        age: 34,
        email: format!("{id}@contoso.com"),
        desk: "4".into(),
    }
}

/// Returns how the set reads a row of those keys and that type.
fn read(row_key: &str, properties: &[(&str, &str)]) -> Result<staff::Row, Error> {
    let mut row = DynamicEntity::new("Sales", row_key);
    for (name, value) in properties {
        row.set(*name, *value);
    }
    staff::Row::from_row(&row.to_row()?)
}

#[test]
fn a_type_is_what_is_written_and_nothing_like_it() {
    for lie in [
        "employee",
        "Employee ",
        " Employee",
        "Employee\0",
        "Employee.v0",
        "Employee.v01",
        "Employee.v2",
        "Employee.v99999999999999999999",
        "Employee.v1.v1",
        "Employee#",
        "Employee#Nobody",
        "Employee#ByEmail#ByEmail",
        "Employee.v1#Nobody",
        "#ByEmail",
        "EmployeeX",
        "mployee",
        "",
        "entable.list",
        "Intern",
        "Review",
    ] {
        let error = read("empid_000001", &[("EntityType", lie)]).unwrap_err();
        assert!(error.is_unrecognized_entity(), "{lie:?}: {error}");
        assert_eq!(error.keys(), Some(("Sales", "empid_000001")), "{lie:?}");
    }
}

#[test]
fn the_first_property_that_names_a_member_decides() {
    let both = [("Kind", "Intern"), ("EntityType", "Employee")];
    // It says that it is an employee, first of all, and is none.
    let error = read("intern_000001", &both).unwrap_err();
    assert!(error.is_decode() && error.entity_type() == Some("Employee"), "{error}");
    let stranger = [("EntityType", "Note"), ("Kind", "Intern")];
    assert!(matches!(read("intern_000001", &stranger), Ok(staff::Row::Intern(_))));
    // A type in the property of another member's is no type.
    let error = read("intern_000001", &[("EntityType", "Intern")]).unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
    let error = read("empid_000001", &[("Kind", "Employee")]).unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
    // A key says nothing against a property that names a member.
    let error = read("review_000001", &[("Kind", "Intern")]).unwrap_err();
    assert!(error.is_decode(), "{error}");
    assert!(matches!(read("review_000001", &[("Kind", "Note")]), Ok(staff::Row::Review(_))));
    for key in ["review_1", "review_0000001", "Review_000001", "review_00000a", "~ereview_000001"] {
        assert!(read(key, &[]).unwrap_err().is_unrecognized_entity(), "{key}");
    }
}

async fn stored() -> Client {
    let client = Client::memory();
    client.create_table("Staff").await.unwrap();
    client.bulk().insert_all((1..=3).map(employee)).await.unwrap().into_result().unwrap();
    client
}

#[tokio::test]
async fn a_selection_has_the_copies_that_were_asked_for_before_it() -> Result<(), Error> {
    let client = stored().await;
    let rows = client.set::<staff::Row>("Staff").query(Keys::partition("Sales"));
    let names = |rows: Vec<Stored<staff::Emails>>| {
        rows.iter().map(|row| (row.index(), row.row_key().to_owned())).collect::<Vec<_>>()
    };
    let before = names(rows.clone().include_copies().select::<staff::Emails>().collect().await?);
    let after = names(rows.clone().select::<staff::Emails>().include_copies().collect().await?);
    assert_eq!(before.len(), 9, "partial copies hold what is selected: {before:?}");
    assert_eq!(before, after);
    assert_eq!(names(rows.select::<staff::Emails>().collect().await?).len(), 3);
    Ok(())
}

#[tokio::test]
async fn partial_copies_do_not_fit_their_entity_and_lose_no_other_row() -> Result<(), Error> {
    let client = stored().await;
    let rows = client.set::<staff::Row>("Staff").query(Keys::partition("Sales")).include_copies();
    let found = rows.results().collect().await?;
    let (good, bad): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (6, 3));
    let error = bad.into_iter().next().unwrap().unwrap_err();
    assert!(error.is_decode());
    assert_eq!(error.entity_type(), Some("Employee#ByAge"));
    Ok(())
}

#[tokio::test]
async fn a_copy_is_updated_through_its_primary() -> Result<(), Error> {
    let client = stored().await;
    let staff = client.set::<staff::Row>("Staff");
    let copies = staff.query(Keys::partition("Sales").prefix("email_")).include_copies();
    let report = staff.bulk().update_all(copies, |row| {
        if let staff::Row::Employee(employee) = row {
            employee.desk = "5".into();
        }
        Ok(())
    });
    let report = report.await?;
    assert_eq!((report.done, report.failed.len()), (3, 0), "{report:?}");
    let rows = client.table::<staff::Employee>();
    let rows = rows.query(staff::Employee::primary().department("Sales")).collect().await?;
    assert!(rows.iter().all(|row| row.desk == "5"));
    Ok(())
}

/// A query of a set finds a primary and its copies: its entity is changed once.
#[tokio::test]
async fn an_entity_is_changed_once_beside_its_copies() -> Result<(), Error> {
    let client = stored().await;
    let staff = client.set::<staff::Row>("Staff");
    let rows = staff.query(Keys::partition("Sales")).include_copies();
    let report = staff.bulk().update_all(rows, |row| {
        if let staff::Row::Employee(employee) = row {
            employee.desk.push('+');
        }
        Ok(())
    });
    let report = report.await?;
    // The partial copies do not fit their entity.
    assert_eq!((report.done, report.failed.len()), (3, 3), "{report:?}");
    assert!(report.failed.iter().all(|failure| failure.error.is_decode()), "{report:?}");
    let rows = client.table::<staff::Employee>();
    let rows = rows.query(staff::Employee::primary().department("Sales")).collect().await?;
    assert!(rows.iter().all(|row| row.desk.matches('+').count() == 1), "{rows:?}");
    Ok(())
}

#[test]
fn damaged_rows_are_errors_and_no_panic() {
    let whole = employee(1).to_row().unwrap();
    let bytes = whole.as_bytes().to_vec();
    for cut in 0..bytes.len() {
        let Ok(row) = Row::from_bytes(bytes[..cut].to_vec().into()) else { continue };
        assert!(staff::Row::from_row(&row).is_err(), "cut at {cut}");
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            if let Ok(row) = Row::from_bytes(bytes.into()) {
                let _ = staff::Row::from_row(&row);
                let _ = Many::from_row(&row);
            }
        }
    }
}

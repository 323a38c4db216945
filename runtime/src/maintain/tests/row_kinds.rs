//! Tests that every reader classifies each kind of row correctly.
//!
//! There is one line per row. It shows how the row is taken by a typed read on the primary's path, by
//! decryption, by the local and the remote check, what it derives, whose copy it is, and how it is taken by the
//! migration from another library and by a set.

use std::fmt::Write as _;

use crate::{
    edm::ValueRef,
    entity::{Recognition, RowKind, RowVersion, Schema, row_kind::PrimaryMarking},
    error::Error,
    maintain::check::fact::{CopyFactReader, Fact},
    plan::{TokenMaker, derive::Derived},
    prelude::*,
    query::decode::decode_or_skip,
    row::Row,
    store::sealing::open::{ReadAs, RowTypeForReader},
};

mod old {
    use crate::prelude::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{team}",
        row_key = "emp_{id:03}",
        entity_type = "Worker",
        index(ByMail, row_key = "mail_{mail}", unique),
        index(ByName, row_key = "name_{name}"),
        list(ByAge, row_key = "age_{age:03}")
    )]
    pub(super) struct WorkerV1 {
        pub(super) team: String,
        pub(super) id: u32,
        pub(super) name: String,
        pub(super) mail: String,
        pub(super) age: u32,
    }
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{team}",
    row_key = "emp_{id:03}",
    version = 2,
    upgrade_from(old::WorkerV1),
    index(ByName, row_key = "name_{name}"),
    index(ByPhone, table = "Phones", partition_key = "{phone}", row_key = "all_{team}_{id:03}"),
    index(Near, partition_key = "near_{phone}", row_key = "near_{team}_{id:03}"),
    list(ByAge, row_key = "age_{age:03}"),
    list(Everywhere, partition_key = "everywhere_{name}", row_key = "ids"),
    list(InTown, table = "Towns", partition_key = "{phone}", row_key = "ids")
)]
struct Worker {
    team: String,
    id: u32,
    name: String,
    phone: String,
    age: u32,
}

impl From<old::WorkerV1> for Worker {
    fn from(old: old::WorkerV1) -> Self {
        let old::WorkerV1 { team, id, name, mail, age } = old;
        Self { team, id, name, phone: mail, age }
    }
}

/// An entity type that is recognised only by its keys.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{team}",
    row_key = "dept_{id:02}",
    discriminator = row_key,
    index(ByTitle, row_key = "title_{title}"),
    index(ByFloor, table = "Floors", partition_key = "{floor}", row_key = "floor_{team}_{id:02}")
)]
struct Department {
    team: String,
    id: u32,
    title: String,
    floor: String,
}

/// An entity type with its name in a property other than `EntityType`, and a seal.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{team}",
    row_key = "room_{id:02}",
    discriminator = "Kind",
    index(ByLabel, row_key = "label_{label}")
)]
struct Room {
    team: String,
    id: u32,
    label: String,
}

#[derive(Debug, EntitySet)]
enum Staff {
    Worker(Worker),
    Department(Department),
    Room(Room),
}

fn marked(keys: (&str, &str), property: &str, marker: &str) -> Row {
    let mut row = Row::build(keys.0, keys.1);
    row.put(property, ValueRef::String(marker));
    row.finish().unwrap()
}

/// Replaces the type of a row.
fn retyped(row: &Row, property: &str, marker: &str) -> Row {
    let mut bag = row.to_bag().unwrap();
    bag.set(property, marker.to_owned());
    let mut out = Row::build(row.partition_key(), row.row_key());
    for (name, value) in bag.iter() {
        out.put(name, value.as_ref());
    }
    out.finish().unwrap()
}

fn rows() -> Vec<(&'static str, Row)> {
    let texts = |text: &str| text.to_owned();
    let (team, name) = (texts("Sales"), texts("Jones"));
    let v1 = old::WorkerV1 { team: team.clone(), id: 1, name, mail: texts("j@c"), age: 34 };
    let v1_rows = v1.rows().unwrap();
    let v2_rows = Worker::from(v1).rows().unwrap();
    let department = Department { team: team.clone(), id: 7, title: texts("T"), floor: texts("3") };
    let department_rows = department.rows().unwrap();
    let room_rows = Room { team, id: 5, label: texts("L") }.rows().unwrap();
    let copy = |rows: &crate::entity::EntityRows, index: &str| {
        let mut copies = rows.local_copies.iter().chain(&rows.remote_copies);
        copies.find(|copy| copy.family.name == index).unwrap().row.clone()
    };
    let list = |partition_key: &str, row_key: &str, id: &str| {
        let mut row = Row::build(partition_key, row_key);
        row.put("EntityType", ValueRef::String("entable.list"));
        row.put("Ids00", ValueRef::String(id));
        row.finish().unwrap()
    };
    let mut number = Row::build("Sales", "emp_001");
    number.put("EntityType", ValueRef::Int32(1));
    let (far, keys) = ("[[\"Sales\",\"emp_001\"]]", ("Sales", "emp_001"));
    vec![
        ("v2 primary", v2_rows.primary.clone()),
        ("v2 local copy", copy(&v2_rows, "ByName")),
        ("v2 copy in another table", copy(&v2_rows, "ByPhone")),
        ("v2 copy in another partition", copy(&v2_rows, "Near")),
        ("v1 primary", v1_rows.primary.clone()),
        ("v1 primary, `.v1` written out", retyped(&v1_rows.primary, "EntityType", "Worker.v1")),
        ("v1 copy of an index of both", copy(&v1_rows, "ByName")),
        ("v1 copy, `.v1` written out", {
            retyped(&copy(&v1_rows, "ByName"), "EntityType", "Worker.v1#ByName")
        }),
        ("v1 copy of an index that is gone", copy(&v1_rows, "ByMail")),
        ("v3 primary", retyped(&v2_rows.primary, "EntityType", "Worker.v3")),
        ("v3 copy", retyped(&copy(&v2_rows, "ByName"), "EntityType", "Worker.v3#ByName")),
        ("v3 copy of a new index", marked(("Sales", "x"), "EntityType", "Worker.v3#ByNew")),
        ("copy of an unknown index", marked(("Sales", "x"), "EntityType", "Worker.v2#ByNew")),
        ("version with a zero", marked(keys, "EntityType", "Worker.v02")),
        ("local list", list("Sales", "age_034", "[\"emp_001\"]")),
        ("spill row of a list", list("Sales", "age_034~s0001", "[\"emp_001\"]")),
        ("remote list", list("everywhere_Jones", "ids", far)),
        ("remote list in a table", list("j@c", "ids", far)),
        ("key-only primary", department_rows.primary.clone()),
        ("key-only local copy", copy(&department_rows, "ByTitle")),
        ("key-only remote copy", copy(&department_rows, "ByFloor")),
        ("other property, primary", room_rows.primary.clone()),
        ("other property, copy", copy(&room_rows, "ByLabel")),
        ("other property, unmarked", Row::build("Sales", "room_05").finish().unwrap()),
        ("fence", marked(("Sales", "~e0_1"), "EntityType", "entable.fence")),
        ("dirty row", marked(("Sales", "~e2_emp_001"), "EntityType", "entable.dirty")),
        ("moving primary", retyped(&v2_rows.primary, "EntableMoving", "m1")),
        ("reserved copy", retyped(&copy(&v2_rows, "ByPhone"), "SrcC", "c1")),
        ("other type", marked(keys, "EntityType", "Other")),
        ("copy of another type", marked(keys, "EntityType", "Other#ByName")),
        ("unmarked", Row::build("Sales", "emp_001").finish().unwrap()),
        ("type that is no text", number.finish().unwrap()),
    ]
}

fn failure(error: &Error) -> String {
    format!("{:?}", error.kind())
}

/// Returns a line that shows how each classifying function takes this row, for the type `E`.
fn answers<E: TableEntity>(schema: &'static Schema, row: &Row) -> String {
    let primary = schema.primary().unwrap();
    let read = match decode_or_skip::<E, E>(row.clone(), primary) {
        Ok(Some(_)) => "read".to_owned(),
        Ok(None) => "skipped".to_owned(),
        Err(error) => failure(&error),
    };
    let sealing = match ReadAs::Typed(schema).row_type_and_family(row) {
        Ok(RowTypeForReader::Declared(_, Some(family))) => {
            format!("{}/{:?}", family.name, family.kind)
        }
        Ok(RowTypeForReader::Declared(_, None)) => "own".to_owned(),
        Ok(RowTypeForReader::Foreign) => "foreign".to_owned(),
        Ok(RowTypeForReader::Untyped) => "untyped".to_owned(),
        Err(error) => failure(&error),
    };
    let table = Client::memory().table::<E>();
    let reader = CopyFactReader::new(&table);
    let mut local = String::new();
    let is_primary = reader.read_facts_of_row(
        "Staff",
        row,
        &TokenMaker::for_types_without_tokens(),
        &mut |fact: &Fact<'_>| {
            if fact.is_found && !fact.family.is_remote {
                write!(local, "{:?} {}", fact.family.kind, fact.family.name).unwrap();
            }
        },
    );
    let local = match is_primary {
        Ok(true) => "Primary".to_owned(),
        Ok(false) if local.is_empty() => "-".to_owned(),
        Ok(false) => local,
        Err(error) => failure(&error),
    };
    let mut remote = Vec::new();
    for at_table in ["Staff", "Phones", "Towns", "Floors"] {
        let mut names = String::new();
        let all = reader.read_facts_of_row(
            at_table,
            row,
            &TokenMaker::for_types_without_tokens(),
            &mut |fact: &Fact<'_>| {
                if fact.family.is_remote {
                    let sign = if fact.is_found { '=' } else { '+' };
                    write!(names, "{sign}{}", fact.family.name).unwrap();
                }
            },
        );
        match all {
            Ok(_) if names.is_empty() => {}
            Ok(_) => remote.push(format!("{at_table}{names}")),
            Err(error) => remote.push(format!("{at_table}:{}", failure(&error))),
        }
    }
    let derived = match schema.derive_rows(row, &TokenMaker::for_types_without_tokens()) {
        Ok(Derived::Rows(rows)) => format!("{} rows", 1 + rows.local_copies.len()),
        Ok(Derived::NotOurs) => "-".to_owned(),
        Ok(Derived::UnknownVersion(version)) => format!("v{version}?"),
        Err(error) => failure(&error),
    };
    let owner = match schema.owner_of_copy(row) {
        Ok(Some((_, row_key))) => row_key,
        Ok(None) => "-".to_owned(),
        Err(error) => failure(&error),
    };
    let migrated = match schema.legacy_marking_of_row(row) {
        Ok(Some(PrimaryMarking::Marked)) => "migrated".to_owned(),
        Ok(Some(PrimaryMarking::Unmarked(name))) => format!("migrated with {name}"),
        Ok(None) => "-".to_owned(),
        Err(error) => failure(&error),
    };
    let remote = remote.join(" ");
    format!("{read} | {sealing} | {local} | {remote} | {derived} | {owner} | {migrated}")
}

fn matched(row: &Row) -> String {
    match Staff::MEMBERS.match_row(row) {
        Ok(Some(found)) => {
            format!("{}.v{}/{}", found.member_index(), found.version(), found.family().name)
        }
        Ok(None) if Staff::MEMBERS.skips_unmatched_row(row, false).unwrap() => "hidden".to_owned(),
        Ok(None) => "other".to_owned(),
        Err(error) => failure(&error),
    }
}

#[test]
fn every_reader_takes_each_row_for_what_it_is() {
    let mut found = String::new();
    for (name, row) in rows() {
        writeln!(found, "{name}").unwrap();
        for (schema, answers) in [
            (Worker::SCHEMA, answers::<Worker>(Worker::SCHEMA, &row)),
            (Department::SCHEMA, answers::<Department>(Department::SCHEMA, &row)),
            (Room::SCHEMA, answers::<Room>(Room::SCHEMA, &row)),
        ] {
            writeln!(found, "  {}: {answers}", schema.entity).unwrap();
        }
        writeln!(found, "  set: {}", matched(&row)).unwrap();
    }
    let expected = include_str!("row_kinds.txt");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}

/// Asserts that a set's `match_row` and the `row_kind_of` of each member find the same family and
/// version for a row.
fn assert_agrees(name: &str, row: &Row) {
    let matched = Staff::MEMBERS.match_row(row).unwrap();
    for (member_index, schema) in Staff::MEMBERS.schemas().iter().enumerate() {
        let of_member = matched.filter(|found| found.member_index() == member_index);
        let by_set = of_member.map(|found| (found.family().name, found.version()));
        let by_schema = match schema.row_kind_of(row, None) {
            Ok(RowKind::Primary(RowVersion::Known(writer))) => {
                Some((writer.primary().unwrap().name, writer.version))
            }
            Ok(RowKind::Copy(family, RowVersion::Known(writer))) => {
                Some((family.name, writer.version))
            }
            // A set ignores a row whose discriminator is not a string.
            Err(error) => {
                assert!(error.is_decode(), "{name}: {error}");
                None
            }
            Ok(_) => None,
        };
        assert_eq!(by_set, by_schema, "{name}, {}", schema.entity);
    }
}

#[test]
fn the_compiled_table_of_a_set_agrees_with_each_members_schema() {
    for (name, row) in rows() {
        assert_agrees(name, &row);
    }
}

/// Recognises a row by the documented rule: the type property (the discriminator) contains type, version and
/// index. A type without this property is recognised by its keys.
fn by_rule(
    schema: &'static Schema,
    row: &Row,
    family: &crate::key::RowFamily,
) -> Option<Recognition> {
    let crate::entity::Discriminator::Property(name) = schema.discriminator else {
        let fits =
            family.row.matches(row.row_key()) && family.partition.matches(row.partition_key());
        return Some(if fits { Recognition::Ours } else { Recognition::Unmarked });
    };
    let marker = match row.get(name).unwrap() {
        None => return Some(Recognition::Unmarked),
        Some(ValueRef::String(marker)) => marker,
        Some(_) => return None,
    };
    let index = family.marker.find('#').map_or("", |at| &family.marker[at..]);
    let version = marker.strip_suffix(index).and_then(|own| schema.version_of_marker(own));
    Some(match version {
        Some(version) if version == schema.version => Recognition::Ours,
        Some(version) => Recognition::Version(version),
        None => Recognition::Foreign(marker.to_owned()),
    })
}

#[test]
fn a_row_is_recognised_through_each_path_by_one_rule() {
    for (name, row) in rows() {
        for schema in [Worker::SCHEMA, Department::SCHEMA, Room::SCHEMA] {
            let families: &'static [crate::key::RowFamily] = schema.families;
            for family in families.iter().filter(|one| one.is_primary_or_copy()) {
                let found = schema.recognize_as(&row, family);
                let found = found.inspect_err(|error| assert!(error.is_decode(), "{name}")).ok();
                let index = family.name;
                assert_eq!(
                    found,
                    by_rule(schema, &row, family),
                    "{name}, {}/{index}",
                    schema.entity
                );
            }
        }
    }
}

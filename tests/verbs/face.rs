//! Tests promises of the public interface: what is refused and in which words, and what values can do.

use entable::{Row, ValueRef, backend::Backend, prelude::*};

#[derive(Debug, Clone, PartialEq, serde::Serialize, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{town}_{floor}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email}", unique),
    index(ByBadge, table = "Badges", partition_key = "{badge}", row_key = "badge", unique)
)]
struct Employee {
    town: String,
    floor: u8,
    id: u32,
    email: String,
    badge: String,
    salary: f64,
    visits: i64,
    points: u64,
}

#[derive(Debug, EntitySet)]
struct Floor {
    #[table(many)]
    staff: Vec<Employee>,
}

fn employee(id: u32) -> Employee {
    Employee {
        town: "Kiel/1".into(),
        floor: 2,
        id,
        email: format!("j{id}@a.com"),
        badge: format!("b{id}"),
        salary: 1000.0,
        visits: 3,
        points: 4,
    }
}

async fn staff(ids: &[u32]) -> (Client, Table<Employee>) {
    let client = Client::memory();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    for id in ids {
        staff.insert(&employee(*id)).await.unwrap();
    }
    (client, staff)
}

#[tokio::test]
async fn raw_keys_that_no_row_can_have_are_refused() {
    let (client, _) = staff(&[1]).await;
    let rows = client.dynamic("Staff");
    for keys in [
        Keys::partition("Kiel/1_002"),
        Keys::partition("Kiel").row("R&D?"),
        Keys::partition("Kiel").prefix("a#"),
        Keys::point("a\u{7f}", "b"),
        Keys::partition("Kiel/1").rows("a".."b"),
    ] {
        let error = rows.query(keys.clone()).collect().await.unwrap_err();
        assert!(error.is_invalid(), "{error}");
        assert!(error.to_string().contains("typed paths escape it"), "{error}");
        assert!(client.set::<Floor>("Staff").load(keys).await.unwrap_err().is_invalid());
    }
    assert!(rows.get("Kiel/1", "a").await.unwrap_err().is_invalid());
    // Bounds are texts to compare with, whichever characters they hold.
    let between = Keys::partition("Kiel~2F1_002").rows("a/".."z");
    assert_eq!(rows.query(between).collect().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_path_gives_its_whole_partition() {
    let (client, staff) = staff(&[1, 2, 3]).await;
    let path = Employee::primary().town("Kiel/1").floor(2);
    let found = client.set::<Floor>("Staff").load(path.clone().whole_partition()).await.unwrap();
    assert_eq!(found.staff.len(), 3);
    let point = path.id(2);
    assert_eq!(point.whole_partition(), Keys::partition("Kiel~2F1_002"));
    let of_entity = staff.get(point).await.unwrap().unwrap().point().whole_partition();
    assert_eq!(of_entity, Keys::partition("Kiel~2F1_002"));
    // A mistake in a path is a mistake in its keys.
    let too_wide = Employee::primary().town("Kiel").floor(2).id(1_000_000);
    for keys in [too_wide.keys(), too_wide.whole_partition()] {
        let error = client.dynamic("Staff").query(keys).collect().await.unwrap_err();
        assert!(error.is_invalid() && error.property() == Some("Id"), "{error}");
    }
}

#[tokio::test]
async fn an_entity_gives_the_path_to_itself() {
    let (_, staff) = staff(&[7]).await;
    let don = staff.get(employee(7).point()).await.unwrap().unwrap();
    assert_eq!(
        (don.point().partition_key(), don.point().row_key()),
        ("Kiel~2F1_002", "empid_000007")
    );
    staff
        .update(don.point(), |one| {
            one.visits += 1;
            Ok(())
        })
        .await
        .unwrap();
    assert!(staff.delete_at(don.point()).await.unwrap());
    let wide = employee(1_000_000).point();
    assert_eq!(staff.get(wide).await.unwrap_err().property(), Some("Id"));
}

#[tokio::test]
async fn an_entity_that_was_read_through_an_index_gives_the_path_to_its_primary() {
    let (client, staff) = staff(&[7]).await;
    client.wait_for_copies().await;
    let by_email = Employee::by_email().town("Kiel/1").floor(2).email("j7@a.com");
    let by_badge = Employee::by_badge().badge("b7");
    let found = [
        staff.get(by_email.clone()).await.unwrap().unwrap(),
        staff.get(by_badge).await.unwrap().unwrap(),
        staff.query(Employee::by_email().town("Kiel/1").floor(2)).first().await.unwrap().unwrap(),
    ];
    for mut copy in found {
        assert!(copy.index().is_some() && copy.row_key() != "empid_000007");
        // The path leads to the entity that was read, whatever becomes of the value.
        (copy.id, copy.town) = (8, "Rome".into());
        let point = copy.point();
        assert_eq!((point.partition_key(), point.row_key()), ("Kiel~2F1_002", "empid_000007"));
        assert_eq!(KeyRef::from(&copy), KeyRef::new("Kiel~2F1_002", "empid_000007"));
        assert_eq!(copy.related::<Desk>().row_key(), "desk_000007");
        assert_eq!(*staff.get(point).await.unwrap().unwrap(), employee(7));
    }
    let copy = staff.get(by_email).await.unwrap().unwrap();
    staff.update(copy.point(), |one| Ok(one.visits += 1)).await.unwrap();
    assert!(staff.delete_at(copy.point()).await.unwrap());
    assert!(staff.get(employee(7).point()).await.unwrap().is_none());
}

#[derive(Debug, TableEntity)]
#[table(name = "Desks", partition_key = "{town}_{floor}", row_key = "desk_{id:06}")]
struct Desk {
    town: String,
    floor: u8,
    id: u32,
}

#[tokio::test]
async fn stored_values_compare_serialize_and_are_lent() {
    let (_, staff) = staff(&[]).await;
    let inserted = staff.insert(&employee(1)).await.unwrap();
    let read = staff.get(inserted.point()).await.unwrap().unwrap();
    assert_eq!(inserted, read);
    let other = staff.replace(&read).await.unwrap();
    assert_ne!(read, other, "another version of the row");
    let mut changed = other.clone();
    changed.visits += 1;
    assert_ne!(changed, other, "another value");
    let lent: &Employee = other.as_ref();
    assert_eq!(serde_json::to_string(&other).unwrap(), serde_json::to_string(lent).unwrap());
}

#[tokio::test]
async fn a_page_comes_after_a_cursor_that_is_kept() {
    let (_, staff) = staff(&[1, 2, 3]).await;
    let query = staff.query(Employee::primary().town("Kiel/1").floor(2)).page_size(2);
    let first = query.page(None).await.unwrap();
    let cursor: Cursor = first.next.unwrap();
    for _ in 0..2 {
        let second = query.page_after(&cursor).await.unwrap();
        assert_eq!(second.items.iter().map(|one| one.id).collect::<Vec<_>>(), [3]);
    }
}

#[tokio::test]
async fn a_report_of_a_check_can_be_printed() {
    let (client, staff) = staff(&[1]).await;
    assert!(staff.check().await.unwrap().to_string().ends_with("all copies and lists match"));
    let copy = ("Kiel~2F1_002", "email_j1@a.com");
    client.dynamic("Staff").delete(copy.0, copy.1, Condition::Any).await.unwrap();
    let report = staff.check().await.unwrap();
    assert!(!report.to_string().contains('\n'));
    let text = format!("{report:#}");
    let (counts, finding) = text.split_once('\n').unwrap();
    assert!(counts.contains("1 missing") && finding.contains(copy.1), "{text}");
}

#[tokio::test]
async fn small_numbers_of_other_tools_read_into_wide_fields() {
    let (client, staff) = staff(&[]).await;
    let wide = employee(1).to_row().unwrap();
    let mut narrow = Row::build(wide.partition_key(), wide.row_key());
    let mut properties = wide.properties();
    while let Some((name, value)) = properties.next().unwrap() {
        let value = match name {
            b"Salary" => ValueRef::Int32(1000),
            b"Visits" => ValueRef::Int32(-3),
            b"Points" => ValueRef::Int32(4),
            _ => value,
        };
        narrow = narrow.with(std::str::from_utf8(name).unwrap(), value).unwrap();
    }
    let insert = entable::Operation::insert(narrow.finish().unwrap());
    let batch = entable::Batch::single("Staff", insert).unwrap();
    client.backend().apply(&batch).await.unwrap();
    let found = staff.get(employee(1).point()).await.unwrap().unwrap().into_inner();
    assert_eq!(found, Employee { visits: -3, ..employee(1) });
}

#[tokio::test]
async fn a_bad_table_name_is_said() {
    let client = Client::memory();
    for name in ["a-b", "2Staff", ""] {
        let staff = client.table_named::<Employee>(name);
        let path = Employee::primary().town("Kiel").floor(2);
        let dynamic = client.dynamic(name);
        for error in [
            staff.get(employee(1).point()).await.unwrap_err(),
            staff.query(path).collect().await.unwrap_err(),
            staff.insert(&employee(1)).await.unwrap_err(),
            dynamic.get("a", "b").await.unwrap_err(),
            dynamic.query(Keys::partition("a")).collect().await.unwrap_err(),
        ] {
            assert_eq!(error.code(), Some("InvalidResourceName"), "{error}");
        }
    }
    let missing = client.dynamic("Missing").get("a", "b").await.unwrap_err();
    assert_eq!(missing.code(), Some("TableNotFound"));
}

#[test]
fn an_empty_path_is_said() {
    let error = Client::open("").unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("path"), "{error}");
}

#[tokio::test]
async fn a_unique_violation_is_one_wherever_the_index_is() {
    let (client, staff) = staff(&[1]).await;
    let local = Employee { email: employee(1).email, ..employee(2) };
    let remote = Employee { badge: employee(1).badge, ..employee(2) };
    let mut both = client.transaction();
    let twice = [
        Employee { badge: "x".into(), ..employee(3) },
        Employee { badge: "x".into(), ..employee(4) },
    ];
    both.insert(&twice[0]).unwrap().insert(&twice[1]).unwrap();
    let mut within = client.transaction();
    let same = Employee { email: employee(5).email, ..employee(6) };
    let refused = within.insert(&employee(5)).unwrap().insert(&same).map(drop);
    let within = match refused {
        Ok(()) => within.commit().await.unwrap_err(),
        Err(error) => error,
    };
    for error in [
        staff.insert(&local).await.unwrap_err(),
        staff.insert(&remote).await.unwrap_err(),
        both.commit().await.unwrap_err(),
        within,
    ] {
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!((error.code(), error.status()), (Some("EntityAlreadyExists"), Some(409)));
    }
}

/// A program that names the types of conditions and of keys by the prelude alone.
mod with_the_prelude_alone {
    use entable::prelude::*;

    #[derive(Debug, PartialEq, TableEntity)]
    #[table(name = "Notes", partition_key = "{town}", row_key = "n_{id:06}")]
    struct Note {
        town: String,
        id: u32,
        pages: i32,
        #[table(encrypt)]
        text: String,
    }

    fn long(pages: Option<i32>) -> Option<Predicate<Note>> {
        pages.map(|pages| Note::PAGES.ge(pages) & Note::ID.gt(0))
    }

    fn keys() -> Result<Keyring, Error> {
        let town = |partition_key: &str| -> KeyScope { KeyScope::named(partition_key) };
        let text = Keyring::generate_text()?;
        Ok(Keyring::parse(&text)?.with_scopes(move |partition_key| match partition_key {
            "Kiel" => KeyScope::default_scope(),
            other => town(other),
        }))
    }

    #[tokio::test]
    async fn conditions_scopes_and_keyrings_have_names() {
        let client =
            Client::builder().backend(Memory::new()).keys(keys().unwrap()).build().unwrap();
        let notes = client.table::<Note>();
        notes.create().await.unwrap();
        let note = |id: u32, town: &str| Note {
            town: town.into(),
            id,
            pages: i32::try_from(id).unwrap(),
            text: format!("text {id}"),
        };
        for id in [1, 2, 3] {
            notes.insert(&note(id, "Kiel")).await.unwrap();
        }
        let query = notes.query(Note::primary().town("Kiel")).filter(long(Some(2)).unwrap());
        let found = query.collect().await.unwrap();
        assert_eq!(found.iter().map(|note| &*note.text).collect::<Vec<_>>(), ["text 2", "text 3"]);
        // The keyring has no key of that town's scope: the rule was asked.
        let error = notes.insert(&note(4, "Bonn")).await.unwrap_err();
        assert!(error.is_key_unavailable(), "{error}");
    }
}

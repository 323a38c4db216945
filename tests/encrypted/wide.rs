//! Tests encrypted fields of wide entities: each part is sealed for its own keys.

use entable::{
    EdmType, KeyScope, Row,
    backend::{Memory, layer::FaultInjector},
    prelude::*,
};
use futures_util::StreamExt;

use crate::fixture::{all_stored, client, key, keyring, put, ring, root, stored, value, with};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "year_{id:06}", wide)]
struct Year {
    department: String,
    id: u32,
    #[table(encrypt, blind)]
    ssn: String,
    #[table(series("Day{:03}"), encrypt)]
    days: [Option<i64>; 365],
    #[table(part = 2, split(2), encrypt)]
    notes: String,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Year)]
struct Person {
    id: u32,
    ssn: String,
}

fn year(id: u32) -> Year {
    let mut days = [None; 365];
    (days[0], days[364]) = (Some(1), Some(365));
    let ssn = format!("123-45-{id:04}");
    Year { department: "Sales".into(), id, ssn, days, notes: "likes tea".into() }
}

fn at(id: u32) -> Point<Year> {
    Year::primary().department("Sales").id(id)
}

#[tokio::test]
async fn parts_are_sealed_and_come_back_through_every_verb() -> Result<(), Error> {
    let (client, _) = client().await;
    let years = client.table::<Year>();
    years.insert(&year(1)).await?;
    let first = stored(&client, "Sales", "year_000001_01").await;
    let second = stored(&client, "Sales", "year_000001_02").await;
    for (row, name) in
        [(&first, "Ssn"), (&first, "Day000"), (&second, "Day364"), (&second, "Notes")]
    {
        assert_eq!(value(row, name).unwrap().edm_type(), EdmType::Binary, "{name}");
    }
    assert!(value(&second, "SsnBlind").is_none() && value(&first, "SsnBlind").is_some());
    assert_eq!(*years.get(at(1)).await?.unwrap(), year(1));

    let mut seen = years.get(at(1)).await?.unwrap();
    years.patch_at(at(1), Year::patch().days(364, 366_i64)).await?;
    seen.days[0] = Some(2);
    assert!(years.replace(&seen).await.unwrap_err().is_precondition_failed());
    let change = |year: &mut Year| {
        year.days[0] = Some(2);
        year.days[1] = None;
        Ok(())
    };
    let updated = years.update(at(1), change).await?;
    assert_eq!((updated.days[0], updated.days[364]), (Some(2), Some(366)));
    years.patch_at(at(1), Year::patch().remove_days(0).notes("none")).await?;
    let read = years.get(at(1)).await?.unwrap();
    assert_eq!((read.days[0], read.days[364], read.notes.as_str()), (None, Some(366), "none"));

    years.insert(&year(2)).await?;
    let all = years.query(Year::primary().department("Sales"));
    assert_eq!(all.collect().await?.len(), 2);
    let one = all.clone().filter(Year::SSN.eq("123-45-0002")).select::<Person>().collect().await?;
    assert_eq!(one.iter().map(|person| person.id).collect::<Vec<_>>(), [2]);
    assert!(years.delete_at(at(1)).await?);
    Ok(())
}

/// A part under the keys of another entity, or another part, does not open.
#[tokio::test]
async fn a_part_of_another_entity_does_not_open() -> Result<(), Error> {
    let (client, _) = client().await;
    let years = client.table::<Year>();
    for id in [1, 2] {
        years.insert(&year(id)).await?;
    }
    let other = stored(&client, "Sales", "year_000002_02").await;
    let mut moved = DynamicEntity::new("Sales", "year_000001_02");
    for (name, value) in other.to_bag()?.iter() {
        moved.set(name, value.clone());
    }
    put(&client, moved.to_row()?).await;
    assert!(years.get(at(1)).await.unwrap_err().is_decrypt());
    let all = years.query(Year::primary().department("Sales")).results().collect().await?;
    let found: Vec<bool> = all.iter().map(Result::is_ok).collect();
    assert_eq!(found, [false, true]);
    Ok(())
}

#[tokio::test]
async fn all_parts_are_sealed_again_with_a_new_key() -> Result<(), Error> {
    let (client, recorder) = client().await;
    client.table::<Year>().insert(&year(1)).await?;
    let keys = ring(2).decrypt_only(&KeyScope::default_scope(), &root(1)).build()?;
    let after = Client::builder().backend(recorder.clone()).keys(keys).build()?;
    let report = after.table::<Year>().reencrypt().encrypted_with(key(1).id()).await?;
    assert_eq!((report.rows, report.rewritten, report.is_complete()), (2, 2, true));
    let alone = Client::builder().backend(recorder).keys(keyring(2)).build()?;
    assert_eq!(*alone.table::<Year>().get(at(1)).await?.unwrap(), year(1));
    Ok(())
}

/// Three parts, each with an encrypted field; copies in the partition and in another, and a list.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "book_{id:06}",
    wide,
    index(ByTitle, row_key = "title_{title}_{id:06}", only(ssn, counts)),
    index(
        Everywhere,
        partition_key = "title_{title}",
        row_key = "at_{department}_{id:06}",
        only(ssn)
    ),
    list(ByOwner, row_key = "owner_{owner}")
)]
struct Book {
    department: String,
    id: u32,
    title: String,
    #[table(series, encrypt)]
    counts: [i64; 24],
    #[table(part = 2)]
    owner: String,
    #[table(part = 2, encrypt, blind)]
    ssn: String,
    #[table(part = 3, split(3), encrypt)]
    text: String,
    #[table(part = 3, encrypt)]
    secret: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Book)]
struct BookCounts {
    ssn: String,
    counts: [i64; 24],
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Book)]
struct BookSsn {
    ssn: String,
}

fn book(id: u32) -> Book {
    Book {
        department: "Sales".into(),
        id,
        title: format!("t{id}"),
        counts: std::array::from_fn(|slot| i64::try_from(slot).unwrap()),
        owner: "don".into(),
        ssn: format!("123-45-{id:04}"),
        text: "likes tea".into(),
        secret: None,
    }
}

fn book_at(id: u32) -> Point<Book> {
    Book::primary().department("Sales").id(id)
}

/// Fails unless the entity is this one through each of its paths, with no value in the clear.
async fn book_is(books: &Table<Book>, expected: &Book) {
    let client = books.client();
    client.wait_for_copies().await;
    let (department, id) = (&expected.department, expected.id);
    let primary = Book::primary().department(department.clone()).id(id);
    assert_eq!(*books.get(primary).await.unwrap().unwrap(), *expected);
    let by_title = Book::by_title().department(department.clone()).title(expected.title.clone());
    let counts = books.get_as::<BookCounts>(by_title.id(id)).await.unwrap().unwrap();
    assert_eq!((&counts.ssn, counts.counts), (&expected.ssn, expected.counts));
    let everywhere = Book::everywhere().title(expected.title.clone());
    let everywhere = everywhere.department(department.clone()).id(id);
    assert_eq!(books.get_as::<BookSsn>(everywhere).await.unwrap().unwrap().ssn, expected.ssn);
    let owned = Book::by_owner().department(department.clone()).owner(expected.owner.clone());
    assert!(books.query(owned).collect().await.unwrap().iter().any(|one| one.id == id));
    let report = books.check().await.unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    for row in all_stored(client).await {
        let bytes = row.as_bytes();
        let tells = |text: &str| bytes.windows(text.len()).any(|at| at == text.as_bytes());
        assert!(!tells("123-45") && !tells("likes tea"), "{:?}", row.keys());
    }
}

#[tokio::test(start_paused = true)]
async fn copies_lists_and_parts_are_sealed_together() -> Result<(), Error> {
    let (client, recorder) = client().await;
    let books = client.table::<Book>();
    books.insert(&book(1)).await?;
    book_is(&books, &book(1)).await;

    // A text shrinks and grows between its pieces: each is sealed under its own name.
    let mut now = book(1);
    for text in ["é".repeat(60_000), "é".repeat(20), String::new(), "x".repeat(90_000)] {
        now.text.clone_from(&text);
        books.update(book_at(1), |book| Ok(book.text.clone_from(&text))).await?;
        book_is(&books, &now).await;
        let row = stored(&client, "Sales", "book_000001_03").await;
        for piece in ["Text", "Text_2", "Text_3"] {
            assert_eq!(value(&row, piece).unwrap().edm_type(), EdmType::Binary, "{piece}");
        }
    }
    let too_long = Book::patch().text("x".repeat(200_000));
    let error = books.patch_at(book_at(1), too_long).await.unwrap_err();
    assert!(error.is_too_large() && error.property() == Some("Text"), "{error}");

    // A slot out of range reaches no row, whatever else the patch sets.
    recorder.clear();
    let patch = Book::patch().counts(3, 7_i64).counts(24, 1_i64);
    let error = books.patch_at(book_at(1), patch).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("slot 24 of a series of 24"));
    assert_eq!(recorder.count(), 0);
    books.patch_at(book_at(1), Book::patch().counts(23, 7_i64).ssn("123-45-9999")).await?;
    (now.counts[23], now.ssn) = (7, "123-45-9999".into());
    book_is(&books, &now).await;
    // A copy holds it, and so is written with the part.
    let mut moved = books.get(book_at(1)).await?.unwrap();
    (moved.title, moved.owner) = ("other".into(), "eve".into());
    (now.title, now.owner) = ("other".into(), "eve".into());
    books.replace(&moved).await?;
    book_is(&books, &now).await;
    assert!(books.delete_at(book_at(1)).await?);
    client.wait_for_copies().await;
    assert!(books.check().await?.is_clean());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn parts_that_another_program_wrote_are_named() -> Result<(), Error> {
    let (client, _) = client().await;
    let books = client.table::<Book>();
    books.insert(&book(1)).await?;
    books.insert(&book(2)).await?;
    let old = stored(&client, "Sales", "book_000001_03").await;
    let mut newer = books.get(book_at(1)).await?.unwrap();
    newer.secret = Some("likes tea".into());
    books.replace(&newer).await?;
    // An earlier form of a part, whose values open: the id of its write is another.
    put(&client, old).await;
    let error = books.get(book_at(1)).await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("part 3 "), "{error}");
    // A value of another part, or of another entity, does not open.
    let foreign = stored(&client, "Sales", "book_000002_02").await;
    let second = stored(&client, "Sales", "book_000001_02").await;
    put(&client, with(&second, "Ssn", value(&foreign, "Ssn"))).await;
    assert!(books.get(book_at(1)).await.unwrap_err().is_decrypt());
    put(&client, second).await;
    // A part is gone.
    client.dynamic("Staff").delete_at("Sales", "book_000001_02").await?;
    let error = books.get(book_at(1)).await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("part 2 "), "{error}");
    let both = Book::patch().counts(0, 1_i64).secret("new");
    assert!(books.patch_at(book_at(1), both).await.unwrap_err().is_corrupt());
    assert!(books.delete_at(book_at(1)).await?);
    assert!(books.check().repair().await? > 0);
    books.insert(&book(1)).await?;
    book_is(&books, &book(1)).await;
    book_is(&books, &book(2)).await;
    Ok(())
}

/// All parts are opened at the source and sealed for their keys at the target.
#[tokio::test(start_paused = true)]
async fn a_moved_entity_is_sealed_for_its_new_keys() -> Result<(), Error> {
    let (client, _) = client().await;
    let books = client.table::<Book>();
    let mut stored_book = books.insert(&book(1)).await?;
    let before = stored(&client, "Sales", "book_000001_03").await;
    stored_book.department = "Marketing".into();
    books.move_to(&stored_book, &books).await?.wait().await?;
    book_is(&books, &Book { department: "Marketing".into(), ..book(1) }).await;
    assert!(books.get(book_at(1)).await?.is_none());
    let after = stored(&client, "Marketing", "book_000001_03").await;
    assert_ne!(value(&before, "Text"), value(&after, "Text"));
    put(&client, {
        let mut forged = Row::build("Marketing", "book_000001_03");
        for (name, value) in before.to_bag()?.iter() {
            forged.put(name, value.as_ref());
        }
        forged.finish()?
    })
    .await;
    let moved = Book::primary().department("Marketing").id(1);
    assert!(books.get(moved).await.is_err(), "a part of the source does not open at the target");
    Ok(())
}

mod old {
    use entable::prelude::*;

    /// Three parts, and the text in one piece.
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "page_{id:06}",
        entity_type = "Page",
        wide
    )]
    pub struct PageV1 {
        pub department: String,
        pub id: u32,
        #[table(encrypt)]
        pub ssn: String,
        #[table(part = 2, series, encrypt)]
        pub counts: [i64; 24],
        #[table(part = 3, encrypt)]
        pub text: String,
    }
}

use old::PageV1;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "page_{id:06}",
    wide,
    version = 2,
    upgrade_from(PageV1)
)]
struct Page {
    department: String,
    id: u32,
    #[table(part = 2, encrypt)]
    ssn: String,
    #[table(series("Slot{:02}"), encrypt)]
    counts: [i64; 24],
    #[table(part = 2, split(2), encrypt)]
    text: String,
}

impl From<PageV1> for Page {
    fn from(old: PageV1) -> Self {
        let PageV1 { department, id, ssn, counts, text } = old;
        Self { department, id, ssn, counts, text }
    }
}

#[tokio::test(start_paused = true)]
async fn encrypted_parts_of_an_older_version_are_read_and_replaced() -> Result<(), Error> {
    let (client, _) = client().await;
    let (before, pages) = (client.table::<PageV1>(), client.table::<Page>());
    let old = |id| PageV1 {
        department: "Sales".into(),
        id,
        ssn: format!("123-45-{id:04}"),
        counts: [7; 24],
        text: "likes tea".into(),
    };
    let at = |id| Page::primary().department("Sales").id(id);
    for id in 1..=3 {
        before.insert(&old(id)).await?;
    }
    assert_eq!(*pages.get(at(1)).await?.unwrap(), Page::from(old(1)));
    pages.update(at(1), |page| Ok(page.counts[3] += 1)).await?;
    let mut now = Page::from(old(1));
    now.counts[3] = 8;
    assert_eq!(*pages.get(at(1)).await?.unwrap(), now);
    pages.patch_at(at(2), Page::patch().text("y".repeat(50_000))).await?;
    assert_eq!(pages.get(at(2)).await?.unwrap().text.len(), 50_000);
    assert_eq!(pages.upgrade_all().await?.done, 1);
    let rows = all_stored(&client).await;
    assert_eq!(rows.len(), 6, "two parts of each: {rows:?}");
    assert!(rows.iter().all(|row| !row.row_key().ends_with("_03")));
    assert_eq!(*pages.get(at(3)).await?.unwrap(), Page::from(old(3)));
    Ok(())
}

/// An entity whose rows are on two pages and do not open is one item, and the others follow.
#[tokio::test]
async fn an_entity_over_a_page_border_that_does_not_open_is_one_error() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(faults.clone()).keys(keyring(1)).build()?;
    let years = client.table::<Year>();
    years.create().await?;
    for id in 1..=3 {
        years.insert(&year(id)).await?;
    }
    let query = years.query(Year::primary().department("Sales")).results();
    for part in ["01", "02"] {
        let good = stored(&client, "Sales", &format!("year_000002_{part}")).await;
        // An encrypted value does not open under the keys of another entity.
        let other = stored(&client, "Sales", &format!("year_000003_{part}")).await;
        let mut moved = DynamicEntity::new("Sales", good.row_key());
        for (name, value) in other.to_bag()?.iter() {
            moved.set(name, value.clone());
        }
        put(&client, moved.to_row()?).await;
        for rows in 1..=7 {
            faults.shorten_pages(Some(rows));
            let items: Vec<_> = query.stream().collect().await;
            let ids: Vec<_> = items
                .iter()
                .map(|item| item.as_ref().unwrap().as_ref().ok().map(|year| year.id))
                .collect();
            assert_eq!(ids, [Some(1), None, Some(3)], "part {part}, pages of {rows} rows");
            let error = items[1].as_ref().unwrap().as_ref().unwrap_err();
            assert!(error.is_decrypt(), "{error}");
        }
        faults.shorten_pages(None);
        put(&client, good).await;
    }
    Ok(())
}

//! Tests conditions that consist of several comparisons: prefixes, ranges, lists, presence.

use entable::{CostClass, prelude::*};

use crate::store::{TestResult, on_both};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "ConditionBooks",
    partition_key = "{shelf}",
    row_key = "b_{author}_{title}",
    index(ByTitle, row_key = "t_{title}_{author}", only(pages))
)]
struct Book {
    shelf: String,
    author: String,
    title: String,
    summary: String,
    pages: u16,
    note: Option<String>,
    score: Option<f64>,
    #[table(series)]
    lent: [Option<i32>; 2],
}

/// Texts in which a prefix and its neighbours are easy to confuse: characters that a key escapes, that end a
/// part, or that follow each other only in another order.
const TEXTS: [&str; 14] = [
    "",
    "a",
    "A",
    "a_",
    "a~",
    "a.",
    "a/",
    "a0",
    "ab",
    "a_b",
    "b",
    "\u{d7ff}",
    "\u{10000}",
    "\u{e000}x",
];

const PREFIXES: [&str; 13] =
    ["", "a", "A", "a_", "a~", "a.", "a/", "ab", "b", "c", "\u{d7ff}", "\u{10000}", "\u{ffff}"];

fn books() -> Vec<Book> {
    let texts = TEXTS.into_iter().enumerate();
    texts
        .map(|(at, text)| Book {
            shelf: "s/1".into(),
            author: text.into(),
            title: TEXTS[(at * 5 + 3) % TEXTS.len()].into(),
            summary: text.into(),
            pages: u16::try_from(at).unwrap() * 10,
            note: (at % 3 == 0).then(|| text.to_owned()),
            score: [None, Some(0.0), Some(f64::NAN), Some(-1.5)][at % 4],
            lent: [(at % 2 == 0).then_some(0), None],
        })
        .collect()
}

fn sorted(books: impl IntoIterator<Item = Book>) -> Vec<String> {
    let mut names: Vec<_> = books.into_iter().map(|book| format!("{:?}", book.author)).collect();
    names.sort();
    names
}

/// Runs a query, and compares what it finds with the books that `is_met` accepts.
async fn check(
    query: Query<Book>,
    is_met: impl Fn(&Book) -> bool,
    case: &str,
) -> Result<(), Error> {
    let filter = query.explain().filter;
    let found = query.collect().await?.into_iter().map(Stored::into_inner);
    let expected = books().into_iter().filter(|book| is_met(book));
    assert_eq!(sorted(found), sorted(expected), "{case}: {filter}");
    Ok(())
}

#[tokio::test]
async fn a_prefix_is_exact_in_a_property_and_in_each_part_of_a_key() -> TestResult {
    on_both(async |store| {
        let table = store.table::<Book>().await;
        table.bulk().insert_all(books()).await?.into_result()?;
        let shelf = || Book::primary().shelf("s/1");
        for prefix in PREFIXES {
            // U+FFFF has no greater character, so the condition on a part that is open is one bound.
            let case = prefix.escape_debug().to_string();
            let query = table.query(shelf()).filter(Book::SUMMARY.starts_with(prefix));
            check(query, |book| book.summary.starts_with(prefix), &case).await?;
            let query = table.query(shelf()).filter(Book::AUTHOR.starts_with(prefix));
            check(query, |book| book.author.starts_with(prefix), &case).await?;
            let query = table.query(shelf()).filter(!Book::AUTHOR.starts_with(prefix));
            check(query, |book| !book.author.starts_with(prefix), &case).await?;
            let query = table.query(Book::scan()).filter(Book::SHELF.starts_with(prefix));
            check(query, |book| book.shelf.starts_with(prefix), &case).await?;
            let query = table.query(shelf()).filter(Book::SHELF.starts_with(prefix));
            check(query, |book| book.shelf.starts_with(prefix), &case).await?;
            for author in ["a", "a_"] {
                let path = shelf().author(author);
                let query = table.query(path).filter(Book::TITLE.starts_with(prefix));
                let is_met = |book: &Book| book.author == author && book.title.starts_with(prefix);
                check(query, is_met, &case).await?;
            }
            // The first condition of a chain of `&` takes the others into its list.
            let both = Book::AUTHOR.starts_with(prefix) & Book::PAGES.between(20..=90);
            let is_met =
                |book: &Book| book.author.starts_with(prefix) && (20..=90).contains(&book.pages);
            check(table.query(shelf()).filter(both), is_met, &case).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_prefix_of_a_key_part_bounds_the_read() -> TestResult {
    let table: Table<Book> = Client::memory().table();
    let shelf = || Book::primary().shelf("Sales");
    let explain = table.query(shelf()).filter(Book::AUTHOR.starts_with("a_")).explain();
    assert_eq!(explain.class, CostClass::Range);
    assert!(explain.filter.contains("RowKey ge 'b_a~5F'"), "{}", explain.filter);
    assert!(explain.filter.contains("RowKey lt 'b_a~5G'"), "{}", explain.filter);
    // The bounds that a program writes by hand are the same prefix.
    let by_hand = table.query(shelf()).filter(Book::AUTHOR.lt("ab") & Book::AUTHOR.ge("aa"));
    assert!(by_hand.explain().filter.contains("RowKey ge 'b_aa'"), "{}", by_hand.explain());
    // One bound alone does not sort as keys do, and neither do bounds of no prefix.
    for refused in [
        Book::AUTHOR.between("a"..="b"),
        Book::AUTHOR.between("aa".."ac"),
        Book::AUTHOR.between("a"..),
        Book::AUTHOR.starts_with("a") | Book::AUTHOR.lt("b"),
        Book::TITLE.starts_with("a"),
    ] {
        let error = table.query(shelf()).filter(refused).collect().await.unwrap_err();
        assert!(error.is_invalid(), "{error}");
    }
    // A copy that lacks the field answers nothing about it.
    let copies = table.query(Book::by_title().shelf("s")).filter(Book::NOTE.is_none());
    let error = copies.select::<Pages>().collect().await.unwrap_err();
    assert!(error.is_invalid() && error.message().contains("do not hold"), "{error}");
    Ok(())
}

#[derive(Debug, Projection)]
#[table(of = Book)]
struct Pages {
    pages: u16,
}

#[tokio::test]
async fn ranges_and_lists_are_exact() -> TestResult {
    on_both(async |store| {
        let table = store.table::<Book>().await;
        table.bulk().insert_all(books()).await?.into_result()?;
        let query = |condition| table.query(Book::primary().shelf("s/1")).filter(condition);
        let pages = || Book::PAGES;
        check(query(pages().between(20..40)), |book| (20..40).contains(&book.pages), "..").await?;
        check(query(pages().between(20..=40)), |book| (20..=40).contains(&book.pages), "..=")
            .await?;
        check(query(pages().between(20..)), |book| book.pages >= 20, "from").await?;
        check(query(pages().between(..40)), |book| book.pages < 40, "to").await?;
        check(query(pages().between(..=40)), |book| book.pages <= 40, "to, too").await?;
        check(query(pages().between(40..20)), |_| false, "reversed").await?;
        check(query(pages().is_in([20, 60, 7])), |book| [20, 60].contains(&book.pages), "in")
            .await?;
        check(query(!pages().is_in([20_u16])), |book| book.pages != 20, "not in").await?;
        check(query(pages().is_in(Vec::<u16>::new())), |_| false, "in nothing").await?;
        check(query(!pages().is_in(Vec::<u16>::new())), |_| true, "not in nothing").await?;
        let authors = Book::AUTHOR.is_in(["a_", "b", "zz"]);
        check(query(authors), |book| ["a_", "b"].contains(&&*book.author), "keys").await?;
        // The fault of one comparison is the fault of the condition.
        for faulty in [Book::LENT.at(2).is_in([1]), Book::LENT.at(2).between(..1)] {
            let error = query(faulty | pages().eq(20)).collect().await.unwrap_err();
            assert!(error.is_invalid() && error.message().contains("slot 2"), "{error}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn presence_is_exact_for_every_value() -> TestResult {
    on_both(async |store| {
        let table = store.table::<Book>().await;
        table.bulk().insert_all(books()).await?.into_result()?;
        let query = |condition| table.query(Book::primary().shelf("s/1")).filter(condition);
        check(query(Book::NOTE.is_none()), |book| book.note.is_none(), "note").await?;
        check(query(Book::NOTE.is_some()), |book| book.note.is_some(), "note").await?;
        check(query(Book::SCORE.is_none()), |book| book.score.is_none(), "score").await?;
        check(query(Book::SCORE.is_some()), |book| book.score.is_some(), "score").await?;
        check(query(Book::LENT.at(0).is_none()), |book| book.lent[0].is_none(), "slot").await?;
        check(query(Book::LENT.at(1).is_some()), |_| false, "slot").await?;
        let error = query(Book::LENT.at(2).is_none()).collect().await.unwrap_err();
        assert!(error.is_invalid() && error.message().contains("slot 2"), "{error}");
        Ok(())
    })
    .await
}

//! Tests keys: escapes, Unicode, empty texts, ranges at their edges.

use entable::prelude::*;
use time::{Date, Duration, OffsetDateTime, macros::datetime};

use crate::{Employee, employee, point, staff, table};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Hostile", partition_key = "{a}_{b}", row_key = "k_{c}-{d}")]
struct Hostile {
    a: String,
    b: String,
    c: String,
    d: String,
    n: i32,
}

const TEXTS: &[&str] = &[
    "",
    "_",
    "-",
    "~",
    "~~",
    "~5F",
    "~A00005F",
    "a_b",
    "a-b",
    "/",
    "\\",
    "#",
    "?",
    "\0",
    "\u{7f}",
    "\u{9f}",
    "%",
    "%2F",
    "'",
    "''",
    "\"",
    " ",
    "  x  ",
    "\n",
    "é",
    "e\u{301}",
    "\u{e000}",
    "\u{ffff}",
    "😀",
    "😀_",
    "\u{10ffff}",
    "ＡＢ",
    "İ",
    "ß",
    "~e",
    "k_",
    "\u{feff}",
    "\u{a0}",
];

#[tokio::test]
async fn every_text_comes_back_from_the_keys() -> Result<(), Error> {
    let rows = table::<Hostile>().await;
    let mut n = 0;
    for x in TEXTS {
        for y in TEXTS {
            n += 1;
            let one = Hostile { a: (*x).into(), b: (*y).into(), c: (*y).into(), d: (*x).into(), n };
            rows.insert(&one).await?;
            let point = Hostile::primary().a(*x).b(*y).c(*y).d(*x);
            assert_eq!(*rows.get(point).await?.unwrap(), one);
            let part = Hostile::primary().a(*x).b(*y);
            assert_eq!(rows.query(part).collect().await?.len(), 1, "{x:?} {y:?}");
        }
    }
    assert_eq!(rows.query(Hostile::scan()).collect().await?.len(), n as usize);
    for x in TEXTS {
        for y in TEXTS {
            let filter = Hostile::A.eq(*x) & Hostile::C.ne(*y) | Hostile::C.eq(*y);
            let asked = rows.query(Hostile::primary().a(*x).b(*y)).filter(filter);
            assert_eq!(asked.collect().await?.len(), 1, "{x:?} {y:?}");
            let not = rows.query(Hostile::primary().a(*x).b(*y)).filter(!Hostile::C.eq(*y));
            assert_eq!(not.collect().await?.len(), 0, "{x:?} {y:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_prefix_finds_what_starts_with_it() -> Result<(), Error> {
    let rows = table::<Hostile>().await;
    let mut all = Vec::new();
    for x in TEXTS {
        for y in TEXTS {
            let one = Hostile { a: "".into(), b: "".into(), c: (*x).into(), d: (*y).into(), n: 0 };
            rows.insert(&one).await?;
            all.push(one);
        }
    }
    for prefix in TEXTS {
        let path = Hostile::primary().a("").b("").c_prefix(*prefix);
        let found = rows.query(path).collect().await?.len();
        assert_eq!(found, all.iter().filter(|e| e.c.starts_with(prefix)).count(), "{prefix:?}");
        let path = Hostile::primary().a("").b("").c("a_b").d_prefix(*prefix);
        let found = rows.query(path).collect().await?.len();
        let expected = all.iter().filter(|e| e.c == "a_b" && e.d.starts_with(prefix)).count();
        assert_eq!(found, expected, "{prefix:?}");
        let path = Hostile::primary().a("").b("").c(*prefix);
        assert_eq!(rows.query(path).collect().await?.len(), TEXTS.len(), "{prefix:?}");
    }
    Ok(())
}

#[tokio::test]
async fn ranges_at_their_edges() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.bulk().insert_all((98..=202).map(employee)).await?;
    staff.insert(&employee(999_999)).await?;
    let sales = || Employee::primary().department("Sales");
    let count = async |path: Range<Employee>| staff.query(path).collect().await.map(|e| e.len());
    assert_eq!(count(sales().id_range(100..=199)).await?, 100);
    assert_eq!(count(sales().id_range(100..199)).await?, 99);
    assert_eq!(count(sales().id_range(..100)).await?, 2);
    assert_eq!(count(sales().id_range(..=100)).await?, 3);
    assert_eq!(count(sales().id_range(200..)).await?, 4);
    assert_eq!(count(sales().id_range(..)).await?, 106);
    assert_eq!(count(sales().id_range(100..100)).await?, 0);
    #[allow(clippy::reversed_empty_ranges)]
    {
        assert_eq!(count(sales().id_range(199..=100)).await?, 0);
        assert_eq!(count(sales().id_range(199..100)).await?, 0);
    }
    use std::ops::Bound::{Excluded, Included, Unbounded};
    assert_eq!(count(sales().id_range((Excluded(100), Included(102)))).await?, 2);
    assert_eq!(count(sales().id_range((Excluded(100), Excluded(100)))).await?, 0);
    assert_eq!(count(sales().id_range((Excluded(999_999), Unbounded))).await?, 0);
    // A bound beyond the part's last number is no bound.
    assert_eq!(count(sales().id_range(0..1_000_000)).await?, 106);
    assert_eq!(count(sales().id_range(1_000_000..)).await?, 0);
    assert_eq!(count(sales().id_range(1_000_000..=2_000_000)).await?, 0);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logs", partition_key = "{host}", row_key = "log_{at:desc}_{n:desc}")]
struct Log {
    host: String,
    at: OffsetDateTime,
    n: i16,
    text: String,
}

#[tokio::test]
async fn descending_ranges_and_filters_mean_the_values() -> Result<(), Error> {
    let logs = table::<Log>().await;
    let start = datetime!(2014-08-22 00:00:00 UTC);
    for i in 0..24_i16 {
        let at = start + Duration::hours(i.into());
        let n = i - 12;
        logs.insert(&Log { host: "h".into(), at, n, text: i.to_string() }).await?;
    }
    let h = |i: i64| start + Duration::hours(i);
    let path = || Log::primary().host("h");
    let texts = async |q: Query<Log, Stored<Log>>| {
        q.collect()
            .await
            .map(|e| e.iter().map(|e| e.text.parse::<i64>().unwrap()).collect::<Vec<_>>())
    };
    use std::ops::Bound::{Excluded, Included};
    assert_eq!(texts(logs.query(path().at_range(h(3)..h(6)))).await?, [5, 4, 3]);
    assert_eq!(texts(logs.query(path().at_range(h(3)..=h(6)))).await?, [6, 5, 4, 3]);
    let open = (Excluded(h(3)), Included(h(6)));
    assert_eq!(texts(logs.query(path().at_range(open))).await?, [6, 5, 4]);
    assert_eq!(texts(logs.query(path().at_range(..h(2)))).await?, [1, 0]);
    assert_eq!(texts(logs.query(path().at_range(h(22)..))).await?, [23, 22]);
    assert_eq!(texts(logs.query(path()).take(2)).await?, [23, 22]);
    assert_eq!(texts(logs.query(path().at(h(5)).n_range(-7..))).await?, [5]);
    assert_eq!(texts(logs.query(path().at(h(5)).n_range(-6..))).await?, Vec::<i64>::new());
    for (filter, expected) in [
        (Log::AT.gt(h(21)), vec![23, 22]),
        (Log::AT.ge(h(22)), vec![23, 22]),
        (Log::AT.lt(h(1)), vec![0]),
        (Log::AT.le(h(1)), vec![1, 0]),
        (Log::AT.eq(h(7)), vec![7]),
        (!Log::AT.gt(h(1)), vec![1, 0]),
        (Log::AT.ne(h(7)) & Log::AT.lt(h(8)) & Log::AT.gt(h(5)), vec![6]),
        (Log::AT.eq(h(1)) | Log::AT.eq(h(3)) | Log::TEXT.eq("5"), vec![5, 3, 1]),
        (!(Log::AT.gt(h(0)) & Log::AT.lt(h(23))), vec![23, 0]),
    ] {
        let shown = format!("{filter:?}");
        assert_eq!(texts(logs.query(path()).filter(filter)).await?, expected, "{shown}");
    }
    let at = || logs.query(path().at(h(5)));
    assert_eq!(texts(at().filter(Log::N.ge(-7))).await?, [5]);
    assert_eq!(texts(at().filter(Log::N.gt(-7))).await?, Vec::<i64>::new());
    assert_eq!(texts(at().filter(Log::AT.gt(h(4)) & Log::N.lt(0))).await?, [5]);
    assert_eq!(texts(at().filter(Log::AT.gt(h(5)) | Log::HOST.ne("h"))).await?, Vec::<i64>::new());
    assert_eq!(texts(at().filter(Log::HOST.eq("h"))).await?, [5]);
    let error = logs.query(path()).filter(Log::N.eq(3)).collect().await.unwrap_err();
    assert!(error.is_invalid() && error.property() == Some("N"), "{error}");
    assert_eq!(error.table(), Some("Logs"));
    Ok(())
}

#[tokio::test]
async fn times_beyond_the_service_are_refused_by_name() -> Result<(), Error> {
    let logs = table::<Log>().await;
    let early = OffsetDateTime::new_utc(Date::MIN, time::Time::MIDNIGHT);
    let log = Log { host: "h".into(), at: early, n: 0, text: "".into() };
    let error = logs.insert(&log).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!((error.table(), error.property()), (Some("Logs"), Some("At")), "{error}");
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Mail", partition_key = "p", row_key = "m_{email:lower}_{id:bucket(16)}_{id}")]
struct Mail {
    email: String,
    id: u64,
}

#[tokio::test]
async fn lower_and_bucket_parts_are_found_by_value() -> Result<(), Error> {
    let mails = table::<Mail>().await;
    for (id, email) in
        ["Jo@X.com", "jo_y@x.com", "İstanbul", "STRASSE/ß", "", "ΑΣ"].iter().enumerate()
    {
        let mail = Mail { email: (*email).into(), id: id as u64 };
        mails.insert(&mail).await?;
        let point = Mail::primary().email(*email).id(mail.id);
        assert_eq!(*mails.get(point).await?.unwrap(), mail);
        let other = Mail::primary().email(email.to_uppercase()).id(mail.id);
        let _ = mails.get(other).await?;
    }
    let found = mails.query(Mail::primary().email_prefix("JO")).collect().await?;
    assert_eq!(found.len(), 2);
    let one = mails.query(Mail::primary()).filter(Mail::EMAIL.eq("Jo@X.com")).collect().await?;
    assert_eq!(one.len(), 1);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Bare", partition_key = "{p}", row_key = "{r}")]
struct Bare {
    p: String,
    r: String,
}

#[tokio::test]
async fn empty_and_astral_keys_sort_as_the_service_does() -> Result<(), Error> {
    let rows = table::<Bare>().await;
    for r in ["", "a", "\u{e000}", "😀", "\u{ffff}", "\u{d7ff}"] {
        rows.insert(&Bare { p: "".into(), r: r.into() }).await?;
    }
    let found = rows.query(Bare::primary().p("")).collect().await?;
    let order: Vec<_> = found.iter().map(|e| e.r.as_str()).collect();
    assert_eq!(order, ["", "a", "\u{d7ff}", "😀", "\u{e000}", "\u{ffff}"]);
    let path = Bare::primary().p("").r_range("😀".."\u{ffff}");
    assert_eq!(rows.query(path).collect().await?.len(), 2);
    let path = Bare::primary().p("").r_range(""..="");
    assert_eq!(rows.query(path).collect().await?.len(), 1);
    let path = Bare::primary().p("").r_prefix("");
    assert_eq!(rows.query(path).collect().await?.len(), 6);
    assert!(rows.get(Bare::primary().p("").r("")).await?.is_some());
    let long = "x".repeat(513);
    let error = rows.insert(&Bare { p: long.clone(), r: "".into() }).await.unwrap_err();
    assert!(error.is_too_large() && error.to_string().contains("513"), "{error}");
    let error = rows.get(Bare::primary().p(&long).r("")).await.unwrap_err();
    assert!(error.is_too_large() && error.table() == Some("Bare"), "{error}");
    let error = rows.query(Bare::primary().p(&long)).collect().await;
    assert!(error.is_ok() || error.is_err_and(|e| e.is_too_large()));
    Ok(())
}

#[tokio::test]
async fn a_point_that_does_not_fit_names_its_field() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let error = staff.get(point(1_000_000)).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!((error.table(), error.property()), (Some("Staff"), Some("Id")));
    let error = staff.delete_at(point(1_000_000)).await.unwrap_err();
    assert_eq!((error.table(), error.property()), (Some("Staff"), Some("Id")));
    Ok(())
}

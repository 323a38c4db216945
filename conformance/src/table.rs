//! Tables: names and life.

use crate::setup::{Setup, refused, row_keys};
use entable_core::backend::NameRange;

/// 3: a created table is listed by its name.
pub async fn created_is_listed(s: &Setup) {
    assert!(s.table_names().await.iter().any(|name| name == s.table()));
}

/// 3: a table that exists is 409 `TableAlreadyExists`, and keeps its rows.
pub async fn create_twice(s: &Setup) {
    s.given("p", "r", &[]).await;
    assert!(refused(s.create(s.table()).await, 409, "TableAlreadyExists").is_conflict());
    s.finds("", &["r"]).await;
}

/// 2.2: names are unique whatever their case.
pub async fn create_in_another_case(s: &Setup) {
    for name in [s.table().to_lowercase(), s.table().to_uppercase()] {
        refused(s.create(&name).await, 409, "TableAlreadyExists");
    }
}

/// 2.2: a table is reached under its name in any case.
pub async fn reached_in_any_case(s: &Setup) {
    s.given("p", "r", &[]).await;
    for name in [s.table().to_lowercase(), s.table().to_uppercase()] {
        assert!(s.at(&name).get("p", "r").await.is_some());
        assert_eq!(row_keys(&s.at(&name).matching("").await), ["r"]);
    }
}

/// 2.2: tables are listed with the case of their creation.
pub async fn name_keeps_its_case(s: &Setup) {
    let name = format!("{}MixedCase", s.fresh_name());
    s.create(&name).await.expect("created");
    assert!(s.table_names().await.contains(&name));
}

/// 3: a deleted table is gone from the list and from every request.
pub async fn delete_removes_table(s: &Setup) {
    s.given("p", "r", &[]).await;
    s.drop_table(s.table()).await.expect("deleted");
    assert!(!s.table_names().await.iter().any(|name| name == s.table()));
    assert!(s.try_get("p", "r").await.is_err());
}

/// 2.2: a table is deleted under its name in any case.
pub async fn delete_in_any_case(s: &Setup) {
    s.drop_table(&s.table().to_lowercase()).await.expect("deleted");
    assert!(!s.table_names().await.iter().any(|name| name == s.table()));
}

/// 3: deleting a missing table is 404 `ResourceNotFound`.
pub async fn delete_missing_table(s: &Setup) {
    assert!(refused(s.drop_table(&s.fresh_name()).await, 404, "ResourceNotFound").is_not_found());
}

/// 2.2: a name is not looked at on delete: an impossible one is 404 `ResourceNotFound`.
pub async fn delete_impossible_table(s: &Setup) {
    refused(s.drop_table("no-table").await, 404, "ResourceNotFound");
}

/// 3: a table that is created again is empty. Where the service still deletes the old one, it says
/// `TableBeingDeleted`.
pub async fn recreated_is_empty(s: &Setup) {
    s.given("p", "r", &[]).await;
    s.drop_table(s.table()).await.expect("deleted");
    match s.create(s.table()).await {
        Ok(()) => s.finds("", &[]).await,
        Err(error) => assert_eq!(error.code(), Some("TableBeingDeleted")),
    }
}

/// 2: rows of two tables are apart.
pub async fn tables_are_apart(s: &Setup) {
    let other = s.at(&s.fresh_name());
    other.create(other.table()).await.expect("created");
    s.given("p", "r", &[("P", 1.into())]).await;
    other.given("p", "r", &[("P", 2.into())]).await;
    s.drop_table(s.table()).await.expect("deleted");
    other.finds("P eq 2", &["r"]).await;
}

/// 3: tables are listed in the order of their names, whatever the case.
pub async fn list_is_sorted(s: &Setup) {
    let base = s.fresh_name();
    for end in ["b", "C", "a"] {
        s.create(&format!("{base}{end}")).await.expect("created");
    }
    let listed = s.table_names().await;
    let own = listed.iter().filter_map(|name| name.strip_prefix(&base));
    assert_eq!(own.collect::<Vec<_>>(), ["a", "b", "C"]);
}

/// 3: a list of the names in a range has each of them, both ends included.
pub async fn list_of_a_range(s: &Setup) {
    let base = s.fresh_name();
    let table = |end: u32| format!("{base}{end:04}");
    for end in [1, 2, 3, 5, 6] {
        s.create(&table(end)).await.expect("created");
    }
    let (first, last) = (table(2), table(5));
    let listed = s.table_names_within(Some(NameRange { first: &first, last: &last })).await;
    // A store may list others too.
    let within = listed.iter().filter(|name| (&first..=&last).contains(name));
    assert_eq!(within.collect::<Vec<_>>(), [&first, &table(3), &last]);
    let none = NameRange { first: &table(7), last: &table(9) };
    let listed = s.table_names_within(Some(none)).await;
    assert!(!listed.iter().any(|name| *name >= table(7) && *name <= table(9)), "{listed:?}");
}

macro_rules! refused_names {
    ($($doc:literal $name:ident: [$($table:expr),*], $code:literal;)*) => {
        $(#[doc = concat!("2.2: ", $doc)]
        pub async fn $name(s: &Setup) {
            for name in [$($table),*] {
                assert!(refused(s.create(name).await, 400, $code).is_invalid(), "{name}");
            }
        })*
    };
}

refused_names! {
    "a name with another character than a letter or digit is `InvalidResourceName`."
        name_with_other_characters: ["with-hyphen", "with_line", "with blank", "with.dot"],
        "InvalidResourceName";
    "a name with a letter beyond ASCII is `InvalidResourceName`."
        name_beyond_ascii: ["Stra\u{df}e", "\u{e9}tat"], "InvalidResourceName";
    "a name that begins with a digit is `InvalidResourceName`."
        name_with_leading_digit: ["1table", "007"], "InvalidResourceName";
    "a name of one or two characters is `OutOfRangeInput`."
        name_too_short: ["a", "ab"], "OutOfRangeInput";
    "a name of 64 characters is `OutOfRangeInput`."
        name_too_long: [&"a".repeat(64)], "OutOfRangeInput";
    "the name `tables` is reserved, in any case: `InvalidInput`."
        name_reserved: ["tables", "Tables"], "InvalidInput";
}

/// 2.2: a name has 3 to 63 characters.
pub async fn name_lengths(s: &Setup) {
    let fresh = s.fresh_name();
    let longest = format!("{fresh:a<63}");
    s.create(&longest).await.expect("created");
    assert!(s.table_names().await.contains(&longest));
    let shortest = format!("z{}", &fresh[fresh.len() - 2..]);
    // A table with a three-letter name may belong to somebody, and has to stay.
    if s.table_names().await.iter().any(|name| name.eq_ignore_ascii_case(&shortest)) {
        return;
    }
    match s.create(&shortest).await {
        Ok(()) => s.drop_table(&shortest).await.expect("deleted"),
        Err(error) => assert!(error.is_conflict(), "{error}"),
    }
}

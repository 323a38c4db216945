//! Tests filters that are nested as deep as memory allows.

use entable::{Filter, KeyBounds, Row};

const DEEP: usize = 100_000;

#[test]
fn deep_text_is_refused_and_not_followed() {
    for (open, close) in [("(", ")"), ("not ", ""), ("not (", ")"), ("(A eq 1 or ", ")")] {
        let text = [&open.repeat(DEEP), "A eq 1", &close.repeat(DEEP)].concat();
        let error = Filter::parse(&text).unwrap_err();
        assert!(error.is_invalid(), "{open}");
    }
    assert!(Filter::parse(&"(".repeat(DEEP)).is_err());
}

#[test]
fn nesting_up_to_the_limit_goes_everywhere() {
    let row = Row::build("P", "R").finish().unwrap();
    let nested = |depth: usize| (1..depth).fold(Filter::eq("A", 1), |filter, _| !filter);
    let filter = nested(Filter::NESTING);
    filter.check().unwrap();
    assert!(filter.matches(&row).is_ok());
    assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter);
    let filter = nested(Filter::NESTING + 1);
    for error in [
        filter.check().unwrap_err(),
        filter.matches(&row).unwrap_err(),
        Filter::parse(&filter.to_string()).unwrap_err(),
    ] {
        assert!(error.is_invalid() && error.message().contains("100"), "{error}");
    }
    let message = filter.check().unwrap_err();
    assert!(message.message().contains("101"), "{message}");
}

#[test]
fn a_nesting_is_reported_as_deep_as_it_is() {
    let row = Row::build("P", "R").finish().unwrap();
    let nested = |depth: usize| (1..depth).fold(Filter::eq("A", 1), |filter, _| !filter);
    let filter = nested(150) | nested(300);
    for error in [filter.check().unwrap_err(), filter.matches(&row).unwrap_err()] {
        assert!(error.message().contains("nested 301 deep"), "{error}");
    }
    for (open, close, levels) in
        [("(", ")", 701), ("not ", "", 701), ("not (", ")", 1401), ("(A eq 1 or ", ")", 701)]
    {
        let text = [&open.repeat(700), "A eq 1", &close.repeat(700)].concat();
        let text = format!("(A eq 2) and {text}");
        let error = Filter::parse(&text).unwrap_err();
        assert!(error.message().contains(&format!(" {levels} deep")), "{error}");
    }
}

#[test]
fn trees_of_any_depth_are_printed_cloned_compared_and_dropped() {
    let row = Row::build("P", "R").finish().unwrap();
    let leaf = || Filter::eq("RowKey", "R");
    let grown: [fn(Filter, Filter) -> Filter; 4] = [
        |filter, _| !filter,
        |filter, leaf| leaf & filter,
        |filter, leaf| leaf | filter,
        |filter, leaf| !(leaf & filter),
    ];
    for grow in grown {
        let filter = (0..DEEP).fold(leaf(), |filter, _| grow(filter, leaf()));
        let copy = filter.clone();
        assert!(filter == copy);
        assert!(filter != leaf());
        assert!(filter.to_string().len() > DEEP);
        assert!(format!("{filter:?}").starts_with("Filter("));
        let mut named = 0;
        filter.visit_properties(&mut |_| named += 1);
        assert!(named >= 1);
        let _ = KeyBounds::of_filter(&filter);
        assert!(filter.check().unwrap_err().is_invalid());
        let _ = filter.matches(&row);
    }
}

#[test]
fn a_long_chain_is_one_list() {
    let row = Row::build("P", "R").finish().unwrap();
    let filter = (0..DEEP).map(|n| Filter::eq("A", n as i64)).reduce(|a, b| a | b).unwrap();
    filter.check().unwrap();
    assert!(!filter.matches(&row).unwrap());
}

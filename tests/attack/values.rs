//! Tests values at the edges of their types, and the limits of rows.

use std::collections::BTreeMap;

use entable::{Bag, prelude::*};
use time::{Date, OffsetDateTime, macros::datetime};

use crate::{Employee, employee, point, staff, table};

#[derive(Debug, Clone, PartialEq, Default, TableEntity)]
#[table(name = "Values", partition_key = "p", row_key = "{id:03}")]
struct Values {
    id: u32,
    long: Option<u64>,
    float: Option<f64>,
    small: Option<f32>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    at: Option<OffsetDateTime>,
    day: Option<Date>,
    #[table(json)]
    json: BTreeMap<String, Option<i32>>,
    #[table(extra)]
    extra: Bag,
}

fn value(id: u32) -> Values {
    Values { id, ..Values::default() }
}

fn at(id: u32) -> Point<Values> {
    Values::primary().id(id)
}

#[tokio::test]
async fn doubles_come_back_bit_by_bit() -> Result<(), Error> {
    let values = table::<Values>().await;
    let doubles =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324];
    for (id, double) in doubles.into_iter().enumerate() {
        let id = u32::try_from(id).unwrap();
        let row = Values { float: Some(double), small: Some(f32::NAN), ..value(id) };
        let stored = values.insert(&row).await?;
        assert_eq!(stored.float.map(f64::to_bits), Some(double.to_bits()));
        let read = values.get(at(id)).await?.unwrap();
        assert_eq!(read.float.map(f64::to_bits), Some(double.to_bits()));
        let all = values.query(Values::primary()).filter(Values::FLOAT.eq(double));
        if !double.is_finite() {
            let error = all.collect().await.unwrap_err();
            assert!(error.is_invalid() && error.property() == Some("Float"), "{error}");
            continue;
        }
        assert_eq!(all.collect().await?.len(), 1, "{double}");
        let text = all.explain().filter;
        assert!(Filter::parse(&text).is_ok(), "{text}");
    }
    assert_eq!(
        values.query(Values::primary()).filter(Values::FLOAT.eq(0.0)).collect().await?.len(),
        1
    );
    Ok(())
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_its_name() -> Result<(), Error> {
    let values = table::<Values>().await;
    let refused = [
        (Values { long: Some(u64::MAX), ..value(1) }, "Long"),
        (Values { at: Some(datetime!(1600-12-31 23:59:59.9999999 UTC)), ..value(1) }, "At"),
        (Values { at: Some(datetime!(0001-01-01 00:00 +1)), ..value(1) }, "At"),
        (Values { at: Some(datetime!(9999-12-31 23:59:59.9999999 -1)), ..value(1) }, "At"),
        (Values { at: Some(datetime!(-9999-01-01 00:00 UTC)), ..value(1) }, "At"),
        (Values { day: Some(Date::MIN), ..value(1) }, "Day"),
        (Values { text: Some("x".repeat(32_769)), ..value(1) }, "Text"),
        (Values { text: Some("😀".repeat(16_385)), ..value(1) }, "Text"),
        (Values { bytes: Some(vec![0; 65_537]), ..value(1) }, "Bytes"),
        (Values { json: (0..9000).map(|n| (n.to_string(), None)).collect(), ..value(1) }, "Json"),
    ];
    for (row, property) in refused {
        for error in [
            values.insert(&row).await.unwrap_err(),
            values.insert_or_replace(&row).await.unwrap_err(),
        ] {
            assert!(error.is_invalid() || error.is_too_large(), "{error}");
            assert_eq!(error.property(), Some(property), "{error}");
            assert_eq!(error.table(), Some("Values"), "{error}");
            assert_eq!(error.keys(), Some(("p", "001")), "{error}");
        }
    }
    let error = values.patch_at(at(1), Values::patch().long(u64::MAX)).await.unwrap_err();
    assert_eq!((error.property(), error.table()), (Some("Long"), Some("Values")), "{error}");
    // No row holds the value, so a condition with it has an answer.
    let above = values.query(Values::primary()).filter(Values::LONG.ge(u64::MAX));
    assert_eq!(above.count().await?, 0);
    let error = values.patch_at(at(1), Values::patch().text("x".repeat(32_769))).await.unwrap_err();
    assert_eq!((error.property(), error.is_too_large()), (Some("Text"), true), "{error}");
    let fits = Values {
        text: Some("x".repeat(32_768)),
        bytes: Some(vec![0; 65_536]),
        long: u64::try_from(i64::MAX).ok(),
        at: Some(datetime!(9999-12-31 23:59:59.999999999 UTC)),
        ..value(2)
    };
    let stored = values.insert(&fits).await?;
    let below = values.query(Values::primary()).filter(Values::LONG.lt(u64::MAX));
    assert_eq!(below.count().await?, 1);
    assert_eq!(stored.at, Some(datetime!(9999-12-31 23:59:59.9999999 UTC)));
    let early = datetime!(1601-01-01 00:00 UTC);
    values.insert(&Values { at: Some(early), day: Some(early.date()), ..value(3) }).await?;
    assert_eq!(values.get(at(3)).await?.unwrap().day, Some(early.date()));
    let found = values.query(Values::primary()).filter(Values::DAY.le(early.date()));
    assert_eq!(found.collect().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_bag_has_its_limits_and_no_stranger_takes_a_known_name() -> Result<(), Error> {
    let values = table::<Values>().await;
    let bag =
        |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), Value::Int32(1))).collect::<Bag>();
    for names in [
        &["a-b"][..],
        &["1a"],
        &[""],
        &["a b"],
        &["\u{e000}"],
        &["PartitionKey"],
        &["Timestamp"],
        &["RowKey"],
        &["x/y"],
        &["EntityType"],
        &["Json"],
    ] {
        let row = Values { extra: bag(names), ..value(1) };
        let error = values.insert(&row).await.unwrap_err();
        assert!(error.is_invalid(), "{names:?}: {error}");
        assert_eq!(error.table(), Some("Values"));
        assert!(
            error.to_string().contains(names[0].escape_debug().to_string().as_str()),
            "{error}"
        );
        assert_eq!(error.keys(), Some(("p", "001")), "{error}");
    }
    let row = Values { extra: bag(&["Id"]), ..value(9) };
    values.insert(&row).await?;
    assert_eq!(*values.get(at(9)).await?.unwrap(), row, "a key's field is no property");
    for name in ["Text", "Json", "Long"] {
        let row = Values { extra: bag(&[name]), ..value(1) };
        let error = values.insert(&row).await;
        assert!(error.is_err_and(|e| e.is_invalid() && e.property() == Some(name)));
    }
    let row = Values { extra: bag(&["é", "_x", "ETag", "timestamp", "Ａ"]), ..value(1) };
    values.insert(&row).await?;
    assert_eq!(*values.get(at(1)).await?.unwrap(), row);
    let names: Vec<String> = (0..251).map(|n| format!("p{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row = Values { extra: bag(&names), ..value(2) };
    let error = values.insert(&row).await.unwrap_err();
    assert!(error.is_too_large() && error.to_string().contains("253"), "{error}");
    assert_eq!(error.keys(), Some(("p", "002")), "{error}");
    let row = Values { extra: bag(&names[1..]), ..value(2) };
    values.insert(&row).await?;
    assert_eq!(values.get(at(2)).await?.unwrap().extra.len(), 250);
    Ok(())
}

#[tokio::test]
async fn an_entity_over_a_mebibyte_is_refused_before_it_is_sent() -> Result<(), Error> {
    let values = table::<Values>().await;
    let extra = |count: usize| {
        (0..count).map(|n| (format!("p{n}"), Value::from("x".repeat(32_000)))).collect::<Bag>()
    };
    let row = Values { extra: extra(17), ..value(1) };
    let error = values.insert(&row).await.unwrap_err();
    assert!(error.is_too_large() && error.keys() == Some(("p", "001")), "{error}");
    values.insert(&Values { extra: extra(16), ..value(1) }).await?;
    let rows =
        (1..=30).map(|id| Values { extra: extra(if id == 7 { 17 } else { 16 }), ..value(id) });
    let report = values.bulk().insert_or_replace_all(rows).await?;
    assert_eq!((report.done, report.failed.len(), report.failed[0].index), (29, 1, 6));
    let mut egt = values.transaction();
    let big = |id| Values { extra: extra(16), ..value(id) };
    for id in 1..=3 {
        egt.insert_or_replace(&big(id))?;
    }
    let mut refused = None;
    for id in 4..=9 {
        if let Err(error) = egt.insert_or_replace(&big(id)) {
            refused = Some((id, error));
            break;
        }
    }
    let (id, error) = refused.unwrap();
    assert!(error.is_too_large() && error.code() == Some("RequestBodyTooLarge"), "{error}");
    assert_eq!(error.failed_index(), Some(id as usize - 1));
    egt.commit().await?;
    Ok(())
}

#[tokio::test]
async fn no_secret_and_no_control_character_reaches_a_message() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let error = staff
        .insert(&Employee { department: "a\nb\u{202e}".into(), age: -1, ..employee(1) })
        .await
        .unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    let error = staff.get(Point::at("x/y\n", "z")).await.unwrap_err();
    assert!(error.is_invalid() && !error.to_string().contains('\n'), "{error}");
    assert_eq!(error.table(), Some("Staff"));
    let debug = format!("{:?}", Employee::patch().note("secret"));
    assert!(!debug.contains("secret"));
    let _ = point(1);
    Ok(())
}

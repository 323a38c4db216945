//! Tests a key field that is stored as a property too, beside partial copies.

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Flights",
    partition_key = "{origin}",
    row_key = "dep_{time:04}_{carrier}",
    index(Newest, row_key = "new_{time:desc}_{carrier}", only(dest)),
    index(ByDest, row_key = "dest_{dest}_{time:04}", only(carrier))
)]
struct Flight {
    origin: String,
    time: u16,
    #[table(store)]
    carrier: String,
    dest: String,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Flight)]
struct Departure {
    carrier: String,
    dest: String,
}

#[tokio::test]
async fn a_stored_field_is_read_from_the_keys_of_a_copy_without_it() -> Result<(), Error> {
    let flights = Client::memory().table::<Flight>();
    flights.create().await?;
    let flight = |time, carrier: &str| Flight {
        origin: "JFK".into(),
        time,
        carrier: carrier.into(),
        dest: "ATL".into(),
    };
    flights.insert(&flight(515, "UA")).await?;
    flights.insert(&flight(600, "DL")).await?;
    let newest = flights.query(Flight::newest().origin("JFK")).select::<Departure>();
    let found = newest.collect().await?;
    assert_eq!(found.iter().map(|d| &*d.carrier).collect::<Vec<_>>(), ["DL", "UA"]);
    let names = found.first().unwrap().row().to_bag()?;
    assert_eq!(names.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["EntityType", "Dest"]);
    let by_dest = flights.query(Flight::by_dest().origin("JFK").dest("ATL"));
    let found = by_dest.select::<Departure>().collect().await?;
    assert_eq!(found.iter().map(|d| &*d.carrier).collect::<Vec<_>>(), ["UA", "DL"]);
    let united = flights.query(Flight::primary().origin("JFK")).filter(Flight::CARRIER.eq("UA"));
    assert_eq!(united.collect().await?.len(), 1);
    let newest = flights.query(Flight::newest().origin("JFK")).select::<Departure>();
    assert!(newest.filter(Flight::CARRIER.eq("UA")).explain().fault.is_some());
    Ok(())
}

#[tokio::test]
async fn a_refused_query_is_explained_by_its_path() {
    let flights = Client::memory().table::<Flight>();
    let refused = flights.query(Flight::newest().origin("JFK")).filter(Flight::CARRIER.eq("UA"));
    let explain = refused.select::<Departure>().explain();
    assert_eq!(explain.class, CostClass::Range);
    assert!(explain.fault.is_some());
}

#[tokio::test]
async fn several_queries_are_explained_in_order() {
    let flights = Client::memory().table::<Flight>();
    let paths = ["JFK", "EWR"].map(|origin| Flight::primary().origin(origin));
    let explained = flights.query_many(paths).filter(Flight::CARRIER.eq("UA")).explain();
    let filters: Vec<&str> = explained.iter().map(|explain| &*explain.filter).collect();
    assert_eq!(filters.len(), 2);
    assert!(filters.first().unwrap().starts_with("(PartitionKey eq 'JFK')"), "{filters:?}");
}

//! Tests what one slot of a series is on the wire.

use entable::{Client, prelude::*};
use time::{Date, macros::date};

use crate::scripted_http::{Fake, Reply, answer};

const ETAG: (&str, &str) = ("etag", "W/\"datetime'2021-05-26T15%3A48%3A25.77957Z'\"");

/// Most bytes in the body of a request that writes one slot.
const MOST: usize = 120;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:%Y%m%d}")]
struct Day {
    employee: u32,
    day: Date,
    #[table(series)]
    sent: [i64; 24],
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "{employee:06}", wide)]
struct Year {
    department: String,
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [Option<i64>; 365],
}

fn client(fake: &std::sync::Arc<Fake>) -> Client {
    Client::builder().backend(fake.azure()).build().unwrap()
}

#[tokio::test]
async fn one_slot_is_one_small_body() {
    let fake = Fake::new([answer(204, &[ETAG]), answer(204, &[ETAG])]);
    let client = client(&fake);
    let day = Day::primary().employee(223).day(date!(2014 - 07 - 31));
    client.table::<Day>().patch_at(day, Day::patch().sent(13, i64::MIN)).await.unwrap();
    let year = Year::primary().department("Sales").employee(223);
    client.table::<Year>().patch_at(year, Year::patch().days(211, i64::MIN)).await.unwrap();
    let asked = fake.asked();
    let bodies = [
        r#"{"PartitionKey":"000223","RowKey":"20140731","Sent13@odata.type":"Edm.Int64","Sent13":"-9223372036854775808"}"#,
        r#"{"PartitionKey":"Sales","RowKey":"000223_02","Day211@odata.type":"Edm.Int64","Day211":"-9223372036854775808"}"#,
    ];
    assert_eq!(asked.len(), bodies.len());
    for (asked, body) in asked.iter().zip(bodies) {
        assert_eq!((&*asked.method, &*asked.body), ("MERGE", body));
        assert!(asked.body.len() <= MOST, "{} bytes: {}", asked.body.len(), asked.body);
        assert_eq!(asked.header("content-length").unwrap(), asked.body.len().to_string());
    }
}

/// `update` sends the slot that changed, and nothing of the 23 others.
#[tokio::test]
async fn update_sends_the_slot_that_changed() {
    let slots: Vec<String> = (0..24)
        .map(|slot| format!(r#""Sent{slot:02}@odata.type":"Edm.Int64","Sent{slot:02}":"7""#))
        .collect();
    let row = format!(
        r#"{{"odata.etag":"W/\"datetime'2021-05-26T15%3A48%3A25.77957Z'\"","PartitionKey":"000223","RowKey":"20140731","Timestamp":"2021-05-26T15:48:25.77957Z","EntityType":"Day",{}}}"#,
        slots.join(",")
    );
    let fake = Fake::new([Reply::Answer(200, vec![ETAG], row), answer(204, &[ETAG])]);
    let days = client(&fake).table::<Day>();
    let at = Day::primary().employee(223).day(date!(2014 - 07 - 31));
    let add = |day: &mut Day| {
        day.sent[13] += 1;
        Ok(())
    };
    assert_eq!(days.update(at, add).await.unwrap().sent[13], 8);
    let asked = fake.asked();
    let [_, merge] = &asked[..] else { panic!("a read and a merge: {asked:?}") };
    assert_eq!((&*merge.method, merge.header("if-match")), ("MERGE", Some(ETAG.1)));
    assert!(merge.body.len() <= MOST, "{} bytes: {}", merge.body.len(), merge.body);
    assert_eq!(merge.body.matches("Sent13").count(), 2);
    assert_eq!(merge.body.matches("Sent").count(), 2, "{}", merge.body);
}

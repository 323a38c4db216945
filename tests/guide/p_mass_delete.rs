//! Rows of section P: a table for each day, dropped whole.

use entable::{
    Client, Error,
    backend::layer::{InjectedFault, RequestKind, RetryPolicy},
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};
use tokio::time::Instant;

use crate::{
    latency::{delay, latencies_since},
    store::{TestResult, on_both, on_local},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Attempts{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:04}")]
struct Attempt {
    user: String,
    at: OffsetDateTime,
    id: u16,
}

/// On the emulator, all tests share the tables and their floor.
pub(crate) static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);

/// Removes what an earlier run left in a store that outlives the test.
async fn clear(client: &Client) -> Result<(), Error> {
    for table in client.tables().await? {
        if table.starts_with("Attempts") || table == "EntableTables" {
            client.delete_table_if_exists(&table).await?;
        }
    }
    Ok(())
}

/// One attempt on each of `days` days, the newest on July 31.
async fn attempts(client: &Client, days: i32) -> Result<Table<Attempt>, Error> {
    clear(client).await?;
    let attempts: Table<Attempt> = client.table();
    for day in 0..days {
        let at = NOON - Duration::DAY * day;
        attempts.insert(&Attempt { user: "don".into(), at, id: 1 }).await?;
    }
    Ok(attempts)
}

async fn days(client: &Client) -> Result<Vec<String>, Error> {
    let tables = client.tables().await?;
    Ok(tables.into_iter().filter(|name| name.starts_with("Attempts")).collect())
}

#[tokio::test]
async fn p01_an_entity_has_a_table_for_each_day() -> TestResult {
    let _alone = ONE_AT_A_TIME.lock().await;
    on_both(async |store| {
        let attempts = attempts(&store.client, 2).await?;
        assert_eq!(days(&store.client).await?, ["Attempts20140730", "Attempts20140731"]);
        let point = Attempt::primary().user("don").at(NOON - Duration::DAY).id(1);
        assert!(attempts.get(point).await?.is_some());
        clear(&store.client).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn p03_a_day_goes_in_one_request() -> TestResult {
    let _alone = ONE_AT_A_TIME.lock().await;
    on_both(async |store| {
        let attempts = attempts(&store.client, 5).await?;
        store.requests();
        let dropped = attempts.drop_before(NOON).await?;
        let requests = store.count();
        assert_eq!((dropped.dropped.len(), dropped.kept.len()), (4, 0));
        assert!(requests <= 4 + 6, "{requests}");
        assert_eq!(days(&store.client).await?, ["Attempts20140731"]);
        clear(&store.client).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn p04_a_window_reads_the_tables_of_its_days() -> TestResult {
    let _alone = ONE_AT_A_TIME.lock().await;
    on_both(async |store| {
        let attempts = attempts(&store.client, 4).await?;
        store.requests();
        let window = Attempt::primary().at_between(NOON - Duration::DAY * 2..NOON).user("don");
        let found = attempts.query(window.clone()).collect().await?;
        assert_eq!(store.count(), 3);
        let times: Vec<_> = found.iter().map(|attempt| attempt.at).collect();
        assert_eq!(times, [NOON - Duration::DAY, NOON - Duration::DAY * 2]);
        assert_eq!(attempts.query(window).count().await?, 2);
        store.requests();
        let point = Attempt::primary().user("don").at(NOON).id(1);
        assert!(attempts.get(point).await?.is_some());
        attempts.insert(&Attempt { user: "don".into(), at: NOON, id: 2 }).await?;
        let requests: Vec<_> = store.requests().iter().map(ToString::to_string).collect();
        assert_eq!(requests.len(), 2, "{requests:?}");
        assert!(requests[0].starts_with("read Attempts20140731 (don"), "{requests:?}");
        assert!(requests[1].starts_with("apply Attempts20140731 don: Insert"), "{requests:?}");
        clear(&store.client).await?;
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn p04_eight_tables_are_read_at_a_time() -> TestResult {
    on_local(async |store| {
        let attempts = attempts(&store.client, 16).await?;
        let window = |days| Attempt::primary().at_between(NOON - Duration::DAY * days..NOON);
        for (days, rows, expected) in [(7, 7, 1), (8, 8, 2), (15, 15, 2)] {
            delay(&store, RequestKind::Scan, 16);
            let begun = Instant::now();
            let found = attempts.query(window(days).user("don")).collect().await?;
            assert_eq!((found.len(), latencies_since(begun)), (rows, expected), "{days} days");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn p05_a_name_is_not_used_again() -> TestResult {
    let _alone = ONE_AT_A_TIME.lock().await;
    on_both(async |store| {
        let attempts = attempts(&store.client, 2).await?;
        attempts.drop_before(NOON).await?;
        let at = NOON - Duration::DAY;
        let late = attempts.insert(&Attempt { user: "don".into(), at, id: 1 }).await.unwrap_err();
        assert!(late.is_not_found() && late.message().contains("floor"), "{late}");
        assert_eq!(days(&store.client).await?, ["Attempts20140731"]);
        clear(&store.client).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn p06_tables_are_made_ahead() -> TestResult {
    let _alone = ONE_AT_A_TIME.lock().await;
    on_both(async |store| {
        let attempts = attempts(&store.client, 0).await?;
        assert_eq!(attempts.create_between(NOON..NOON + Duration::DAY * 2).await?, 3);
        store.requests();
        attempts.insert(&Attempt { user: "don".into(), at: NOON, id: 1 }).await?;
        assert_eq!(store.count(), 1);
        clear(&store.client).await?;
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn p06_throttling_of_a_new_table_is_waited_out() -> TestResult {
    on_local(async |store| {
        let policy = RetryPolicy::new();
        let patient = Client::builder().backend(store.fault.clone()).retry(policy).build()?;
        let attempts: Table<Attempt> = patient.table();
        let busy = || InjectedFault::Before(Error::new(ErrorKind::Throttled, "slow down"));
        (0..2).for_each(|nth| store.fault.inject(RequestKind::Tables, nth, busy()));
        assert_eq!(attempts.create_between(NOON..NOON + Duration::DAY).await?, 2);
        (0..2).for_each(|nth| store.fault.inject(RequestKind::Apply, nth, busy()));
        attempts.insert(&Attempt { user: "don".into(), at: NOON, id: 1 }).await?;
        assert_eq!(store.fault.pending(), 0);
        assert_eq!(days(&store.other).await?, ["Attempts20140731", "Attempts20140801"]);
        Ok(())
    })
    .await
}

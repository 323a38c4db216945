//! Many entities, one by one and by transactions, at nine tenths of what the account can take.

use std::time::Duration;

use tokio::{task::JoinHandle, time::sleep};

use crate::world::{Limits, Reading, World, insert_from_tasks, readings};

/// How much is written, and against what limits.
#[derive(Clone, Copy)]
struct Size {
    entities: u64,
    sensors: u64,
    of_transaction: u64,
    limits: Limits,
    tasks: usize,
}

/// The limits of the service and 1,000 partitions in the long form, a tenth of the account's limit in the short one.
fn size(short: u64) -> Size {
    if std::env::var_os("ENTABLE_LONG").is_none() {
        let limits = Limits { requests: 2_000, entities_of_partition: 2_000 };
        return Size {
            entities: short,
            sensors: short / 10,
            of_transaction: 10,
            limits,
            tasks: 64,
        };
    }
    let set = std::env::var("ENTABLE_LOAD").ok().map(|count| count.parse().unwrap());
    Size {
        entities: set.unwrap_or(10_000_000),
        sensors: 1_000,
        of_transaction: 100,
        limits: Limits { requests: 20_000, entities_of_partition: 2_000 },
        tasks: 512,
    }
}

/// Waits for a load. Asserts that it gets nine tenths of `a_second` entities a second between its first tenth, in which
/// it finds its pace, and its last, and that fewer than one in a hundred of all its requests are throttled.
async fn assert_nine_tenths<T>(world: &World, entities: u64, a_second: f64, load: JoinHandle<T>) {
    let whole = world.span();
    let passes = async |entities: u64| {
        while whole.entities() < entities {
            sleep(Duration::from_millis(1)).await;
        }
    };
    passes(entities / 10).await;
    let steady = world.span();
    passes(entities / 10 * 9).await;
    let share = steady.entities() as f64 / steady.seconds() / a_second;
    load.await.unwrap();
    let throttled = whole.throttled_share();
    println!(
        "{entities} entities in {} requests: {share:.3} of the limit, {throttled:.4} throttled",
        whole.requests()
    );
    assert!(share >= 0.9, "{share}");
    assert!(throttled < 0.01, "{throttled}");
}

#[tokio::test(start_paused = true)]
async fn transactions_get_nine_tenths_with_few_refusals() {
    let Size { entities, sensors, of_transaction, limits, .. } = size(100_000);
    let world = World::new(6, limits).await;
    let table = world.readings.clone();
    let load = tokio::spawn(async move {
        let load = readings(entities, sensors, of_transaction);
        assert!(table.bulk().insert_all(load).await.unwrap().is_complete());
    });
    let of_account = f64::from(limits.requests) * of_transaction as f64;
    let of_partitions = f64::from(limits.entities_of_partition) * sensors as f64;
    assert_nine_tenths(&world, entities, of_account.min(of_partitions), load).await;
}

#[tokio::test(start_paused = true)]
async fn single_writes_get_nine_tenths_with_few_refusals() {
    let Size { entities, sensors, limits, tasks, .. } = size(40_000);
    let world = World::new(7, limits).await;
    let table = world.readings.clone();
    let load = tokio::spawn(async move {
        insert_from_tasks(&table, tasks, move |at| {
            let at = at as u64;
            let (sensor, number) = ((at % sensors) as u32, at / sensors);
            (at < entities).then_some(Reading { sensor, number, value: 1 })
        })
        .await
    });
    assert_nine_tenths(&world, entities, f64::from(limits.requests), load).await;
}

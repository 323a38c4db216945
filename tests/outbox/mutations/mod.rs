//! Shows for each mutation of the code that a scenario notices it: the scenario succeeds on the code
//! as it is, and fails on the mutated code. `tests/mutations.md` lists them.

mod deliveries;
mod late;
mod maintenance;
mod plans;
mod values;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Clock, Mutation, OutboxOptions,
    backend::{
        Backend,
        layer::{InjectedFault, RequestKind},
    },
    prelude::*,
};

use self::{
    deliveries::{
        a_late_receipt_is_not_handled, a_lease_is_given_back, a_lease_is_renewed,
        a_lost_answer_takes_nothing_of_others, a_lost_message_ends_no_receipt,
        a_message_that_is_given_back_was_not_tried, a_receipt_counts_from_its_request,
        a_slow_take_is_renewed_in_time, every_shard_is_received, receipts_are_counted,
        receipts_go_with_their_message,
    },
    late::a_late_transaction_takes_no_value_of_another,
    maintenance::{
        a_rebuild_holds_entities_to_their_version, a_repair_leaves_what_a_writer_changed,
        a_repair_of_many_suspects_repairs_all, a_suspect_that_changes_is_no_finding,
    },
    plans::{
        a_copy_follows_its_entity, a_key_that_was_left_finds_nothing, a_list_loses_who_left,
        a_local_value_has_one_holder, a_remote_copy_that_was_left_goes,
        a_rewrite_that_lost_a_race_is_repeated, a_version_is_replaced_once,
        an_existing_entity_is_told_from_a_taken_key, both_halves_of_a_bulk_group_are_written,
        the_rest_of_a_bulk_group_is_written, two_entities_exchange_a_value,
    },
    values::{
        a_claim_of_another_client_is_left_alone, a_late_list_follows_its_primary,
        a_row_is_taken_over_in_the_version_that_was_read, large_lists_are_held_a_few_at_a_time,
        settling_goes_on_after_a_change,
    },
};
use crate::{
    fixture::{Employee, World, employee},
    weak_stores::WeakStore,
};

type Outcome = Result<(), String>;

/// The client of `world`'s store whose code is mutated. It leaves remote copies to workers.
fn client(world: &World, options: OutboxOptions, mutation: Option<Mutation>) -> Client {
    client_of(world, world.fault.clone(), options, mutation)
}

/// The client of a store over that of `world` whose code is mutated.
fn client_of(
    world: &World,
    store: impl Backend + 'static,
    options: OutboxOptions,
    mutation: Option<Mutation>,
) -> Client {
    build(store, world.clock.clone(), options, mutation)
}

/// A client of `store` whose code is mutated.
fn build(
    store: impl Backend + 'static,
    clock: Arc<impl Clock + 'static>,
    options: OutboxOptions,
    mutation: Option<Mutation>,
) -> Client {
    let builder =
        Client::builder().backend(store).clock(clock).outbox(options.copies_before_answer(false));
    let builder = match mutation {
        Some(mutation) => builder.mutated(mutation),
        None => builder,
    };
    builder.build().unwrap()
}

fn worker(world: &World, mutation: Option<Mutation>) -> entable::Worker {
    client(world, OutboxOptions::default(), mutation).worker().with::<Employee>()
}

fn ensure(is_right: bool, wrong: impl Into<String>) -> Outcome {
    if is_right { Ok(()) } else { Err(wrong.into()) }
}

fn outbox_row(row_key: &str, entity_type: &str, format: i32) -> DynamicEntity {
    DynamicEntity::new("Sales", row_key)
        .with_framework_names()
        .with("EntityType", entity_type)
        .with("Format", format)
}

/// A row of a newer program keeps its partition in the directory.
async fn unknown_work_keeps_its_registration(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let newer = outbox_row("~e2_newer", "entable.dirty", 2);
    world.client.dynamic("Staff").insert(&newer).await.unwrap();
    let worker = worker(&world, mutation);
    worker.drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    ensure(world.markers().await == 1, "the partition left the directory")
}

/// Work behind many rows that wait for others is done.
async fn every_chunk_is_worked_on(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    for number in 0..10 {
        let newer = outbox_row(&format!("~e2_a{number}"), "entable.dirty", 2);
        world.client.dynamic("Staff").insert(&newer).await.unwrap();
    }
    world.staff.insert(&employee(1)).await.unwrap();
    world.fault.shorten_pages(Some(3));
    let stats = worker(&world, mutation).drain().await.unwrap();
    ensure(stats.applied == 1, format!("{stats:?}"))
}

/// Every partition that the directory names is visited.
async fn every_page_of_the_directory_is_read(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    for number in 0..8 {
        let one = Employee { department: format!("d{number}"), ..employee(number) };
        world.staff.insert(&one).await.unwrap();
    }
    world.fault.shorten_pages(Some(5));
    let stats = worker(&world, mutation).drain().await.unwrap();
    ensure(stats.applied == 8, format!("{stats:?}"))
}

/// Whichever write fails, work that is put aside is in its place or in the poison table.
async fn work_on_its_way_to_the_poison_table_is_never_nowhere(
    mutation: Option<Mutation>,
) -> Outcome {
    for at in 0..6 {
        let world = World::left_to_workers().await;
        world.staff.insert(&employee(1)).await.unwrap();
        world.client.delete_table("StaffByName").await.unwrap();
        let client = client(&world, OutboxOptions::default().poison_after(1), mutation);
        let worker = client.worker().with::<Employee>();
        let denied = Error::new(ErrorKind::Denied, "not today");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(denied));
        drop(worker.drain().await);
        let count = world.open().await.len() + worker.poisoned().await.unwrap().len();
        ensure(count > 0, format!("the work is lost if write {at} fails"))?;
    }
    Ok(())
}

/// A delayed writer could insert the copy again that this writer deleted.
async fn a_writers_own_deletion_is_looked_at_again(mutation: Option<Mutation>) -> Outcome {
    let world = World::new().await;
    let client = client(&world, OutboxOptions::default(), mutation);
    let staff = client.table::<Employee>();
    let mut stored = staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    stored.email = "other@contoso.com".to_owned();
    drop(staff.replace(&stored).await.unwrap().wait_for_copies().await);
    let old = world.rows("Staff", "email_jones1@contoso.com").await;
    assert!(old.is_empty(), "{old:?}");
    ensure(world.open().await.len() == 1, "nothing is left for a second look")
}

/// Whichever registration fails, no work is committed where no worker finds it.
async fn bulk_leaves_no_work_without_a_marker(mutation: Option<Mutation>) -> Outcome {
    for at in 0..9 {
        let world = World::left_to_workers().await;
        let client = client(&world, OutboxOptions::default().background(0), mutation);
        client.create_table("EntableDirectory").await.unwrap();
        let denied = Error::new(ErrorKind::Denied, "not today");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(denied));
        let departments = || (0..3).map(|number| format!("d{number}"));
        let all = departments().map(|department| Employee { department, ..employee(1) });
        drop(client.bulk().insert_all(all).await);
        world.fault.clear();
        let markers = world.client.dynamic("EntableDirectory");
        let markers = markers.query(Filter::parse("Table ge ''").unwrap()).allow_scan();
        let markers = markers.collect().await.unwrap();
        let marked: BTreeSet<_> =
            markers.iter().map(|marker| marker.str("Partition").unwrap().to_owned()).collect();
        for department in departments() {
            let rows = world.rows("Staff", &department).await;
            let has_work = rows.iter().any(|key| key.starts_with("~e2_"));
            let is_found = !has_work || marked.contains(&department);
            ensure(is_found, format!("no marker for {department} if write {at} fails"))?;
        }
    }
    Ok(())
}

/// A rebuild beside open work keeps the names of that work.
async fn a_rebuild_keeps_the_names_of_open_work(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    stored.email = "other@contoso.com".to_owned();
    world.staff.replace(&stored).await.unwrap();
    let client = client(&world, OutboxOptions::default(), mutation);
    client.table::<Employee>().rebuild(Employee::by_name()).await.unwrap();
    for _ in 0..2 {
        world.client.worker().drain().await.unwrap();
        world.later(OutboxOptions::WRITE_DEADLINE);
    }
    let old = world.rows("Staff", "email_jones1@contoso.com").await;
    ensure(old.is_empty(), format!("the old copy stays: {old:?}"))
}

/// A writer that is at work keeps its claim.
async fn a_young_claim_stays_alive(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let claim = outbox_row("~e1_0123456789abcdef01234567", "entable.claim", 1);
    world.client.dynamic("Staff").insert(&claim).await.unwrap();
    worker(&world, mutation).drain().await.unwrap();
    let claim = world.client.dynamic("Staff").get("Sales", claim.row_key()).await.unwrap();
    let is_alive = claim.is_some_and(|claim| claim.get("Dead").is_none());
    ensure(is_alive, "the claim is dead, or gone")
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
struct Late {
    id: u32,
}

/// A task that the handler left behind has no effect once another worker may have the message.
async fn an_effect_after_the_lease_is_refused(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    let mut egt = world.staff.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Late { id: 2 }).unwrap();
    egt.commit().await.unwrap();
    let (late, staff) = (Arc::new(Mutex::new(None)), world.staff.clone());
    let kept = late.clone();
    let worker =
        client(&world, OutboxOptions::default(), mutation).worker().on(move |cx, message: Late| {
            let (kept, staff) = (kept.clone(), staff.clone());
            async move {
                *kept.lock().unwrap() = Some(tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(61)).await;
                    let mut egt = staff.transaction();
                    egt.insert(&employee(message.id)).unwrap();
                    cx.once(egt).await
                }));
                Ok(())
            }
        });
    worker.drain().await.unwrap();
    let task = late.lock().unwrap().take().unwrap();
    let effect = task.await.unwrap();
    ensure(effect.is_err_and(|error| error.is_contended()), "the effect took place")
}

/// A row that also names a copy of an unknown type stays for a program that knows it.
async fn an_unknown_copy_keeps_its_dirty_row(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let unknowing = client(&world, OutboxOptions::default(), mutation).worker();
    unknowing.drain().await.unwrap();
    ensure(world.open().await.len() == 1, "the work is gone, and nobody did it")
}

/// Throttling never puts work aside.
async fn a_failure_that_passes_does_not_count(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    for at in 0..12 {
        let busy = Error::new(ErrorKind::Throttled, "slow down");
        world.fault.inject(RequestKind::Read, at, InjectedFault::Before(busy));
    }
    let stats = worker(&world, mutation).drain().await.unwrap();
    ensure((stats.poisoned, stats.applied) == (0, 1), format!("{stats:?}"))
}

/// Rows that wait are looked at when no delayed writer can undo them any more, and then removed.
async fn a_second_look_comes(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    let worker = worker(&world, mutation);
    worker.drain().await.unwrap();
    assert_eq!(world.open().await.len(), 1);
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    ensure(world.open().await.is_empty(), "the row stays for ever")
}

/// A store with an entity whose writer wrote its copies and left its dirty row.
async fn with_current_copies() -> World {
    let world = World::new().await;
    let mut one = world.staff.insert(&employee(1)).await.unwrap();
    one.wait_for_copies().await.unwrap();
    one.age = 35;
    // After the transaction and the two copies, the deletion of the dirty row fails.
    let denied = Error::new(ErrorKind::Denied, "not today");
    world.fault.inject(RequestKind::Apply, 3, InjectedFault::Before(denied));
    drop(world.staff.replace(&one).await.unwrap().wait_for_copies().await);
    world.client.wait_for_copies().await;
    assert_eq!((world.open().await.len(), world.fault.pending()), (1, 0));
    world
}

/// A copy that another program changed, and that names the right version, is written.
async fn a_copy_that_somebody_changed_is_written(mutation: Option<Mutation>) -> Outcome {
    let world = with_current_copies().await;
    let names = world.client.dynamic("StaffByName");
    let copy = async || names.get("Jones", "name_Sales_00000001").await.unwrap().unwrap();
    let mut changed = copy().await;
    changed.set("Age", 99);
    names.replace(&changed).await.unwrap();
    worker(&world, mutation).drain().await.unwrap();
    let age = copy().await.get("Age").cloned();
    ensure(age == Some(Value::Int32(35)), format!("the copy has the age {age:?}"))
}

/// A copy that is current settles where no read is behind.
async fn a_copy_settles_only_where_reads_are_strong(mutation: Option<Mutation>) -> Outcome {
    let world = with_current_copies().await;
    let store = WeakStore::lagging(world.fault.clone());
    let client = client_of(&world, store, OutboxOptions::default(), mutation);
    client.worker().with::<Employee>().drain().await.unwrap();
    ensure(world.open().await.len() == 1, "the dirty row is gone without a second look")
}

/// A delayed writer can insert a copy that is absent, so that its absence proves nothing.
async fn an_absent_copy_waits_for_its_second_look(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    worker(&world, mutation).drain().await.unwrap();
    ensure(world.open().await.len() == 1, "the dirty row is gone without a second look")
}

/// The directory keeps the marker of a fence that is damaged.
async fn a_damaged_fence_keeps_its_marker(mutation: Option<Mutation>) -> Outcome {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let staff = world.client.dynamic("Staff");
    staff.insert(&outbox_row("~e0_damaged", "entable.fence", 1)).await.unwrap();
    let directory = world.client.dynamic("EntableDirectory");
    let filter = Filter::parse("Partition eq 'Sales'").unwrap();
    let markers = directory.query(filter).allow_scan().collect().await.unwrap();
    let whole = markers[0].row_key().rsplit_once('_').unwrap().0;
    let marker = DynamicEntity::new(markers[0].partition_key(), format!("{whole}_damaged"))
        .with_framework_names()
        .with("EntityType", "entable.marker")
        .with("Format", 1)
        .with("Table", "Staff")
        .with("Partition", "Sales")
        .with("Registration", "damaged");
    directory.insert(&marker).await.unwrap();
    worker(&world, mutation).drain().await.unwrap();
    let kept = directory.get(marker.partition_key(), marker.row_key()).await.unwrap();
    ensure(kept.is_some(), "the fence stands, and its marker is gone")
}

/// Work that is committed while a worker reads a partition without order is found.
async fn fences_are_read_before_work(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    worker(&world, None).drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    let (staff, clock) = (world.staff.clone(), world.clock.clone());
    let store = WeakStore::unordered(world.fault.clone(), async move {
        staff.insert(&employee(2)).await.unwrap();
        clock.advance(OutboxOptions::CLOSE_IDLE_AFTER);
    });
    let client = client_of(&world, store, OutboxOptions::default(), mutation);
    client.worker().with::<Employee>().drain().await.unwrap();
    worker(&world, None).drain().await.unwrap();
    let copies = world.rows("Staff", "email_jones2@contoso.com").await;
    ensure(copies.len() == 1, "the work is where no worker finds it")
}

/// A partition that shows no open work stays in the directory of a store whose reads lag.
async fn partitions_stay_where_reads_lag(mutation: Option<Mutation>) -> Outcome {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let store = WeakStore::lagging(world.fault.clone());
    let worker = client_of(&world, store, OutboxOptions::default(), mutation).worker();
    let worker = worker.with::<Employee>();
    worker.drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    let stats = worker.drain().await.unwrap();
    assert_eq!(stats.applied, 1, "{stats:?}");
    ensure(world.markers().await == 1 && stats.closed == 0, "the partition left the directory")
}

macro_rules! noticed {
    ($($mutation:ident: $scenario:ident;)*) => {
        /// Each mutation with its scenario.
        const NOTICED: &[(Mutation, &str)] =
            &[$((Mutation::$mutation, stringify!($scenario))),*];

        mod notice {
            use super::Mutation;

            $(
                #[tokio::test(start_paused = true)]
                async fn $scenario() {
                    assert_eq!(super::$scenario(None).await, Ok(()));
                    let mutated =
                        super::$scenario(Some(Mutation::$mutation)).await;
                    println!("{:?}: {mutated:?}", Mutation::$mutation);
                    assert!(mutated.is_err(), "nobody notices {:?}", Mutation::$mutation);
                }
            )*
        }
    };
}

noticed! {
    UnknownWorkIsNone: unknown_work_keeps_its_registration;
    FirstChunkAlone: every_chunk_is_worked_on;
    FirstPageAlone: every_page_of_the_directory_is_read;
    PoisonAfterDeletion: work_on_its_way_to_the_poison_table_is_never_nowhere;
    OwnDeletionIsSettled: a_writers_own_deletion_is_looked_at_again;
    MarkerNotNeeded: bulk_leaves_no_work_without_a_marker;
    NamesReplaced: a_rebuild_keeps_the_names_of_open_work;
    YoungClaimKilled: a_young_claim_stays_alive;
    EffectAfterLease: an_effect_after_the_lease_is_refused;
    UnknownCopyIsRight: an_unknown_copy_keeps_its_dirty_row;
    PassingFailureCounts: a_failure_that_passes_does_not_count;
    SecondLookForgotten: a_second_look_comes;
    OrderAssumed: fences_are_read_before_work;
    LaggingReadsTrusted: partitions_stay_where_reads_lag;
    DamagedFenceForgotten: a_damaged_fence_keeps_its_marker;
    LeaseFromAnswer: a_slow_take_is_renewed_in_time;
    RenewalForgotten: a_lease_is_renewed;
    LeaseKept: a_lease_is_given_back;
    ReceiptsOrphaned: receipts_go_with_their_message;
    ContentNotCompared: a_copy_that_somebody_changed_is_written;
    LaggingCopySettles: a_copy_settles_only_where_reads_are_strong;
    AbsentCopySettles: an_absent_copy_waits_for_its_second_look;
    LatePrimaryNotRead: a_late_list_follows_its_primary;
    SettlingGivesUp: settling_goes_on_after_a_change;
    TakenOverBlindly: a_row_is_taken_over_in_the_version_that_was_read;
    CopiesFirst: an_existing_entity_is_told_from_a_taken_key;
    TakenKeyReplaced: a_local_value_has_one_holder;
    OldCopyStays: a_key_that_was_left_finds_nothing;
    KeptCopyStays: a_copy_follows_its_entity;
    FreedKeyInserted: two_entities_exchange_a_value;
    ListedIdStays: a_list_loses_who_left;
    PrimaryUnconditional: a_version_is_replaced_once;
    OldRemoteCopyUnnamed: a_remote_copy_that_was_left_goes;
    RestOfGroupForgotten: the_rest_of_a_bulk_group_is_written;
    SecondHalfForgotten: both_halves_of_a_bulk_group_are_written;
    RacedRewriteIsDone: a_rewrite_that_lost_a_race_is_repeated;
    FirstRepairAlone: a_repair_of_many_suspects_repairs_all;
    ChangedSuspectConfirmed: a_suspect_that_changes_is_no_finding;
    RepairUnconditional: a_repair_leaves_what_a_writer_changed;
    RebuildUnconditional: a_rebuild_holds_entities_to_their_version;
    FirstShardAlone: every_shard_is_received;
    ReceiptFromAnswer: a_receipt_counts_from_its_request;
    ReceiptNotCounted: receipts_are_counted;
    LostMessageEndsReceipt: a_lost_message_ends_no_receipt;
    HolderNotCompared: a_lost_answer_takes_nothing_of_others;
    LateReceiptHandled: a_late_receipt_is_not_handled;
    GivenBackIsTried: a_message_that_is_given_back_was_not_tried;
    ForeignClaimEnded: a_claim_of_another_client_is_left_alone;
    LeftClaimUnmarked: a_late_transaction_takes_no_value_of_another;
    ListsUnbounded: large_lists_are_held_a_few_at_a_time;
}

#[test]
fn the_list_names_each_mutation_and_its_scenario() {
    let listed: Vec<_> = include_str!("../../mutations.md")
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(|cell| cell.trim().to_owned());
            let (name, scenario) = (cells.next()?, cells.nth(1)?);
            Some((name.trim_end_matches('`').to_owned(), scenario.trim_matches('`').to_owned()))
        })
        .collect();
    let tested: Vec<_> = NOTICED
        .iter()
        .map(|(mutation, scenario)| (format!("{mutation:?}"), (*scenario).to_owned()))
        .collect();
    assert_eq!(listed, tested);
    let all: Vec<_> = Mutation::ALL.iter().map(|mutation| format!("{mutation:?}")).collect();
    assert_eq!(all, tested.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
}

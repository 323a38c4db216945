//! Tests moves of wide entities to another partition, by a program that dies at any request and
//! beside writers that know nothing of moves.

use std::{sync::Arc, time::Duration};

use entable::{
    SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
    prelude::*,
};

/// How long a worker's lease lasts for other workers, and a little more.
const A_LEASE: Duration = Duration::from_secs(62);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Files",
    partition_key = "{folder}",
    row_key = "file_{id:06}",
    wide,
    index(ByTitle, row_key = "title_{title}_{id:06}", only(size)),
    index(
        ByTitleEverywhere,
        partition_key = "title_{title}",
        row_key = "at_{folder}_{id:06}",
        only(size)
    ),
    list(ByOwner, row_key = "owner_{owner}")
)]
struct File {
    folder: String,
    id: u32,
    size: i64,
    #[table(part = 2)]
    title: String,
    #[table(part = 3)]
    owner: String,
    #[table(part = 3)]
    remark: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = File)]
struct Size {
    size: i64,
}

fn file(folder: &str) -> File {
    File {
        folder: folder.into(),
        id: 1,
        size: 7,
        title: "t1".into(),
        owner: "don".into(),
        remark: None,
    }
}

fn at(folder: &str) -> Point<File> {
    File::primary().folder(folder).id(1)
}

struct World {
    clock: Arc<SteppedClock>,
    faults: FaultInjector,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let faults = FaultInjector::around(Memory::with_clock(clock.clone()));
        Self { clock, faults }
    }

    fn client(&self) -> Client {
        let backend = self.faults.clone();
        Client::builder().backend(backend).clock(self.clock.clone()).build().unwrap()
    }

    /// Lets a worker of a new program do all open work, and returns that program's table.
    async fn later(&self) -> Table<File> {
        let client = self.client();
        for _ in 0..3 {
            self.clock.advance(A_LEASE);
            client.worker().with::<File>().drain().await.unwrap();
        }
        client.table()
    }
}

/// Begins a move and lets the program die at a request: none after it is carried out. Returns whether
/// the program came that far.
async fn dies_at(world: &World, request: usize, is_carried_out: bool) -> bool {
    let client = world.client();
    let files = client.table::<File>();
    files.create().await.unwrap();
    files.insert(&file("Sales")).await.unwrap();
    client.wait_for_copies().await;
    let mut stored = files.get(at("Sales")).await.unwrap().unwrap();
    stored.folder = "Marketing".into();
    let dead = || Error::new(ErrorKind::Backend, "connection lost");
    let first =
        if is_carried_out { InjectedFault::After(dead()) } else { InjectedFault::Before(dead()) };
    world.faults.inject(RequestKind::Any, request, first);
    for later in request + 1..request + 80 {
        world.faults.inject(RequestKind::Any, later, InjectedFault::Before(dead()));
    }
    let ended = match files.move_to(&stored, &files).await {
        Ok(moving) => moving.wait().await,
        Err(error) => Err(error),
    };
    client.wait_for_copies().await;
    world.faults.clear();
    ended.is_err()
}

/// Returns the entity, which must be in one place, with its copies there.
async fn in_one_place(files: &Table<File>, about: &str) -> File {
    let (stayed, moved) =
        (files.get(at("Sales")).await.unwrap(), files.get(at("Marketing")).await.unwrap());
    let found = match (stayed, moved) {
        (Some(found), None) | (None, Some(found)) => found.into_inner(),
        both => panic!("{about}: {both:?}"),
    };
    let report = files.check().await.unwrap();
    assert!(report.is_clean(), "{about}: {:?}", report.findings);
    let path = File::by_title_everywhere().title("t1").folder(found.folder.clone()).id(1);
    assert_eq!(files.get_as::<Size>(path).await.unwrap().unwrap().size, 7, "{about}");
    found
}

#[tokio::test(start_paused = true)]
async fn a_program_that_dies_at_any_request_leaves_the_entity_in_one_place() {
    let mut moved = 0;
    for request in 0..24 {
        for is_carried_out in [false, true] {
            let world = World::new();
            dies_at(&world, request, is_carried_out).await;
            let files = world.later().await;
            let about = format!("request {request}, {is_carried_out}");
            let found = in_one_place(&files, &about).await;
            assert_eq!(found, file(&found.folder), "{about}");
            moved += usize::from(found.folder == "Marketing");
        }
    }
    assert!(moved > 24, "most moves have begun: {moved}");
}

/// A slot is merged into one part of the source after the program died: the source is deleted under
/// the ETags of all its parts alone, so that the slot is carried to the target too.
#[tokio::test(start_paused = true)]
async fn a_slot_that_is_merged_meanwhile_is_carried_along() {
    let (mut carried, mut arrived_before) = (0, 0);
    for request in 0..24 {
        for is_carried_out in [false, true] {
            let world = World::new();
            let about = format!("request {request}, {is_carried_out}");
            if !dies_at(&world, request, is_carried_out).await {
                continue;
            }
            let files = world.client().table::<File>();
            let was_there = files.get(at("Marketing")).await.unwrap().is_some();
            let remark = File::patch().remark("meanwhile");
            let is_merged = files.patch_at(at("Sales"), remark).await.is_ok();
            let files = world.later().await;
            let found = in_one_place(&files, &about).await;
            let remark = is_merged.then(|| "meanwhile".to_owned());
            assert_eq!(found, File { remark, ..file(&found.folder) }, "{about}");
            let is_carried = is_merged && found.folder == "Marketing";
            carried += usize::from(is_carried);
            arrived_before += usize::from(is_carried && was_there);
        }
    }
    assert!(carried > 2, "{carried}");
    assert!(arrived_before > 0, "a target that was there has the slot too");
}

/// A part of the source that another program deletes makes the entity torn: the move stops, and a
/// worker that cannot end it keeps nothing else from its work.
#[tokio::test(start_paused = true)]
async fn a_torn_source_is_not_moved() {
    let world = World::new();
    // The mark is there, and nothing else.
    assert!(dies_at(&world, 3, false).await);
    let client = world.client();
    let rows = client.dynamic("Files");
    let Some(first) = rows.get("Sales", "file_000001_01").await.unwrap() else { panic!("moved") };
    assert!(first.get("EntableMoving").is_some(), "{first:?}");
    rows.delete_at("Sales", "file_000001_02").await.unwrap();
    let files = client.table::<File>();
    world.clock.advance(A_LEASE);
    let _ = client.worker().with::<File>().drain().await;
    assert!(files.get(at("Marketing")).await.unwrap().is_none());
    assert!(files.get(at("Sales")).await.unwrap_err().is_corrupt());
    assert!(rows.get("Sales", "file_000001_03").await.unwrap().is_some(), "nothing of it is lost");
}

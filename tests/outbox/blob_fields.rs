//! Tests fields that are kept in blobs: what is sent and in which order, what a row holds, and that no
//! fault leaves a row that points to nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use entable::{
    Batch, Blob, BlobTarget, Clock, ErrorKind, KeyScope, Keyring, Operation, OutboxOptions, Point,
    RootKey, Row, SteppedClock, Ticks, ValueRef,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    object_store::{local::LocalFileSystem, prefix::PrefixStore},
    prelude::*,
    table::Target,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use time::OffsetDateTime;

use crate::blob_store::{Fails, TestBlobs};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "at_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    #[table(blob)]
    photo: Option<Blob>,
    #[table(blob, encrypt)]
    scan: Option<Blob>,
}

/// An entity that expires, with a value in a blob.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "badge_{id:06}", expires = until)]
struct Badge {
    department: String,
    id: u32,
    until: OffsetDateTime,
    #[table(blob)]
    photo: Option<Blob>,
}

/// The field that a fault test writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Plain,
    Encrypted,
}

use Field::{Encrypted, Plain};

impl Field {
    fn of(self, employee: &mut Employee) -> &mut Option<Blob> {
        match self {
            Plain => &mut employee.photo,
            Encrypted => &mut employee.scan,
        }
    }

    fn patch(self, blob: Blob) -> <Employee as TableEntity>::Patch {
        match self {
            Plain => Employee::patch().photo(blob),
            Encrypted => Employee::patch().scan(blob),
        }
    }

    fn employee(self, id: u32, blob: Option<Blob>) -> Employee {
        let mut employee = employee(id, None);
        *self.of(&mut employee) = blob;
        employee
    }
}

fn keys() -> Keyring {
    let root = RootKey::from_bytes([7; 32]);
    Keyring::builder().primary(&KeyScope::default_scope(), &root).build().unwrap()
}

fn employee(id: u32, photo: Option<Blob>) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        email: format!("Jones{id}@contoso.com"),
        photo,
        scan: None,
    }
}

fn at(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

fn photo(text: &'static str) -> Blob {
    Blob::new(text.as_bytes()).content_type("image/jpeg")
}

struct World {
    clock: Arc<SteppedClock>,
    fault: FaultInjector,
    recorder: Recorder,
    blobs: Arc<TestBlobs>,
    client: Client,
    staff: Table<Employee>,
}

impl World {
    async fn new() -> Self {
        Self::with(OutboxOptions::default()).await
    }

    async fn with(options: OutboxOptions) -> Self {
        let start = Ticks::new(630_000_000_000_000_000).unwrap();
        let clock = Arc::new(SteppedClock::new(start));
        let recorder = Recorder::around(Memory::with_clock(clock.clone()));
        let fault = FaultInjector::around(recorder.clone());
        let blobs = Arc::new(TestBlobs::default());
        let builder = Client::builder().backend(fault.clone()).clock(clock.clone());
        let builder = builder.outbox(options).blobs(blobs.clone()).keys(keys());
        let client = builder.build().unwrap();
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        recorder.clear();
        Self { clock, fault, recorder, blobs, client, staff }
    }

    fn later(&self, time: Duration) {
        self.clock.advance(time);
        self.blobs.advance(time);
    }

    /// Returns the names of blobs that rows hold: those of primaries, and those of all rows.
    async fn pointers(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let rows = self.client.dynamic("Staff").query(Filter::parse("PartitionKey ge ''").unwrap());
        let rows = rows.allow_scan().collect().await.unwrap();
        let (mut primaries, mut all) = (BTreeSet::new(), BTreeSet::new());
        for row in rows {
            for property in ["Photo", "Scan"] {
                let Some(ValueRef::String(name)) = row.row().get(property).unwrap() else {
                    continue;
                };
                all.insert(name.to_owned());
                if row.row().get("EntityType").unwrap() == Some(ValueRef::String("Employee")) {
                    primaries.insert(name.to_owned());
                }
            }
        }
        (primaries, all)
    }

    async fn blob_names(&self) -> BTreeSet<String> {
        self.blobs.names().await.into_iter().collect()
    }

    /// Requires that every primary points to a blob that exists, and that its keys open what it holds.
    async fn check_pointers(&self, when: &str) {
        let (primaries, _) = self.pointers().await;
        let blobs = self.blob_names().await;
        assert!(primaries.is_subset(&blobs), "{when}: {primaries:?} and {blobs:?}");
        self.check_bytes(self.staff.query(Employee::scan()).collect().await.unwrap(), when).await;
    }

    /// Requires that the bytes of all blobs of the employees can be read.
    async fn check_bytes(
        &self,
        employees: Vec<impl std::ops::Deref<Target = Employee>>,
        when: &str,
    ) {
        for employee in employees {
            for blob in [&employee.photo, &employee.scan].into_iter().flatten() {
                let bytes = self.staff.blob(blob).bytes().await;
                let bytes = bytes.unwrap_or_else(|error| panic!("{when}: {error}"));
                assert_eq!(bytes.len() as u64, blob.len(), "{when}");
            }
        }
    }

    /// Lets workers and a sweep do what is left, and requires that blobs and rows agree.
    async fn settle(&self, when: &str) {
        for _ in 0..4 {
            self.client.worker().with::<Employee>().drain().await.unwrap();
            self.later(Duration::from_secs(3_600));
        }
        self.check_pointers(when).await;
        self.later(Duration::from_secs(25 * 3_600));
        self.staff.sweep_blobs().await.unwrap();
        let (primaries, all) = self.pointers().await;
        assert_eq!(all, primaries, "{when}: copies point where their primaries do");
        for don in self.staff.query(Employee::scan()).collect().await.unwrap() {
            let by_email = Employee::by_email().email(don.email.clone());
            let copy = by_email.department(don.department.clone()).id(don.id);
            let copy = self.staff.get(copy).await.unwrap();
            self.check_bytes(copy.into_iter().collect(), when).await;
        }
        assert_eq!(self.blob_names().await, primaries, "{when}: what is unreferenced goes");
        let open = self.client.worker().with::<Employee>().drain().await.unwrap();
        assert_eq!((open.open, open.unknown, open.poisoned), (0, 0, 0), "{when}");
    }

    fn requests(&self) -> Vec<String> {
        self.recorder.take().iter().map(ToString::to_string).collect()
    }
}

/// Returns a log of blob requests without the random ends of names.
fn kinds(log: &[String]) -> Vec<&str> {
    log.iter().map(|line| line.rsplit_once('/').map_or(&**line, |(start, _)| start)).collect()
}

#[tokio::test]
async fn a_row_holds_name_length_hash_and_type() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("a face")))).await.unwrap();
    let stored = don.photo.as_ref().unwrap();
    let name = stored.name().unwrap();
    assert!(name.starts_with("staff/!sales/empid_000001/photo/"), "{name}");
    assert_eq!((stored.len(), stored.media_type()), (6, Some("image/jpeg")));
    assert_eq!(stored.hash(), photo("a face").hash());
    let row = world.client.dynamic("Staff").get("Sales", "empid_000001").await.unwrap();
    let row = row.unwrap();
    assert_eq!(row.row().get("Photo").unwrap(), Some(ValueRef::String(name)));
    assert_eq!(row.row().get("PhotoLength").unwrap(), Some(ValueRef::Int64(6)));
    assert_eq!(row.row().get("PhotoHash").unwrap(), Some(ValueRef::Binary(stored.hash())));
    assert_eq!(row.row().get("PhotoType").unwrap(), Some(ValueRef::String("image/jpeg")));
    let read = world.staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(*read, *don, "a blob is a plain value");
    let by_name = world.staff.query(Employee::by_name().department("Sales").last_name("Jones"));
    assert_eq!(by_name.collect().await.unwrap()[0].photo, don.photo, "copies share the blob");
    assert!(world.staff.insert(&employee(2, None)).await.unwrap().photo.is_none());
}

#[tokio::test]
async fn bytes_are_uploaded_before_the_row_and_removed_after_the_copies() {
    let world = World::new().await;
    world.staff.insert(&employee(1, Some(photo("one")))).await.unwrap();
    world.client.wait_for_copies().await;
    let log = world.blobs.take_log();
    assert_eq!(kinds(&log), ["put staff/!sales/empid_000001/photo"], "1 put");
    let mut don = world.staff.get(at(1)).await.unwrap().unwrap();
    let first = don.photo.clone().unwrap();
    assert!(world.blobs.take_log().is_empty(), "to read an entity costs no more");
    don.photo = Some(photo("two"));
    world.requests();
    let don = world.staff.replace(&don).await.unwrap();
    world.client.wait_for_copies().await;
    let log = world.blobs.take_log();
    let (put, delete) = (&log[0], &log[1]);
    assert_eq!(log.len(), 2);
    assert_eq!(*put, format!("put {}", don.photo.as_ref().unwrap().name().unwrap()));
    assert_eq!(*delete, format!("delete {}", first.name().unwrap()));
    let dirty: Vec<String> = world.requests();
    assert!(dirty.iter().any(|line| line.contains("~e")), "a dirty row names it: {dirty:?}");
    world.settle("replaced").await;
    let mut same = world.staff.get(at(1)).await.unwrap().unwrap();
    same.last_name = "Kwok".into();
    world.blobs.take_log();
    world.staff.replace(&same).await.unwrap();
    assert!(world.blobs.take_log().is_empty(), "a blob that stays is not touched");
}

#[tokio::test]
async fn an_entity_of_one_row_costs_one_put_and_one_request() {
    #[derive(Debug, TableEntity)]
    #[table(name = "Scans", partition_key = "{folder}", row_key = "scan_{id:06}")]
    struct Document {
        folder: String,
        id: u32,
        #[table(blob)]
        page: Blob,
    }
    let world = World::new().await;
    let scans = world.client.table::<Document>();
    scans.create().await.unwrap();
    world.requests();
    let one = Document { folder: "f".into(), id: 1, page: Blob::new(vec![7; 100_000]) };
    scans.insert(&one).await.unwrap();
    assert_eq!((world.requests().len(), world.blobs.take_log().len()), (1, 1));
    let point = || Document::primary().folder("f").id(1);
    let read = scans.get(point()).await.unwrap().unwrap();
    assert_eq!(scans.blob(&read.page).bytes().await.unwrap().len(), 100_000);
    world.requests();
    world.blobs.take_log();
    // A verb that could lose a name reads first, and the deleted row's blob goes.
    assert!(scans.delete_at(point()).await.unwrap());
    world.client.wait_for_copies().await;
    assert_eq!(kinds(&world.blobs.take_log()), ["delete scans/f/scan_000001/page"]);
    let missing = Document { page: Blob::new("b"), ..one };
    let gone = scans.replace_any(&missing).await.unwrap_err();
    assert!(gone.is_not_found(), "{gone}");
}

#[tokio::test]
async fn a_value_of_another_row_is_copied_under_its_new_owner() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("shared")))).await.unwrap();
    let kwok = world.staff.insert(&employee(2, don.photo.clone())).await.unwrap();
    let (a, b) = (don.photo.as_ref().unwrap(), kwok.photo.as_ref().unwrap());
    assert_ne!(a.name(), b.name());
    assert!(b.name().unwrap().starts_with("staff/!sales/empid_000002/photo/"));
    world.staff.delete(&don).await.unwrap();
    world.settle("the first owner is gone").await;
    assert_eq!(world.staff.blob(b).bytes().await.unwrap(), "shared");
    let late = world.staff.insert(&employee(3, don.photo.clone())).await.unwrap_err();
    assert!(late.is_stale(), "{late}");
    assert!(world.staff.get(at(3)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_changed_key_and_a_move_take_blobs_along() {
    let world = World::new().await;
    let mut don = world.staff.insert(&employee(1, Some(photo("mine")))).await.unwrap();
    don.id = 7;
    let mut don = world.staff.replace(&don).await.unwrap();
    assert!(don.photo.as_ref().unwrap().name().unwrap().contains("empid_000007"));
    world.client.wait_for_copies().await;
    world.settle("another RowKey").await;
    don = world.staff.get(at(7)).await.unwrap().unwrap();
    don.department = "Marketing".into();
    world.staff.move_to(&don, &world.staff).await.unwrap().wait().await.unwrap();
    world.settle("another partition").await;
    let moved = Employee::primary().department("Marketing").id(7);
    let moved = world.staff.get(moved).await.unwrap().unwrap();
    let photo = moved.photo.as_ref().unwrap();
    assert!(photo.name().unwrap().starts_with("staff/!marketing/"), "{photo:?}");
    assert_eq!(world.staff.blob(photo).bytes().await.unwrap(), "mine");
}

#[tokio::test]
async fn a_verb_never_points_to_a_blob_that_was_removed() {
    let world = World::new().await;
    let old = world.staff.insert(&employee(1, Some(photo("old")))).await.unwrap();
    world
        .staff
        .update(at(1), |don| {
            don.photo = Some(photo("new"));
            Ok(())
        })
        .await
        .unwrap();
    world.client.wait_for_copies().await;
    let mut stale = (*old).clone();
    for result in [
        world.staff.insert_or_replace(&stale).await.err(),
        world.staff.insert_or_merge(&stale).await.err(),
        world.staff.replace_any(&stale).await.err(),
        world
            .staff
            .patch_at(at(1), Employee::patch().photo(stale.photo.clone().unwrap()))
            .await
            .err(),
    ] {
        let error = result.expect("the old blob is gone");
        assert!(error.is_stale() && error.property() == Some("Photo"), "{error}");
    }
    assert!(world.staff.replace(&old).await.unwrap_err().is_precondition_failed());
    stale.photo = None;
    world.staff.insert_or_merge(&stale).await.unwrap();
    let kept = world.staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(world.staff.blob(kept.photo.as_ref().unwrap()).bytes().await.unwrap(), "new");
    world.staff.insert_or_replace(&stale).await.unwrap();
    world.settle("removed").await;
    assert!(world.blob_names().await.is_empty());
}

#[tokio::test]
async fn patches_set_and_remove() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, None)).await.unwrap();
    world.staff.patch(&don, Employee::patch().photo(photo("a"))).await.unwrap();
    world
        .staff
        .patch_at(at(1), Employee::patch().photo(Blob::new("bc")).last_name("Kwok"))
        .await
        .unwrap();
    let don = world.staff.get(at(1)).await.unwrap().unwrap();
    let set = don.photo.clone().unwrap();
    assert_eq!((set.len(), set.media_type(), &*don.last_name), (2, None, "Kwok"));
    assert_eq!(world.staff.blob(&set).bytes().await.unwrap(), "bc");
    world.settle("patched").await;
    world.blobs.take_log();
    // A patch of other properties is one merge, which the blobs have no part in.
    world.staff.patch_at(at(1), Employee::patch().remove_photo()).await.unwrap();
    world.settle("removed").await;
    assert!(world.staff.get(at(1)).await.unwrap().unwrap().photo.is_none());
    assert!(world.blob_names().await.is_empty());
}

#[tokio::test]
async fn readers_tell_damaged_from_outlived_from_missing() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("0123456789")))).await.unwrap();
    let stored = don.photo.clone().unwrap();
    let reader = world.staff.blob(&stored);
    assert_eq!(reader.range(2..5).await.unwrap(), "234");
    assert_eq!(reader.range(8..50).await.unwrap(), "89");
    assert!(reader.range(10..11).await.unwrap_err().is_invalid());
    let pieces: Vec<_> = reader.stream().try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"0123456789");
    let name = stored.name().unwrap();
    for damage in [&b"012345678"[..], b"0123456780"] {
        world.blobs.damage(name, damage).await;
        let error = reader.bytes().await.unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains(name), "{error}");
        let items: Vec<_> = reader.stream().collect().await;
        let (last, before) = items.split_last().unwrap();
        assert!(last.as_ref().is_err_and(|error| error.is_corrupt()), "{last:?}");
        assert!(before.iter().all(Result::is_ok) && !before.is_empty());
    }
    world.blobs.remove(name).await;
    let error = reader.bytes().await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains(name), "{error}");
    world
        .staff
        .update(at(1), |don| {
            don.photo = Some(photo("next"));
            Ok(())
        })
        .await
        .unwrap();
    for error in [
        reader.bytes().await.unwrap_err(),
        reader.range(0..1).await.unwrap_err(),
        reader.stream().try_collect::<Vec<_>>().await.unwrap_err(),
    ] {
        assert!(error.is_stale(), "{error}");
    }
    let waiting = photo("in memory");
    assert_eq!(world.staff.blob(&waiting).bytes().await.unwrap(), "in memory");
    assert_eq!(world.staff.blob(&waiting).range(3..9).await.unwrap(), "memory");
}

fn pieces(
    count: usize,
    bytes: usize,
) -> impl futures_util::Stream<Item = std::io::Result<bytes::Bytes>> {
    stream::iter((0..count).map(move |number| {
        let number = u8::try_from(number % 251).unwrap();
        Ok(bytes::Bytes::from(vec![number; bytes]))
    }))
}

#[tokio::test]
async fn a_stream_is_uploaded_ahead_of_its_row() {
    let world = World::new().await;
    let mut don = employee(1, None);
    let small = world.staff.upload(&don, Employee::PHOTO, pieces(3, 1_000)).await.unwrap();
    assert_eq!(kinds(&world.blobs.take_log()), ["put staff/!sales/empid_000001/photo"]);
    don.photo = Some(small.clone().content_type("image/png"));
    let stored = world.staff.insert(&don).await.unwrap();
    assert_eq!(stored.photo.as_ref().unwrap().name(), small.name(), "nothing is written again");
    assert!(world.blobs.take_log().is_empty());
    // The row points to it: written again, the value stays what it is.
    let again = world.staff.insert_or_replace(&don).await.unwrap();
    assert_eq!(again.photo, stored.photo);
    let mut large = world.staff.get(at(1)).await.unwrap().unwrap();
    large.photo =
        Some(world.staff.upload(&large, Employee::PHOTO, pieces(20, 1 << 20)).await.unwrap());
    assert_eq!(kinds(&world.blobs.take_log()), ["parts staff/!sales/empid_000001/photo"]);
    let large = world.staff.replace(&large).await.unwrap();
    world.client.wait_for_copies().await;
    let reader = world.staff.blob(large.photo.as_ref().unwrap());
    assert_eq!(reader.bytes().await.unwrap().len(), 20 << 20, "its hash is verified");
    // The first upload was taken by the first write, and its blob is gone since.
    let error = world.staff.insert_or_replace(&don).await.unwrap_err();
    assert!(error.is_stale(), "{error}");
    let failing = stream::iter([
        Ok(bytes::Bytes::from_static(b"begun")),
        Err(std::io::Error::other("the camera is gone")),
    ]);
    let error = world.staff.upload(&large, Employee::PHOTO, failing).await.unwrap_err();
    assert!(error.is_rejected() && error.to_string().contains("camera"), "{error}");
    world.settle("uploaded").await;
}

#[tokio::test]
async fn an_upload_that_a_sweep_could_meet_is_refused() {
    let world = World::new().await;
    let mut don = employee(1, None);
    don.photo = Some(world.staff.upload(&don, Employee::PHOTO, pieces(1, 10)).await.unwrap());
    world.later(Duration::from_secs(6 * 3_600 + 1));
    let error = world.staff.insert(&don).await.unwrap_err();
    assert!(error.is_stale() && error.to_string().contains("upload again"), "{error}");
    assert!(world.staff.get(at(1)).await.unwrap().is_none());
    world.settle("refused").await;
    // Bytes that the value still has are simply uploaded now.
    world.staff.insert(&employee(1, Some(photo("fresh")))).await.unwrap();
}

/// A clock that a test sets, also back.
#[derive(Debug)]
struct SetClock(std::sync::atomic::AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.load(std::sync::atomic::Ordering::SeqCst)).unwrap()
    }
}

/// A program's clock that goes backwards makes no upload younger, and one that is ahead no blob older.
#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_backwards_neither_renews_an_upload_nor_sweeps_one() {
    let world = World::new().await;
    let (start, hour) = (world.clock.now().get(), 3_600 * 10_000_000);
    let clock = Arc::new(SetClock(start.into()));
    let builder = Client::builder().backend(world.fault.clone()).clock(clock.clone());
    let client = builder.blobs(world.blobs.clone()).keys(keys()).build().unwrap();
    let staff = client.table::<Employee>();
    let mut don = employee(1, None);
    don.photo = Some(staff.upload(&don, Employee::PHOTO, pieces(1, 10)).await.unwrap());
    let set = |time| clock.0.store(time, std::sync::atomic::Ordering::SeqCst);
    set(start - 48 * hour);
    tokio::time::sleep(Duration::from_secs(6 * 3_600 - 1)).await;
    let mut other = employee(2, None);
    other.photo = don.photo.clone();
    let kept = staff.insert(&other).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let error = staff.insert(&don).await.unwrap_err();
    assert!(error.is_stale() && error.to_string().contains("upload again"), "{error}");

    // The store's date tells the age of a blob, whatever the program's clock says.
    set(start + 1_000 * hour);
    let swept = staff.sweep_blobs().await.unwrap();
    assert_eq!((swept.removed, swept.young), (0, 2));
    world.blobs.advance(Duration::from_secs(25 * 3_600));
    set(start - 1_000 * hour);
    let swept = staff.sweep_blobs().await.unwrap();
    assert_eq!((swept.removed, swept.kept), (1, 1), "the upload that no row took");
    let bytes = staff.blob(kept.photo.as_ref().unwrap()).bytes().await.unwrap();
    assert_eq!(bytes.len(), 10);
}

/// A sweep compares names of blobs with rows as they are stored.
#[tokio::test]
async fn a_sweep_keeps_the_blobs_of_rows_that_a_client_encrypts() {
    let world = World::new().await;
    let client = Client::builder()
        .backend(world.fault.clone())
        .clock(world.clock.clone())
        .blobs(world.blobs.clone())
        .keys(keys())
        .encrypt_if(|partition_key, _, _| partition_key == "Sales")
        .build()
        .unwrap();
    let staff = client.table::<Employee>();
    let don = staff.insert(&employee(1, Some(photo("kept")))).await.unwrap();
    world.later(Duration::from_secs(2 * 86_400));
    let swept = staff.sweep_blobs().grace(Duration::from_secs(86_400)).await.unwrap();
    assert_eq!((swept.removed, swept.kept), (0, 1));
    let don = staff.get(don.point()).await.unwrap().unwrap();
    let bytes = staff.blob(don.photo.as_ref().unwrap()).bytes().await.unwrap();
    assert_eq!(&bytes[..], b"kept");
}

/// An employee with a plain and an encrypted blob; the latter takes two chunks.
fn with_both() -> Employee {
    let mut don = employee(1, Some(photo("kept")));
    don.scan = Some(Blob::new(vec![0x5c; 100_000]));
    don
}

#[tokio::test]
async fn a_folder_of_blobs_takes_an_entity_with_copies_of_its_blobs() {
    let world = World::new().await;
    let don = world.staff.insert(&with_both()).await.unwrap();
    let name = |blob: &Option<Blob>| blob.as_ref().unwrap().name().unwrap().to_owned();
    let (photo, scan) = (name(&don.photo), name(&don.scan));
    let stored = world.blobs.stored(&scan).await;
    world.blobs.take_log();
    let archive = BlobTarget::new(world.blobs.clone(), "archive");
    assert!(Target::<Employee>::put(&archive, &don).await.is_err(), "it would hold no blobs");
    assert!(world.staff.transfer(at(1), &archive).await.unwrap());
    assert!(!world.staff.transfer(at(1), &archive).await.unwrap());
    world.client.wait_for_copies().await;
    // The row is the one that was stored, and names blobs below the folder.
    let json = world.blobs.stored("archive/Staff/Sales/empid_000001.json").await;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((json["Photo"].as_str(), json["Scan"].as_str()), (Some(&*photo), Some(&*scan)));
    assert_eq!(json["PhotoLength"], "4");
    assert_eq!(world.blobs.stored(&format!("archive/_blobs/{photo}")).await, b"kept");
    assert_eq!(
        world.blobs.stored(&format!("archive/_blobs/{scan}")).await,
        stored,
        "encrypted still"
    );
    let log = world.blobs.take_log();
    let order = |request: &str| {
        log.iter().position(|line| line == request).unwrap_or_else(|| panic!("{request}: {log:?}"))
    };
    let row = order("put archive/Staff/Sales/empid_000001.json");
    for name in [&photo, &scan] {
        assert!(order(&format!("put archive/_blobs/{name}")) < row, "first the blob, then its row");
        assert!(row < order(&format!("delete {name}")));
    }
    assert_eq!(world.blob_names().await.len(), 3, "nothing else is left");
    // The folder is the store of blobs of a client that gets the row back.
    let ring = keys();
    let blobs = Arc::new(PrefixStore::new(world.blobs.clone(), "archive/_blobs"));
    let client = Client::builder().backend(Memory::new()).keys(ring).blobs(blobs).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    put_back(&client, &json).await;
    let back = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(*back, *don);
    assert_eq!(staff.blob(back.photo.as_ref().unwrap()).bytes().await.unwrap(), "kept");
    let bytes = staff.blob(back.scan.as_ref().unwrap()).bytes().await.unwrap();
    assert_eq!(bytes, vec![0x5c; 100_000]);
    // That client's blobs would be their own copies, and go with the entity.
    let error = staff.transfer(at(1), &archive).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("another folder"), "{error}");
    let back = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(staff.blob(back.photo.as_ref().unwrap()).bytes().await.unwrap(), "kept");
    assert_eq!(world.blob_names().await.len(), 3, "what asked for the place is removed");
}

/// Inserts the row that a blob of JSON holds.
async fn put_back(client: &Client, json: &serde_json::Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = |name: &str| json[name].as_str().unwrap();
    let mut row = Row::build(text("PartitionKey"), text("RowKey"));
    for (name, value) in json.as_object().unwrap() {
        if name.contains('@') || ["PartitionKey", "RowKey", "Timestamp"].contains(&&**name) {
            continue;
        }
        let text = value.as_str().unwrap();
        match json.get(format!("{name}@odata.type")).and_then(|edm| edm.as_str()) {
            Some("Edm.Binary") => {
                row.put(name, ValueRef::Binary(&STANDARD.decode(text).unwrap()));
            }
            Some("Edm.Int64") => {
                row.put(name, ValueRef::Int64(text.parse().unwrap()));
            }
            _ => {
                row.put(name, ValueRef::String(text));
            }
        }
    }
    let operation = Operation::insert(row.finish().unwrap());
    client.backend().apply(&Batch::single("Staff", operation).unwrap()).await.unwrap();
}

/// The entity is here with its blobs, or in the archive with theirs.
#[tokio::test]
async fn a_fault_at_any_request_of_a_transfer_loses_no_blob() {
    for fails in [Fails::Before, Fails::After] {
        for nth in 0.. {
            let world = World::new().await;
            let don = world.staff.insert(&with_both()).await.unwrap();
            let archive = BlobTarget::new(world.blobs.clone(), "archive");
            world.blobs.inject(nth, fails);
            let first = world.staff.transfer(at(1), &archive).await;
            let is_through = world.blobs.calm();
            if first.is_err() {
                world.check_pointers(&format!("{fails:?} {nth}")).await;
                assert_eq!(world.pointers().await.0.len(), 2, "the entity is still here");
                assert!(world.staff.transfer(at(1), &archive).await.unwrap());
            }
            for _ in 0..4 {
                world.client.worker().with::<Employee>().drain().await.unwrap();
                world.later(Duration::from_secs(3_600));
            }
            let names = world.blob_names().await;
            assert!(
                names.iter().all(|name| name.starts_with("archive/")),
                "{fails:?} {nth}: {names:?}"
            );
            for (blob, bytes) in [(&don.photo, 4), (&don.scan, 100_032)] {
                let name = blob.as_ref().unwrap().name().unwrap();
                let copy = world.blobs.stored(&format!("archive/_blobs/{name}")).await;
                assert_eq!(copy.len(), bytes, "{fails:?} {nth}");
            }
            if is_through {
                assert!(nth > 6, "looks, reads and writes of two blobs, a row, deletions");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_transfer_keeps_an_entity_whose_blob_cannot_be_copied() {
    let world = World::new().await;
    let don = world.staff.insert(&with_both()).await.unwrap();
    let archive = BlobTarget::new(world.blobs.clone(), "archive");
    let name = don.photo.as_ref().unwrap().name().unwrap();
    let copy = format!("archive/_blobs/{name}");
    // Others' bytes under the name of the copy.
    world.blobs.damage(&copy, b"theirs").await;
    let error = world.staff.transfer(at(1), &archive).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains(&copy), "{error}");
    assert_eq!(world.blobs.stored(&copy).await, b"theirs");
    world.blobs.remove(&copy).await;
    // Other bytes under the blob's own name, then none.
    world.blobs.damage(name, b"tepk").await;
    let error = world.staff.transfer(at(1), &archive).await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains(name), "{error}");
    assert!(!world.blob_names().await.contains(&copy), "no damaged copy");
    world.blobs.remove(name).await;
    let error = world.staff.transfer(at(1), &archive).await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains(name), "{error}");
    assert!(world.staff.get(at(1)).await.unwrap().is_some());
    // A store without conditional writes is told by name.
    world.blobs.damage(name, b"kept").await;
    world.blobs.has_no_conditions(true);
    let error = world.staff.transfer(at(1), &archive).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("TestBlobs"), "{error}");
    assert!(world.staff.get(at(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_table_takes_an_entity_with_copies_of_its_blobs() {
    let world = World::new().await;
    world.staff.insert(&employee(1, Some(photo("kept")))).await.unwrap();
    let left: Table<Employee> = world.client.table_named("Left");
    left.create().await.unwrap();
    assert!(world.staff.transfer(at(1), &left).await.unwrap());
    let left_don = left.get(at(1)).await.unwrap().unwrap();
    let bytes = left.blob(left_don.photo.as_ref().unwrap()).bytes().await.unwrap();
    assert_eq!(&bytes[..], b"kept");
}

#[tokio::test]
async fn a_sweep_keeps_what_is_pointed_to_and_what_is_young() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("kept")))).await.unwrap();
    world.staff.upload(&don, Employee::PHOTO, pieces(1, 10)).await.unwrap();
    // Another program's blob among ours is none of ours.
    world.blobs.damage("staff/!sales/readme.txt", b"notes").await;
    let swept = world.staff.sweep_blobs().await.unwrap();
    assert_eq!((swept.removed, swept.kept, swept.young), (0, 0, 2));
    world.later(Duration::from_secs(24 * 3_600));
    world.staff.upload(&don, Employee::PHOTO, pieces(1, 10)).await.unwrap();
    world.requests();
    let swept = world.staff.sweep_blobs().grace(Duration::from_secs(86_400)).await.unwrap();
    assert_eq!((swept.removed, swept.kept, swept.young), (1, 1, 1));
    assert_eq!(world.requests().len(), 2, "one read for each blob that is old enough");
    assert!(world.blobs.names().await.contains(&"staff/!sales/readme.txt".to_owned()));
    // Blobs beside an empty store of tables may be those of another one.
    let other =
        Client::builder().backend(Memory::new()).blobs(world.blobs.clone()).build().unwrap();
    let error = other.table::<Employee>().sweep_blobs().grace(Duration::ZERO).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    world.check_pointers("swept").await;
}

#[tokio::test]
async fn a_client_without_blobs_refuses_before_it_writes() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("a")))).await.unwrap();
    let without = Client::builder().backend(world.recorder.clone()).keys(keys());
    let without = without.build().unwrap();
    let staff = without.table::<Employee>();
    let refused = |error: Error| {
        assert!(error.is_unsupported() && error.to_string().contains("blobs(..)"), "{error}");
    };
    refused(staff.insert(&employee(2, Some(photo("b")))).await.unwrap_err());
    refused(staff.delete(&don).await.unwrap_err());
    refused(staff.blob(don.photo.as_ref().unwrap()).bytes().await.unwrap_err());
    refused(staff.upload(&don, Employee::PHOTO, pieces(1, 1)).await.unwrap_err());
    refused(staff.sweep_blobs().await.unwrap_err());
    staff.insert(&employee(3, None)).await.unwrap();
    assert!(staff.get(at(2)).await.unwrap().is_none());
    world.check_pointers("refused").await;
}

#[tokio::test]
async fn a_store_that_breaks_down_in_the_middle_is_told() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let mut don = employee(1, Some(Blob::new(bytes.clone())));
    don.scan = Some(Blob::new(bytes.clone()));
    let don = world.staff.insert(&don).await.unwrap();
    for blob in [don.photo.as_ref().unwrap(), don.scan.as_ref().unwrap()] {
        let reader = world.staff.blob(blob);
        world.blobs.break_reads_after(Some(150_000));
        let error = reader.bytes().await.unwrap_err();
        assert!(error.is_backend(), "{error}");
        let error = reader.range(0..200_000).await.unwrap_err();
        assert!(error.is_backend(), "{error}");
        let items: Vec<_> = reader.stream().collect().await;
        let (last, before) = items.split_last().unwrap();
        assert!(last.as_ref().unwrap_err().is_backend(), "{last:?}");
        let read: Vec<_> = before.iter().map(|item| item.as_ref().unwrap().clone()).collect();
        assert!(!read.is_empty() && bytes.starts_with(&read.concat()), "what was read is sound");
        world.blobs.break_reads_after(None);
        assert_eq!(reader.bytes().await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_store_without_conditions_is_refused_by_its_name() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("a")))).await.unwrap();
    world.blobs.has_no_conditions(true);
    for third in [Plain, Encrypted].map(|field| field.employee(3, Some(photo("new")))) {
        let error = world.staff.insert(&third).await.unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("`TestBlobs`"), "{error}");
        assert_eq!(error.keys(), Some(("Sales", "empid_000003")), "{error}");
    }
    let copied = world.staff.insert(&employee(3, don.photo.clone())).await.unwrap_err();
    assert!(copied.is_unsupported() && copied.to_string().contains("`TestBlobs`"), "{copied}");
    let stream = world.staff.upload(&don, Employee::PHOTO, pieces(1, 10)).await.unwrap_err();
    assert!(stream.is_unsupported() && stream.to_string().contains("`TestBlobs`"), "{stream}");
    assert!(world.staff.get(at(3)).await.unwrap().is_none(), "no row is written");
    world.blobs.has_no_conditions(false);
    world.settle("refused").await;
    assert_eq!(world.blob_names().await.len(), 1);
}

#[tokio::test]
async fn a_worker_without_blobs_leaves_their_removal_to_another() {
    let world = World::with(OutboxOptions::default().background(0)).await;
    let don = world.staff.insert(&employee(1, Some(photo("a")))).await.unwrap();
    world.staff.delete(&don).await.unwrap();
    let without = Client::builder().backend(world.recorder.clone()).clock(world.clock.clone());
    let without = without.keys(keys()).build().unwrap();
    let stats = without.worker().with::<Employee>().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.poisoned), (1, 0));
    assert_eq!(world.blob_names().await.len(), 1);
    world.settle("by another").await;
    assert!(world.blob_names().await.is_empty());
}

/// Somebody who writes the table names the blob of an entity as one that it no longer points to.
#[tokio::test]
async fn a_forged_dirty_row_removes_no_blob_that_its_entity_points_to() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(photo("one")))).await.unwrap();
    world.client.wait_for_copies().await;
    let name = don.photo.as_ref().unwrap().name().unwrap();
    let forged = ["Employee#photo#content", "Staff", "Sales", name];
    let dirty = DynamicEntity::new("Sales", "~e2_empid_000001")
        .with_framework_names()
        .with("EntityType", "entable.dirty")
        .with("Format", 1)
        .with("D_1", serde_json::to_string(&forged).unwrap());
    world.client.dynamic("Staff").insert(&dirty).await.unwrap();
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.applied, stats.unknown), (1, 0), "{stats:?}");
    world.check_pointers("forged").await;
    assert_eq!(world.blob_names().await.len(), 1);
}

/// Readers of the copy find its blob until somebody who knows the copy has written it.
#[tokio::test]
async fn a_blob_stays_while_a_copy_that_points_to_it_is_left() {
    let world = World::with(OutboxOptions::default().background(0)).await;
    let mut don = world.staff.insert(&employee(1, Some(photo("one")))).await.unwrap();
    world.client.worker().drain().await.unwrap();
    let first = don.photo.clone().unwrap();
    don.photo = Some(photo("two"));
    world.staff.replace(&don).await.unwrap();
    let unknowing = Client::builder().backend(world.recorder.clone()).clock(world.clock.clone());
    let unknowing = unknowing.blobs(world.blobs.clone()).keys(keys()).build().unwrap();
    let stats = unknowing.worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.applied), (1, 0), "{stats:?}");
    let by_email = Employee::by_email().email(don.email.clone()).department("Sales").id(1);
    let copy = world.staff.get(by_email).await.unwrap().unwrap();
    assert_eq!(copy.photo.as_ref().unwrap().name(), first.name());
    let bytes = world.staff.blob(copy.photo.as_ref().unwrap()).bytes().await.unwrap();
    assert_eq!(bytes, "one");
    world.settle("by another").await;
    assert_eq!(world.blob_names().await.len(), 1);
}

#[tokio::test]
async fn a_directory_holds_blobs_too() {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let client = Client::builder().backend(Memory::new()).blobs(files).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let don = staff.insert(&employee(1, Some(photo("a file")))).await.unwrap();
    let kwok = staff.insert(&employee(2, don.photo.clone())).await.unwrap();
    let dated = |blob: &Blob| {
        let path = directory.path().join(blob.name().unwrap());
        std::fs::metadata(path).unwrap().modified().unwrap()
    };
    let (a, b) = (don.photo.as_ref().unwrap(), kwok.photo.as_ref().unwrap());
    assert!(dated(b) > dated(a), "a copy has a date of its own, or a sweep would take it");
    staff.delete(&don).await.unwrap();
    client.wait_for_copies().await;
    assert!(staff.blob(a).bytes().await.unwrap_err().is_stale());
    assert_eq!(staff.blob(b).bytes().await.unwrap(), "a file");
    let swept = staff.sweep_blobs().grace(Duration::ZERO).await.unwrap();
    assert_eq!((swept.removed, swept.kept), (0, 1));
    let long = Employee { department: "D".repeat(128), ..employee(3, Some(photo("x"))) };
    let error = staff.insert(&long).await.unwrap_err();
    assert!(error.is_too_large() && error.property() == Some("Photo"), "{error}");
}

/// Streams of several MiB: what one thread reads or encrypts comes in order and whole.
#[tokio::test]
async fn a_directory_streams_in_pieces_and_tells_what_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let builder = Client::builder().backend(Memory::new()).blobs(files).keys(keys());
    let client = builder.build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let don = employee(1, None);
    // 5 MiB and a piece, so that no bound of 1 MiB is one of the source's pieces.
    let source = || pieces(53, 100_000);
    let expected: Vec<u8> = source().map_ok(|piece| piece.to_vec()).try_concat().await.unwrap();
    let plain = staff.upload(&don, Employee::PHOTO, source()).await.unwrap();
    let encrypted = staff.upload(&don, Employee::SCAN, source()).await.unwrap();
    for (blob, most_items) in [(&plain, 6), (&encrypted, 81)] {
        assert_eq!(blob.len(), 5_300_000);
        let items: Vec<_> = staff.blob(blob).stream().try_collect().await.unwrap();
        assert_eq!(items.concat(), expected);
        assert!(items.len() <= most_items, "{} items", items.len());
        assert_eq!(staff.blob(blob).bytes().await.unwrap(), expected);
        let range = staff.blob(blob).range(1_048_570..2_000_000).await.unwrap();
        assert_eq!(range, expected[1_048_570..2_000_000]);
        let path = directory.path().join(blob.name().unwrap());
        let stored = std::fs::read(&path).unwrap();
        for cut in [stored.len() - 1, 2 << 20, 0] {
            std::fs::write(&path, &stored[..cut]).unwrap();
            let items: Vec<_> = staff.blob(blob).stream().collect().await;
            let (last, before) = items.split_last().unwrap();
            assert!(last.as_ref().is_err_and(Error::is_corrupt), "{cut}: {last:?}");
            assert!(before.iter().all(Result::is_ok), "{cut}");
        }
        let mut changed = stored.clone();
        changed[3_000_000] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let error = staff.blob(blob).stream().try_collect::<Vec<_>>().await.unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        std::fs::write(&path, &stored).unwrap();
    }
    // A source that fails in the middle leaves nothing, also where pieces are encrypted ahead.
    let broken = source().chain(stream::iter([Err(std::io::Error::other("line lost"))]));
    let error = staff.upload(&don, Employee::SCAN, broken).await.unwrap_err();
    assert!(error.is_rejected(), "{error}");
    let swept = staff.sweep_blobs().grace(Duration::ZERO).await.unwrap();
    assert_eq!((swept.removed, swept.kept), (2, 0), "the two uploads that no row points to");
}

#[tokio::test]
async fn a_row_with_half_of_a_blob_is_an_error() {
    let world = World::new().await;
    world.staff.insert(&employee(1, Some(photo("a")))).await.unwrap();
    let rows = world.client.dynamic("Staff");
    let mut row = rows.get("Sales", "empid_000001").await.unwrap().unwrap();
    row.remove("PhotoHash");
    rows.replace(&row).await.unwrap();
    let error = world.staff.get(at(1)).await.unwrap_err();
    assert!(error.is_decode() && error.property() == Some("PhotoHash"), "{error}");
}

/// A verb of the fault test. Its own failure is expected.
type VerbResult = Result<(), Error>;

const VERBS: [&str; 16] = [
    "insert",
    "insert of another row's value",
    "replace",
    "replace without",
    "update",
    "patch",
    "patch_at",
    "insert_or_replace",
    "insert_or_merge",
    "replace_any",
    "delete",
    "delete_at",
    "changed key",
    "move",
    "transaction",
    "upload",
];

/// Runs a verb on a table with the employees 1 and 2, which both have photos.
async fn run(world: &World, verb: &str, field: Field, don: &Stored<Employee>) -> VerbResult {
    let staff = &world.staff;
    let mut changed = don.clone();
    *field.of(&mut changed) = Some(photo("changed"));
    let own = field.of(&mut don.clone()).clone();
    match verb {
        "insert" => staff.insert(&field.employee(3, Some(photo("third")))).await.map(drop),
        "insert of another row's value" => staff.insert(&field.employee(3, own)).await.map(drop),
        "replace" => staff.replace(&changed).await.map(drop),
        "replace without" => {
            *field.of(&mut changed) = None;
            staff.replace(&changed).await.map(drop)
        }
        "update" => {
            let change = |don: &mut Employee| {
                *field.of(don) = Some(photo("updated"));
                Ok(())
            };
            staff.update(at(1), change).await.map(drop)
        }
        "patch" => staff.patch(don, field.patch(photo("patched"))).await.map(drop),
        "patch_at" => staff.patch_at(at(1), field.patch(photo("patched"))).await.map(drop),
        "insert_or_replace" => staff.insert_or_replace(&changed).await.map(drop),
        "insert_or_merge" => staff.insert_or_merge(&changed).await.map(drop),
        "replace_any" => staff.replace_any(&changed).await.map(drop),
        "delete" => staff.delete(don).await,
        "delete_at" => staff.delete_at(at(1)).await.map(drop),
        "changed key" => {
            changed.id = 9;
            *field.of(&mut changed) = own;
            staff.replace(&changed).await.map(drop)
        }
        "move" => {
            *field.of(&mut changed) = own;
            changed.department = "Marketing".into();
            staff.move_to(&changed, staff).await?.wait().await
        }
        "transaction" => {
            let mut both = staff.transaction();
            both.replace(&changed)?.insert(&field.employee(4, own))?;
            both.delete_at(at(2))?;
            both.commit().await.map(drop)
        }
        "upload in parts" => {
            let parts = staff.upload(&changed, Employee::PHOTO, pieces(9, 1 << 20)).await?;
            changed.photo = Some(parts);
            staff.replace(&changed).await.map(drop)
        }
        _ => {
            let uploaded = match field {
                Plain => staff.upload(&changed, Employee::PHOTO, pieces(2, 10)).await?,
                Encrypted => staff.upload(&changed, Employee::SCAN, pieces(2, 10)).await?,
            };
            *field.of(&mut changed) = Some(uploaded);
            staff.replace(&changed).await.map(drop)
        }
    }
}

/// Fails one request of a verb, then lets everything settle. Returns whether the fault was met.
async fn run_with_fault(
    verb: &str,
    field: Field,
    nth: usize,
    in_blobs: bool,
    fails: Fails,
) -> bool {
    let world = World::new().await;
    for id in [1, 2] {
        world.staff.insert(&field.employee(id, Some(photo("first")))).await.unwrap();
    }
    world.client.wait_for_copies().await;
    let don = world.staff.get(at(1)).await.unwrap().unwrap();
    let when = format!("{verb} of {field:?}, request {nth}, in blobs {in_blobs}, {fails:?}");
    let before = world.fault.requests();
    if in_blobs {
        world.blobs.inject(nth, fails);
    } else {
        let error = Error::new(ErrorKind::Backend, "connection lost");
        let fault = match fails {
            Fails::Before => InjectedFault::Before(error),
            Fails::After => InjectedFault::After(error),
        };
        world.fault.inject(RequestKind::Any, nth, fault);
    }
    let _ = run(&world, verb, field, &don).await;
    world.client.wait_for_copies().await;
    let is_met = if in_blobs { !world.blobs.calm() } else { world.fault.requests() - before > nth };
    if is_met {
        world.check_pointers(&when).await;
        world.settle(&when).await;
    }
    is_met
}

/// An upload of several requests: its begin, its two parts, its end.
#[tokio::test]
async fn no_fault_in_a_part_of_an_upload_leaves_a_row_that_points_to_nothing() {
    for fails in [Fails::Before, Fails::After] {
        let mut faults = 0;
        while run_with_fault("upload in parts", Plain, faults, true, fails).await {
            faults += 1;
        }
        assert_eq!(faults, 5, "{fails:?}: four requests, and one that removes the earlier photo");
    }
}

async fn run_with_each_fault(field: Field) {
    for verb in VERBS {
        let mut faults = 0;
        for in_blobs in [false, true] {
            for fails in [Fails::Before, Fails::After] {
                let mut nth = 0;
                while run_with_fault(verb, field, nth, in_blobs, fails).await {
                    nth += 1;
                    faults += 1;
                }
            }
        }
        assert!(faults >= 4, "{verb}: {faults} faults");
    }
}

#[tokio::test]
async fn no_fault_leaves_a_row_that_points_to_nothing() {
    run_with_each_fault(Plain).await;
}

/// A row and its blob agree on the key too: what a row points to can be decrypted.
#[tokio::test]
async fn no_fault_parts_an_encrypted_blob_from_its_key() {
    run_with_each_fault(Encrypted).await;
}

/// A row that holds the hash as it is could not be read: its bytes would be decrypted.
#[tokio::test]
async fn a_hash_that_begins_as_an_encrypted_value_is_stored_too() {
    let world = World::new().await;
    let mut texts = (0..).map(|number| number.to_string());
    let text =
        texts.find(|text| Blob::new(text.clone()).hash().starts_with(&[0xae, 0x7e])).unwrap();
    world.staff.insert(&employee(1, Some(Blob::new(text.clone())))).await.unwrap();
    let found = world.staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(found.photo.as_ref().unwrap().hash(), Blob::new(text.clone()).hash());
    assert_eq!(world.staff.blob(found.photo.as_ref().unwrap()).bytes().await.unwrap(), text);
    let without_keys = Client::builder().backend(world.recorder.clone()).blobs(world.blobs.clone());
    let staff = without_keys.build().unwrap().table::<Employee>();
    let found = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(staff.blob(found.photo.as_ref().unwrap()).bytes().await.unwrap(), text);
}

#[tokio::test]
async fn bulk_writes_upload_too() {
    let world = World::new().await;
    let many = (1..=30).map(|id| employee(id, Some(Blob::new(vec![1; 1_000]))));
    world.client.bulk().insert_all(many).await.unwrap().into_result().unwrap();
    world.client.wait_for_copies().await;
    assert_eq!(world.blob_names().await.len(), 30);
    let all = world.staff.query(Employee::scan()).collect().await.unwrap();
    world.client.bulk().delete_all(all).await.unwrap().into_result().unwrap();
    world.client.wait_for_copies().await;
    world.settle("deleted").await;
    assert!(world.blob_names().await.is_empty());
}

#[tokio::test]
async fn writers_that_race_leave_one_blob() {
    let world = World::new().await;
    world.staff.insert(&employee(1, None)).await.unwrap();
    let writers = (0..8).map(|number| {
        let staff = world.staff.clone();
        async move {
            let patch = Employee::patch().photo(Blob::new(format!("photo {number}")));
            staff.patch_at(at(1), patch).await
        }
    });
    for written in futures_util::future::join_all(writers).await {
        written.unwrap();
    }
    world.client.wait_for_copies().await;
    world.settle("raced").await;
    let names = world.blob_names().await;
    assert_eq!(names.len(), 1, "{names:?}");
    let mut log = world.blobs.take_log();
    log.retain(|line| line.starts_with("put staff"));
    let names: BTreeSet<_> = log.iter().collect();
    assert_eq!(names.len(), log.len(), "no name is written twice");
}

#[tokio::test]
async fn the_blobs_of_what_is_over_go_with_it() {
    let world = World::new().await;
    let hour = Duration::from_secs(3600);
    let badges: Table<Badge> = world.client.table();
    let badge = |id, hours: u32, text| Badge {
        department: "Sales".into(),
        id,
        until: OffsetDateTime::from(world.clock.now()) + hour * hours,
        photo: Some(photo(text)),
    };
    for (id, hours) in [(1, 1), (2, 1), (3, 9)] {
        badges.insert(&badge(id, hours, "one")).await.unwrap();
    }
    world.later(3 * hour);
    // An insert over an entity that is over takes its blob's place.
    badges.insert(&badge(1, 9, "two")).await.unwrap();
    let worker = || world.client.worker().with::<Badge>();
    assert_eq!(worker().drain().await.unwrap().expired, 1);
    for _ in 0..2 {
        world.later(Duration::from_secs(400));
        worker().drain().await.unwrap();
    }
    let mut kept = Vec::new();
    for id in [1, 3] {
        let found = badges.get(Badge::primary().department("Sales").id(id)).await.unwrap().unwrap();
        kept.push(badges.blob(found.photo.as_ref().unwrap()).bytes().await.unwrap());
    }
    assert_eq!(kept, ["two", "one"]);
    assert_eq!(world.blob_names().await.len(), 2, "{:?}", world.blob_names().await);
    assert!(badges.check().await.unwrap().is_clean());
}

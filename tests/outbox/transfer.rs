//! Tests transfers to a table, and puts that are carried out late.

use std::{sync::Arc, time::Duration};

use entable::{
    Blob, KeyScope, Keyring, Verb,
    backend::{
        Backend, Memory,
        layer::{FaultInjector, Recorder},
    },
    batch::{Batch, Operation},
    object_store::{ObjectStore, memory::InMemory},
    prelude::*,
    seal::RootKey,
};
use futures_util::TryStreamExt;

use crate::hooked::Hooked;

/// An entity of one row.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Current", partition_key = "{office}", row_key = "desk_{id:06}")]
struct Desk {
    office: String,
    id: u32,
    note: String,
}

/// An entity with a copy and a list, and a copy in another partition.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Current",
    partition_key = "{office}",
    row_key = "room_{id:06}",
    index(ByNote, row_key = "note_{note}_{id:06}"),
    index(Everywhere, partition_key = "all_{note}", row_key = "at_{office}_{id:06}"),
    list(OfNote, row_key = "list_{note}")
)]
struct Room {
    office: String,
    id: u32,
    note: String,
}

/// An entity in two parts, at least.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Current", partition_key = "{office}", row_key = "plan_{id:06}", wide)]
struct Plan {
    office: String,
    id: u32,
    note: String,
    #[table(part = 2)]
    more: String,
}

trait Noted: TableEntity + Clone + PartialEq + Send + Sync {
    fn noted(note: &str) -> Self;
    fn at() -> Point<Self>;
    fn note(&self) -> &str;
    fn set_note(&mut self, note: &str);
}

macro_rules! noted {
    ($name:ident $(, $field:ident)*) => {
        impl Noted for $name {
            fn noted(note: &str) -> Self {
                let (office, note) = ("Kiel".to_owned(), note.to_owned());
                Self { office, id: 1, $($field: note.clone(),)* note }
            }

            fn at() -> Point<Self> {
                Self::primary().office("Kiel").id(1)
            }

            fn note(&self) -> &str {
                &self.note
            }

            fn set_note(&mut self, note: &str) {
                self.note = note.to_owned();
            }
        }
    };
}

noted!(Desk);
noted!(Room);
noted!(Plan, more);

struct World {
    recorder: Recorder,
    fault: FaultInjector,
}

impl World {
    async fn new() -> Self {
        let recorder = Recorder::around(Memory::new());
        let fault = FaultInjector::around(recorder.clone());
        let world = Self { recorder, fault };
        world.client().create_table("Current").await.unwrap();
        world.client().create_table("Former").await.unwrap();
        world.recorder.clear();
        world
    }

    fn client(&self) -> Client {
        Client::builder().backend(self.fault.clone()).build().unwrap()
    }

    fn tables<E: TableEntity>(&self) -> (Table<E>, Table<E>) {
        let client = self.client();
        (client.table::<E>(), client.table_named::<E>("Former"))
    }

    /// Transfers the entity as a worker that is given up while the put is on its way. Returns the put.
    async fn put_that_is_late<E: Noted>(&self, verb: Verb) -> Batch {
        let is_put = move |one: &Operation| {
            let (partition_key, row_key) = one.row().keys();
            one.verb() == verb && partition_key == "Kiel" && !row_key.starts_with('~')
        };
        let (store, kept) = Hooked::holding(self.fault.clone(), is_put);
        let client = Client::builder().backend(store).build().unwrap();
        let (current, former) = (client.table::<E>(), client.table_named::<E>("Former"));
        let transfer = tokio::time::timeout(Duration::from_secs(5), async {
            current.transfer(E::at(), &former).await
        });
        assert!(transfer.await.is_err(), "the put is on its way");
        let put = kept.lock().unwrap().take().unwrap();
        assert_eq!(put.table(), "Former");
        put
    }
}

/// Another worker transfers the entity, it changes at the target, and then the put of the first worker is
/// carried out.
async fn a_late_put_changes_nothing<E: Noted>(world: &World, verb: Verb) {
    let (current, former) = world.tables::<E>();
    current.insert(&E::noted("older")).await.unwrap();
    let late = world.put_that_is_late::<E>(verb).await;
    assert!(current.transfer(E::at(), &former).await.unwrap());
    let mut one = former.get(E::at()).await.unwrap().unwrap();
    assert_eq!(one.note(), "older");
    one.set_note("newer");
    former.replace(&one).await.unwrap();
    let refused = world.fault.apply(&late).await.unwrap_err();
    assert!(refused.is_conflict() || refused.is_precondition_failed(), "{refused}");
    let one = former.get(E::at()).await.unwrap().unwrap();
    assert_eq!(one.note(), "newer");
    assert!(current.get(E::at()).await.unwrap().is_none());
    assert!(former.check().await.unwrap().is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_late_put_into_a_table_changes_nothing() {
    let world = World::new().await;
    // First an insertion, then a replacement of what the first transfer has left at the target.
    for verb in [Verb::Insert, Verb::Replace] {
        a_late_put_changes_nothing::<Desk>(&world, verb).await;
        a_late_put_changes_nothing::<Room>(&world, verb).await;
        a_late_put_changes_nothing::<Plan>(&world, verb).await;
    }
}

/// Without copies, and with copies of the same partition: the target is asked before the source.
#[tokio::test(start_paused = true)]
async fn a_transfer_reads_the_target_before_the_source() {
    let world = World::new().await;
    let (current, former) = world.tables::<Desk>();
    for (note, expected) in [
        ("first", &["read Current", "apply Former", "apply Current"][..]),
        (
            "second",
            &[
                "read Current",
                "apply Former",
                "read Former",
                "read Current",
                "apply Former",
                "apply Current",
            ],
        ),
    ] {
        current.insert(&Desk::noted(note)).await.unwrap();
        world.recorder.clear();
        assert!(current.transfer(Desk::at(), &former).await.unwrap());
        let requests: Vec<_> = world.recorder.take().iter().map(ToString::to_string).collect();
        assert_eq!(requests.len(), expected.len(), "{requests:#?}");
        let pairs = requests.iter().zip(expected);
        assert!(pairs.clone().all(|(one, other)| one.starts_with(other)), "{requests:#?}");
        assert_eq!(former.get(Desk::at()).await.unwrap().unwrap().note, note);
    }
}

/// An entity that leaves while another worker is between its two reads is not put once more.
#[tokio::test(start_paused = true)]
async fn what_changed_at_the_target_after_it_left_is_not_overwritten() {
    let world = World::new().await;
    let (current, former) = world.tables::<Desk>();
    former.insert(&Desk::noted("oldest")).await.unwrap();
    current.insert(&Desk::noted("older")).await.unwrap();
    // The slow worker's replacement finds that the other worker was faster, and looks again.
    let (other_current, other_former) = world.tables::<Desk>();
    let is_put = |one: &Operation| one.verb() == Verb::Replace;
    let store = Hooked::before(world.fault.clone(), is_put, async move {
        assert!(other_current.transfer(Desk::at(), &other_former).await.unwrap());
        other_former.replace_any(&Desk::noted("newer")).await.unwrap();
    });
    let client = Client::builder().backend(store).build().unwrap();
    let slow = client.table::<Desk>();
    let target = client.table_named::<Desk>("Former");
    assert!(!slow.transfer(Desk::at(), &target).await.unwrap(), "the other worker did it");
    assert_eq!(former.get(Desk::at()).await.unwrap().unwrap().note, "newer");
    assert!(current.get(Desk::at()).await.unwrap().is_none());
}

/// A row of another type under the entity's keys is replaced as a whole.
#[tokio::test(start_paused = true)]
async fn whatever_is_in_the_way_at_the_target_is_replaced() {
    let world = World::new().await;
    let (current, former) = world.tables::<Desk>();
    let foreign = DynamicEntity::new("Kiel", "desk_000001").with("Colour", "red");
    world.client().dynamic("Former").insert(&foreign).await.unwrap();
    current.insert(&Desk::noted("here")).await.unwrap();
    assert!(current.transfer(Desk::at(), &former).await.unwrap());
    let row = world.client().dynamic("Former").get("Kiel", "desk_000001").await.unwrap().unwrap();
    assert_eq!((row.str("Note").unwrap(), row.get("Colour")), ("here", None));
}

/// An entity with a unique value in another partition, and a blob.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Current",
    partition_key = "{office}",
    row_key = "badge_{id:06}",
    index(ByCode, partition_key = "code_{code}", row_key = "code", unique)
)]
struct Badge {
    office: String,
    id: u32,
    code: String,
    #[table(blob)]
    photo: Option<Blob>,
}

/// An insertion that the target refuses would reserve the value and copy the blob in vain.
#[tokio::test(start_paused = true)]
async fn a_target_that_has_the_entity_gets_its_blob_once_and_no_claim() {
    let recorder = Recorder::around(Memory::new());
    let blobs = Arc::new(InMemory::new());
    let builder = Client::builder().backend(recorder.clone()).blobs(blobs.clone());
    let client = builder.build().unwrap();
    let (current, former) = (client.table::<Badge>(), client.table_named::<Badge>("Former"));
    current.create().await.unwrap();
    former.create().await.unwrap();
    let badge = |photo| Badge {
        office: "Kiel".into(),
        id: 1,
        code: "a1".into(),
        photo: Some(Blob::new(photo)),
    };
    // As a worker leaves it that was given up after its put.
    former.insert(&badge("a photo")).await.unwrap().wait_for_copies().await.unwrap();
    current.insert(&badge("a photo")).await.unwrap().wait_for_copies().await.unwrap();
    recorder.clear();
    assert!(current.transfer(Badge::primary().office("Kiel").id(1), &former).await.unwrap());
    let requests: Vec<_> = recorder.take().iter().map(ToString::to_string).collect();
    assert!(requests[0].starts_with("read Former"), "{requests:#?}");
    assert!(requests[1].starts_with("read Current"), "{requests:#?}");
    assert!(!requests.iter().any(|one| one.contains("~e1_")), "a claim: {requests:#?}");
    client.wait_for_copies().await;
    client.worker().with::<Badge>().drain().await.unwrap();
    let found = former.get(Badge::primary().office("Kiel").id(1)).await.unwrap().unwrap();
    let photo = found.photo.as_ref().unwrap();
    assert_eq!(former.blob(photo).bytes().await.unwrap(), "a photo");
    let left: Vec<_> = blobs.list(None).try_collect().await.unwrap();
    assert_eq!(left.len(), 1, "only the blob that the row points to: {left:#?}");
    assert!(former.check().await.unwrap().is_clean());
}

/// An entity with an encrypted property.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Current", partition_key = "{office}", row_key = "safe_{id:06}")]
struct Safe {
    office: String,
    id: u32,
    #[table(encrypt)]
    code: String,
}

/// A row that cannot be decrypted is replaced as well: only its ETag is needed.
#[tokio::test(start_paused = true)]
async fn a_row_of_the_target_that_cannot_be_decrypted_is_replaced() {
    let store = Recorder::around(Memory::new());
    let client = |root| {
        let scope = KeyScope::default_scope();
        let keys = Keyring::builder().primary(&scope, &RootKey::from_bytes([root; 32]));
        Client::builder().backend(store.clone()).keys(keys.build().unwrap()).build().unwrap()
    };
    let (client, other) = (client(1), client(2));
    let (current, former) = (client.table::<Safe>(), client.table_named::<Safe>("Former"));
    current.create().await.unwrap();
    former.create().await.unwrap();
    let safe = |code: &str| Safe { office: "Kiel".into(), id: 1, code: code.into() };
    other.table_named::<Safe>("Former").insert(&safe("lost")).await.unwrap();
    current.insert(&safe("1234")).await.unwrap();
    let point = || Safe::primary().office("Kiel").id(1);
    former.get(point()).await.unwrap_err();
    assert!(current.transfer(point(), &former).await.unwrap());
    assert_eq!(former.get(point()).await.unwrap().unwrap().code, "1234");
    assert!(current.get(point()).await.unwrap().is_none());
}

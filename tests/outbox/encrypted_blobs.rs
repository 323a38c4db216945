//! Tests encrypted fields that are kept in blobs: what a row and its blob hold, who can read it, and which
//! damage is told.

use std::{fmt::Write, sync::Arc};

use entable::{
    Batch, Blob, DataKey, KeyId, KeyScope, Keyring, KeyringBuilder, OutboxOptions, PlaintextPolicy,
    Point, RootKey, Row, SealFault, Value,
    backend::{Backend, Memory, ReadRequest, layer::Recorder},
    batch::Operation,
    prelude::*,
    seal::{ValueBinding, key_id_of},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use xaes_256_gcm::{
    Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};

use crate::{blob_store::TestBlobs, hooked::Hooked};

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
    #[table(blob, encrypt)]
    photo: Option<Blob>,
}

/// The entity before its photos were encrypted.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Employee",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "at_{department}_{id:06}")
)]
struct PlainEmployee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    #[table(blob)]
    photo: Option<Blob>,
}

/// An entity of one row, whose partitions may be of several scopes.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Clerk {
    department: String,
    id: u32,
    age: u32,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
}

/// The clerk before its photos were encrypted.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Clerk",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct PlainClerk {
    department: String,
    id: u32,
    age: u32,
    #[table(blob)]
    photo: Option<Blob>,
}

fn clerk(id: u32, photo: Option<Blob>) -> Clerk {
    Clerk { department: "Sales".into(), id, age: 30, photo }
}

fn employee(id: u32, photo: Option<Blob>) -> Employee {
    let (department, last_name) = ("Sales".to_owned(), "Jones".to_owned());
    Employee { department, id, last_name, email: format!("Jones{id}@contoso.com"), photo }
}

fn at(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

/// Bytes that fill several chunks: byte i is i modulo 251.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

const CHUNK: usize = 65_536;

fn root(byte: u8) -> RootKey {
    RootKey::from_bytes([byte; 32])
}

fn key(byte: u8) -> DataKey {
    DataKey::from_root(&root(byte))
}

/// Keys with one scope for each department.
fn ring(scopes: &[(&str, u8)]) -> KeyringBuilder {
    let builder = Keyring::builder().scopes(KeyScope::named);
    scopes.iter().fold(builder, |builder, (scope, byte)| {
        builder.primary(&KeyScope::named(scope), &root(*byte))
    })
}

struct World {
    recorder: Recorder,
    blobs: Arc<TestBlobs>,
    client: Client,
    staff: Table<Employee>,
}

impl World {
    /// A world in which all partitions share the key 1.
    async fn new() -> Self {
        let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1));
        Self::with(keys.build().unwrap()).await
    }

    async fn with(keys: Keyring) -> Self {
        let (recorder, blobs) = (Recorder::around(Memory::new()), Arc::new(TestBlobs::default()));
        let client = open(&recorder, &blobs, keys, PlaintextPolicy::Reject);
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        recorder.clear();
        Self { recorder, blobs, client, staff }
    }

    fn reopen(&self, keys: Keyring) -> Table<Employee> {
        open(&self.recorder, &self.blobs, keys, PlaintextPolicy::Reject).table()
    }

    /// Returns a row as it is stored.
    async fn stored(&self, partition_key: &str, row_key: &str) -> Row {
        let read = ReadRequest { table: "Staff", partition_key, row_key, select: None };
        self.client.backend().read(read).await.unwrap().unwrap()
    }

    /// Changes properties of a stored row, as whoever can write the table may.
    async fn change(&self, row_key: &str, values: &[(&str, Option<Value>)]) {
        let row = self.stored("Sales", row_key).await;
        let mut bag = row.to_bag().unwrap();
        for (name, value) in values {
            match value {
                Some(value) => drop(bag.set(*name, value.clone())),
                None => drop(bag.remove(name)),
            }
        }
        let mut built = Row::build("Sales", row_key);
        for (name, value) in bag.iter() {
            built.put(name, value.as_ref());
        }
        let put = Operation::insert_or_replace(built.finish().unwrap());
        self.client.backend().apply(&Batch::single("Staff", put).unwrap()).await.unwrap();
    }

    async fn photo(&self, id: u32) -> Blob {
        self.staff.get(at(id)).await.unwrap().unwrap().photo.clone().unwrap()
    }
}

fn open(
    recorder: &Recorder,
    blobs: &Arc<TestBlobs>,
    keys: Keyring,
    policy: PlaintextPolicy,
) -> Client {
    open_on(recorder.clone(), blobs, keys, policy)
}

fn open_on(
    store: impl Backend,
    blobs: &Arc<TestBlobs>,
    keys: Keyring,
    policy: PlaintextPolicy,
) -> Client {
    let builder = Client::builder().backend(store).blobs(blobs.clone()).keys(keys);
    builder.plaintext(policy).outbox(OutboxOptions::default()).build().unwrap()
}

fn value(row: &Row, name: &str) -> Option<Value> {
    row.get(name).unwrap().map(|value| value.to_value())
}

/// Decrypts a content as the page of the format says, with nothing but the cipher.
fn open_content(content_key: &[u8], sealed: &[u8]) -> Vec<u8> {
    let key = <[u8; 32]>::try_from(content_key).unwrap();
    let cipher = Xaes256Gcm::new(&key.into());
    let chunks: Vec<&[u8]> = sealed.chunks(CHUNK + 16).collect();
    let mut content = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let mut nonce = [0; 24];
        nonce[15..23].copy_from_slice(&(index as u64).to_be_bytes());
        nonce[23] = u8::from(index + 1 == chunks.len());
        let (text, tag) = chunk.split_at(chunk.len() - 16);
        let mut text = text.to_vec();
        let tag = Tag::try_from(tag).unwrap();
        let nonce = Nonce::from(nonce);
        cipher
            .decrypt_inout_detached(&nonce, b"azt-blob-v1\0", text.as_mut_slice().into(), &tag)
            .unwrap();
        content.extend(text);
    }
    content
}

fn binding(row_key: &'static str) -> ValueBinding<'static> {
    ValueBinding { table: "Staff", partition_key: "Sales", row_key, property: "PhotoKey" }
}

/// Opens the key of a photo with the data key alone.
fn content_key(row: &Row, data_key: &DataKey, row_key: &'static str) -> Vec<u8> {
    let envelope = value(row, "PhotoKey").unwrap();
    let opened = data_key.decrypt(&binding(row_key), envelope.as_bytes().unwrap()).unwrap();
    let opened = opened.unwrap();
    let stored = opened.as_bytes().unwrap();
    assert_eq!((stored.len(), stored[0]), (33, 1), "the suite and the key");
    stored[1..].to_vec()
}

#[tokio::test]
async fn a_blob_is_chunks_under_a_key_that_its_row_holds_sealed() {
    let world = World::new().await;
    for (id, length) in [(1, 0), (2, 11), (3, CHUNK), (4, 3 * CHUNK + 7)] {
        let photo = Blob::new(content(length)).content_type("image/jpeg");
        let don = world.staff.insert(&employee(id, Some(photo))).await.unwrap();
        let stored = don.photo.clone().unwrap();
        assert_eq!((stored.len(), stored.media_type()), (length as u64, Some("image/jpeg")));
        let bytes = world.blobs.stored(stored.name().unwrap()).await;
        let chunks = length.div_ceil(CHUNK).max(1);
        assert_eq!(bytes.len(), length + 16 * chunks);
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(stored.hash(), &hash, "of what is stored");
        let row_key: &'static str = format!("empid_{id:06}").leak();
        let row = world.stored("Sales", row_key).await;
        assert_eq!(value(&row, "PhotoLength"), Some(Value::Int64(length as i64)));
        assert_eq!(value(&row, "PhotoHash").unwrap().as_bytes(), Some(&hash[..]));
        let opened = open_content(&content_key(&row, &key(1), row_key), &bytes);
        assert_eq!(opened, content(length), "another program reads it with the data key alone");
        // In every way, from the primary and from copies.
        world.client.wait_for_copies().await;
        let by_email = Employee::by_email().email(format!("jones{id}@contoso.com"));
        let by_name = Employee::by_name().department("Sales").last_name("Jones").id(id);
        let copy = world.staff.query(by_email.department("Sales").id(id)).collect().await.unwrap();
        let local = world.staff.query(by_name).collect().await.unwrap();
        for photo in [
            &world.photo(id).await,
            copy[0].photo.as_ref().unwrap(),
            local[0].photo.as_ref().unwrap(),
        ] {
            assert_eq!(photo, &stored);
            let reader = world.staff.blob(photo);
            assert_eq!(reader.bytes().await.unwrap(), content(length));
            let pieces: Vec<_> = reader.stream().try_collect().await.unwrap();
            assert_eq!(pieces.concat(), content(length));
        }
    }
    // Each blob and each row has a key and an envelope of its own.
    let same = Some(Blob::new(content(100)));
    let (a, b) = (employee(5, same.clone()), employee(6, same));
    let a = world.staff.insert(&a).await.unwrap().photo.clone().unwrap();
    let b = world.staff.insert(&b).await.unwrap().photo.clone().unwrap();
    assert_ne!(a.hash(), b.hash());
}

#[tokio::test]
async fn an_encrypted_blob_costs_what_a_plain_one_does_and_a_range_its_chunks() {
    #[derive(Debug, TableEntity)]
    #[table(name = "Scans", partition_key = "{folder}", row_key = "scan_{id:06}")]
    struct Document {
        folder: String,
        id: u32,
        #[table(blob, encrypt)]
        page: Blob,
    }
    let world = World::new().await;
    let scans = world.client.table::<Document>();
    scans.create().await.unwrap();
    world.recorder.clear();
    let page = Blob::new(content(10 * CHUNK + 5));
    scans.insert(&Document { folder: "f".into(), id: 1, page }).await.unwrap();
    assert_eq!((world.recorder.count(), world.blobs.take_log().len()), (1, 1));
    let read = scans.get(Document::primary().folder("f").id(1)).await.unwrap().unwrap();
    world.recorder.clear();
    let reader = scans.blob(&read.page);
    let (chunk, sealed) = (CHUNK as u64, CHUNK as u64 + 16);
    for (range, stored) in [
        (0..1, 0..sealed),
        (chunk - 1..chunk + 1, 0..2 * sealed),
        (3 * chunk..4 * chunk, 3 * sealed..4 * sealed),
        (10 * chunk..u64::MAX, 10 * sealed..10 * sealed + 21),
    ] {
        let end = range.end.min(10 * chunk + 5);
        let bytes = reader.range(range.clone()).await.unwrap();
        let expected = content(end as usize)[range.start as usize..].to_vec();
        assert_eq!(bytes, expected, "{range:?}");
        assert_eq!(world.blobs.take_ranges(), [stored], "{range:?}");
        assert_eq!(world.blobs.take_log().len(), 1);
    }
    assert!(reader.range(10 * chunk + 5..10 * chunk + 6).await.unwrap_err().is_invalid());
    assert_eq!(world.recorder.count(), 0);
}

#[tokio::test]
async fn the_vectors_of_the_format_are_read() {
    let vectors: Json = serde_json::from_str(include_str!("../vectors/blob-content.json")).unwrap();
    let stored_key = hex(vectors["stored_key_hex"].as_str().unwrap());
    let world = World::new().await;
    world.staff.insert(&employee(1, Some(Blob::new("replaced")))).await.unwrap();
    let name = world.photo(1).await.name().unwrap().to_owned();
    let opened = Value::Binary(stored_key.clone().into());
    let envelope = key(1).encrypt(&binding("empid_000001"), Some(opened.as_ref()), 0).unwrap();
    for vector in vectors["contents"].as_array().unwrap() {
        let length = usize::try_from(vector["length"].as_u64().unwrap()).unwrap();
        // The bytes are made here, and are those of the vector; a reader then takes them.
        let sealed = seal_content(&stored_key[1..], &content(length));
        assert_eq!(sealed.len() as u64, vector["sealed_length"].as_u64().unwrap());
        let hash: [u8; 32] = Sha256::digest(&sealed).into();
        assert_eq!(hash.to_vec(), hex(vector["sealed_sha256"].as_str().unwrap()));
        if let Some(whole) = vector["sealed_hex"].as_str() {
            assert_eq!(sealed, hex(whole));
        }
        world.blobs.damage(&name, &sealed).await;
        let values = [
            ("PhotoLength", Some(Value::Int64(length as i64))),
            ("PhotoHash", Some(Value::Binary(hash.to_vec().into()))),
            ("PhotoKey", Some(Value::Binary(envelope.clone().into()))),
        ];
        world.change("empid_000001", &values).await;
        let photo = world.photo(1).await;
        assert_eq!(world.staff.blob(&photo).bytes().await.unwrap(), content(length));
    }
}

fn seal_content(content_key: &[u8], content: &[u8]) -> Vec<u8> {
    let key = <[u8; 32]>::try_from(content_key).unwrap();
    let cipher = Xaes256Gcm::new(&key.into());
    let count = content.len().div_ceil(CHUNK).max(1);
    let mut sealed = Vec::new();
    for index in 0..count {
        let mut nonce = [0; 24];
        nonce[15..23].copy_from_slice(&(index as u64).to_be_bytes());
        nonce[23] = u8::from(index + 1 == count);
        let mut chunk = content[index * CHUNK..content.len().min((index + 1) * CHUNK)].to_vec();
        let nonce = Nonce::from(nonce);
        let tag = cipher
            .encrypt_inout_detached(&nonce, b"azt-blob-v1\0", chunk.as_mut_slice().into())
            .unwrap();
        sealed.extend(chunk);
        sealed.extend_from_slice(&tag);
    }
    sealed
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[tokio::test]
async fn changed_keys_moves_and_shared_values_copy_the_blob_as_it_is() {
    let world = World::with(ring(&[("Sales", 1), ("Marketing", 2)]).build().unwrap()).await;
    let (staff, at) =
        (world.client.table::<Clerk>(), |id| Clerk::primary().department("Sales").id(id));
    let bytes = content(2 * CHUNK + 9);
    let mut don = staff.insert(&clerk(1, Some(Blob::new(bytes.clone())))).await.unwrap();
    let sealed = world.blobs.stored(don.photo.as_ref().unwrap().name().unwrap()).await;
    let content_key_1 =
        content_key(&world.stored("Sales", "empid_000001").await, &key(1), "empid_000001");
    don.id = 7;
    staff.replace(&don).await.unwrap();
    world.client.wait_for_copies().await;
    let row = world.stored("Sales", "empid_000007").await;
    assert_eq!(
        content_key(&row, &key(1), "empid_000007"),
        content_key_1,
        "the row alone is sealed anew"
    );
    let mut don = staff.get(at(7)).await.unwrap().unwrap();
    don.department = "Marketing".into();
    world.blobs.take_log();
    staff.move_to(&don, &staff).await.unwrap().wait().await.unwrap();
    let log = world.blobs.take_log();
    assert!(log.iter().all(|line| !line.starts_with("put") && !line.starts_with("get")), "{log:?}");
    let moved = Clerk::primary().department("Marketing").id(7);
    let moved = staff.get(moved).await.unwrap().unwrap();
    let photo = moved.photo.as_ref().unwrap();
    assert!(photo.name().unwrap().starts_with("staff/!marketing/"), "{photo:?}");
    assert_eq!(world.blobs.stored(photo.name().unwrap()).await, sealed);
    assert_eq!(staff.blob(photo).bytes().await.unwrap(), bytes);
    let row = world.stored("Marketing", "empid_000007").await;
    let id = key_id_of(value(&row, "PhotoKey").unwrap().as_bytes().unwrap()).unwrap();
    assert_eq!(id, Some(key(2).id()), "the key is under the new scope");
    // A value of another row, and one that is patched in.
    let kwok = staff.insert(&clerk(2, moved.photo.clone())).await.unwrap();
    assert_eq!(world.blobs.stored(kwok.photo.as_ref().unwrap().name().unwrap()).await, sealed);
    staff.patch(&kwok, Clerk::patch().photo(Blob::new("a new one"))).await.unwrap();
    let patched = staff.get(at(2)).await.unwrap().unwrap().photo.clone().unwrap();
    assert_eq!(staff.blob(&patched).bytes().await.unwrap(), "a new one");
    staff.patch_at(at(2), Clerk::patch().remove_photo()).await.unwrap();
    let row = world.stored("Sales", "empid_000002").await;
    assert_eq!((value(&row, "Photo"), value(&row, "PhotoKey")), (None, None));
}

#[tokio::test]
async fn a_stream_is_encrypted_ahead_of_its_row() {
    let world = World::new().await;
    let mut don = employee(1, None);
    for (count, size, kind) in [(3, 1_000, "put"), (9, 1 << 20, "parts")] {
        let pieces = stream::iter((0..count).map(move |_| Ok(bytes::Bytes::from(content(size)))));
        let photo = world.staff.upload(&don, Employee::PHOTO, pieces).await.unwrap();
        assert_eq!(photo.len(), (count * size) as u64);
        let log = world.blobs.take_log();
        assert!(log.len() == 1 && log[0].starts_with(kind), "{log:?}");
        don.photo = Some(photo.content_type("image/png"));
        let stored = world.staff.insert_or_replace(&don).await.unwrap().photo.clone().unwrap();
        world.client.wait_for_copies().await;
        assert_eq!(stored.name(), don.photo.as_ref().unwrap().name(), "nothing is written again");
        let read = world.staff.blob(&world.photo(1).await).bytes().await.unwrap();
        assert_eq!(read, content(size).repeat(count));
        world.blobs.take_log();
    }
}

#[tokio::test]
async fn reencrypt_and_a_rotation_touch_rows_alone() {
    let world = World::new().await;
    let bytes = content(CHUNK + 1);
    world.staff.insert(&employee(1, Some(Blob::new(bytes.clone())))).await.unwrap();
    world.client.wait_for_copies().await;
    world.blobs.take_log();
    let scope = KeyScope::default_scope();
    let both = Keyring::builder().primary(&scope, &root(2)).decrypt_only(&scope, &root(1));
    let staff = world.reopen(both.build().unwrap());
    let report = staff.reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (3, true), "primary and two copies");
    assert!(world.blobs.take_log().is_empty());
    let row = world.stored("Sales", "empid_000001").await;
    let id: KeyId =
        key_id_of(value(&row, "PhotoKey").unwrap().as_bytes().unwrap()).unwrap().unwrap();
    assert_eq!(id, key(2).id());
    let alone = Keyring::builder().primary(&scope, &root(2)).build().unwrap();
    let staff = world.reopen(alone);
    let don = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(staff.blob(don.photo.as_ref().unwrap()).bytes().await.unwrap(), bytes);
}

#[tokio::test]
async fn without_the_keys_of_its_scope_a_blob_is_noise_that_a_sweep_keeps() {
    let world = World::with(ring(&[("Sales", 1)]).build().unwrap()).await;
    let staff = world.client.table::<Clerk>();
    let don = staff.insert(&clerk(1, Some(Blob::new("a secret face")))).await.unwrap();
    let stored = world.blobs.stored(don.photo.as_ref().unwrap().name().unwrap()).await;
    assert!(!stored.windows(6).any(|bytes| bytes == b"secret"));
    let orphan = stream::iter([Ok(bytes::Bytes::from_static(b"nobody's"))]);
    staff.upload(&don, Clerk::PHOTO, orphan).await.unwrap();
    let destroyed = ring(&[("Marketing", 2)]).build().unwrap();
    let destroyed = open(&world.recorder, &world.blobs, destroyed, PlaintextPolicy::Reject);
    let error = destroyed.table::<Clerk>().get(don.point()).await.unwrap_err();
    assert!(error.is_decrypt() || error.is_key_unavailable(), "{error}");
    // A sweep needs no keys.
    let keyless = Client::builder().backend(world.recorder.clone()).blobs(world.blobs.clone());
    let keyless = keyless.build().unwrap().table::<Clerk>();
    let swept = keyless.sweep_blobs().grace(std::time::Duration::ZERO).await.unwrap();
    assert_eq!((swept.removed, swept.kept), (1, 1));
    // Nothing is uploaded that no row could point to.
    world.blobs.take_log();
    let error = keyless.insert(&clerk(2, Some(Blob::new("b")))).await.unwrap_err();
    assert!(error.is_key_unavailable() && error.property() == Some("Photo"), "{error}");
    let pieces = stream::iter([Ok(bytes::Bytes::from_static(b"c"))]);
    let error = keyless.upload(&clerk(2, None), Clerk::PHOTO, pieces).await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
    assert!(world.blobs.take_log().is_empty());
}

#[tokio::test]
async fn damage_exchange_and_removal_are_told() {
    let world = World::new().await;
    for id in [1, 2] {
        let photo = Blob::new(content(2 * CHUNK + 100 + id as usize));
        world.staff.insert(&employee(id, Some(photo))).await.unwrap();
    }
    let photo = world.photo(1).await;
    let name = photo.name().unwrap();
    let whole = world.blobs.stored(name).await;
    let other = world.blobs.stored(world.photo(2).await.name().unwrap()).await;
    let sealed = CHUNK + 16;
    let mut flipped = whole.clone();
    flipped[CHUNK / 2] ^= 1;
    let exchanged = [&whole[sealed..2 * sealed], &whole[..sealed], &whole[2 * sealed..]].concat();
    let reader = world.staff.blob(&photo);
    for (what, bytes) in [
        ("a flip", flipped),
        ("a truncation", whole[..2 * sealed].to_vec()),
        ("a truncation within a chunk", whole[..100].to_vec()),
        ("an empty blob", Vec::new()),
        ("an extension", [&whole[..], &[0; 7]].concat()),
        ("an exchange of chunks", exchanged),
        ("another row's blob", other),
    ] {
        world.blobs.damage(name, &bytes).await;
        let error = reader.bytes().await.unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains(name), "{what}: {error}");
        let items: Vec<_> = reader.stream().collect().await;
        let error = items.last().unwrap().as_ref().unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains(name), "{what}: {error}");
        let end = photo.len();
        let tail = reader.range(end - 50..end).await;
        let head = reader.range(0..50).await;
        // A range tells what touches its own chunks.
        assert!(head.is_err() || tail.is_err() || what == "an extension", "{what}");
        for error in [head.err(), tail.err()].into_iter().flatten() {
            assert!(error.is_corrupt(), "{what}: {error}");
        }
    }
    world.blobs.damage(name, &whole).await;
    assert_eq!(reader.bytes().await.unwrap().len() as u64, photo.len());
    // The row's length, its pointer, its key.
    world.change("empid_000001", &[("PhotoLength", Some(Value::Int64(2 * CHUNK as i64)))]).await;
    let shorter = world.photo(1).await;
    let reader = world.staff.blob(&shorter);
    assert!(reader.bytes().await.unwrap_err().is_corrupt());
    assert!(reader.range(CHUNK as u64..2 * CHUNK as u64).await.unwrap_err().is_corrupt());
    let longest = Some(Value::Int64(i64::MAX));
    world.change("empid_000001", &[("PhotoLength", longest)]).await;
    let reader = world.staff.blob(&world.photo(1).await);
    assert!(reader.bytes().await.unwrap_err().is_corrupt());
    assert!(reader.stream().try_collect::<Vec<_>>().await.unwrap_err().is_corrupt());
    let donor = value(&world.stored("Sales", "empid_000002").await, "PhotoKey");
    world.change("empid_000001", &[("PhotoKey", donor)]).await;
    let error = world.staff.get(at(1)).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{error}");
    world.change("empid_000001", &[("PhotoKey", None)]).await;
    let error = world.staff.get(at(1)).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted), "{error}");
    assert_eq!(error.property(), Some("PhotoKey"));
}

/// Whoever can write blobs and rows, and has no keys, can make length and hash agree with any bytes:
/// the chunks themselves are bound to their key, their index and the end.
#[tokio::test]
async fn damaged_chunks_do_not_open_although_length_and_hash_agree() {
    let world = World::new().await;
    for id in [1, 2] {
        let photo = Blob::new(content(3 * CHUNK));
        world.staff.insert(&employee(id, Some(photo))).await.unwrap();
    }
    let name = world.photo(1).await.name().unwrap().to_owned();
    let whole = world.blobs.stored(&name).await;
    let other = world.blobs.stored(world.photo(2).await.name().unwrap()).await;
    let sealed = CHUNK + 16;
    let chunk = |number: usize| &whole[number * sealed..(number + 1) * sealed];
    let damaged = |bytes: &[u8]| {
        let plain = bytes.len() - 16 * bytes.len().div_ceil(sealed);
        (plain, bytes.to_vec())
    };
    let mut cases = vec![
        ("the last chunk is gone", damaged(&whole[..2 * sealed])),
        ("the first chunk alone", damaged(chunk(0))),
        ("the end of the last chunk is gone", damaged(&whole[..whole.len() - 1])),
        ("no chunk but an end", damaged(&whole[..16])),
        ("the first chunk is gone", damaged(&whole[sealed..])),
        ("the last chunk alone", damaged(chunk(2))),
        ("two chunks exchanged", damaged(&[chunk(1), chunk(0), chunk(2)].concat())),
        ("the last chunk in the middle", damaged(&[chunk(0), chunk(2), chunk(1)].concat())),
        ("a chunk twice", damaged(&[chunk(0), chunk(1), chunk(1), chunk(2)].concat())),
        ("chunks after the end", damaged(&[&whole[..], &whole].concat())),
        (
            "a chunk of another blob",
            damaged(&[chunk(0), &other[sealed..2 * sealed], chunk(2)].concat()),
        ),
    ];
    // A bit of the first and the last byte of each chunk, and of its tag.
    for number in 0..3 {
        for within in [0, CHUNK - 1, CHUNK, sealed - 1] {
            let mut flipped = whole.clone();
            flipped[number * sealed + within] ^= 0x80;
            cases.push(("a flip", (3 * CHUNK, flipped)));
        }
    }
    for (what, (length, bytes)) in cases {
        world.blobs.damage(&name, &bytes).await;
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        let values = [
            ("PhotoLength", Some(Value::Int64(length as i64))),
            ("PhotoHash", Some(Value::Binary(hash.to_vec().into()))),
        ];
        world.change("empid_000001", &values).await;
        let photo = world.photo(1).await;
        let reader = world.staff.blob(&photo);
        let error = reader.bytes().await.unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains(&name), "{what}: {error}");
        let items: Vec<_> = reader.stream().collect().await;
        let (last, before) = items.split_last().unwrap();
        assert!(last.as_ref().unwrap_err().is_corrupt(), "{what}: {last:?}");
        let shown: Vec<u8> =
            before.iter().flat_map(|item| item.as_ref().unwrap().to_vec()).collect();
        assert!(content(3 * CHUNK).starts_with(&shown), "{what}: only what is sound is shown");
        if length > 0 {
            assert!(reader.range(0..length as u64).await.unwrap_err().is_corrupt(), "{what}");
        }
    }
}

#[tokio::test]
async fn a_truncated_plain_blob_gives_no_range() {
    let world = World::new().await;
    let staff = world.client.table::<PlainEmployee>();
    let don = plain_employee(1, Some(Blob::new(content(1_000))));
    let don = staff.insert(&don).await.unwrap();
    let photo = don.photo.as_ref().unwrap();
    world.blobs.damage(photo.name().unwrap(), &content(500)).await;
    for range in [400..600, 700..800] {
        let error = staff.blob(photo).range(range).await.unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains("500"), "{error}");
    }
    assert_eq!(staff.blob(photo).range(0..500).await.unwrap(), content(500));
}

#[tokio::test]
async fn plain_blobs_are_read_during_a_migration_and_encrypted_by_the_next_write() {
    let world = World::new().await;
    let plain = world.client.table::<PlainEmployee>();
    let bytes = content(CHUNK + 50);
    let don = plain_employee(1, Some(Blob::new(bytes.clone()).content_type("image/jpeg")));
    let don = plain.insert(&don).await.unwrap();
    world.client.wait_for_copies().await;
    let error = world.staff.get(at(1)).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted), "{error}");
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Allow);
    let staff = client.table::<Employee>();
    let read = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(staff.blob(read.photo.as_ref().unwrap()).bytes().await.unwrap(), bytes);
    // A damaged one is not given a new hash.
    let name = read.photo.as_ref().unwrap().name().unwrap().to_owned();
    world.blobs.damage(&name, &content(CHUNK + 51)).await;
    let error = staff.replace(&read).await.unwrap_err();
    assert!(error.is_corrupt() && error.property() == Some("Photo"), "{error}");
    world.blobs.damage(&name, &bytes).await;
    let written = staff.replace(&read).await.unwrap();
    client.wait_for_copies().await;
    let photo = written.photo.as_ref().unwrap();
    assert_ne!(photo.name(), Some(&*name));
    assert!(!world.blobs.names().await.contains(&name), "the plain blob goes");
    assert_eq!((photo.len(), photo.media_type()), (bytes.len() as u64, Some("image/jpeg")));
    assert_eq!(world.staff.blob(&world.photo(1).await).bytes().await.unwrap(), bytes);
    let by_name = Employee::by_name().department("Sales").last_name("Jones");
    let copies = world.staff.query(by_name).collect().await.unwrap();
    assert_eq!(world.staff.blob(copies[0].photo.as_ref().unwrap()).bytes().await.unwrap(), bytes);
    // There is no silent way back: the row would hold no key.
    let mut back = don.clone();
    back.photo = written.photo.clone();
    let error = plain.insert_or_replace(&back).await.unwrap_err();
    assert!(error.is_invalid() && error.property() == Some("Photo"), "{error}");
}

/// The earlier version of a poster, whose picture is neither encrypted nor under the present name.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", entity_type = "Poster", partition_key = "p", row_key = "{id:03}")]
struct PosterV1 {
    id: u16,
    #[table(blob)]
    picture: Option<Blob>,
    #[table(blob, encrypt)]
    stamp: Option<Blob>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Poster",
    version = 2,
    upgrade_from(PosterV1),
    partition_key = "p",
    row_key = "{id:03}"
)]
struct Poster {
    id: u16,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
    #[table(blob, encrypt)]
    seal: Option<Blob>,
}

impl From<PosterV1> for Poster {
    fn from(old: PosterV1) -> Self {
        Self { id: old.id, photo: old.picture, seal: old.stamp }
    }
}

#[tokio::test]
async fn a_plain_blob_of_an_older_version_does_not_pass_for_an_encrypted_one() {
    let world = World::new().await;
    let (old, posters) = (world.client.table::<PosterV1>(), world.client.table::<Poster>());
    let blob = |byte: u8| Some(Blob::new(vec![byte; 100]));
    old.insert(&PosterV1 { id: 1, picture: None, stamp: blob(1) }).await.unwrap();
    old.insert(&PosterV1 { id: 2, picture: blob(2), stamp: blob(3) }).await.unwrap();
    // A blob that was encrypted already comes with its key.
    let read = posters.get(Poster::primary().id(1)).await.unwrap().unwrap();
    assert_eq!(posters.blob(read.seal.as_ref().unwrap()).bytes().await.unwrap(), vec![1; 100]);
    let error = posters.get(Poster::primary().id(2)).await.unwrap_err();
    assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted), "{error}");
    assert_eq!(error.property(), Some("PhotoKey"), "{error}");

    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Allow);
    assert!(client.table::<Poster>().upgrade_all().await.unwrap().is_complete());
    let read = posters.get(Poster::primary().id(2)).await.unwrap().unwrap();
    assert_eq!(posters.blob(read.photo.as_ref().unwrap()).bytes().await.unwrap(), vec![2; 100]);
    assert_eq!(posters.blob(read.seal.as_ref().unwrap()).bytes().await.unwrap(), vec![3; 100]);
}

/// A patch that encrypts the photo of the row that it read, and loses the race to a program that puts
/// another photo there.
#[tokio::test]
async fn a_plain_blob_that_wins_a_race_is_encrypted_in_place_of_the_one_before() {
    let world = World::new().await;
    let plain = world.client.table::<PlainEmployee>();
    let don = plain_employee(1, Some(Blob::new(content(CHUNK + 50))));
    let mut don = plain.insert(&don).await.unwrap();
    world.client.wait_for_copies().await;
    let newer = content(77);
    don.photo = Some(Blob::new(newer.clone()));
    let (old_program, its_client) = (plain.clone(), world.client.clone());
    let event = async move {
        old_program.replace(&don).await.unwrap();
        its_client.wait_for_copies().await;
    };
    let is_primary = |one: &Operation| one.row().row_key() == "empid_000001";
    let store = Hooked::before(world.recorder.clone(), is_primary, event);
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = open_on(store, &world.blobs, keys, PlaintextPolicy::Allow);
    let staff = client.table::<Employee>();
    staff.patch_at(at(1), Employee::patch().last_name("Smith")).await.unwrap();
    client.wait_for_copies().await;
    let stored = world.staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(stored.last_name, "Smith");
    let photo = stored.photo.as_ref().unwrap();
    assert_eq!(photo.len(), 77);
    assert_eq!(world.staff.blob(photo).bytes().await.unwrap(), newer);
}

fn plain_employee(id: u32, photo: Option<Blob>) -> PlainEmployee {
    let Employee { department, id, last_name, email, photo } = employee(id, photo);
    PlainEmployee { department, id, last_name, email, photo }
}

#[tokio::test]
async fn reencrypt_encrypts_the_plain_blobs_of_a_field_that_became_encrypted() {
    let world = World::new().await;
    let plain = world.client.table::<PlainEmployee>();
    let bytes = |id: u32| content(CHUNK + id as usize);
    for id in 1..=5 {
        let photo = Blob::new(bytes(id)).content_type("image/jpeg");
        plain.insert(&plain_employee(id, Some(photo))).await.unwrap();
    }
    plain.insert(&plain_employee(6, None)).await.unwrap();
    world.staff.insert(&employee(7, Some(Blob::new(bytes(7))))).await.unwrap();
    world.client.wait_for_copies().await;
    let before = world.blobs.names().await;
    let encrypted = world.photo(7).await;
    let damaged = plain.get(PlainEmployee::primary().department("Sales").id(5)).await.unwrap();
    let damaged = damaged.unwrap().photo.clone().unwrap();
    world.blobs.damage(damaged.name().unwrap(), b"other bytes").await;
    // Nothing is trusted that the policy refuses, and nobody is told that the work is done.
    let refused = world.staff.reencrypt().await.unwrap();
    assert!(!refused.is_complete());
    assert_eq!((refused.rewritten, refused.remaining), (0, 5));
    assert!(refused.failed.iter().all(|one| one.error.is_decrypt()), "{refused:?}");
    assert_eq!(world.blobs.names().await, before);

    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Allow);
    let staff = client.table::<Employee>();
    world.blobs.take_log();
    let dry = staff.reencrypt().dry_run().await.unwrap();
    assert_eq!((dry.rewritten, dry.remaining, dry.is_complete()), (0, 5, false));
    assert!(world.blobs.take_log().is_empty(), "a rehearsal reads and writes no blob");
    let report = staff.reencrypt().page_size(3).await.unwrap();
    assert_eq!((report.rewritten, report.remaining), (4, 1), "{report:?}");
    // The damaged blob is left, and is not given a new hash.
    let [failed] = &report.failed[..] else { panic!("{report:?}") };
    assert!(failed.error.is_corrupt() && failed.row_key == "empid_000005", "{failed:?}");
    world.blobs.damage(damaged.name().unwrap(), &bytes(5)).await;
    let report = staff.reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (1, true), "{report:?}");
    client.wait_for_copies().await;

    // A client that refuses plain values reads all of them, and no plain blob is left.
    for id in [1, 2, 3, 4, 5, 7] {
        let photo = world.photo(id).await;
        assert_eq!(world.staff.blob(&photo).bytes().await.unwrap(), bytes(id));
        let by_email = Employee::by_email().email(format!("jones{id}@contoso.com"));
        let copy = world.staff.get(by_email.department("Sales").id(id)).await.unwrap().unwrap();
        assert_eq!(copy.photo.as_ref(), Some(&photo), "the remote copy follows");
    }
    assert_eq!(world.photo(1).await.media_type(), Some("image/jpeg"));
    assert_eq!(world.photo(7).await, encrypted, "an encrypted blob is not touched");
    let after = world.blobs.names().await;
    assert_eq!(after.len(), 6);
    assert!(after.iter().all(|name| !before.contains(name) || Some(&**name) == encrypted.name()));
    world.blobs.take_log();
    let report = world.staff.reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (0, true));
    assert!(world.blobs.take_log().is_empty());
}

/// A badge before its photos were encrypted.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Badge",
    partition_key = "{department}",
    row_key = "badge_{id:06}",
    expires = until
)]
struct PlainBadge {
    department: String,
    id: u32,
    until: OffsetDateTime,
    #[table(encrypt)]
    code: String,
    #[table(blob)]
    photo: Option<Blob>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "badge_{id:06}",
    expires = until
)]
struct Badge {
    department: String,
    id: u32,
    until: OffsetDateTime,
    #[table(encrypt)]
    code: String,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
}

#[tokio::test]
async fn reencrypt_writes_what_is_over_and_names_a_plain_blob_under_the_new_key() {
    let world = World::new().await;
    let now = OffsetDateTime::now_utc();
    let (department, code) = ("Sales".to_owned(), "4711".to_owned());
    let photo = Some(Blob::new(content(100)));
    let until = now - time::Duration::HOUR;
    let badge = PlainBadge { department, id: 1, until, code, photo };
    world.client.table::<PlainBadge>().insert(&badge).await.unwrap();
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder().primary(&scope, &root(2)).decrypt_only(&scope, &root(1));
    let keys = keys.build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Allow);
    let badges = client.table::<Badge>();
    let dry = badges.reencrypt().dry_run().await.unwrap();
    assert_eq!((dry.rewritten, dry.remaining, dry.is_complete()), (0, 1, false));
    let report = badges.reencrypt().await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (1, true), "{report:?}");
    client.wait_for_copies().await;

    // The earlier key is destroyed, and the badge is renewed.
    let keys = Keyring::builder().primary(&scope, &root(2)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Reject);
    let badges = client.table::<Badge>();
    let at = Badge::primary().department("Sales").id(1);
    let renewed = badges.update(at.clone(), |badge| {
        badge.until = now + time::Duration::HOUR;
        Ok(())
    });
    assert_eq!(renewed.await.unwrap().code, "4711");
    let read = badges.get(at).await.unwrap().unwrap();
    assert_eq!(badges.blob(read.photo.as_ref().unwrap()).bytes().await.unwrap(), content(100));
}

/// A record whose scans were plain in its first version, and whose photos were always encrypted.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    entity_type = "Record",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct RecordV1 {
    department: String,
    id: u32,
    #[table(blob)]
    scan: Option<Blob>,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 2,
    upgrade_from(RecordV1)
)]
struct Record {
    department: String,
    id: u32,
    #[table(blob, encrypt)]
    scan: Option<Blob>,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
    #[table(default)]
    age: i32,
}

impl From<RecordV1> for Record {
    fn from(RecordV1 { department, id, scan, photo }: RecordV1) -> Self {
        Self { department, id, scan, photo, age: 0 }
    }
}

fn record_v1(id: u32, scan: Option<&[u8]>, photo: Option<&[u8]>) -> RecordV1 {
    let blob = |bytes: &[u8]| Blob::new(bytes.to_vec());
    let (scan, photo) = (scan.map(blob), photo.map(blob));
    RecordV1 { department: "Sales".into(), id, scan, photo }
}

#[tokio::test]
async fn reencrypt_keeps_the_version_of_a_row_and_leaves_its_plain_blob_to_an_upgrade() {
    let world = World::new().await;
    let older = world.client.table::<RecordV1>();
    let (scan, photo) = (content(CHUNK + 1), content(CHUNK + 2));
    older.insert(&record_v1(1, Some(&scan), Some(&photo))).await.unwrap();
    older.insert(&record_v1(2, None, Some(&photo))).await.unwrap();
    let before = world.blobs.names().await;
    let scope = KeyScope::default_scope();
    let both = || Keyring::builder().primary(&scope, &root(2)).decrypt_only(&scope, &root(1));
    let client =
        open(&world.recorder, &world.blobs, both().build().unwrap(), PlaintextPolicy::Allow);
    let records = client.table::<Record>();
    world.blobs.take_log();
    let report = records.reencrypt().await.unwrap();
    // Only its row changes where the older version encrypted the blob.
    assert_eq!(value(&world.stored("Sales", "empid_000002").await, "Age"), None, "still version 1");
    let id_of = async |row_key| {
        let row = world.stored("Sales", row_key).await;
        key_id_of(value(&row, "PhotoKey").unwrap().as_bytes().unwrap()).unwrap().unwrap()
    };
    assert_eq!(id_of("empid_000002").await, key(2).id());
    // A plain blob cannot be encrypted in a row that has no property for its key.
    let [failed] = &report.failed[..] else { panic!("{report:?}") };
    assert_eq!(failed.row_key, "empid_000001");
    assert!(failed.error.is_unrecognized_entity(), "{failed:?}");
    assert!(failed.error.to_string().contains("upgrade_all"), "{failed:?}");
    assert!(!report.is_complete(), "the work is not done");
    assert!(world.blobs.take_log().is_empty(), "no blob is read or written");

    let upgraded = records.upgrade_all().await.unwrap();
    assert!(upgraded.is_complete(), "{upgraded:?}");
    client.wait_for_copies().await;
    let report = records.reencrypt().await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    for row_key in ["empid_000001", "empid_000002"] {
        assert_eq!(id_of(row_key).await, key(2).id());
    }
    // A client that refuses plain values and has the new key alone reads all of them.
    let alone = Keyring::builder().primary(&scope, &root(2)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, alone, PlaintextPolicy::Reject);
    let records = client.table::<Record>();
    let read = async |id| {
        let point = Record::primary().department("Sales").id(id);
        records.get(point).await.unwrap().unwrap()
    };
    let first = read(1).await;
    assert_eq!(records.blob(first.scan.as_ref().unwrap()).bytes().await.unwrap(), scan);
    assert_eq!(records.blob(first.photo.as_ref().unwrap()).bytes().await.unwrap(), photo);
    let second = read(2).await;
    assert_eq!(records.blob(second.photo.as_ref().unwrap()).bytes().await.unwrap(), photo);
    let after = world.blobs.names().await;
    assert_eq!(after.len(), 3);
    let kept = |name: &&String| before.contains(name);
    assert_eq!(after.iter().filter(kept).count(), 2, "the plain scan alone is another blob now");
}

#[tokio::test]
async fn a_plain_blob_that_changes_during_reencrypt_is_encrypted_as_it_is_then() {
    let world = World::new().await;
    let plain = world.client.table::<PlainEmployee>();
    let don = plain.insert(&plain_employee(1, Some(Blob::new("first")))).await.unwrap();
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Allow);
    // The blob goes while the row still names it; then the row points elsewhere.
    world.blobs.remove(don.photo.as_ref().unwrap().name().unwrap()).await;
    let report = client.table::<Employee>().reencrypt().await.unwrap();
    let [failed] = &report.failed[..] else { panic!("{report:?}") };
    assert!(failed.error.is_stale() && failed.row_key == "empid_000001", "{failed:?}");
    let mut now = plain.get(don.point()).await.unwrap().unwrap();
    now.photo = Some(Blob::new("second"));
    plain.replace(&now).await.unwrap();
    world.client.wait_for_copies().await;
    let reencrypt = client.table::<Employee>().reencrypt();
    let other = async {
        let mut now = plain.get(don.point()).await.unwrap().unwrap();
        now.photo = Some(Blob::new("third"));
        // Whoever is first wins: a writer that is late has a row that changed.
        plain.replace(&now).await.is_ok()
    };
    let (report, is_third) = futures_util::join!(async { reencrypt.await.unwrap() }, other);
    client.wait_for_copies().await;
    let left = client.table::<Employee>().reencrypt().await.unwrap();
    assert!(report.failed.is_empty() && left.is_complete(), "{report:?} {left:?}");
    client.wait_for_copies().await;
    world.client.wait_for_copies().await;
    let photo = world.photo(1).await;
    let expected = if is_third { "third" } else { "second" };
    assert_eq!(world.staff.blob(&photo).bytes().await.unwrap(), expected);
    assert_eq!(world.blobs.names().await, [photo.name().unwrap()], "one blob is left");
}

#[tokio::test]
async fn a_write_of_another_property_leaves_a_plain_blob_alone() {
    let world = World::new().await;
    let plain = world.client.table::<PlainClerk>();
    let photo = Some(Blob::new("plain"));
    let don = PlainClerk { department: "Sales".into(), id: 1, age: 30, photo };
    let don = plain.insert(&don).await.unwrap();
    world.blobs.take_log();
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = open(&world.recorder, &world.blobs, keys, PlaintextPolicy::Allow);
    let (staff, point) = (client.table::<Clerk>(), || Clerk::primary().department("Sales").id(1));
    let read = staff.get(point()).await.unwrap().unwrap();
    staff.patch(&read, Clerk::patch().age(31)).await.unwrap();
    staff.patch_at(point(), Clerk::patch().age(32)).await.unwrap();
    let older = |don: &mut Clerk| {
        don.age += 1;
        Ok(())
    };
    staff.update(point(), older).await.unwrap();
    client.wait_for_copies().await;
    assert!(world.blobs.take_log().is_empty());
    let read = staff.get(point()).await.unwrap().unwrap();
    let photo = read.photo.as_ref().unwrap();
    assert_eq!((read.age, photo.name()), (33, don.photo.as_ref().unwrap().name()));
    assert_eq!(staff.blob(photo).bytes().await.unwrap(), "plain");
}

#[tokio::test]
async fn what_a_client_encrypts_beside_it_leaves_the_name_to_the_sweep() {
    let world = World::new().await;
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(1)).build().unwrap();
    let client = Client::builder().backend(world.recorder.clone()).blobs(world.blobs.clone());
    let client = client.keys(keys).encrypt_if(|_, _, _| true).build().unwrap();
    let staff = client.table::<Employee>();
    let don = staff.insert(&employee(1, Some(Blob::new("hidden")))).await.unwrap();
    let row = world.stored("Sales", "empid_000001").await;
    let is_sealed =
        |name| value(&row, name).unwrap().as_bytes().is_some_and(|b| b.starts_with(&[0xae, 0x7e]));
    for name in ["PhotoLength", "PhotoHash", "PhotoType", "PhotoKey"] {
        assert!(is_sealed(name), "{name}");
    }
    assert_eq!(
        value(&row, "Photo"),
        Some(Value::from(don.photo.as_ref().unwrap().name().unwrap()))
    );
    let swept = staff.sweep_blobs().grace(std::time::Duration::ZERO).await.unwrap();
    assert_eq!((swept.removed, swept.kept), (0, 1));
    let read = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(staff.blob(read.photo.as_ref().unwrap()).bytes().await.unwrap(), "hidden");
}

#[tokio::test]
async fn nothing_that_is_shown_holds_a_content_key() {
    let world = World::new().await;
    let don = world.staff.insert(&employee(1, Some(Blob::new("a face")))).await.unwrap();
    let row = world.stored("Sales", "empid_000001").await;
    let secret = content_key(&row, &key(1), "empid_000001");
    let mut shown = vec![format!("{don:?} {don:#?}"), format!("{:?}", world.photo(1).await)];
    let photo = don.photo.as_ref().unwrap();
    shown.push(format!("{:?}", world.staff.blob(photo)));
    shown.extend(world.recorder.take().iter().map(|line| format!("{line} {line:?}")));
    world.blobs.damage(photo.name().unwrap(), b"damaged").await;
    for error in [
        world.staff.blob(photo).bytes().await.unwrap_err(),
        world.staff.blob(photo).range(0..1).await.unwrap_err(),
    ] {
        shown.push(format!("{error} {error:?}"));
    }
    let hex = secret.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let list = format!("{secret:?}").trim_matches(['[', ']']).to_owned();
    for shown in shown {
        assert!(!shown.contains(&hex) && !shown.contains(&list), "{shown}");
    }
}

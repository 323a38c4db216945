//! Tests blobs of fields and logs in the emulator's blobs, with rows in its tables.

use std::{io, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use entable::{
    Blob, Flush, Keyring, LogRecord, Point, SteppedClock,
    object_store::{
        Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
        azure::MicrosoftAzureBuilder,
        client::{
            ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
            HttpResponse, HttpService,
        },
        path::Path,
    },
    prelude::*,
};
use futures_util::{Stream, TryStreamExt, stream};
use time::{OffsetDateTime, macros::datetime};

use crate::emulator::{backend, connection, new_name};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(blob)]
    photo: Option<Blob>,
    #[table(blob, encrypt)]
    scan: Option<Blob>,
}

fn employee(id: u32) -> Employee {
    Employee { department: "Sales".into(), id, photo: None, scan: None }
}

fn at(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

/// Sends the requests about blobs.
// The client of `object_store` would bring TLS, which the emulator does without.
#[derive(Debug)]
struct Connector;

#[derive(Debug)]
struct Connection(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Connection(reqwest::Client::new())))
    }
}

#[async_trait]
impl HttpService for Connection {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string().parse().unwrap();
        let mut sent = reqwest::Request::new(parts.method, url);
        *sent.headers_mut() = parts.headers;
        *sent.body_mut() = Some(reqwest::Body::wrap(body));
        let failed = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        let answer = self.0.execute(sent).await.map_err(failed)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut response = HttpResponse::new(answer.bytes().await.map_err(failed)?.into());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// Returns the container of the emulator's blobs.
fn container() -> Arc<dyn ObjectStore> {
    println!("emulator: blobs");
    let connection = connection().expect("ENTABLE_AZURITE names the emulator");
    let setting = |name: &str| {
        let mut settings = connection.split(';').filter_map(|setting| setting.split_once('='));
        settings.find(|(found, _)| *found == name).unwrap().1.to_owned()
    };
    let container = MicrosoftAzureBuilder::new()
        .with_http_connector(Connector)
        .with_account(setting("AccountName"))
        .with_access_key(setting("AccountKey"))
        .with_endpoint(setting("BlobEndpoint"))
        .with_allow_http(true)
        .with_container_name("entable");
    Arc::new(container.build().unwrap())
}

struct World {
    clock: Arc<SteppedClock>,
    blobs: Arc<dyn ObjectStore>,
    client: Client,
    staff: Table<Employee>,
}

impl World {
    /// A table of its own in the emulator.
    async fn new() -> Self {
        let blobs = container();
        let clock = Arc::new(SteppedClock::new(OffsetDateTime::now_utc().try_into().unwrap()));
        let builder = Client::builder().backend(backend().unwrap()).clock(clock.clone());
        let builder = builder.keys(Keyring::from_bytes([7; 32])).blobs(blobs.clone());
        let client = builder.build().unwrap();
        let staff = client.table_named(new_name());
        staff.create().await.unwrap();
        Self { clock, blobs, client, staff }
    }

    /// Returns the names of the table's blobs.
    async fn names(&self) -> Vec<String> {
        // A letter of the table's name may be escaped, its digits never are.
        let (_, digits) = self.staff.name().split_at(1);
        let all: Vec<_> = self.blobs.list(None).try_collect().await.unwrap();
        let names = all.into_iter().map(|blob| blob.location.to_string());
        names.filter(|name| name.contains(digits)).collect()
    }

    async fn stored(&self, name: &str) -> Bytes {
        let blob = self.blobs.get(&Path::parse(name).unwrap()).await.unwrap();
        blob.bytes().await.unwrap()
    }
}

/// Returns 20 pieces of 1 MiB, which fill more than two requests of an upload.
fn pieces() -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter((0..20).map(|piece: u8| Ok(Bytes::from(vec![piece; 1 << 20]))))
}

fn content() -> Vec<u8> {
    (0..20).flat_map(|piece: u8| vec![piece; 1 << 20]).collect()
}

async fn create(blobs: &dyn ObjectStore, name: &str, text: &'static str) -> Result<(), StoreError> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let payload = PutPayload::from_static(text.as_bytes());
    blobs.put_opts(&Path::from(name), payload, options).await.map(drop)
}

#[tokio::test]
#[ignore = "needs the emulator that ENTABLE_AZURITE names"]
async fn a_put_that_only_creates_replaces_nothing() {
    let blobs = container();
    let name = format!("once/{}", new_name());
    create(&*blobs, &name, "first").await.unwrap();
    let error = create(&*blobs, &name, "second").await.unwrap_err();
    assert!(matches!(error, StoreError::AlreadyExists { .. }), "{error:?}");
    let kept = blobs.get(&Path::from(name.as_str())).await.unwrap().bytes().await.unwrap();
    assert_eq!(kept, "first");
    // Of several writers one creates.
    let name = format!("once/{}", new_name());
    let writers = (0..8).map(|_| create(&*blobs, &name, "one of them"));
    let written = futures_util::future::join_all(writers).await;
    assert_eq!(written.iter().filter(|written| written.is_ok()).count(), 1, "{written:?}");
}

#[tokio::test]
#[ignore = "needs the emulator that ENTABLE_AZURITE names"]
async fn blobs_are_written_read_replaced_and_removed() {
    let world = World::new().await;
    let staff = &world.staff;
    let mut don = employee(1);
    don.photo = Some(Blob::new("a face").content_type("image/jpeg"));
    don.scan = Some(Blob::new("a passport"));
    let don = staff.insert(&don).await.unwrap();
    let read = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(*read, *don);
    let (photo, scan) = (read.photo.clone().unwrap(), read.scan.clone().unwrap());
    assert_eq!(staff.blob(&photo).bytes().await.unwrap(), "a face");
    assert_eq!(staff.blob(&photo).range(2..6).await.unwrap(), "face");
    assert_eq!(staff.blob(&scan).bytes().await.unwrap(), "a passport");
    assert_eq!(staff.blob(&scan).range(2..6).await.unwrap(), "pass");
    assert_eq!(world.stored(photo.name().unwrap()).await, "a face");
    assert_eq!(world.stored(scan.name().unwrap()).await.len(), "a passport".len() + 16, "a tag");
    // A changed key: the service copies the plain and the encrypted blob.
    let mut moved = read;
    moved.id = 2;
    let mut moved = staff.replace(&moved).await.unwrap();
    world.client.wait_for_copies().await;
    let names = world.names().await;
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.contains("/empid_000002/")), "{names:?}");
    assert_eq!(staff.blob(moved.photo.as_ref().unwrap()).bytes().await.unwrap(), "a face");
    assert_eq!(staff.blob(moved.scan.as_ref().unwrap()).bytes().await.unwrap(), "a passport");
    let gone = staff.blob(&photo).bytes().await.unwrap_err();
    assert!(gone.is_stale(), "{gone}");
    moved.photo = None;
    let moved = staff.replace(&moved).await.unwrap();
    world.client.wait_for_copies().await;
    assert_eq!(world.names().await.len(), 1);
    let last = moved.scan.clone().unwrap();
    world.blobs.delete(&Path::parse(last.name().unwrap()).unwrap()).await.unwrap();
    let error = staff.blob(&last).bytes().await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains(last.name().unwrap()), "{error}");
    staff.delete(&moved).await.unwrap();
}

#[tokio::test]
#[ignore = "needs the emulator that ENTABLE_AZURITE names"]
async fn streams_are_uploaded_in_parts_and_read_piece_by_piece() {
    let world = World::new().await;
    let staff = &world.staff;
    let mut don = employee(1);
    don.photo = Some(staff.upload(&don, Employee::PHOTO, pieces()).await.unwrap());
    don.scan = Some(staff.upload(&don, Employee::SCAN, pieces()).await.unwrap());
    staff.insert(&don).await.unwrap();
    let read = staff.get(at(1)).await.unwrap().unwrap();
    for blob in [read.photo.as_ref().unwrap(), read.scan.as_ref().unwrap()] {
        assert_eq!(blob.len(), 20 << 20);
        let reader = staff.blob(blob);
        let found: Vec<Bytes> = reader.stream().try_collect().await.unwrap();
        assert!(found.concat() == content(), "{blob:?}");
        let edge = (8 << 20) - 3..(8 << 20) + 3;
        assert_eq!(reader.range(edge).await.unwrap(), [7, 7, 7, 8, 8, 8].as_slice());
    }
    let names = world.names().await;
    assert_eq!(names.len(), 2);
    // Truncated behind the row: an encrypted blob tells it at once, a plain one at its end.
    for blob in [read.photo.as_ref().unwrap(), read.scan.as_ref().unwrap()] {
        let name = Path::parse(blob.name().unwrap()).unwrap();
        let half = world.stored(blob.name().unwrap()).await.slice(..10 << 20);
        world.blobs.put(&name, half.into()).await.unwrap();
        let error = staff.blob(blob).bytes().await.unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        let error = staff.blob(blob).range(19 << 20..20 << 20).await.unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        let read: Result<Vec<Bytes>, Error> = staff.blob(blob).stream().try_collect().await;
        assert!(read.unwrap_err().is_corrupt());
    }
}

#[tokio::test]
#[ignore = "needs the emulator that ENTABLE_AZURITE names"]
async fn an_old_upload_is_refused_and_what_no_row_points_to_is_swept() {
    let world = World::new().await;
    let staff = &world.staff;
    staff.insert(&Employee { photo: Some(Blob::new("kept")), ..employee(1) }).await.unwrap();
    let mut late = employee(2);
    late.scan = Some(staff.upload(&late, Employee::SCAN, pieces()).await.unwrap());
    world.clock.advance(Duration::from_secs(6 * 3_600 + 1));
    let error = staff.insert(&late).await.unwrap_err();
    assert!(error.is_stale(), "{error}");
    assert!(staff.get(at(2)).await.unwrap().is_none());
    // The clock of the store tells that the upload is young, whatever the one of the program says.
    let swept = staff.sweep_blobs().await.unwrap();
    assert_eq!((swept.removed, swept.kept, swept.young), (0, 0, 2));
    let swept = staff.sweep_blobs().grace(Duration::ZERO).await.unwrap();
    assert_eq!((swept.removed, swept.kept, swept.young), (1, 1, 0));
    let don = staff.get(at(1)).await.unwrap().unwrap();
    assert_eq!(world.names().await, [don.photo.as_ref().unwrap().name().unwrap()]);
    assert_eq!(staff.blob(don.photo.as_ref().unwrap()).bytes().await.unwrap(), "kept");
}

#[tokio::test]
#[ignore = "needs the emulator that ENTABLE_AZURITE names"]
async fn writers_of_a_log_leave_each_others_blobs_alone() {
    const SIX: OffsetDateTime = datetime!(2014-07-31 18:00 UTC);
    let world = World::new().await;
    let name = new_name().to_lowercase();
    let log = world.client.blob_log(&name);
    // Another program took the first number.
    create(&*world.blobs, &log.name(SIX, 1), "2014-07-31T18:00:00.0000000Z;theirs;0\n")
        .await
        .unwrap();
    let minute = |minute: i64| SIX + time::Duration::minutes(minute);
    let writers = ["a", "b", "c"].map(|who| {
        let writer = world.client.blob_log(&name).writer(Flush::buffered());
        async move {
            for number in 0..10 {
                let record = LogRecord::new(minute(number), [who.to_owned(), number.to_string()]);
                writer.append(record).await.unwrap();
                writer.flush().await.unwrap();
            }
            writer.close().await.unwrap();
        }
    });
    futures_util::future::join_all(writers).await;
    let all = log.read(SIX..minute(60)).collect().await.unwrap();
    for who in ["a", "b", "c"] {
        let mut found: Vec<&str> = all
            .iter()
            .filter(|record| record.field(0) == Some(who))
            .map(|record| record.field(1).unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "{who}");
    }
    assert_eq!(all.len(), 31, "and the record of the other program");
    // The service keeps the metadata that tells which blobs a window needs.
    let window = log.read(minute(4)..minute(6)).filter(|record| record.field(0) != Some("b"));
    let mut found: Vec<String> =
        window.collect().await.unwrap().iter().map(|r| r.fields().join(" ")).collect();
    found.sort_unstable();
    assert_eq!(found, ["a 4", "a 5", "c 4", "c 5"]);
    let second = Path::from(log.name(SIX, 2));
    let head = world.blobs.get(&second).await.unwrap();
    let keys: Vec<String> = head
        .attributes
        .iter()
        .map(|(attribute, _)| format!("{attribute:?}").to_lowercase())
        .collect();
    for key in ["starttime", "endtime", "batch"] {
        assert!(keys.iter().any(|found| found.contains(key)), "{key} in {keys:?}");
    }
}

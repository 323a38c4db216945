//! Tests that `docs/envelope.md` suffices: a decoder in Python that was written from the page alone reads
//! rows, tokens of scopes, codes over work, and blobs.

use std::{
    collections::BTreeMap,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use entable::{
    Blob, Filter, KeyScope, Keyring, OutboxOptions, RootKey, Row, Ticks, ValueRef,
    backend::{Memory, ScanRequest},
    prelude::*,
    queue::Queue,
};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "{department}",
    row_key = "id_{id:05}",
    seal,
    index(
        ByEmail,
        table = "Mails",
        partition_key = "mails",
        row_key = "at_{email:hmac}_{department}_{id:05}"
    )
)]
struct Person {
    department: String,
    id: u32,
    #[table(encrypt, blind)]
    email: String,
    #[table(encrypt(hide_none))]
    note: Option<String>,
    #[table(encrypt(pad = 16))]
    salary: i32,
    age: i32,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A row as JSON, with its values as they are stored.
fn stored(table: &str, row: &Row) -> Json {
    let mut found = serde_json::Map::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next().unwrap() {
        let value = match value {
            ValueRef::Boolean(v) => json!(["Edm.Boolean", v]),
            ValueRef::Int32(v) => json!(["Edm.Int32", v]),
            ValueRef::Int64(v) => json!(["Edm.Int64", v]),
            ValueRef::Double(v) => json!(["Edm.Double", hex(&v.to_bits().to_be_bytes())]),
            ValueRef::DateTime(v) => {
                json!(["Edm.DateTime", v.get() - Ticks::UNIX_EPOCH.get()])
            }
            ValueRef::Guid(v) => json!(["Edm.Guid", v.to_string()]),
            ValueRef::String(v) => json!(["Edm.String", v]),
            ValueRef::Binary(v) => json!(["Edm.Binary", hex(v)]),
        };
        found.insert(String::from_utf8(name.to_vec()).unwrap(), value);
    }
    json!({ "table": table, "pk": row.partition_key(), "rk": row.row_key(), "properties": found })
}

/// Returns the decoder's output for the rows.
fn decode(rows: &Json) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("seal/stranger.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("python3 does not run: {error}"));
    python.stdin.take().unwrap().write_all(rows.to_string().as_bytes()).unwrap();
    let said = python.wait_with_output().unwrap();
    if said.status.success() {
        Ok(String::from_utf8(said.stdout).unwrap())
    } else {
        Err(String::from_utf8(said.stderr).unwrap())
    }
}

#[tokio::test]
async fn a_stranger_reads_rows_by_the_page_alone() {
    let keys = Keyring::parse(&format!(
        "entable-keyring 1\ndata default primary {}\nindex default 1 current {}\n",
        "42".repeat(32),
        "43".repeat(32)
    ));

    let client = Client::builder().backend(Memory::new()).keys(keys.unwrap()).build().unwrap();
    let people = client.table::<Person>();
    people.create().await.unwrap();
    for (id, email, note) in
        [(1, "ada@example.com", None), (2, "\u{e9}va@example.com", Some("\u{65e5}\u{672c}"))]
    {
        let note = note.map(str::to_owned);
        let (department, email) = ("Sales".to_owned(), email.to_owned());
        let person = Person { department, id, email, note, salary: -7, age: 36 };
        people.insert(&person).await.unwrap().wait_for_copies().await.unwrap();
    }
    let mut rows = Vec::new();
    for table in ["People", "Mails"] {
        let filter = Filter::ge("Age", 0);
        let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
        let page = client.backend().scan(scan).await.unwrap().into_rows().unwrap();
        rows.extend(page.iter().map(|row| stored(table, row)));
    }
    assert_eq!(rows.len(), 4);
    let given = |rows: &[Json]| json!({ "root": "42".repeat(32), "index": "43".repeat(32), "declared": "People", "rows": rows });
    let said = decode(&given(&rows)).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    for (at, (table, partition_key)) in
        [("People", "Sales"), ("People", "Sales"), ("Mails", "mails"), ("Mails", "mails")]
            .into_iter()
            .enumerate()
    {
        let line =
            lines.iter().filter(|line| line.starts_with(&format!("{table} {partition_key} ")));
        assert_eq!(line.count(), 2, "{said}");
        assert!(
            lines[at].contains(r#""Salary": -7"#) && lines[at].contains(r#""Age": 36"#),
            "{said}"
        );
        assert_eq!(lines[at].contains(r#""token": true"#), table == "Mails", "{said}");
    }
    assert_eq!(said.matches(r#""Email": "ada@example.com", "#).count(), 2, "{said}");
    assert_eq!(said.matches(r#""Email": "\u00e9va@example.com", "#).count(), 2, "{said}");
    assert_eq!(said.matches(r#""Note": null"#).count(), 2, "{said}");
    assert_eq!(said.matches(r#""Note": "\u65e5\u672c""#).count(), 2, "{said}");

    // A value in another table's row, and a changed property, do not pass.
    let mut moved = rows.clone();
    moved[2]["table"] = "People".into();
    assert!(decode(&given(&moved)).unwrap_err().contains("seal"));
    let mut changed = rows.clone();
    changed[0]["properties"]["Age"][1] = 37.into();
    assert!(decode(&given(&changed)).unwrap_err().contains("seal"));
}

/// Returns every row of a table as it is stored.
async fn rows_of(client: &Client, table: &str) -> Vec<Json> {
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
    let page = client.backend().scan(scan).await.unwrap();
    assert!(page.next.is_none());
    page.into_rows().unwrap().iter().map(|row| stored(table, row)).collect()
}

fn root(byte: u8) -> RootKey {
    RootKey::from_bytes([byte; 32])
}

/// One value of each type, encrypted and plain.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Guests",
    partition_key = "{tenant}",
    row_key = "e_{id:04}",
    seal,
    index(BySsn, row_key = "ssn_{ssn:hmac}"),
    index(ByCity, partition_key = "{city}", row_key = "pin_{pin:hmac}_{tenant}_{id:04}"),
    index(ByEmail, partition_key = "mail_{email:hmac}", row_key = "is", unique)
)]
struct Guest {
    tenant: String,
    id: u32,
    city: String,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt)]
    pin: i32,
    #[table(encrypt)]
    email: String,
    #[table(encrypt, blind)]
    phone: String,
    #[table(encrypt)]
    flag: bool,
    #[table(encrypt)]
    big: i64,
    #[table(encrypt)]
    score: f64,
    #[table(encrypt)]
    born: Ticks,
    #[table(encrypt)]
    badge: uuid::Uuid,
    #[table(encrypt)]
    raw: Vec<u8>,
    zero: f64,
    nan: f64,
    since: Ticks,
    card: uuid::Uuid,
}

fn ticks(second: i64) -> Ticks {
    Ticks::new(Ticks::UNIX_EPOCH.get() + second * 10_000_000).unwrap()
}

#[tokio::test]
async fn a_stranger_finds_the_tokens_of_scopes_by_the_page_alone() {
    let scope_of = |partition_key: &str| match partition_key {
        "t-a" | "t-b" | "c-x" => KeyScope::named(partition_key),
        _ => KeyScope::default_scope(),
    };
    let mut keys = Keyring::builder();
    let mut scopes = BTreeMap::new();
    for (at, name) in ["default", "t-a", "t-b", "c-x"].into_iter().enumerate() {
        let (scope, data, index) = (KeyScope::named(name), 0x50 + at as u8, 0x60 + at as u8);
        keys = keys.primary(&scope, &root(data)).blind_token_key(&scope, 2, &root(index));
        scopes.insert(name, json!({ "root": hex(&[data; 32]), "index": hex(&[index; 32]) }));
    }
    let keys = keys.build().unwrap().with_scopes(scope_of).with_blind_token_key_per_scope();
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    let guests = client.table::<Guest>();
    guests.create().await.unwrap();
    for tenant in ["t-a", "t-b"] {
        let guest = Guest {
            tenant: tenant.into(),
            id: 1,
            city: "c-x".into(),
            ssn: "123-45-6789".into(),
            pin: 7,
            email: format!("ada@{tenant}"),
            phone: "555".into(),
            flag: true,
            big: -(1 << 53) - 1,
            score: -1.5,
            born: ticks(-1),
            badge: uuid::Uuid::from_bytes([7; 16]),
            raw: vec![0, 0x80, 0xff],
            zero: -0.0,
            nan: -f64::NAN,
            since: ticks(1),
            card: uuid::Uuid::from_u128(1),
        };
        guests.insert(&guest).await.unwrap().wait_for_copies().await.unwrap();
    }
    client.worker().with::<Guest>().drain().await.unwrap();
    let mut rows = rows_of(&client, "Guests").await;
    rows.retain(|row| !row["rk"].as_str().unwrap().starts_with('~'));
    assert_eq!(rows.len(), 8, "{rows:?}");
    let families = json!([
        { "begins": "e_", "pk": "{tenant}", "rk": "e_{id:04}" },
        { "begins": "ssn_", "pk": "{tenant}", "rk": "ssn_{ssn:hmac}" },
        { "begins": "pin_", "pk": "{city}", "rk": "pin_{pin:hmac}_{tenant}_{id:04}" },
        { "begins": "is", "pk": "mail_{email:hmac}", "rk": "is" },
    ]);
    let given = |rows: &[Json]| {
        json!({ "scoped": {
            "declared": "Guests", "version": 2, "scopes": scopes, "families": families, "rows": rows,
        }})
    };
    let said = decode(&given(&rows)).unwrap();
    for (scope, rows) in [("t-a t-a", 2), ("t-b t-b", 2), ("c-x c-x", 2), ("default mail_", 2)] {
        assert_eq!(said.matches(&format!("scoped {scope}")).count(), rows, "{scope}: {said}");
    }
    for value in [
        r#""Big": -9007199254740993"#,
        r#""Born": -10000000"#,
        r#""Badge": "07070707070707070707070707070707""#,
        r#""Flag": true"#,
        r#""Raw": "0080ff""#,
        r#""Score": "bff8000000000000""#,
        r#""Ssn": "123-45-6789""#,
    ] {
        assert_eq!(said.matches(value).count(), 8, "{value}: {said}");
    }
    // The token of another scope's key is none of this one.
    let mut other = given(&rows);
    let index = other["scoped"]["scopes"]["t-b"]["index"].clone();
    other["scoped"]["scopes"]["t-a"]["index"] = index;
    assert!(decode(&other).unwrap_err().contains("token"));
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Pay", version = 3)]
struct Pay {
    to: String,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Remind", expires = "1h")]
struct Remind {
    id: u32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Patients", partition_key = "{clinic}", row_key = "{id:04}")]
struct Patient {
    clinic: String,
    id: u32,
    #[table(encrypt(hide_none))]
    diagnosis: Option<String>,
    #[table(encrypt)]
    weight: f64,
    visits: i32,
}

#[tokio::test]
async fn a_stranger_verifies_work_by_the_page_alone() {
    let mut keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(0x42));
    for (clinic, byte) in [("north", 0x43), ("south", 0x44)] {
        keys = keys.primary(&KeyScope::named(clinic), &root(byte));
    }
    let keys = keys.build().unwrap().with_scopes(KeyScope::named);
    let outbox = OutboxOptions::default().background(0);
    let client = Client::builder().backend(Memory::new()).keys(keys).outbox(outbox);
    let client = client.build().unwrap();
    let patients = client.table::<Patient>();
    patients.create().await.unwrap();
    let mut egt = patients.transaction();
    let north = egt.in_partition("north").unwrap();
    north.emit(&Pay { to: "\u{e9}va \u{10ffff}\r\n\u{0}".into() }).unwrap();
    north.emit(&Remind { id: 7 }).unwrap();
    egt.commit().await.unwrap();
    for (id, diagnosis) in [(1, Some("influenza".to_owned())), (2, None)] {
        let one = Patient { clinic: "north".into(), id, diagnosis, weight: -0.0, visits: 1 };
        let mut stored = patients.insert(&one).await.unwrap();
        stored.clinic = "south".into();
        patients.move_to(&stored, &patients).await.unwrap();
    }
    let is_message = |row: &Json| row["rk"].as_str().unwrap().starts_with("~e3_");
    let mut rows = rows_of(&client, "Patients").await;
    let messages: Vec<Json> = rows.iter().filter(|row| is_message(row)).cloned().collect();
    assert_eq!(messages.len(), 4);
    client.worker().with::<Patient>().drain().await.unwrap();
    rows.extend(rows_of(&client, "Patients").await);
    let queue = client.queue("work");
    queue.send(&Pay { to: "a \" b".into() }).await.unwrap();
    queue.send(&Remind { id: 8 }).await.unwrap();
    let queued = client.table_queue("work").receive(9, Duration::from_secs(1)).await.unwrap();
    let queued: Vec<&str> = queued.iter().map(entable::queue::Received::body).collect();
    let roots = ["default", "north", "south"].into_iter().zip([0x42_u8, 0x43, 0x44]);
    let roots: BTreeMap<_, _> = roots.map(|(name, byte)| (name, hex(&[byte; 32]))).collect();
    let given = json!({ "work": {
        "roots": roots, "messages": messages, "rows": rows, "queue": "work", "queued": queued,
    }});
    let said = decode(&given).unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let wanted = [
        "message Pay stays",
        "message Remind expires",
        "move south arrived",
        "move south arrived",
        "queued Pay stays",
        "queued Remind expires",
    ];
    assert_eq!(lines, wanted);
    // A changed body, time, value or place is another code's.
    for (at, name) in [("Body", "Pay"), ("Sent", "Remind")] {
        let mut forged = given.clone();
        let messages = forged["work"]["messages"].as_array_mut().unwrap();
        let is_it = |row: &&mut Json| row["properties"]["Type"][1] == name;
        let row = messages.iter_mut().find(is_it).unwrap();
        row["properties"][at][1] = match at {
            "Sent" => json!(1),
            _ => json!("{}"),
        };
        assert!(decode(&forged).unwrap_err().contains(&format!("the code of {name}")), "{at}");
    }
    let mut forged = given.clone();
    forged["work"]["queue"] = "play".into();
    assert!(decode(&forged).unwrap_err().contains("the code of"));
    let mut forged = given;
    for row in forged["work"]["messages"].as_array_mut().unwrap() {
        if row["properties"]["Type"][1] == "entable.move" {
            row["rk"] = "~e3_0102030405060708090a0b0c".into();
        }
    }
    assert!(decode(&forged).unwrap_err().contains("the code of a move"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Albums", partition_key = "{owner}", row_key = "{id:04}")]
struct Album {
    owner: String,
    id: u32,
    #[table(blob, encrypt)]
    photo: Option<Blob>,
}

#[tokio::test]
async fn a_stranger_opens_blobs_by_the_page_alone() {
    let keys = Keyring::builder().primary(&KeyScope::default_scope(), &root(0x42));
    let blobs: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let client = Client::builder().backend(Memory::new()).blobs(blobs.clone());
    let client = client.keys(keys.build().unwrap()).build().unwrap();
    let albums = client.table::<Album>();
    albums.create().await.unwrap();
    let lengths = [0_u32, 5, 65_536 + 3];
    let content = |length: u32| (0..length).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    for length in lengths {
        let photo = Some(Blob::new(content(length)));
        albums.insert(&Album { owner: "Ada".into(), id: length % 9999, photo }).await.unwrap();
    }
    let mut stored = BTreeMap::new();
    for object in blobs.list(None).try_collect::<Vec<_>>().await.unwrap() {
        let bytes = blobs.get(&object.location).await.unwrap().bytes().await.unwrap();
        stored.insert(object.location.to_string(), hex(&bytes));
    }
    assert_eq!(stored.len(), lengths.len());
    let rows = rows_of(&client, "Albums").await;
    let given: Vec<Json> = rows
        .iter()
        .map(|row| {
            let name = row["properties"]["Photo"][1].as_str().unwrap();
            let (_, bytes) = stored.iter().find(|(path, _)| path.ends_with(name)).unwrap();
            json!({ "root": hex(&[0x42; 32]), "name": "Photo", "row": row, "bytes": bytes })
        })
        .collect();
    let said = decode(&json!({ "blobs": given })).unwrap();
    for length in lengths {
        use sha2::Digest;
        let line = format!("blob {length} {}", hex(&sha2::Sha256::digest(content(length))));
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
    // The key of one content opens no other one.
    let mut exchanged = given.clone();
    let row = exchanged[0]["row"].clone();
    exchanged[1]["row"]["properties"]["PhotoKey"] = row["properties"]["PhotoKey"].clone();
    assert!(decode(&json!({ "blobs": exchanged })).unwrap_err().contains("authentication"));
}

//! Tests that `docs/envelope.md` suffices: a decoder in Python that was written from the page alone reads
//! the rows of an entity.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use entable::{
    Filter, Keyring, Row, ValueRef,
    backend::{Memory, Scan},
    prelude::*,
};
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
            ValueRef::String(v) => json!(["Edm.String", v]),
            ValueRef::Binary(v) => json!(["Edm.Binary", hex(v)]),
            other => panic!("{other:?} is no type of the entity"),
        };
        found.insert(String::from_utf8(name.to_vec()).unwrap(), value);
    }
    json!({ "table": table, "pk": row.partition_key(), "rk": row.row_key(), "properties": found })
}

/// What the decoder says of the rows.
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
    match said.status.success() {
        true => Ok(String::from_utf8(said.stdout).unwrap()),
        false => Err(String::from_utf8(said.stderr).unwrap()),
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
        let scan = Scan { table, filter: &filter, select: None, top: None, from: None };
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

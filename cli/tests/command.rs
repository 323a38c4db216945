//! Runs the command against stores in files, and compares what it says, what it returns, and what is stored.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that stops has found something"
)]

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use entable::{DynamicEntity, Ticks, prelude::*};
use serde_json::Value as Json;
use tempfile::{TempDir, tempdir};

/// The result of a run.
#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    /// Returns standard output of a run that succeeded.
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Returns the JSON of a run that succeeded.
    fn json(self) -> Json {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// Compares exit code and message of a run that failed.
    fn fails(self, code: i32, message: &str) -> Self {
        assert!(
            self.code == code && self.err.contains(message),
            "expected {code} {message}: {self:?}"
        );
        self
    }
}

fn run_with_input(directory: &Path, arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
    command.current_dir(directory).args(arguments);
    command.env_remove("ENTABLE_CONNECTION_STRING").env_remove("ENTABLE_CONNECTION_STRING_FILE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A directory with the store `staff.db` in it.
struct Place(TempDir);

impl Place {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        run_with_input(self.0.path(), arguments, "")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Opens a store of the directory in this process, as long as `work` runs.
    fn with<T>(&self, store: &str, work: impl AsyncFnOnce(&Client) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = Client::open(self.path(store)).unwrap();
            let done = work(&client).await;
            client.close().await.unwrap();
            done
        })
    }

    /// A store with a table of every type, and one of 250 plain rows.
    fn filled() -> Self {
        let place = Self(tempdir().unwrap());
        place.with("staff.db", async |client| {
            client.create_table("Types").await.unwrap();
            client.create_table("Staff").await.unwrap();
            let types = client.dynamic("Types");
            let texts = ["", "=1+1", "a,\"b\"\r\nc", "\u{1b}[2J", "007"];
            for (at, text) in texts.into_iter().enumerate() {
                let row = DynamicEntity::new("p", format!("r{at}"))
                    .with("Text", text)
                    .with("Flag", at == 0)
                    .with("Int", i32::MIN)
                    .with("Long", i64::MAX)
                    .with("Double", [-0.0, f64::NAN, f64::INFINITY, 0.1, 1e300][at])
                    .with("Time", Ticks::MAX)
                    .with("Id", uuid::Uuid::from_u128(7))
                    .with("Bytes", vec![0_u8, 255]);
                types.insert(&row).await.unwrap();
            }
            let rows = (0..250_u32).map(|id| {
                let department = if id % 2 == 0 { "Sales" } else { "Marketing" };
                DynamicEntity::new(department, format!("{id:03}"))
                    .with("Age", i32::try_from(id % 50).unwrap())
            });
            client.dynamic("Staff").bulk().insert_or_replace_all(rows).await.unwrap();
        });
        place
    }
}

#[test]
fn rows_are_looked_at() {
    let place = Place::filled();
    assert_eq!(place.run(&["tables", "staff.db"]).ok(), "Staff\nTypes\n");
    assert_eq!(
        place.run(&["--json", "tables", "staff.db"]).json(),
        serde_json::json!(["Staff", "Types"])
    );
    let row = place.run(&["get", "staff.db", "Types", "p", "r3"]).ok();
    assert!(row.contains("Text          Edm.String    \\u{1b}[2J\n"), "{row}");
    assert!(row.contains("Long          Edm.Int64     9223372036854775807\n"), "{row}");
    let row = place.run(&["--json", "get", "staff.db", "Types", "p", "r0"]).json();
    assert_eq!(
        (&row["Long"], &row["Long@odata.type"]),
        (&"9223372036854775807".into(), &"Edm.Int64".into())
    );
    assert!(row["odata.etag"].as_str().unwrap().starts_with("W/\""));
    place.run(&["get", "staff.db", "Types", "p", "none"]).fails(3, "no row with these keys");
    place.run(&["get", "staff.db", "None", "p", "r"]).fails(3, "table");
    assert_eq!(place.run(&["count", "staff.db", "Staff"]).ok(), "250\n");
    let filter = "PartitionKey eq 'Sales' and Age ge 40";
    assert_eq!(place.run(&["count", "staff.db", "Staff", "--filter", filter]).ok(), "25\n");
    let found = place
        .run(&["query", "staff.db", "Staff", "--filter", filter, "--top", "2", "--select", "Age"]);
    assert!(found.err.contains("there may be more"), "{found:?}");
    assert_eq!(
        found.ok(),
        "PartitionKey  RowKey  Age\nSales         040     40\nSales         042     42\n"
    );
    let lines = place.run(&["query", "staff.db", "Staff", "--filter", filter, "--json"]).ok();
    assert_eq!(lines.lines().count(), 25);
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<Json>(line).unwrap()["PartitionKey"] == "Sales")
    );
    let explained =
        place.run(&["query", "staff.db", "Staff", "--filter", "Age ge 40", "--explain"]).ok();
    assert!(explained.starts_with("TableScan of Staff: the store reads every row"), "{explained}");
    place.run(&["query", "staff.db", "Staff", "--filter", "Age gee"]).fails(2, "--filter");
    let report = place.run(&["--json", "partitions", "staff.db", "Staff", "--top", "1"]).json();
    assert_eq!((report["rows"].as_u64(), report["top"].as_array().unwrap().len()), (Some(250), 1));
    assert!(place.run(&["lag", "staff.db"]).ok().ends_with("nothing is open\n"));
    assert_eq!(place.run(&["--json", "poison", "list", "staff.db"]).json(), serde_json::json!([]));
}

#[test]
fn rows_are_changed() {
    let place = Place::filled();
    let put = |arguments: &[&str], line: &str| {
        let all = [&["put", "staff.db", "Staff"], arguments].concat();
        run_with_input(place.0.path(), &all, line)
    };
    let line = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"000\",\"Name\":\"Jones\"}\n";
    put(&["--mode", "insert"], line).fails(4, "line 1: ");
    assert_eq!(put(&["--mode", "merge"], line).ok(), "1 rows written\n");
    let row = place.run(&["--json", "get", "staff.db", "Staff", "Sales", "000"]).json();
    assert_eq!((&row["Name"], &row["Age"]), (&"Jones".into(), &0.into()));
    assert_eq!(put(&[], line).ok(), "1 rows written\n");
    let row = place.run(&["--json", "get", "staff.db", "Staff", "Sales", "000"]).json();
    assert!(row.get("Age").is_none());
    put(&[], "\nhello\n").fails(5, "line 2: column 1");
    run_with_input(place.0.path(), &["put", "staff.db", "None"], line).fails(3, "no table `None`");

    let delete =
        |arguments: &[&str]| place.run(&[&["delete", "staff.db", "Staff"], arguments].concat());
    delete(&["Sales", "000"]).fails(2, "--yes");
    delete(&["--yes"]).fails(2, "name a row");
    delete(&["Sales", "000", "--yes", "--if-match", "W/\"x\""]).fails(4, "");
    let etag = row["odata.etag"].as_str().unwrap();
    assert_eq!(delete(&["Sales", "000", "--yes", "--if-match", etag]).ok(), "1 rows deleted\n");
    delete(&["Sales", "000", "--yes"]).fails(3, "");
    assert_eq!(
        delete(&["--filter", "PartitionKey eq 'Sales'", "--yes"]).ok(),
        "124 rows deleted\n"
    );
    assert_eq!(place.run(&["count", "staff.db", "Staff"]).ok(), "125\n");
    assert_eq!(delete(&["--whole-table", "--yes"]).ok(), "table Staff is deleted\n");
    assert_eq!(place.run(&["tables", "staff.db"]).ok(), "Types\n");
}

#[test]
fn a_table_of_every_type_goes_out_and_comes_back_byte_for_byte() {
    let place = Place::filled();
    for format in ["jsonl", "csv"] {
        let (first, second) = (format!("first.{format}"), format!("second.{format}"));
        let store = format!("{format}.db");
        let export = |store: &str, to: &str| {
            place
                .run(&["--json", "export", store, to, "--table", "Types", "--format", format])
                .json()
        };
        let out = export("staff.db", &first);
        assert_eq!(out["digest"]["rows"], 5);
        let import = ["--json", "import", &store, &first, "--table", "Types", "--format", format];
        let back = place.run(&import).json();
        assert_eq!(back["digest"], out["digest"]);
        assert_eq!(export(&store, &second)["digest"], out["digest"]);
        assert_eq!(place.read(&first), place.read(&second));
        assert_eq!(place.read(&first).contains('\u{1b}'), format == "csv");
        let table = ["export", "staff.db", "-", "--table", "Types", "--format", format];
        assert_eq!(place.run(&table).ok(), place.read(&first));
        place.run(&["export", "staff.db", &first, "--table", "Types"]).fails(4, "exists");
    }
    assert!(place.read("first.csv").contains(",'=1+1"));
}

#[test]
fn a_whole_store_goes_through_a_directory() {
    let place = Place::filled();
    place.run(&["export", "staff.db", "all"]).ok();
    place.run(&["export", "staff.db", "all"]).fails(4, "whole export already");
    place.run(&["import", "new.db", "all"]).ok();
    let compared = place.run(&["--json", "copy", "staff.db", "new.db", "--compare"]).json();
    assert_eq!(compared["equal"], true);
    // An export that was cut goes on.
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    let whole = place.read("all/Staff.jsonl");
    fs::remove_file(place.path("all/Staff.jsonl")).unwrap();
    fs::write(place.path("all/Staff.jsonl.part"), &whole[..whole.len() / 2]).unwrap();
    place.run(&["export", "staff.db", "all", "--resume"]).ok();
    assert_eq!(place.read("all/Staff.jsonl"), whole);
    // A file that somebody has changed is not what the manifest says.
    let changed = whole.replacen("\"Age\":1", "\"Age\":9", 1);
    fs::write(place.path("all/Staff.jsonl"), changed).unwrap();
    place.run(&["import", "other.db", "all"]).fails(5, "not hold what the manifest says");
    place.run(&["import", "other.db", "none"]).fails(3, "name a --table");
}

#[test]
fn bad_lines_are_named_and_set_aside() {
    let place = Place::filled();
    let good = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}";
    fs::write(place.path("bad.jsonl"), format!("{good}\nhello\n{good}\n")).unwrap();
    let import = ["import", "new.db", "bad.jsonl", "--table", "Rows"];
    place.run(&import).fails(5, "`bad.jsonl`, line 2: column 1");
    let failed = place.run(&[&["--json"][..], &import].concat());
    let error: Json = serde_json::from_str(&failed.err).unwrap();
    assert_eq!((&error["error"]["kind"], &error["error"]["exit"]), (&"Invalid".into(), &5.into()));
    let aside = [&import[..], &["--skip-bad", "aside.txt"]].concat();
    let run = place.run(&aside).fails(5, "1 lines were set aside");
    assert!(run.err.contains("line 2: column 1"), "{run:?}");
    assert_eq!(place.read("aside.txt"), "hello\n");
    place.run(&aside).fails(4, "aside.txt");
    place.run(&["import", "new.db", "none.jsonl", "--table", "Rows"]).fails(3, "none.jsonl");
    place.run(&[&import[..], &["--from-line", "3"]].concat()).ok();
}

#[test]
fn stores_are_copied_and_compared() {
    let place = Place::filled();
    let copy =
        |arguments: &[&str]| place.run(&[&["copy", "staff.db", "new.db"], arguments].concat());
    let said = copy(&[]).ok();
    assert!(said.contains("Staff: 250 rows, 250 written, 0 deleted, 0 refused, equal"), "{said}");
    assert!(copy(&[]).ok().contains("Staff: 250 rows, 0 written"));
    place.run(&["delete", "staff.db", "Staff", "Sales", "000", "--yes"]).ok();
    let differs = copy(&["--compare"]).fails(5, "the stores differ");
    assert!(differs.out.contains("partition Sales: 124 rows there, 125 rows here"), "{differs:?}");
    copy(&["--delete-extra"]).fails(2, "--yes");
    assert!(copy(&["--delete-extra", "--yes"]).ok().contains("1 deleted"));
    copy(&["--compare"]).ok();
    place.run(&["copy", "none.db", "new.db"]).fails(3, "none.db");
    assert!(!place.path("none.db").exists());
}

#[test]
fn a_file_is_backed_up_verified_restored_and_compacted() {
    let place = Place::filled();
    let report = place.run(&["--json", "backup", "staff.db", "monday.db"]).json();
    assert_eq!((&report["tables"], &report["rows"]), (&2.into(), &255.into()));
    place.run(&["backup", "staff.db", "monday.db"]).fails(4, "exists");
    place.run(&["delete", "staff.db", "Staff", "--whole-table", "--yes"]).ok();
    place.run(&["restore", "monday.db", "back.db"]).ok();
    assert_eq!(place.run(&["count", "back.db", "Staff"]).ok(), "250\n");
    assert!(place.run(&["verify", "back.db"]).ok().contains("2 tables, 255 rows"));
    place.run(&["compact", "back.db"]).ok();
    assert_eq!(place.run(&["--json", "verify", "back.db"]).json()["damaged"], 0);
    // A file that is no store, and one that a program has open.
    fs::write(place.path("text.db"), "hello").unwrap();
    place.run(&["verify", "text.db"]).fails(5, "not an entable store");
    place.with("back.db", async |_| place.run(&["tables", "back.db"]).fails(1, "is open already"));
}

#[test]
fn secrets_are_no_arguments_and_help_says_the_rest() {
    let place = Place(tempdir().unwrap());
    let secret = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0";
    let run = place.run(&["tables", secret]).fails(2, "an argument holds a secret");
    assert!(!run.err.contains("c2VjcmV0"));
    place.run(&["tables", "azure:"]).fails(2, "");
    place.run(&["tables"]).fails(2, "Usage");
    place.run(&["nonsense"]).fails(2, "unrecognized subcommand");
    let help = place.run(&["--help"]).ok();
    for part in ["Exit codes", "ENTABLE_CONNECTION_STRING", "partitions", "--json"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(place.run(&["completions", "bash"]).ok().contains("_entable"));
    assert!(place.run(&["man"]).ok().contains(".TH entable 1"));
}

#[test]
fn work_that_was_put_aside_is_shown_and_dropped() {
    let place = Place::filled();
    place.with("staff.db", async |client| {
        client.create_table("EntablePoison").await.unwrap();
        for at in 1..=2 {
            let mut row = DynamicEntity::new("1", format!("row{at}"))
                .with("PoisonTable", "Staff")
                .with("PoisonPartition", "Sales")
                .with("PoisonRow", format!("~e3_{at}"))
                .with("PoisonError", "no such\u{1b}[2J address")
                .with("Type", "Welcome-1")
                .with("Body", "{\"email\":\"a\u{7}@b\"}");
            row.allow_framework_names();
            client.dynamic("EntablePoison").insert(&row).await.unwrap();
        }
    });
    let shown = place.run(&["poison", "show", "staff.db", "1"]).ok();
    for line in [
        "Table: Staff",
        "PartitionKey: Sales",
        "Message: Welcome-1",
        "Error: no such\\u{1b}[2J address",
        "Body: {\"email\":\"a\\u{7}@b\"} (Edm.String)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let json = place.run(&["--json", "poison", "show", "staff.db", "2"]).json();
    assert_eq!((&json["RowKey"], &json["row"]["Type"]), (&"~e3_2".into(), &"Welcome-1".into()));
    place.run(&["poison", "show", "staff.db", "3"]).fails(3, "no position 3");
    place.run(&["poison", "drop", "staff.db", "1"]).fails(2, "`Welcome-1`; confirm it with --yes");
    let listed = || place.run(&["--json", "poison", "list", "staff.db"]).json();
    assert_eq!(listed().as_array().unwrap().len(), 2);
    place.run(&["poison", "drop", "staff.db", "1", "--yes"]).ok();
    let left = listed();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["RowKey"]), (1, &"~e3_2".into()));
}

#[test]
fn a_file_has_no_addresses() {
    let place = Place::filled();
    place.run(&["sas", "staff.db", "Staff"]).fails(if cfg!(feature = "azure") { 1 } else { 2 }, "");
}

#[cfg(feature = "azure")]
#[test]
fn an_address_for_others_names_what_it_allows() {
    let place = Place(tempdir().unwrap());
    let emulator = "http://127.0.0.1:10002/devstoreaccount1";
    let arguments = ["sas", emulator, "Staff", "--permissions", "ra", "--from", "a", "--to", "b"];
    let address = place.run(&arguments).ok();
    assert!(address.starts_with(&format!("{emulator}/Staff?")), "{address}");
    for part in ["sp=ra", "spk=a", "epk=b", "tn=Staff", "sig=", "se="] {
        assert!(address.contains(part), "{part}: {address}");
    }
    place.run(&["sas", emulator, "Staff", "--permissions", "x"]).fails(2, "expected r, a, u and d");
}

#[test]
fn a_layout_is_described_and_compared_with_a_store() {
    let place = Place::filled();
    let layout = r#"layout 1
entity "Employee" version 1
  table Staff
  discriminator property EntityType
  primary
    partition "{Department}" -
    row "empid_{Id:06}" 6
  index ByName remote table StaffByName
    partition "{LastName}" -
    row "{Department}_{Id:06}" - 6
  property LastName String
  property Iban String optional encrypted pad 64
"#;
    fs::write(place.path("layout.lock"), layout).unwrap();
    let shown = place.run(&["report", "--layout", "layout.lock", "staff.db"]).ok();
    for line in [
        "## Employee, version 1",
        "| index `ByName`, remote | `StaffByName` | `{LastName}` | `{Department}_{Id:06}` |",
        "| `Iban` | String | optional, encrypted |",
        "Tables that the store lacks: StaffByName",
        "Tables that the layout does not name: Types",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let json = place.run(&["--json", "report", "--layout", "layout.lock"]).json();
    assert_eq!(json["tables"], serde_json::json!(["Staff", "StaffByName"]));
    fs::write(place.path("other.lock"), "hello").unwrap();
    place.run(&["report", "--layout", "other.lock"]).fails(5, "`other.lock`");
    place.run(&["report", "--layout", "none.lock"]).fails(3, "reading `none.lock`");
}

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
    sync::Arc,
    time::Duration,
};

use entable::{
    Blob, DynamicEntity, Ticks, backend::Embedded, object_store::local::LocalFileSystem, prelude::*,
};
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
    run_in(directory, arguments, input, &[])
}

fn run_in(directory: &Path, arguments: &[&str], input: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
    command.current_dir(directory).args(arguments);
    for name in [
        "ENTABLE_CONNECTION_STRING",
        "ENTABLE_CONNECTION_STRING_FILE",
        "ENTABLE_ACCOUNT",
        "ENTABLE_CLIENT_SECRET_FILE",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
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

    /// The name of a file of the directory that an export has not finished.
    fn part(&self, name: &str) -> std::path::PathBuf {
        self.path(&format!("{name}.{}.part", "0123456789abcdef".repeat(2)))
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
    let csv = place.run(&["query", "staff.db", "Types", "--csv", "--select", "Text,Int"]).ok();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "PartitionKey,RowKey,Int:Edm.Int32,Text:Edm.String");
    assert_eq!(lines[2], "p,r1,-2147483648,'=1+1");
    place.run(&["query", "staff.db", "Types", "--csv", "--json"]).fails(2, "cannot be used with");
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
    // A variable that is not set leaves an empty filter, which would be all rows.
    delete(&["--filter", "", "--yes"]).fails(2, "the --filter is empty");
    delete(&["--filter", " ", "--yes"]).fails(2, "the --filter is empty");
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
        let said = place.run(&[&["--json"][..], &table].concat());
        let summary: Json = serde_json::from_str(&said.err).unwrap();
        assert_eq!(summary["digest"], out["digest"]);
        place.run(&["export", "staff.db", &first, "--table", "Types"]).fails(4, "exists");
    }
    assert!(place.read("first.csv").contains(",'=1+1"));
}

#[test]
fn a_whole_store_goes_through_a_directory() {
    let place = Place::filled();
    // Tables of the outbox stay where they are, as an import refuses them.
    let outbox = ["EntableDirectory", "EntablePoison", "EntableTables", "EntableExpiry"];
    place.with("staff.db", async |client| {
        for table in outbox {
            client.create_table(table).await.unwrap();
        }
    });
    place.run(&["export", "staff.db", "all"]).ok();
    for table in outbox {
        assert!(!place.path(&format!("all/{table}.jsonl")).exists(), "{table}");
    }
    place.run(&["export", "staff.db", "all"]).fails(4, "whole export already");
    place.run(&["import", "new.db", "all"]).ok();
    let compared = place.run(&["--json", "copy", "staff.db", "new.db", "--compare"]).json();
    assert_eq!(compared["equal"], true);
    // An export that was cut goes on.
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    let whole = place.read("all/Staff.jsonl");
    fs::remove_file(place.path("all/Staff.jsonl")).unwrap();
    fs::write(place.part("all/Staff.jsonl"), &whole[..whole.len() / 2]).unwrap();
    place.run(&["export", "staff.db", "all", "--resume"]).ok();
    assert_eq!(place.read("all/Staff.jsonl"), whole);
    // A file that somebody has changed is not what the manifest says.
    let changed = whole.replacen("\"Age\":1", "\"Age\":9", 1);
    fs::write(place.path("all/Staff.jsonl"), changed).unwrap();
    place.run(&["import", "other.db", "all"]).fails(5, "not hold what the manifest says");
    place.run(&["import", "other.db", "none"]).fails(3, "name a --table");
}

/// New columns may have come since the export was cut, so that an unfinished table begins anew.
#[test]
fn an_export_as_csv_that_was_cut_is_completed_when_it_is_resumed() {
    let place = Place::filled();
    let export = |more: &[&str]| {
        place.run(&[&["export", "staff.db", "all", "--format", "csv"], more].concat())
    };
    export(&[]).ok();
    let (staff, types) = (place.read("all/Staff.csv"), place.read("all/Types.csv"));
    let manifest = place.read("all/manifest.json");
    // The export of the second table was cut, after that of the first.
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    fs::remove_file(place.path("all/Types.csv")).unwrap();
    fs::write(place.part("all/Types.csv"), &types[..types.len() / 2]).unwrap();
    export(&[]).fails(4, "Staff.csv` exists");
    export(&["--resume"]).ok();
    assert_eq!((place.read("all/Staff.csv"), place.read("all/Types.csv")), (staff, types.clone()));
    assert_eq!(place.read("all/manifest.json"), manifest);
    assert_eq!(files(&place.path("all")).len(), 3);
    // So does one table.
    fs::write(place.part("types.csv"), &types[..types.len() / 2]).unwrap();
    let one = ["export", "staff.db", "types.csv", "--table", "Types", "--format", "csv"];
    place.run(&[&one[..], &["--resume"]].concat()).ok();
    assert_eq!(place.read("types.csv"), types);
}

/// The permissions of a file or directory, without those of its kind.
#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::mode(&fs::symlink_metadata(path).unwrap()) & 0o777
}

/// Rows may be secret, and the directory may be one that others write, such as `/tmp`.
#[cfg(unix)]
#[test]
fn every_file_for_rows_is_private_and_no_link_is_followed() {
    use std::os::unix::fs::symlink;

    let place = Place::filled();
    let (victim, good) = (place.path("victim"), "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n");
    fs::write(&victim, "precious").unwrap();
    fs::write(place.path("bad.jsonl"), format!("{good}hello\n")).unwrap();
    fs::create_dir(place.path("all")).unwrap();
    for link in ["one.jsonl.part", "all/manifest.json.part", "all/Staff.jsonl.part"] {
        symlink(&victim, place.path(link)).unwrap();
    }
    place.run(&["export", "staff.db", "one.jsonl", "--table", "Staff"]).ok();
    place.run(&["export", "staff.db", "all"]).ok();
    place.run(&["export", "staff.db", "new"]).ok();
    place.run(&["backup", "staff.db", "backup.db"]).ok();
    let import = ["import", "new.db", "bad.jsonl", "--table", "Rows", "--skip-bad"];
    place.run(&[&import[..], &["aside.jsonl"]].concat()).fails(5, "1 lines were set aside");
    let names = ["one.jsonl", "all/manifest.json", "all/Staff.jsonl", "aside.jsonl", "backup.db"];
    for name in names.into_iter().chain(["new/manifest.json", "new/Types.jsonl", "new.db"]) {
        assert_eq!(mode(&place.path(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&place.path("new")), 0o700);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");

    // What has a name keeps it, also a link to nowhere.
    symlink(place.path("nowhere"), place.path("dangling")).unwrap();
    fs::remove_file(place.path("all/manifest.json")).unwrap();
    symlink(place.path("nowhere"), place.path("all/manifest.json")).unwrap();
    place.run(&[&import[..], &["dangling"]].concat()).fails(4, "`dangling` exists");
    place.run(&[&import[..], &["victim"]].concat()).fails(4, "`victim` exists");
    place.run(&["export", "staff.db", "dangling", "--table", "Staff"]).fails(4, "exists");
    place.run(&["export", "staff.db", "all", "--resume"]).fails(4, "manifest.json` exists");
    place.run(&["backup", "staff.db", "dangling"]).fails(4, "exists");
    assert!(!place.path("nowhere").exists());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
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
    fs::remove_file(place.path("aside.txt")).unwrap();
    let run = place.run(&[&["--json"][..], &aside].concat());
    let said: Vec<Json> = run.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(said[0]["remark"].as_str().unwrap().contains("line 2: column 1"), "{said:?}");
    assert_eq!((&said[1]["error"]["exit"], said.len()), (&5.into(), 2));
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
    place.run(&["copy", "staff.db", "staff.db"]).fails(2, "is the source and the target");
    place.run(&["copy", "azure:", "azure:"]).fails(2, "is the source and the target");
    place.run(&["copy", "none.db", "new.db"]).fails(3, "none.db");
    assert!(!place.path("none.db").exists());
}

#[test]
fn commands_that_were_killed_are_completed_when_they_are_repeated() {
    let place = Place(tempdir().unwrap());
    let line = |id: u32| {
        let text = "x".repeat(40);
        format!(
            "{{\"PartitionKey\":\"p{:02}\",\"RowKey\":\"{id:04}\",\"Text\":\"{text}\"}}\n",
            id / 100
        )
    };
    let rows: String = (0..3000).map(line).collect();
    fs::write(place.path("rows.jsonl"), &rows).unwrap();
    let start = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
        command.current_dir(place.0.path()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // The import waits for the rest of its lines when it is killed.
    let mut import = start(&["import", "staff.db", "-", "--table", "Rows"]);
    let mut input = import.stdin.take().unwrap();
    input.write_all(&rows.as_bytes()[..rows.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    import.kill().unwrap();
    assert!(!import.wait().unwrap().success());
    place.run(&["import", "staff.db", "rows.jsonl", "--table", "Rows"]).ok();
    let killed = |arguments: &[&str]| {
        for after in [20, 100, 250] {
            let mut command = start(arguments);
            std::thread::sleep(Duration::from_millis(after));
            // It may be done already.
            let _ = command.kill();
            command.wait().unwrap();
        }
    };
    killed(&["copy", "staff.db", "new.db"]);
    let said = place.run(&["--json", "copy", "staff.db", "new.db"]).json();
    let rows_of = |side: &str| said["tables"][0][side]["rows"].as_u64();
    assert_eq!((rows_of("source"), rows_of("target")), (Some(3000), Some(3000)), "{said}");
    // A file that is there is complete, whether a killed export has written it or this one.
    killed(&["export", "new.db", "new.jsonl", "--table", "Rows", "--resume"]);
    if !place.path("new.jsonl").exists() {
        place.run(&["export", "new.db", "new.jsonl", "--table", "Rows", "--resume"]).ok();
    }
    assert_eq!(place.read("new.jsonl"), place.read("rows.jsonl"));
    let is_part = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "part");
    assert!(!files(place.0.path()).iter().any(is_part));
    killed(&["backup", "new.db", "backup.db"]);
    if !place.path("backup.db").exists() {
        place.run(&["backup", "new.db", "backup.db"]).ok();
    }
    assert!(place.run(&["verify", "backup.db"]).ok().contains("1 tables, 3000 rows"));
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Papers", partition_key = "{author}", row_key = "paper_{id:04}")]
struct Paper {
    author: String,
    id: u32,
    #[table(blob)]
    text: Option<Blob>,
}

/// Opens a store of the directory with its blobs, as long as `work` runs.
fn with_blobs(place: &Place, store: &str, blobs: &str, work: impl AsyncFnOnce(Table<Paper>)) {
    fs::create_dir_all(place.path(blobs)).unwrap();
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(place.path(blobs)).unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let file = Embedded::open(place.path(store)).unwrap();
        let client = Client::builder().backend(file).blobs(blobs).build().unwrap();
        work(client.table()).await;
        client.close().await.unwrap();
    });
}

/// Returns the files below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn blobs_are_copied_before_the_rows_that_point_to_them() {
    let place = Place(tempdir().unwrap());
    let text = |id: u8| Blob::new(vec![id; 40_000]);
    with_blobs(&place, "papers.db", "here", async |papers| {
        papers.create().await.unwrap();
        for id in 0..3 {
            let paper = Paper { author: "Don".into(), id, text: Some(text(id as u8)) };
            papers.insert(&paper).await.unwrap();
        }
    });
    let copy = |arguments: &[&str]| {
        place.run(&[&["copy", "papers.db", "new.db", "--blobs"], arguments].concat())
    };
    // What cannot be a store of blobs is refused before anything is created.
    copy(&["none", "there"]).fails(3, "opening the directory `none`");
    copy(&["papers.db", "there"]).fails(2, "no directory");
    copy(&["here"]).fails(2, "2 values required");
    copy(&["here", "azure:papers"]).fails(2, "no directory");
    copy(&["https://me.blob.core.windows.net/papers", "there"]).fails(2, "no directory");
    let secret = copy(&["here", "https://me/papers?sig=s3cret"]).fails(2, "holds a secret");
    assert!(!secret.err.contains("s3cret"), "{secret:?}");
    copy(&["here", "there", "--compare"]).fails(3, "opening the directory `there`");
    assert!(!place.path("there").exists() && !place.path("new.db").exists());
    let said = copy(&["here", "there"]).ok();
    assert!(said.contains("blobs: 3 copied (") && said.contains("3 written"), "{said}");
    with_blobs(&place, "new.db", "there", async |papers| {
        for id in 0..3 {
            let path = Paper::primary().author("Don").id(id);
            let paper = papers.get(path).await.unwrap().unwrap();
            let bytes = papers.blob(paper.text.as_ref().unwrap()).bytes().await.unwrap();
            assert_eq!(bytes, vec![id as u8; 40_000]);
        }
    });
    #[cfg(unix)]
    for blob in files(&place.path("there")) {
        assert_eq!(mode(&blob), 0o600, "{}", blob.display());
        for directory in blob.ancestors().skip(1).take_while(|at| *at != place.0.path()) {
            assert_eq!(mode(directory), 0o700, "{}", directory.display());
        }
    }
    let again = copy(&["here", "there", "--json"]).json();
    assert_eq!((&again["equal"], &again["blobs"]["there"]), (&true.into(), &3.into()));
    // A blob that a kill has left out, and one of another length.
    let copies = files(&place.path("there"));
    fs::remove_file(&copies[0]).unwrap();
    fs::write(&copies[1], "half").unwrap();
    let differs = copy(&["here", "there", "--compare"]).fails(5, "the stores differ");
    assert!(differs.out.contains("1 there already, 2 different"), "{differs:?}");
    assert_eq!(fs::read(&copies[1]).unwrap(), b"half");
    assert!(copy(&["here", "there"]).ok().contains("blobs: 2 copied"));
    copy(&["here", "there", "--compare"]).ok();
    let bytes = |folder: &str| {
        let mut all: Vec<_> =
            files(&place.path(folder)).iter().map(|at| fs::read(at).unwrap()).collect();
        all.sort();
        all
    };
    assert_eq!(bytes("here"), bytes("there"));
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
    assert!(place.run(&["verify", "back.db", "--copy"]).ok().contains("2 tables, 255 rows"));
    let verified =
        place.run(&["--json", "verify", "back.db", "--copy", "--keep", "kept.db"]).json();
    assert_eq!((verified["rows"].as_i64(), verified["damaged"].as_i64()), (Some(255), Some(0)));
    assert_eq!(place.run(&["count", "kept.db", "Staff"]).ok(), "250\n");
    place.run(&["verify", "back.db", "--copy", "--keep", "kept.db"]).fails(4, "the file exists");
    place.run(&["verify", "back.db", "--keep", "other.db"]).fails(2, "--copy");
    place.run(&["verify", "azure:", "--copy"]).fails(2, "only files");
    // A file that is no store, and one that a program has open.
    fs::write(place.path("text.db"), "hello").unwrap();
    place.run(&["verify", "text.db", "--copy"]).fails(5, "not an entable store");
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
    let script = place.run(&["--json", "completions", "bash"]).json();
    assert!(script["script"].as_str().unwrap().contains("_entable"));
    assert!(place.run(&["man"]).ok().contains(".TH entable 1"));
    let page = place.run(&["man", "poison", "drop"]).ok();
    assert!(page.contains(".TH entable-poison-drop 1") && page.contains("\\-\\-yes"), "{page}");
    assert!(place.run(&["--json", "man", "copy"]).json()["page"].as_str().unwrap().contains(".TH"));
    place.run(&["man", "nonsense"]).fails(2, "`entable` has no command `nonsense`");
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
    // In a file case does not count in the names of tables.
    place.with("staff.db", async |client| client.create_table("logins201407").await.unwrap());
    let dated = r#"
entity "Login" version 1
  table Logins{at:%Y%m} by At
  discriminator property EntityType
  primary
    partition "{User}" -
    row "{At:desc}_{Id:03}" 19 3
"#;
    let other_case = layout.replace("table Staff\n", "table STAFF\n") + dated;
    fs::write(place.path("case.lock"), other_case).unwrap();
    let json = place.run(&["--json", "report", "--layout", "case.lock", "staff.db"]).json();
    let (missing, unknown) = (serde_json::json!(["StaffByName"]), serde_json::json!(["Types"]));
    assert_eq!((&json["missing"], &json["unknown"]), (&missing, &unknown));
    fs::write(place.path("other.lock"), "hello").unwrap();
    place.run(&["report", "--layout", "other.lock"]).fails(5, "`other.lock`");
    place.run(&["report", "--layout", "none.lock"]).fails(3, "reading `none.lock`");
}

/// Runs the command with a limit for the size of files, in blocks of 512 bytes: a larger one ends as on a full disk.
#[cfg(target_os = "linux")]
fn run_limited(directory: &Path, blocks: u32, arguments: &[&str]) -> Run {
    let script = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.current_dir(directory).args(["-c", &script, env!("CARGO_BIN_EXE_entable")]);
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    Run { code: output.status.code().unwrap(), out, err }
}

/// A manifest says that its directory is complete, so half of one must not be there.
#[cfg(target_os = "linux")]
#[test]
fn an_export_whose_manifest_does_not_fit_on_the_disk_is_completed_later() {
    let place = Place(tempdir().unwrap());
    place.with("many.db", async |client| {
        for table in 0..20 {
            client.create_table(&format!("Table{table:02}")).await.unwrap();
        }
    });
    run_limited(place.0.path(), 2, &["export", "many.db", "all"]).fails(1, "manifest");
    assert!(place.path("all/Table19.jsonl").exists());
    assert!(!place.path("all/manifest.json").exists());
    place.run(&["export", "many.db", "all", "--resume"]).ok();
    place.run(&["import", "new.db", "all"]).ok();
    assert_eq!(files(&place.path("all")).len(), 21);
}

/// A disk that is full, as a limit for the size of files: what is done stays, and goes on once there is room.
#[cfg(target_os = "linux")]
#[test]
fn a_target_that_fills_up_goes_on_when_there_is_room() {
    let place = Place(tempdir().unwrap());
    let limited = |arguments: &[&str]| run_limited(place.0.path(), 8192, arguments);
    let text = "x".repeat(10_000);
    let lines: Vec<String> = (0..1_000)
        .map(|key| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key:04}\",\"T\":\"{text}\"}}\n"))
        .collect();
    fs::write(place.path("rows.jsonl"), lines.concat()).unwrap();
    let import = ["import", "full.db", "rows.jsonl", "--table", "Rows"];
    let failed = limited(&import).fails(1, "go on from line ");
    let from = failed.err.split("go on from line ").nth(1).unwrap();
    // Groups that wait together are one commit: none of them may fit.
    let from: String = from.chars().take_while(char::is_ascii_digit).collect();
    place.run(&[&import[..], &["--from-line", &from]].concat()).ok();
    assert_eq!(place.run(&["count", "full.db", "Rows"]).ok(), "1000\n");
    // Lines that were set aside are kept although the import fails.
    fs::write(place.path("more.jsonl"), ["hello\n", &lines.concat()].concat()).unwrap();
    let import = ["import", "more.db", "more.jsonl", "--table", "Rows", "--skip-bad", "aside.txt"];
    limited(&import).fails(1, "go on from line ");
    assert_eq!(place.read("aside.txt"), "hello\n");
    // An export goes on behind its last whole line.
    let export = ["export", "full.db", "out.jsonl", "--table", "Rows"];
    assert!(limited(&export).fails(1, "out.jsonl.").err.contains(".part"));
    assert!(!place.path("out.jsonl").exists());
    place.run(&[&export[..], &["--resume"]].concat()).ok();
    assert_eq!(place.read("out.jsonl"), lines.concat());
    // The next copy writes what lacks; a backup leaves no file that looks like one.
    limited(&["copy", "full.db", "copy.db"]).fails(1, "no space left");
    assert!(place.run(&["copy", "full.db", "copy.db"]).ok().contains("equal"));
    limited(&["backup", "full.db", "backup.db"]).fails(1, "no space left");
    assert!(!place.path("backup.db").exists());
    place.run(&["backup", "full.db", "backup.db"]).ok();
}

/// Every command that deletes names what it needs, and a script reads one JSON value of each command.
#[test]
fn each_command_answers_in_json() {
    let place = Place::filled();
    fs::write(place.path("rows.jsonl"), "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n").unwrap();
    for arguments in [
        &["tables", "staff.db"][..],
        &["get", "staff.db", "Types", "p", "r3"],
        &["query", "staff.db", "Types", "--top", "1"],
        &["query", "staff.db", "Types", "--explain"],
        &["count", "staff.db", "Staff"],
        &["put", "staff.db", "Staff", "rows.jsonl"],
        &["delete", "staff.db", "Staff", "p", "1", "--yes"],
        &["delete", "staff.db", "Staff", "--filter", "PartitionKey eq 'none'", "--yes"],
        &["export", "staff.db", "staff.jsonl", "--table", "Staff"],
        &["export", "staff.db", "all"],
        &["import", "new.db", "staff.jsonl", "--table", "Staff"],
        &["import", "other.db", "all"],
        &["copy", "staff.db", "copy.db"],
        &["backup", "staff.db", "monday.db"],
        &["restore", "monday.db", "back.db"],
        &["verify", "staff.db"],
        &["verify", "staff.db", "--copy"],
        &["compact", "staff.db"],
        &["partitions", "staff.db", "Staff"],
        &["lag", "staff.db"],
        &["poison", "list", "staff.db"],
        &["poison", "requeue", "staff.db"],
        &["completions", "zsh"],
        &["man", "get"],
        &["delete", "staff.db", "Staff", "--whole-table", "--yes"],
    ] {
        let run = place.run(&[&["--json"][..], arguments].concat());
        assert!(run.code == 0 && run.err.is_empty(), "{arguments:?}: {run:?}");
        assert!(serde_json::from_str::<Json>(&run.out).is_ok(), "{arguments:?}: {run:?}");
        assert!(!run.out.contains('\u{1b}'), "{arguments:?}: {run:?}");
    }
    for (arguments, code) in [
        (&["poison", "show", "staff.db", "1"][..], 3),
        (&["get", "staff.db"], 2),
        (&["copy", "staff.db", "new.db", "--compare", "--delete-extra"], 2),
        (&["none"], 2),
    ] {
        let failed = place.run(&[&["--json"][..], arguments].concat());
        let said: Json = serde_json::from_str(&failed.err).unwrap();
        assert_eq!((said["error"]["exit"].as_i64(), failed.code), (Some(code.into()), code));
        assert!(failed.out.is_empty() && !failed.err.contains('\u{1b}'), "{failed:?}");
    }
    // Help and the version are answers, not failures.
    assert!(place.run(&["--json", "--version"]).ok().starts_with("entable "));
}

/// A reader such as `head` ends the output early, and the exit code still tells what became of the data.
#[test]
fn a_reader_that_goes_changes_no_exit_code() {
    let place = Place::filled();
    fs::write(place.path("bad.jsonl"), "none\n{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n")
        .unwrap();
    place.run(&["copy", "staff.db", "new.db"]).ok();
    place.run(&["delete", "new.db", "Staff", "Sales", "000", "--yes"]).ok();
    for (arguments, code) in [
        (&["import", "rows.db", "bad.jsonl", "--table", "Rows", "--skip-bad", "aside"][..], 5),
        (&["copy", "staff.db", "new.db", "--compare"], 5),
        (&["copy", "staff.db", "new.db", "--compare", "--json"], 5),
        (&["query", "staff.db", "Staff", "--top", "1000000"], 0),
        (&["query", "staff.db", "Staff", "--csv"], 0),
        (&["get", "staff.db", "Types", "p", "r0"], 0),
        // A file that is cut off is no export.
        (&["export", "staff.db", "-", "--table", "Staff"], 1),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_entable"));
        command.current_dir(place.0.path()).args(arguments);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(code), "{arguments:?}");
    }
    assert_eq!(place.read("aside"), "none\n");
}

#[cfg(feature = "azure")]
mod on_azure {
    use std::{
        io::{BufRead, BufReader, Read},
        net::TcpListener,
        sync::mpsc::{self, Receiver},
        thread,
    };

    use super::*;

    /// A request that a server got.
    struct Request {
        method: String,
        path: String,
    }

    /// Answers each request with a JSON text. Returns the server's address, and the requests as it gets them.
    fn json_server(answer: &'static str) -> (String, Receiver<Request>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (asked, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
                let length = head.lines().find_map(|line| {
                    let line = line.to_ascii_lowercase();
                    line.strip_prefix("content-length: ")?.parse().ok()
                });
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).unwrap();
                let mut words = head.split(' ').map(str::to_owned);
                let [method, path] = [(); 2].map(|()| words.next().unwrap_or_default());
                let request = Request { method, path };
                if asked.send(request).is_err() {
                    return;
                }
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let stream = stream.get_mut();
                write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len())
                    .unwrap();
            }
        });
        (address, requests)
    }

    /// A table endpoint that ends every connection: the command has no certificate to trust.
    fn closed_endpoint() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("https://{}/contosostaff", listener.local_addr().unwrap())
    }

    /// Lists the tables of an account that nobody serves, by an identity.
    fn tables_by_identity(place: &Place, variables: &[(&str, &str)]) -> Run {
        let endpoint = closed_endpoint();
        let account = [("ENTABLE_ACCOUNT", "contosostaff"), ("ENTABLE_ENDPOINT", &*endpoint)];
        let variables = [&account[..], variables].concat();
        run_in(place.0.path(), &["tables", "azure:"], "", &variables)
    }

    #[test]
    fn an_app_service_gives_its_identity() {
        let place = Place(tempdir().unwrap());
        let (endpoint, requests) = json_server(
            r#"{"access_token":"t0ken","expires_on":"4102444800","resource":"r","token_type":"Bearer"}"#,
        );
        let endpoint = format!("{endpoint}/msi/token");
        for kind in ["", "managedidentity"] {
            let run = tables_by_identity(
                &place,
                &[
                    ("IDENTITY_ENDPOINT", &endpoint),
                    ("IDENTITY_HEADER", "he4der"),
                    ("AZURE_CLIENT_ID", "client1"),
                    ("AZURE_CREDENTIAL_KIND", kind),
                ],
            );
            // The token is there, and nobody serves the account.
            assert!(run.code == 1 && run.err.contains("cannot be reached"), "{run:?}");
            let request = requests.try_recv().unwrap();
            for part in ["/msi/token?", "resource=https%3A%2F%2Fstorage.azure.com", "=client1"] {
                assert!(request.path.contains(part), "{part}: {}", request.path);
            }
            assert!(!run.err.contains("t0ken") && !run.err.contains("he4der"), "{run:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_developer_is_signed_in_by_the_tools_of_azure() {
        use std::os::unix::fs::PermissionsExt;
        let place = Place(tempdir().unwrap());
        let token = r#"{"accessToken":"t0ken","expiresOn":"2100-01-01 00:00:00.000000","expires_on":4102444800,"tokenType":"Bearer"}"#;
        let script = format!("#!/bin/sh\necho \"$@\" >> asked.txt\necho '{token}'\n");
        let script = script.replace("asked.txt", place.path("asked.txt").to_str().unwrap());
        fs::write(place.path("az"), script).unwrap();
        fs::set_permissions(place.path("az"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", place.0.path().display());
        for kind in ["", "developertools"] {
            let run =
                tables_by_identity(&place, &[("PATH", &path), ("AZURE_CREDENTIAL_KIND", kind)]);
            assert!(run.code == 1 && run.err.contains("cannot be reached"), "{run:?}");
        }
        let asked = place.read("asked.txt");
        assert_eq!(asked.lines().count(), 2, "{asked}");
        assert!(asked.contains("--scope https://storage.azure.com/.default"), "{asked}");
    }

    #[test]
    fn credentials_that_are_missing_or_contradict_each_other_are_refused() {
        let place = Place(tempdir().unwrap());
        let tables = |variables: &[(&str, &str)]| {
            run_in(place.0.path(), &["tables", "azure:"], "", variables)
        };
        tables(&[]).fails(2, "ENTABLE_ACCOUNT");
        let both =
            [("ENTABLE_ACCOUNT", "a"), ("ENTABLE_CONNECTION_STRING", "UseDevelopmentStorage=true")];
        tables(&both).fails(2, "unset one");
        let file = [("ENTABLE_ACCOUNT", "contoso"), ("ENTABLE_CLIENT_SECRET_FILE", "none.txt")];
        tables(&file).fails(2, "needs AZURE_TENANT_ID as well");
        let file = [&file[..], &[("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")]].concat();
        tables(&file).fails(3, "reading `none.txt`");
        tables(&[("ENTABLE_CONNECTION_STRING_FILE", "none.txt")]).fails(3, "reading `none.txt`");
        // Another account has variables of its own, and never those without its name.
        let other = |name: &str, variables: &[(&str, &str)]| {
            run_in(place.0.path(), &["tables", name], "", variables)
        };
        let plain = [("ENTABLE_CONNECTION_STRING", "UseDevelopmentStorage=true")];
        other("azure:old", &plain).fails(2, "set ENTABLE_OLD_CONNECTION_STRING");
        other("azure:old", &[("ENTABLE_OLD_CONNECTION_STRING_FILE", "old.txt")])
            .fails(3, "reading `old.txt`");
        let both = [("ENTABLE_OLD_ACCOUNT", "a"), ("ENTABLE_OLD_CONNECTION_STRING", "b")];
        other("azure:old", &both).fails(2, "both ENTABLE_OLD_ACCOUNT");
        let secret = other("azure:c2VjcmV0==", &plain).fails(2, "no argument takes a secret");
        assert!(!secret.err.contains("c2VjcmV0"), "{secret:?}");
        // Two accounts in one command: each is asked with its own credentials.
        let closed = closed_endpoint();
        let of = |name: &str| format!("AccountName={name};AccountKey=a2V5;TableEndpoint={closed}");
        let accounts = [
            ("ENTABLE_OLD_CONNECTION_STRING", &*of("old")),
            ("ENTABLE_CONNECTION_STRING", &*of("new")),
        ];
        run_in(place.0.path(), &["copy", "azure:old", "azure:"], "", &accounts).fails(1, "");
        run_in(place.0.path(), &["copy", "azure:new", "azure:"], "", &accounts)
            .fails(2, "ENTABLE_NEW_ACCOUNT");
    }

    /// On the emulator `staff` is another table than `Staff`.
    #[test]
    fn case_counts_in_the_names_of_tables_where_it_does_in_the_store() {
        let place = Place(tempdir().unwrap());
        let (server, requests) = json_server(r#"{"value":[{"TableName":"Staff"}]}"#);
        let address = format!("{server}/devstoreaccount1");
        let row = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n";
        run_with_input(place.0.path(), &["put", &address, "staff"], row)
            .fails(3, "there is no table `staff`");
        let methods: Vec<String> = requests.try_iter().map(|request| request.method).collect();
        assert!(!methods.is_empty() && methods.iter().all(|method| method == "GET"), "{methods:?}");
    }

    #[test]
    fn only_services_are_checked() {
        let place = Place::filled();
        place.run(&["check-service", "staff.db"]).fails(2, "`staff.db` is a file");
        place
            .run(&["check-service", "https://contoso.table.core.windows.net"])
            .fails(2, "credentials");
        fs::write(place.path("taken.json"), "kept").unwrap();
        let taken = ["check-service", "http://127.0.0.1:9/devstoreaccount1", "--report", "taken"];
        place.run(&taken).fails(4, "taken.json");
        assert_eq!(place.read("taken.json"), "kept");
    }

    /// The emulator is known to differ in promises about comparisons and limits, and in nothing else.
    #[test]
    #[ignore = "needs the emulator, whose connection string is in ENTABLE_AZURITE"]
    fn the_emulator_is_checked() {
        let connection = std::env::var("ENTABLE_AZURITE").unwrap();
        let place = Place::filled();
        fs::write(place.path("connection.txt"), &connection).unwrap();
        let file = [("ENTABLE_CONNECTION_STRING_FILE", "connection.txt")];
        let check = ["--json", "check-service", "azure:", "--report", "found"];
        let run = run_in(place.0.path(), &check, "", &file);
        let run = run.fails(5, "points from what is promised");
        let report: Json = serde_json::from_str(&run.out).unwrap();
        assert_eq!(serde_json::from_str::<Json>(&place.read("found.json")).unwrap(), report);
        let names = |part: &Json| -> Vec<String> {
            let found = part.as_array().unwrap().iter().filter(|one| !one["found"].is_null());
            found.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        let broken = names(&report["promises"]["broken"]);
        for known in
            ["table::list_is_sorted", "value::double_negative_zero", "filter::negative_numbers"]
        {
            assert!(broken.iter().any(|name| name == known), "{known}: {broken:?}");
        }
        let topics = ["compare", "filter", "limit", "page", "table", "value"];
        let is_known = |name: &String| topics.contains(&name.split("::").next().unwrap());
        assert!(broken.iter().all(is_known), "{broken:?}");
        assert_eq!(report["differences"], broken.len());
        for (part, tried) in [("patterns", 12), ("lost_answers", 14)] {
            assert_eq!(report[part].as_array().unwrap().len(), tried);
            assert!(names(&report[part]).is_empty(), "{part}: {}", report[part]);
        }
        assert_eq!(report["timings"].as_array().unwrap().len(), 4);
        // What a user sends to others: neither the account nor its key.
        let key = connection.split("AccountKey=").nth(1).unwrap().split(';').next().unwrap();
        for text in [&run.out, &run.err, &place.read("found.md"), &place.read("found.json")] {
            assert!(!text.contains(key) && !text.contains("devstoreaccount1"), "{text}");
        }
        assert!(place.read("found.md").contains("### value::double_negative_zero"));
        let tables = run_in(place.0.path(), &["tables", "azure:"], "", &file).ok();
        assert!(!tables.contains("Check"), "{tables}");
    }

    /// The chapter "from a file on a laptop to Azure", as it is written.
    #[test]
    #[ignore = "needs the emulator, whose connection string is in ENTABLE_AZURITE"]
    fn a_store_moves_from_a_file_to_the_service_and_back() {
        let connection = std::env::var("ENTABLE_AZURITE").unwrap();
        let place = Place::filled();
        fs::write(place.path("connection.txt"), &connection).unwrap();
        let run = |arguments: &[&str]| {
            let file = [("ENTABLE_CONNECTION_STRING_FILE", "connection.txt")];
            run_in(place.0.path(), arguments, "", &file)
        };
        let said: Vec<String> =
            run(&["tables", "azure:"]).ok().lines().map(str::to_owned).collect();
        for table in said.iter().filter(|table| ["Staff", "Types"].contains(&table.as_str())) {
            run(&["delete", "azure:", table, "--whole-table", "--yes"]).ok();
        }
        // The emulator stores -0.0 as 0.0.
        run(&["delete", "staff.db", "Types", "p", "r0", "--yes"]).ok();
        // 1. a copy to fall back to; 2. the bulk, while the program writes on.
        run(&["backup", "staff.db", "before.db"]).ok();
        run(&["backup", "staff.db", "now.db"]).ok();
        run(&["export", "now.db", "all"]).ok();
        run(&["copy", "now.db", "azure:", "--table", "Staff", "--table", "Types"]).ok();
        let row = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"late\",\"Age\":1}\n";
        run_with_input(place.0.path(), &["put", "staff.db", "Staff"], row).ok();
        run(&["delete", "staff.db", "Staff", "Sales", "000", "--yes"]).ok();
        // 3. nothing is open; 4. the rest, and the proof.
        assert!(run(&["lag", "staff.db"]).ok().contains("nothing is open"));
        let both = ["--table", "Staff", "--table", "Types"];
        let copy = |from: &str, to: &str, more: &[&str]| {
            run(&[&["--json", "copy", from, to], &both[..], more].concat())
        };
        copy("staff.db", "azure:", &["--compare"]).fails(5, "differ");
        let moved = copy("staff.db", "azure:", &["--delete-extra", "--yes"]).json();
        let staff = &moved["tables"][0];
        assert_eq!(
            (&moved["equal"], &staff["written"]["rows"], &staff["deleted"]),
            (&true.into(), &1.into(), &1.into())
        );
        // 5. the switch: the service has what the file has, every type exactly.
        for table in ["Staff", "Types"] {
            let export = |store: &str| run(&["export", store, "-", "--table", table]).ok();
            assert_eq!(export("azure:"), export("staff.db"));
        }
        assert_eq!(run(&["count", "azure:", "Staff"]).ok(), "250\n");
        // Back: what was written on the service meanwhile comes along.
        let row = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"cloud\",\"Age\":2}\n";
        let file = [("ENTABLE_CONNECTION_STRING_FILE", "connection.txt")];
        run_in(place.0.path(), &["put", "azure:", "Staff"], row, &file).ok();
        let back = copy("azure:", "staff.db", &["--delete-extra", "--yes"]).json();
        assert_eq!(
            (&back["equal"], &back["tables"][0]["written"]["rows"]),
            (&true.into(), &1.into())
        );
        run(&["get", "staff.db", "Staff", "Sales", "cloud"]).ok();
        // The exported directory brings the moment of the backup back.
        run(&["import", "again.db", "all"]).ok();
        assert_eq!(
            run(&["--json", "copy", "before.db", "again.db", "--compare"]).json()["equal"],
            true
        );
        for table in ["Staff", "Types"] {
            run(&["delete", "azure:", table, "--whole-table", "--yes"]).ok();
        }
    }
}

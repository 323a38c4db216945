//! Tests what moves: exports and imports, copies between stores, backups.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    Batch, Error, ErrorKind, Keyring, Row, ServiceCode, Ticks, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Durability, Embedded, Memory, ReadRequest, Rows,
        ScanRequest, TableNames, TableRequest,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
    data::{Format, ImportMode, TableCopy},
    prelude::*,
};
use tempfile::tempdir;

use crate::scratch;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "e", unique),
    list(ByAge, partition_key = "age_{age:03}", row_key = "ages")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    age: u32,
}

fn employee(id: u32) -> Employee {
    let department = if id.is_multiple_of(3) { "Sales" } else { "Marketing" }.to_owned();
    Employee { department, id, email: format!("e{id}@contoso.com"), age: 30 + id % 5 }
}

/// A store with rows of every type, of several partitions, and texts that formats have to escape.
async fn every_type() -> Client {
    let client = Client::memory();
    client.create_table("Types").await.unwrap();
    let table = client.dynamic("Types");
    let texts = ["", " a ", "a,b\"c\r\nd\te", "=1+1", "'=1", "-", "\u{1f600}\u{0}", "007", "NaN"];
    for (at, text) in texts.into_iter().enumerate() {
        let number = i32::try_from(at).unwrap();
        let mut row = DynamicEntity::new(format!("=p,{}", at % 2), format!("'-r{at}"));
        row.set("Text", text);
        row.set("Flag", at % 2 == 0);
        row.set("Int", i32::MIN + number);
        row.set("Long", i64::MAX - i64::from(number));
        let doubles = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.1 + 0.2, 5e-324];
        row.set("Double", doubles[at % doubles.len()]);
        row.set("Time", Ticks::MAX);
        row.set("Id", uuid::Uuid::from_u128(u128::MAX - at as u128));
        row.set("Bytes", vec![0_u8, 255, b'"', at as u8]);
        if at % 2 == 0 {
            row.set("Either", at as i64);
        } else {
            row.set("Either", text);
        }
        table.insert(&row).await.unwrap();
    }
    client
}

async fn text(client: &Client, table: &str, format: Format) -> Vec<u8> {
    let mut text = Vec::new();
    client.export(table).format(format).write_to(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn an_export_that_is_imported_and_exported_again_is_equal_byte_for_byte() {
    let client = every_type().await;
    let lines = text(&client, "Types", Format::JsonLines).await;
    for format in [Format::JsonLines, Format::Csv] {
        let before = text(&client, "Types", format).await;
        let (_directory, path) = scratch();
        let other = Client::open(path).unwrap();
        let report = other.import("Types").format(format).read_from(&before[..]).await.unwrap();
        assert_eq!((report.digest.rows(), report.bad), (9, 0));
        assert_eq!(text(&other, "Types", format).await, before);
        let mut nothing = Vec::new();
        let export = client.export("Types").write_to(&mut nothing).await.unwrap();
        assert_eq!(export.digest, report.digest);
        if format == Format::JsonLines {
            assert_eq!(before, lines);
        }
    }
    assert!(String::from_utf8(lines).unwrap().contains("\"Double\":-0.0"));
}

/// The name of an unfinished file, whose random digits are all `digit`.
fn part_of(path: &Path, digit: char) -> PathBuf {
    let digits = digit.to_string().repeat(32);
    PathBuf::from(format!("{}.{digits}.part", path.display()))
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A client with a table of `rows` rows.
async fn staff_of(rows: u32) -> Client {
    let client = Client::memory();
    client.create_table("Staff").await.unwrap();
    for id in 0..rows {
        client.dynamic("Staff").insert(&DynamicEntity::new("p", format!("{id:03}"))).await.unwrap();
    }
    client
}

#[tokio::test]
async fn a_name_that_is_taken_while_an_export_runs_is_not_replaced() {
    let client = staff_of(3).await;
    let directory = tempdir().unwrap();
    let path = directory.path().join("staff.jsonl");
    let taken = path.clone();
    let export = client.export("Staff");
    let export = export.on_progress(move |_| fs::write(&taken, "of another program").unwrap());
    let error = export.to_file(&path).await.unwrap_err();
    assert!(error.is_conflict() && error.message().contains("exists"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "of another program");
    // The rows are complete, and a resumed export has only to name them.
    fs::remove_file(&path).unwrap();
    let report = client.export("Staff").resume().to_file(&path).await.unwrap();
    assert_eq!((report.resumed, report.digest.rows()), (3, 3));
    assert_eq!(names_in(directory.path()), ["staff.jsonl"]);
}

#[tokio::test]
async fn an_export_deletes_what_earlier_attempts_have_left_and_resumes_the_longest() {
    let client = staff_of(9).await;
    let whole = text(&client, "Staff", Format::JsonLines).await;
    let directory = tempdir().unwrap();
    let path = directory.path().join("staff.jsonl");
    let others = ["staff.jsonl.part", "staff.jsonl.0123.part", "other.jsonl.part"];
    for (resumes, resumed) in [(false, 0), (true, 5)] {
        for (digit, lines) in [('a', 2), ('b', 5), ('c', 0)] {
            let rows = whole.split_inclusive(|byte| *byte == b'\n').take(lines);
            fs::write(part_of(&path, digit), rows.collect::<Vec<_>>().concat()).unwrap();
        }
        for other in others {
            fs::write(directory.path().join(other), "x").unwrap();
        }
        let export = client.export("Staff");
        let export = if resumes { export.resume() } else { export };
        let report = export.to_file(&path).await.unwrap();
        assert_eq!((report.resumed, report.digest.rows()), (resumed, 9));
        assert_eq!(fs::read(&path).unwrap(), whole);
        fs::remove_file(&path).unwrap();
        let mut kept = others.map(str::to_owned);
        kept.sort();
        assert_eq!(names_in(directory.path()), kept, "files of other programs stay");
    }
    // An export that fails before its first row leaves nothing behind.
    let error = client.export("Nothing").to_file(&path).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(names_in(directory.path()).len(), others.len());
}

#[tokio::test]
async fn an_export_that_is_running_is_left_alone() {
    let client = staff_of(3).await;
    let directory = tempdir().unwrap();
    let path = directory.path().join("staff.jsonl");
    for resumes in [false, true] {
        let running = fs::File::create(part_of(&path, 'a')).unwrap();
        running.lock().unwrap();
        let export = client.export("Staff");
        let export = if resumes { export.resume() } else { export };
        assert_eq!(export.to_file(&path).await.unwrap().resumed, 0);
        assert!(part_of(&path, 'a').exists());
        fs::remove_file(&path).unwrap();
    }
}

/// In a directory that others may write, such as `/tmp`.
#[cfg(unix)]
#[tokio::test]
async fn no_link_leads_an_export_to_another_file() {
    use std::os::unix::fs::{MetadataExt, symlink};

    let client = staff_of(3).await;
    let whole = text(&client, "Staff", Format::JsonLines).await;
    let directory = tempdir().unwrap();
    let victim = directory.path().join("victim");
    let path = directory.path().join("staff.jsonl");
    let set = |part: &Path, is_hard: bool| {
        fs::write(&victim, "precious").unwrap();
        if is_hard {
            fs::hard_link(&victim, part).unwrap()
        } else {
            symlink(&victim, part).unwrap()
        }
    };
    for (part, is_hard) in [
        (directory.path().join("staff.jsonl.part"), false),
        (part_of(&path, 'a'), false),
        (part_of(&path, 'b'), true),
    ] {
        for resumes in [false, true] {
            set(&part, is_hard);
            let export = client.export("Staff");
            let export = if resumes { export.resume() } else { export };
            let report = export.to_file(&path).await.unwrap();
            assert_eq!((report.resumed, fs::read(&path).unwrap()), (0, whole.clone()));
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{}", part.display());
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            fs::remove_file(&path).unwrap();
            fs::remove_file(&part).unwrap();
        }
    }
    // Nor does one under its own name, whatever it points to.
    symlink(directory.path().join("nowhere"), &path).unwrap();
    let error = client.export("Staff").to_file(&path).await.unwrap_err();
    assert!(error.is_conflict() && !directory.path().join("nowhere").exists(), "{error}");
}

/// Rows that another program has made readable for others.
#[cfg(unix)]
#[tokio::test]
async fn a_resumed_export_is_private() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let client = staff_of(3).await;
    let directory = tempdir().unwrap();
    let path = directory.path().join("staff.jsonl");
    let part = part_of(&path, 'a');
    fs::write(&part, text(&client, "Staff", Format::JsonLines).await).unwrap();
    fs::set_permissions(&part, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(client.export("Staff").resume().to_file(&path).await.unwrap().resumed, 3);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn an_export_that_was_cut_anywhere_goes_on_to_the_same_file() {
    let client = Client::memory();
    client.create_table("Staff").await.unwrap();
    for id in 0..40 {
        let row = DynamicEntity::new(format!("p{}", id / 10), format!("{id:03}"));
        client.dynamic("Staff").insert(&row).await.unwrap();
    }
    let whole = text(&client, "Staff", Format::JsonLines).await;
    let directory = tempdir().unwrap();
    let path = directory.path().join("staff.jsonl");
    let part = part_of(&path, 'a');
    for cut in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 1, whole.len()] {
        fs::write(&part, &whole[..cut]).unwrap();
        let report = client.export("Staff").resume().to_file(&path).await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(report.resumed, u64::try_from(lines).unwrap());
        assert_eq!((report.digest.rows(), report.file_bytes), (40, whole.len() as u64));
        assert!(!part.exists());
        let taken = client.export("Staff").to_file(&path).await.unwrap_err();
        assert!(taken.is_conflict(), "{taken}");
        fs::remove_file(&path).unwrap();
    }
    fs::write(&part, "another program\n").unwrap();
    let error = client.export("Staff").resume().to_file(&path).await.unwrap_err();
    assert!(error.is_invalid() && error.message().contains("not an earlier attempt"), "{error}");
}

/// Both of the ranges that a resumed export reads are filtered.
#[tokio::test]
async fn a_resumed_export_keeps_to_its_filter() {
    let client = Client::memory();
    client.create_table("Staff").await.unwrap();
    for id in 0..40 {
        let row =
            DynamicEntity::new(format!("p{}", id / 10), format!("{id:03}")).with("Odd", id % 2);
        client.dynamic("Staff").insert(&row).await.unwrap();
    }
    let export = || client.export("Staff").filter(Filter::eq("Odd", 1));
    let mut whole = Vec::new();
    assert_eq!(export().write_to(&mut whole).await.unwrap().digest.rows(), 20);
    let directory = tempdir().unwrap();
    let path = directory.path().join("staff.jsonl");
    let lines = |count| whole.split_inclusive(|byte| *byte == b'\n').take(count).flatten();
    // In the middle of a partition, and at the end of one.
    for kept in [3, 5] {
        fs::write(part_of(&path, 'a'), lines(kept).copied().collect::<Vec<u8>>()).unwrap();
        let report = export().resume().to_file(&path).await.unwrap();
        assert_eq!((report.resumed, report.digest.rows()), (kept as u64, 20));
        assert_eq!(fs::read(&path).unwrap(), whole);
        fs::remove_file(&path).unwrap();
    }
}

/// CSV reads the table twice: a property that comes in between has no column, and is not left out in silence.
#[tokio::test(start_paused = true)]
async fn a_property_that_comes_after_the_columns_ends_an_export_as_csv() {
    let memory = Arc::new(Memory::new());
    let client = Client::builder().backend(memory.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let rows = client.dynamic("Staff");
    rows.insert(&DynamicEntity::new("p", "1").with("Age", 34)).await.unwrap();
    let fault = FaultInjector::around(memory);
    fault.inject(RequestKind::Scan, 1, InjectedFault::Delay(Duration::from_secs(2)));
    let slow = Client::builder().backend(fault).build().unwrap();
    let mut text = Vec::new();
    let export = slow.export("Staff").format(Format::Csv).write_to(&mut text);
    let other = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        rows.insert(&DynamicEntity::new("p", "2").with("Age", "34")).await.unwrap();
    };
    let (report, ()) = tokio::join!(export, other);
    let error = report.unwrap_err();
    assert!(error.is_contended() && error.keys() == Some(("p", "2")), "{error}");
}

#[tokio::test]
async fn bad_lines_are_named_and_set_aside() {
    let client = Client::memory();
    let good = |key: u32| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key:03}\"}}");
    let long = "x".repeat(40_000);
    let bad = [
        "hello".to_owned(),
        "{\"PartitionKey\":\"p\",\"RowKey\":\"~e0_x\"}".to_owned(),
        "{\"PartitionKey\":\"p\",\"RowKey\":\"a/b\"}".to_owned(),
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A\":\"{long}\"}}"),
    ];
    let lines = [
        good(1),
        bad[0].clone(),
        good(2),
        bad[1].clone(),
        bad[2].clone(),
        good(3),
        bad[3].clone(),
        good(4),
    ];
    let file = lines.join("\r\n");
    for (from, expected) in [(1, "line 2: "), (3, "line 4: "), (5, "line 5: "), (6, "line 7: ")] {
        let import = client.import("Staff").from_line(from);
        let error = import.read_from(file.as_bytes()).await.unwrap_err();
        assert!(error.message().starts_with(expected), "{error}");
        assert_eq!(error.table(), Some("Staff"));
    }
    let mut aside = Vec::new();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let import = client.import("Staff").skip_bad(&mut aside);
    let import = import.on_bad(move |error| log.lock().unwrap().push(error.message().to_owned()));
    let report = import.read_from(file.as_bytes()).await.unwrap();
    assert_eq!((report.digest.rows(), report.bad, report.lines), (4, 4, 8));
    let mut found: Vec<_> = std::str::from_utf8(&aside).unwrap().lines().collect();
    found.sort_unstable();
    let mut expected: Vec<_> = bad.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    let lines: Vec<_> = seen.iter().map(|message| &message[..6]).collect();
    assert_eq!(lines, ["line 2", "line 4", "line 5", "line 7"]);
    let again = client.import("Staff").mode(ImportMode::Insert).read_from(file.as_bytes()).await;
    assert!(
        again.is_err_and(|error| error.is_conflict() && error.message().starts_with("line 1: "))
    );
    let error = client.import("EntablePoison").read_from(&b""[..]).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
}

/// A blank line, a byte order mark and the part of a line that is longer than any row count as read.
#[tokio::test]
async fn progress_says_how_much_of_the_input_was_read() {
    let row = |key: u32| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key}\"}}\r\n");
    let mut file = "\u{feff}".to_owned();
    file.extend((0..25_000).map(row));
    file += "\n";
    file += &"x".repeat((16 << 20) + 5);
    file += "\n";
    file += &row(25_000);
    let (client, seen) = (Client::memory(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (log, mut aside) = (seen.clone(), Vec::new());
    let import = client.import("Staff").skip_bad(&mut aside);
    let import = import.on_progress(move |now| log.lock().unwrap().push((now.line, now.bytes)));
    import.read_from(file.as_bytes()).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.last(), Some(&(25_003, file.len() as u64)));
    let of_lines = |count| file.split_inclusive('\n').take(count).map(str::len).sum::<usize>();
    assert_eq!(seen[..2], [(10_000, of_lines(10_000) as u64), (20_000, of_lines(20_000) as u64)]);
}

#[tokio::test]
async fn lines_of_one_key_are_written_in_their_order() {
    let client = Client::memory();
    let mut file = String::new();
    for value in 0..500 {
        let (partition, key) = (value % 3, value % 7);
        file +=
            &format!("{{\"PartitionKey\":\"p{partition}\",\"RowKey\":\"{key}\",\"V\":{value}}}\n");
    }
    client.import("Staff").read_from(file.as_bytes()).await.unwrap();
    let rows = client.dynamic("Staff").query(Filter::Constant(true)).allow_scan().collect().await;
    for row in rows.unwrap() {
        let partition: i32 = row.partition_key()[1..].parse().unwrap();
        let key: i32 = row.row_key().parse().unwrap();
        let last = (0..500).rev().find(|value| value % 3 == partition && value % 7 == key);
        assert_eq!(row.i32("V").unwrap(), last.unwrap());
    }
}

fn lost(when: usize) -> InjectedFault {
    let error = Error::new(ErrorKind::Ambiguous, "connection lost");
    if when.is_multiple_of(2) { InjectedFault::Before(error) } else { InjectedFault::After(error) }
}

#[tokio::test(start_paused = true)]
async fn an_import_goes_on_at_the_line_that_a_failure_names() {
    let mut file = String::new();
    for key in 0..1_000 {
        file += &format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key:05}\"}}\n");
    }
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    // The fourth group fails for good, those around it do not.
    for nth in 3..3 + 6 {
        fault.inject(RequestKind::Apply, nth, lost(0));
    }
    let import = client.import("Staff").concurrency(1);
    let error = import.read_from(file.as_bytes()).await.unwrap_err();
    assert!(error.message().ends_with("continue from line 301"), "{error}");
    client.import("Staff").from_line(301).read_from(file.as_bytes()).await.unwrap();
    assert_eq!(text(&client, "Staff", Format::JsonLines).await, file.as_bytes());
    // A fault that passes is waited out.
    fault.inject(RequestKind::Apply, 1, lost(1));
    client.import("Other").read_from(file.as_bytes()).await.unwrap();
    assert_eq!(text(&client, "Other", Format::JsonLines).await, file.as_bytes());
}

/// Imports one row into a store that answers "too busy" and asks for these waits, in seconds, one after the other.
/// Returns the outcome and the time that it took.
async fn import_into_busy_store(asked: &[u64]) -> (Result<(), Error>, Duration) {
    let fault = FaultInjector::around(Memory::new());
    for (nth, seconds) in asked.iter().enumerate() {
        let busy = Error::service(ServiceCode::ServerBusy, "busy");
        let busy = busy.with_retry_after(Duration::from_secs(*seconds));
        fault.inject(RequestKind::Apply, nth, InjectedFault::Before(busy));
    }
    let client = Client::builder().backend(fault).build().unwrap();
    let began = tokio::time::Instant::now();
    let lines = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n".as_bytes();
    let imported = client.import("Staff").read_from(lines).await;
    (imported.map(drop), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_store_asks_for_comes_on_top_and_has_a_bound() {
    // A wait of 0 s leaves those of the import: 50, 100 and 200 ms.
    let (imported, took) = import_into_busy_store(&[0, 0, 0]).await;
    imported.unwrap();
    assert!(took >= Duration::from_millis(350), "{took:?}");
    let (imported, took) = import_into_busy_store(&[7]).await;
    imported.unwrap();
    assert!(took >= Duration::from_millis(7_050) && took < Duration::from_secs(8), "{took:?}");
    // Nobody waits for a day: the failure names the line to go on from.
    let (imported, took) = import_into_busy_store(&[86_400]).await;
    let error = imported.unwrap_err();
    assert!(error.is_throttled() && error.message().contains("line 1"), "{error}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// A record ends after 16 MiB. If each of the four million lines behind the quote were looked through again with
/// the next, this would take hours.
#[tokio::test]
async fn a_quote_that_is_never_closed_takes_no_longer_than_its_bytes() {
    let file = format!("PartitionKey,RowKey\np,\"1\n{}p,2\n", "c,d\n".repeat(4 << 20));
    let client = Client::memory();
    let mut aside = Vec::new();
    let import = client.import("Staff").format(Format::Csv).skip_bad(&mut aside);
    let report = import.read_from(file.as_bytes()).await.unwrap();
    // The last of those lines is behind the 16 MiB, and a row of its own.
    assert_eq!((report.bad, report.digest.rows()), (1, 2));
    assert_eq!(aside.len(), "PartitionKey,RowKey\n\n".len() + (16 << 20));
}

/// A proxy may answer "too busy" although the store has written the rows: lines that are stored as they say are
/// no bad lines, and a row that was there before is one.
#[tokio::test(start_paused = true)]
async fn an_insertion_that_was_throttled_after_it_was_done_sets_none_of_its_own_rows_aside() {
    let line = |key: u32, age: u32| {
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key:05}\",\"Age\":{age}}}\n")
    };
    let file: String = (0..20).map(|key| line(key, 1)).collect();
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let busy = || Error::service(ServiceCode::ServerBusy, "busy");
    fault.inject(RequestKind::Apply, 0, InjectedFault::After(busy()));
    let mut aside = Vec::new();
    let import = client.import("Staff").mode(ImportMode::Insert).skip_bad(&mut aside);
    let report = import.read_from(file.as_bytes()).await.unwrap();
    assert_eq!((report.bad, report.digest.rows()), (0, 20));
    assert_eq!(text(&client, "Staff", Format::JsonLines).await, file.as_bytes());
    assert!(aside.is_empty());
    // Row 7 is there with another age: the throttled transaction was refused whole.
    let file: String = (7..12).map(|key| line(key, if key == 7 { 2 } else { 1 })).collect();
    let file = file.replace("000", "100").replacen("10007", "00007", 1);
    fault.inject(RequestKind::Apply, 0, InjectedFault::Before(busy()));
    let import = client.import("Staff").mode(ImportMode::Insert).skip_bad(&mut aside);
    let report = import.read_from(file.as_bytes()).await.unwrap();
    assert_eq!((report.bad, report.digest.rows()), (1, 4));
    assert_eq!(aside, line(7, 2).as_bytes());
}

/// A table that is being deleted takes no row: none of the lines is bad.
#[tokio::test]
async fn an_import_ends_at_a_table_that_is_being_deleted() {
    let line = |key: u32| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key:05}\"}}\n");
    let file: String = (0..20).map(line).collect();
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    for code in [ServiceCode::TableNotFound, ServiceCode::TableBeingDeleted] {
        let gone = Error::service(code.clone(), "the table is gone");
        fault.inject(RequestKind::Apply, 0, InjectedFault::Before(gone));
        let mut aside = Vec::new();
        let import = client.import("Staff").skip_bad(&mut aside);
        let error = import.read_from(file.as_bytes()).await.unwrap_err();
        assert_eq!(error.kind(), code.kind());
        assert!(error.message().ends_with("continue from line 1"), "{error}");
        assert!(aside.is_empty());
    }
    let report = client.import("Staff").read_from(file.as_bytes()).await.unwrap();
    assert_eq!(report.digest.rows(), 20);
}

/// A line that the store refused is set aside although the import ends at a later one, from which it
/// goes on.
#[tokio::test(start_paused = true)]
async fn a_refused_line_is_set_aside_before_a_failure_is_returned() {
    let line = |partition: &str, key: u32| {
        format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{key:05}\"}}\n")
    };
    let refused = line("a", 0);
    let file: String =
        std::iter::once(refused.clone()).chain((0..100).map(|key| line("b", key))).collect();
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    client.import("Staff").read_from(refused.as_bytes()).await.unwrap();
    // The first group is refused, the second one fails for good.
    for nth in 1..1 + 6 {
        fault.inject(RequestKind::Apply, nth, lost(0));
    }
    let mut aside = Vec::new();
    let import = client.import("Staff").mode(ImportMode::Insert).concurrency(1);
    let error = import.skip_bad(&mut aside).read_from(file.as_bytes()).await.unwrap_err();
    assert!(error.message().ends_with("continue from line 2"), "{error}");
    assert_eq!(String::from_utf8(aside).unwrap(), refused);
    fault.clear();
    // Without a place for it, the refused line is the first that is not written.
    for nth in 1..1 + 6 {
        fault.inject(RequestKind::Apply, nth, lost(0));
    }
    let import = client.import("Staff").mode(ImportMode::Insert).concurrency(1);
    let error = import.read_from(file.as_bytes()).await.unwrap_err();
    assert!(error.message().starts_with("line 1: "), "{error}");
}

/// A line behind the one at which the import ends is read again by the import that goes on, and only that one
/// sets it aside.
#[tokio::test]
async fn a_refused_line_behind_a_failure_is_not_set_aside_twice() {
    let line = |partition: &str| format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"1\"}}\n");
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    client.import("Staff").read_from(line("b").as_bytes()).await.unwrap();
    let file = [line("a"), line("b")].concat();
    let mut aside = Vec::new();
    // The first group fails while the second one, which is refused, is under way.
    fault.inject(RequestKind::Apply, 0, lost(0));
    let import = client.import("Staff").mode(ImportMode::Insert).skip_bad(&mut aside);
    let error = import.read_from(file.as_bytes()).await.unwrap_err();
    assert!(error.message().ends_with("continue from line 1"), "{error}");
    assert_eq!(String::from_utf8_lossy(&aside), "");
    let import = client.import("Staff").mode(ImportMode::Insert).skip_bad(&mut aside);
    let report = import.from_line(1).read_from(file.as_bytes()).await.unwrap();
    assert_eq!((report.digest.rows(), report.bad), (1, 1));
    assert_eq!(String::from_utf8_lossy(&aside), line("b"));
}

async fn staff(client: &Client, employees: u32) -> Table<Employee> {
    let staff = client.table::<Employee>();
    staff.create_if_not_exists().await.unwrap();
    for id in 0..employees {
        staff.insert(&employee(id)).await.unwrap();
    }
    client.wait_for_copies().await;
    staff
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_was_cut_at_any_request_is_completed_by_the_next() {
    let from = FaultInjector::around(Memory::new());
    let client = |backend| Client::builder().backend(backend).build().unwrap();
    let source = client(from.clone());
    staff(&source, 20).await;
    source.worker().drain().await.unwrap();
    let expected = text(&source, "Staff", Format::JsonLines).await;
    for is_source in [false, true] {
        for nth in 0.. {
            let to = FaultInjector::around(Memory::new());
            let target = client(to.clone());
            let fault = if is_source { from.clone() } else { to };
            for again in 0..6 {
                fault.inject(RequestKind::Any, nth + again, lost(nth));
            }
            let cut = source.copy_to(&target).leave_open_work().concurrency(3).await;
            let untouched = fault.pending() == 6;
            fault.clear();
            let report = source.copy_to(&target).leave_open_work().await.unwrap();
            assert!(report.is_equal(), "{is_source} {nth}: {report:?}");
            assert_eq!(text(&target, "Staff", Format::JsonLines).await, expected, "{nth}");
            if untouched {
                assert!(cut.unwrap().is_equal());
                assert!(nth > if is_source { 2 } else { 5 }, "{nth}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_copy_of_a_table_that_the_source_lacks_leaves_the_target_alone() {
    let (source, target) = (Client::memory(), Client::memory());
    for table in ["Staff", "Empty"] {
        source.create_table(table).await.unwrap();
    }
    source.dynamic("Staff").insert(&DynamicEntity::new("p", "1")).await.unwrap();
    let error = source.copy_to(&target).tables(["Staf"]).await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("`Staf`"), "{error}");
    assert!(target.tables().await.unwrap().is_empty());
    // A table without rows is created.
    let report = source.copy_to(&target).await.unwrap();
    let requests: Vec<u64> = report.tables.iter().map(|table| table.requests).collect();
    assert!(report.is_equal());
    assert_eq!((target.tables().await.unwrap().len(), requests), (2, vec![4, 5]));
}

/// Stores order keys by UTF-16 units: a surrogate pair comes before U+E000, unlike in a text of Rust.
#[tokio::test]
async fn a_copy_reads_both_sides_in_the_order_of_the_service() {
    let (source, target) = (Client::memory(), Client::memory());
    for client in [&source, &target] {
        client.create_table("Staff").await.unwrap();
        client.dynamic("Staff").insert(&DynamicEntity::new("p", "\u{e000}")).await.unwrap();
    }
    source.dynamic("Staff").insert(&DynamicEntity::new("p", "\u{10000}")).await.unwrap();
    let report = source.copy_to(&target).delete_extra().await.unwrap();
    assert_eq!((report.tables[0].written.rows(), report.tables[0].deleted), (1, 0));
    assert!(report.is_equal());
}

/// A copy from an empty table into one with rows `0` to `4` of partition `p`, with `delete_extra`. Its first
/// transaction meets `first`, and `meanwhile` runs on the target before the second attempt.
async fn copy_that_deletes_five_rows(
    first: InjectedFault,
    meanwhile: impl AsyncFnOnce(DynamicTable),
) -> (TableCopy, Vec<String>) {
    let source = Client::memory();
    source.create_table("Staff").await.unwrap();
    let memory = Arc::new(Memory::new());
    let target = Client::builder().backend(memory.clone()).build().unwrap();
    target.create_table("Staff").await.unwrap();
    let rows = target.dynamic("Staff");
    for key in 0..5 {
        rows.insert(&DynamicEntity::new("p", key.to_string())).await.unwrap();
    }
    let fault = FaultInjector::around(memory);
    fault.inject(RequestKind::Apply, 0, first);
    let faulty = Client::builder().backend(fault).build().unwrap();
    let copy = async { source.copy_to(&faulty).delete_extra().await.unwrap() };
    // The second attempt begins 50 ms after the first.
    let other = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        meanwhile(rows.clone()).await;
    };
    let (mut report, ()) = tokio::join!(copy, other);
    let left = rows.query(Keys::partition("p")).collect().await.unwrap();
    (report.tables.remove(0), left.iter().map(|row| row.row_key().to_owned()).collect())
}

/// A deletion that fails since an earlier attempt of the copy itself was carried out is no refusal.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_lost_its_answer_counts_as_done_once_the_row_is_gone() {
    let lost = || Error::new(ErrorKind::Backend, "connection lost");
    let busy = || Error::service(ServiceCode::ServerBusy, "busy");
    // A proxy may answer "too busy" although the store has deleted the rows.
    for error in [lost(), busy()] {
        let landed = InjectedFault::After(error);
        let (table, left) = copy_that_deletes_five_rows(landed, async |_| {}).await;
        assert_eq!((table.deleted, table.refused), (5, 0), "{:?}", table.errors);
        assert!(table.is_equal() && table.errors.is_empty() && left.is_empty(), "{left:?}");
    }
    // Somebody writes row 3 anew: the next run of the copy decides about it.
    let landed = InjectedFault::After(lost());
    let (table, left) = copy_that_deletes_five_rows(landed, async |rows: DynamicTable| {
        rows.insert(&DynamicEntity::new("p", "3").with("Age", 34)).await.unwrap();
    })
    .await;
    assert_eq!((table.deleted, table.refused, left), (4, 1, vec!["3".to_owned()]));
    assert!(table.errors[0].is_precondition_failed(), "{:?}", table.errors);
    // The first attempt is not carried out, and somebody else deletes row 3.
    let unsent = InjectedFault::Before(lost());
    let (table, left) = copy_that_deletes_five_rows(unsent, async |rows: DynamicTable| {
        rows.delete_at("p", "3").await.unwrap();
    })
    .await;
    assert_eq!((table.deleted, table.refused, left.len()), (5, 0, 0));
    // Without any doubt about an attempt, it was somebody else who deleted row 3.
    let slow = InjectedFault::Delay(Duration::from_millis(40));
    let (table, left) = copy_that_deletes_five_rows(slow, async |rows: DynamicTable| {
        rows.delete_at("p", "3").await.unwrap();
    })
    .await;
    assert_eq!((table.deleted, table.refused, left.len()), (4, 1, 0));
    assert!(table.errors[0].is_not_found(), "{:?}", table.errors);
}

/// A store that is too busy for more than four transactions at once.
#[derive(Debug, Default)]
struct Narrow {
    rows: Memory,
    running: AtomicUsize,
    refused: AtomicUsize,
}

impl Backend for Narrow {
    fn capabilities(&self) -> Capabilities {
        self.rows.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.rows.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.rows.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.running.fetch_sub(1, Ordering::SeqCst);
            if running < 4 {
                return self.rows.apply(batch).await;
            }
            self.refused.fetch_add(1, Ordering::SeqCst);
            Err(Error::service(ServiceCode::ServerBusy, "busy"))
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.rows.tables(request)
    }
}

#[tokio::test(start_paused = true)]
async fn fewer_transactions_are_sent_while_the_target_throttles() {
    let source = Client::memory();
    source.create_table("Rows").await.unwrap();
    for id in 0..400 {
        source.dynamic("Rows").insert(&DynamicEntity::new(format!("{id:03}"), "r")).await.unwrap();
    }
    let narrow = Arc::new(Narrow::default());
    let target = Client::builder().backend(narrow.clone()).build().unwrap();
    // With 16 at once to the end, some groups are refused at each of their six attempts, and the copy fails.
    assert!(source.copy_to(&target).concurrency(16).await.unwrap().is_equal());
    assert!(narrow.refused.load(Ordering::SeqCst) > 0);
}

#[tokio::test]
async fn a_copy_is_right_for_checks_in_both_directions() {
    let source = Client::memory();
    staff(&source, 30).await;
    let (_directory, path) = scratch();
    let file = Client::open(path).unwrap();
    assert!(source.copy_to(&file).leave_open_work().await.unwrap().is_equal());
    let copied = file.table::<Employee>();
    assert!(copied.check().without_waiting().await.unwrap().is_clean());
    // The copies work on: a change there moves the email and the list entry.
    let point = || Employee::primary().department("Sales").id(3);
    copied
        .update(point(), |e| {
            e.email = "new@contoso.com".into();
            e.age = 50;
            Ok(())
        })
        .await
        .unwrap();
    file.wait_for_copies().await;
    let by_email = Employee::by_email().email("new@contoso.com");
    assert_eq!(copied.get(by_email).await.unwrap().map(|found| found.id), Some(3));
    let mut taken = employee(6);
    taken.email = "e9@contoso.com".into();
    assert!(copied.insert_or_replace(&taken).await.unwrap_err().is_unique_violation());
    let back = Client::memory();
    assert!(file.copy_to(&back).leave_open_work().await.unwrap().is_equal());
    assert!(back.table::<Employee>().check().without_waiting().await.unwrap().is_clean());
}

#[tokio::test]
async fn what_writers_change_meanwhile_is_named_and_the_last_pass_is_clean() {
    let (source, target) = (Client::memory(), Client::memory());
    source.create_table("Staff").await.unwrap();
    let rows = source.dynamic("Staff");
    for id in 0..300 {
        rows.insert(&DynamicEntity::new(format!("p{}", id / 100), format!("{id:03}")))
            .await
            .unwrap();
    }
    assert!(source.copy_to(&target).await.unwrap().is_equal());
    rows.delete_at("p0", "007").await.unwrap();
    rows.insert_or_replace(&DynamicEntity::new("p1", "107").with("A", 1)).await.unwrap();
    rows.insert(&DynamicEntity::new("p1", "new")).await.unwrap();
    let report = source.copy_to(&target).compare_only().await.unwrap();
    let table = &report.tables[0];
    let named: Vec<_> = table
        .differences
        .iter()
        .map(|one| (one.partition_key.as_str(), one.source.rows(), one.target.rows()))
        .collect();
    assert_eq!(named, [("p0", 99, 100), ("p1", 101, 100)]);
    assert!(!report.is_equal() && table.written.rows() == 0);
    let report = source.copy_to(&target).await.unwrap();
    assert_eq!((report.tables[0].written.rows(), report.tables[0].different_partitions), (2, 1));
    let report = source.copy_to(&target).delete_extra().await.unwrap();
    assert_eq!((report.tables[0].written.rows(), report.tables[0].deleted), (0, 1));
    assert!(report.is_equal());
    let some =
        source.copy_to(&Client::memory()).filter(Filter::eq("PartitionKey", "p2")).await.unwrap();
    assert_eq!((some.is_equal(), some.tables[0].written.rows()), (true, 100));
    let refused = source.copy_to(&target).filter(Filter::gt("A", 0)).delete_extra().await;
    assert!(refused.unwrap_err().is_invalid());
}

#[derive(Debug, Message, serde::Serialize, serde::Deserialize)]
#[table(name = "Hired")]
struct Hired {
    id: u32,
}

#[tokio::test]
async fn open_work_refuses_a_copy_and_is_left_out() {
    let source = Client::memory();
    let staff = staff(&source, 1).await;
    let mut transaction = source.transaction();
    transaction.insert(&employee(7)).unwrap().emit(&Hired { id: 7 }).unwrap();
    transaction.commit().await.unwrap();
    let target = Client::memory();
    let refused = source.copy_to(&target).await.unwrap_err();
    assert!(refused.is_rejected() && refused.message().contains("1 messages"), "{refused}");
    assert!(target.tables().await.unwrap().is_empty());
    let report = source.copy_to(&target).leave_open_work().await.unwrap();
    let copied = report.tables.iter().find(|table| table.table == "Staff").unwrap();
    assert!(copied.outbox_rows >= 2 && report.is_equal(), "{report:?}");
    assert!(!target.tables().await.unwrap().iter().any(|name| name == "EntableDirectory"));
    assert!(target.table::<Employee>().check().without_waiting().await.unwrap().is_clean());
    assert!(source.copy_to(&target).tables(["EntablePoison"]).await.unwrap_err().is_invalid());
    drop(staff);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Secrets", partition_key = "{owner}", row_key = "s")]
struct Secret {
    owner: String,
    #[table(encrypt)]
    text: String,
}

#[tokio::test]
async fn sealed_rows_stay_sealed_and_open_with_their_keys() {
    let keys = Keyring::generate_text().unwrap();
    let with_keys = |backend: Memory| {
        let keys = Keyring::parse(&keys).unwrap();
        Client::builder().backend(backend).keys(keys).build().unwrap()
    };
    let source = with_keys(Memory::new());
    source.table::<Secret>().create().await.unwrap();
    let secret = Secret { owner: "Jones".into(), text: "plaintext".into() };
    source.table::<Secret>().insert(&secret).await.unwrap();
    // Neither an export nor a copy has the keys.
    let blind = Client::builder().backend(source.backend().clone()).build().unwrap();
    let exported = text(&blind, "Secrets", Format::JsonLines).await;
    assert!(!String::from_utf8(exported.clone()).unwrap().contains("plaintext"));
    let imported = with_keys(Memory::new());
    imported.import("Secrets").read_from(&exported[..]).await.unwrap();
    let copied = with_keys(Memory::new());
    blind.copy_to(&copied).await.unwrap();
    for client in [imported, copied] {
        let point = Secret::primary().owner("Jones");
        let found = client.table::<Secret>().get(point).await.unwrap().unwrap();
        assert_eq!(found.into_inner(), secret);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_a_snapshot_although_writers_go_on() {
    let (directory, path) = scratch();
    let delay = Duration::from_millis(20);
    let options = Embedded::options().durability(Durability::Relaxed { delay });
    let store = Arc::new(options.open(&path).unwrap());
    let client = Client::builder().backend(store.clone()).build().unwrap();
    client.create_table("Pairs").await.unwrap();
    client.create_table("Empty").await.unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let pair = |number: i64| {
        let one = DynamicEntity::new("p", "a").with("N", number);
        let two = DynamicEntity::new("p", "b").with("N", number);
        let more = DynamicEntity::new("q", format!("{number:08}")).with("Text", "x".repeat(500));
        (one, two, more)
    };
    let writer = tokio::spawn({
        let (client, stop) = (client.clone(), stop.clone());
        async move {
            let table = client.dynamic("Pairs");
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let (one, two, more) = pair(number);
                let mut both = table.transaction();
                both.insert_or_replace(&one).unwrap().insert_or_replace(&two).unwrap();
                both.commit().await.unwrap();
                table.insert(&more).await.unwrap();
            }
        }
    });
    for round in 0..3 {
        tokio::time::sleep(Duration::from_millis(60)).await;
        // On a busy machine the writer may not have come to its first row.
        while client.dynamic("Pairs").query(Keys::partition("q")).count().await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let path = directory.path().join(format!("backup{round}.db"));
        let report = client.backup(&path).await.unwrap();
        assert_eq!(report.tables, 2);
        let copy = Embedded::open(&path).unwrap();
        copy.verify().await.unwrap();
        let copy = Client::builder().backend(copy).build().unwrap();
        let table = copy.dynamic("pairs");
        let (one, two) = (table.get("p", "a").await.unwrap(), table.get("p", "b").await.unwrap());
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.get("N"), two.get("N"));
        let rows = copy.dynamic("Pairs").query(Keys::partition("q")).count().await.unwrap();
        assert!(rows > 0 && rows + 2 == report.rows, "{rows} {report:?}");
        // It can be written: the times of new rows are later than those of the old ones.
        let again = table.insert_or_replace(&pair(0).0).await.unwrap();
        assert_ne!(again.etag(), one.etag());
        assert!(client.backup(&path).await.unwrap_err().is_conflict());
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let last = directory.path().join("last.db");
    store.backup(&last).await.unwrap();
    let restored = Client::open(&last).unwrap();
    assert!(client.copy_to(&restored).compare_only().await.unwrap().is_equal());
    let etag = |client: &Client| {
        let table = client.dynamic("Pairs");
        async move { table.get("p", "a").await.unwrap().unwrap().etag().clone() }
    };
    assert_eq!(etag(&client).await, etag(&restored).await);
    // No file is left beside the backups, and beside those that were written their marks.
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    let is_known = |name: &String| name.strip_suffix(".mark").unwrap_or(name).ends_with(".db");
    assert!(names.iter().all(is_known), "{names:?}");
    let missing = directory.path().join("none").join("b.db");
    assert!(store.backup(&missing).await.unwrap_err().is_not_found());
    assert!(Client::memory().backup(&missing).await.unwrap_err().is_unsupported());
}

/// Text of an export. After each page it replaces rows of the store, and waits until they are replaced.
struct Churning {
    text: Vec<u8>,
    replace: std::sync::mpsc::Sender<std::sync::mpsc::Sender<()>>,
}

impl std::io::Write for Churning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if !bytes.is_empty() {
            let (done, wait) = std::sync::mpsc::channel();
            self.replace.send(done).unwrap();
            wait.recv().unwrap();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Exports 12,000 rows while every page replaces 4 MiB of other rows, and the first and the last of the
/// exported ones. Returns the text, the snapshots, and the bytes by which the file has grown.
async fn export_under_writers(max_growth_bytes: u64) -> (String, u64, u64) {
    let (_directory, path) = scratch();
    let client = Client::open(&path).unwrap();
    client.create_table("Staff").await.unwrap();
    client.create_table("Other").await.unwrap();
    let rows = (0..12_000).map(|id| DynamicEntity::new("p", format!("{id:05}")).with("N", 0));
    client.dynamic("Staff").bulk().insert_or_replace_all(rows).await.unwrap();
    let (replace, asked) = std::sync::mpsc::channel::<std::sync::mpsc::Sender<()>>();
    let writer = std::thread::spawn({
        let client = client.clone();
        move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            for (round, done) in asked.into_iter().enumerate() {
                let text = format!("{round}{}", "x".repeat(20_000));
                let other = (0..200)
                    .map(|id| DynamicEntity::new("p", format!("{id:05}")).with("T", text.as_str()));
                let ends = ["00000", "11999"]
                    .map(|id| DynamicEntity::new("p", id).with("N", round as i32 + 1));
                runtime.block_on(async {
                    client.dynamic("Other").bulk().insert_or_replace_all(other).await.unwrap();
                    client.dynamic("Staff").bulk().insert_or_replace_all(ends).await.unwrap();
                });
                done.send(()).unwrap();
            }
        }
    });
    let before = fs::metadata(&path).unwrap().len();
    let seen = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let most = seen.clone();
    let mut text = Churning { text: Vec::new(), replace };
    let export = client.export("Staff").snapshot(max_growth_bytes).on_progress(move |progress| {
        most.fetch_max(progress.growth, Ordering::Relaxed);
    });
    let report = export.write_to(&mut text).await.unwrap();
    let growth = fs::metadata(&path).unwrap().len() - before;
    assert!(seen.load(Ordering::Relaxed) > 0, "the progress says the growth");
    assert_eq!((report.digest.rows(), report.file_bytes), (12_000, text.text.len() as u64));
    drop(text.replace);
    writer.join().unwrap();
    (String::from_utf8(text.text).unwrap(), report.snapshots, growth)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_one_moment_keeps_space_and_its_bound_gives_it_back() {
    let (text, snapshots, unbounded) = export_under_writers(u64::MAX).await;
    assert_eq!(snapshots, 1);
    // The last row was replaced twelve times before it was read.
    assert!(text.lines().all(|line| line.ends_with("\"N\":0}")), "all rows are of one moment");
    let (text, snapshots, bounded) = export_under_writers(8 << 20).await;
    assert!(snapshots > 1, "{snapshots}");
    assert_eq!(text.lines().filter(|line| line.contains("\"RowKey\":\"1")).count(), 2_000);
    assert!(!text.lines().last().unwrap().ends_with("\"N\":0}"), "a later moment");
    assert!(bounded * 2 <= unbounded, "{bounded} bytes, and {unbounded} without a bound");
    let refused = Client::memory();
    refused.create_table("Staff").await.unwrap();
    let refused = refused.export("Staff").snapshot(0).write_to(&mut Vec::new()).await;
    assert!(refused.unwrap_err().is_unsupported());
}

#[tokio::test]
async fn a_snapshot_reads_its_moment_and_refuses_writes() {
    let (_directory, path) = scratch();
    let client = Client::open(&path).unwrap();
    client.create_table("Staff").await.unwrap();
    client.dynamic("Staff").insert(&DynamicEntity::new("p", "1")).await.unwrap();
    let observed = entable::backend::layer::Observe::around(client.backend().clone());
    let snapshot = Backend::snapshot(&observed).await.unwrap();
    let then = Client::builder().backend(snapshot.rows().clone()).build().unwrap();
    client.dynamic("Staff").insert(&DynamicEntity::new("p", "2")).await.unwrap();
    client.create_table("Later").await.unwrap();
    assert_eq!(then.tables().await.unwrap(), ["Staff"]);
    let rows = then.dynamic("Staff").query(Keys::partition("p")).collect().await.unwrap();
    assert_eq!(rows.len(), 1);
    assert!(then.dynamic("Staff").get("p", "1").await.unwrap().is_some());
    assert!(then.dynamic("Staff").get("p", "2").await.unwrap().is_none());
    let refused = then.dynamic("Staff").insert(&DynamicEntity::new("p", "3")).await.unwrap_err();
    assert!(refused.is_unsupported(), "{refused}");
    assert!(then.create_table("New").await.unwrap_err().is_unsupported());
}

//! Runs the command against stores in files, and compares what it says, what it returns, and what is stored.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that stops has found something"
)]

mod change;
mod copy;
mod copy_blobs;
mod export;
mod file;
mod import;
mod killed;
mod look;
#[cfg(feature = "azure")]
mod on_azure;
mod poison;
#[cfg(unix)]
mod private_files;
mod sas;
mod scripts;
#[cfg(feature = "azure")]
mod serve;
#[cfg(all(feature = "azure", target_os = "linux"))]
mod serve_faults;

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
        "AZURE_STORAGE_CONNECTION_STRING",
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

/// Returns the files below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
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

/// The permissions of a file or directory, without those of its kind.
#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::mode(&fs::symlink_metadata(path).unwrap()) & 0o777
}

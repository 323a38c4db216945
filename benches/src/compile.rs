//! Measures what deriving costs the compiler: crates of N entities, ours and serde's, built in every way.
//!
//! Writes a workspace of generated crates to the directory for temporary files and builds it there,
//! with the dependencies first. Each type has ten fields; ours have two indexes. Both sides are
//! used: one call each way for each type. CPU seconds count all threads of the compiler, so that
//! other programs on the machine matter little. Reads `/proc`: works on Linux only.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    Size,
    figure::{figure, note},
};

/// Kernel ticks per second in `/proc/*/stat`: the same on every Linux that Rust supports.
const TICKS: f64 = 100.0;

/// The generated workspace.
struct Workspace {
    root: PathBuf,
}

/// The side of a comparison that a crate is of.
#[derive(Debug, Clone, Copy)]
enum Side {
    Ours,
    Serde,
}

/// The cost of one build.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_seconds: f64,
    peak_megabytes: f64,
}

/// The ways in which each crate is built, in order: later ones reuse what earlier ones left.
const WAYS: [(&str, Change, &[&str]); 6] = [
    ("debug", Change::Nothing, &["build"]),
    ("debug after a comment", Change::Comment, &["build"]),
    ("debug after a field", Change::Field, &["build"]),
    ("check", Change::Nothing, &["check"]),
    ("check after a comment", Change::Comment, &["check"]),
    ("release", Change::Nothing, &["build", "--release"]),
];

/// The edit before a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing: the crate is built from nothing.
    Nothing,
    /// A comment above one type.
    Comment,
    /// A further field of one type.
    Field,
}

pub(crate) fn run(size: Size) {
    if !Path::new("/proc/self/stat").exists() {
        println!("the suite `compile` reads /proc, which this system does not have");
        return;
    }
    let counts: &[usize] = if size >= Size::Large { &[10, 100, 300] } else { &[10, 100] };
    let workspace = Workspace::create(counts);
    for count in counts {
        compare(&workspace, *count);
    }
}

fn compare(workspace: &Workspace, count: usize) {
    for (way, change, command) in WAYS {
        let [ours, theirs] =
            [Side::Ours, Side::Serde].map(|side| workspace.build(side, count, change, command));
        note(
            &format!("{count} {way} CPU-s, ours and serde"),
            pair(ours, theirs, |c| c.cpu_seconds),
        );
        note(
            &format!("{count} {way} MB, ours and serde"),
            pair(ours, theirs, |c| c.peak_megabytes),
        );
        let ratio = ours.cpu_seconds / theirs.cpu_seconds;
        match (count, way) {
            (100, "debug") => {
                let [ours_size, serde_size] =
                    [Side::Ours, Side::Serde].map(|side| workspace.library_size(side, count));
                note(
                    "100 debug library MB, ours and serde",
                    format!("{ours_size:.1} {serde_size:.1}"),
                );
                figure("compile_debug_100", ratio, "<= 2.5");
                figure("compile_memory_100", ours.peak_megabytes / theirs.peak_megabytes, "<= 1.5");
            }
            (100, "check after a comment") => figure("compile_check_100", ratio, "<= 1.7"),
            (100, "debug after a field") => {
                figure("compile_field_100_seconds", ours.cpu_seconds, "<= 3");
            }
            (300, "debug") => figure("compile_memory_300_mb", ours.peak_megabytes, "<= 900"),
            _ => note(&format!("{count} {way} ratio"), format!("{ratio:.2}")),
        }
    }
}

fn pair(ours: Cost, theirs: Cost, of: impl Fn(Cost) -> f64) -> String {
    format!("{:.2} {:.2}", of(ours), of(theirs))
}

impl Workspace {
    /// Writes the crates and builds what they depend on.
    fn create(counts: &[usize]) -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let root = std::env::temp_dir().join("entable-compile");
        fs::create_dir_all(&root).unwrap();
        fs::copy(repository.join("Cargo.lock"), root.join("Cargo.lock")).unwrap();
        let workspace = Self { root };
        let mut members = Vec::new();
        for side in [Side::Ours, Side::Serde] {
            for count in counts {
                members.push(format!("\"{}\"", side.name(*count)));
                workspace.write(side, *count, Change::Nothing, 0);
                workspace.write_manifest(side, *count, repository);
            }
        }
        let manifest = format!(
            "[workspace]\nresolver = \"3\"\nmembers = [{}]\n[profile.dev]\ndebug = \"line-tables-only\"\n",
            members.join(", ")
        );
        fs::write(workspace.root.join("Cargo.toml"), manifest).unwrap();
        // Each package alone, as it is measured: dependencies of all together have other features.
        for (_, _, command) in WAYS {
            for side in [Side::Ours, Side::Serde] {
                let name = side.name(counts.first().copied().unwrap_or_default());
                cost(workspace.cargo(command).args(["-p", &name]).spawn().unwrap());
            }
        }
        workspace
    }

    fn write_manifest(&self, side: Side, count: usize, repository: &Path) {
        let name = side.name(count);
        let runtime = repository.join("runtime");
        let dependencies = match side {
            Side::Ours => format!("entable = {{ path = \"{}\" }}", runtime.display()),
            Side::Serde => {
                "serde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\""
                    .to_owned()
            }
        };
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n{dependencies}\n"
        );
        fs::write(self.root.join(name).join("Cargo.toml"), manifest).unwrap();
    }

    /// Writes the source of a crate, a module for each type.
    fn write(&self, side: Side, count: usize, change: Change, edit: u32) {
        let source = self.root.join(side.name(count)).join("src");
        fs::create_dir_all(&source).unwrap();
        let mut root = String::new();
        for at in 0..count {
            // Only the first type is edited; the others keep their files, and so their times.
            let change = if at == 0 { change } else { Change::Nothing };
            let text = side.module(at, change, if at == 0 { edit } else { 0 });
            let file = source.join(format!("m{at}.rs"));
            if fs::read_to_string(&file).unwrap_or_default() != text {
                fs::write(file, text).unwrap();
            }
            writeln!(root, "pub mod m{at};").unwrap();
        }
        fs::write(source.join("lib.rs"), root).unwrap();
    }

    fn cargo(&self, command: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.args(command).args(["--offline", "--quiet"]).current_dir(&self.root);
        // As cargo does it by default, whatever the machine has set.
        let incremental = if command.contains(&"--release") { "0" } else { "1" };
        cargo.env("CARGO_TARGET_DIR", self.root.join("target"));
        cargo.env("CARGO_INCREMENTAL", incremental);
        cargo.env_remove("RUSTFLAGS").stdout(Stdio::null());
        cargo
    }

    /// Edits a crate and builds it.
    fn build(&self, side: Side, count: usize, change: Change, command: &[&str]) -> Cost {
        let name = side.name(count);
        let edit = if change == Change::Nothing { 0 } else { std::process::id() };
        self.write(side, count, change, edit);
        if change == Change::Nothing {
            let mut clean = self.cargo(&["clean", "-p", &name]);
            if command.contains(&"--release") {
                clean.arg("--release");
            }
            cost(clean.spawn().unwrap());
        }
        cost(self.cargo(command).args(["-p", &name]).spawn().unwrap())
    }

    /// The size of the debug build's library in MB.
    fn library_size(&self, side: Side, count: usize) -> f64 {
        let library = self.root.join(format!("target/debug/lib{}.rlib", side.name(count)));
        fs::metadata(library).unwrap().len() as f64 / 1e6
    }
}

impl Side {
    fn name(self, count: usize) -> String {
        match self {
            Self::Ours => format!("ours_{count}"),
            Self::Serde => format!("serde_{count}"),
        }
    }

    /// The module of one type, with one call each way.
    fn module(self, at: usize, change: Change, edit: u32) -> String {
        let (head, calls) = match self {
            Self::Ours => (
                format!(
                    "use entable::prelude::*;\n\
                     #[derive(TableEntity)]\n\
                     #[table(name = \"Staff\", entity_type = \"T{at}\", partition_key = \"{{department}}\", row_key = \"empid_{{id:06}}\",\n\
                     index(ByEmail, row_key = \"email_{{email:lower}}\"),\n\
                     index(ByLastName, row_key = \"lastname_{{last_name}}_{{id:06}}\"))]\n"
                ),
                format!(
                    "pub fn store(value: &T{at}) -> entable::Result<entable::Row> {{ value.to_row() }}\n\
                     pub fn load(row: &entable::Row) -> entable::Result<T{at}> {{ T{at}::from_row(row) }}\n"
                ),
            ),
            Self::Serde => (
                "#[derive(serde::Serialize, serde::Deserialize)]\n".to_owned(),
                format!(
                    "pub fn store(value: &T{at}) -> serde_json::Result<String> {{ serde_json::to_string(value) }}\n\
                     pub fn load(text: &str) -> serde_json::Result<T{at}> {{ serde_json::from_str(text) }}\n"
                ),
            ),
        };
        let field = if change == Change::Field { "pub further: i32," } else { "" };
        format!(
            "// Edit {edit}.\n{head}pub struct T{at} {{ pub department: String, pub id: u32, pub first_name: String, \
             pub last_name: String, pub email: String, pub age: i32, pub salary: f64, pub active: bool, \
             pub note: Option<String>, pub visits: Option<i64>, {field} }}\n{calls}"
        )
    }
}

/// Waits for a build; adds up its CPU time and watches the memory of its compilers.
fn cost(mut child: Child) -> Cost {
    let before = cpu_seconds_of_children();
    let mut peak: f64 = 0.0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        peak = peak.max(peak_megabytes_of_children(child.id()));
        thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "a generated crate does not build");
    Cost { cpu_seconds: cpu_seconds_of_children() - before, peak_megabytes: peak }
}

/// CPU seconds of all children that were waited for, and of theirs.
fn cpu_seconds_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // Fields are counted behind the program's name, which may hold blanks.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(13) + ticks(14)) / TICKS
}

/// The largest peak of the processes that `parent` runs.
fn peak_megabytes_of_children(parent: u32) -> f64 {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let threads = fs::read_dir(format!("/proc/{parent}/task"));
    let mut pids: Vec<String> =
        children.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    for thread in threads.into_iter().flatten().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        pids.extend(text.split_whitespace().map(str::to_owned));
    }
    let peak = |pid: &String| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    pids.iter().filter_map(peak).fold(0.0, f64::max) / 1e3
}

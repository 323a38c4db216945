//! Checks what a published package needs: licence texts, metadata, and reasons for ignored advisories that are
//! still true.

use std::fs;

use crate::workspace;

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

/// Returns the text between two markers that follow each other, for each such pair.
fn between<'a>(text: &'a str, first: &str, second: &str) -> Vec<&'a str> {
    text.split(first).skip(1).filter_map(|rest| Some(rest.split_once(second)?.0)).collect()
}

#[test]
fn licence_texts_are_whole_in_each_package() {
    for folder in [
        "",
        "core/",
        "seal/",
        "embedded/",
        "azure/",
        "conformance/",
        "runtime/",
        "macros/",
        "cli/",
        "server/",
    ] {
        let mit = read(&format!("{folder}LICENSE-MIT"));
        assert!(
            mit.starts_with("MIT License") && mit.trim_end().ends_with("DEALINGS IN THE SOFTWARE.")
        );
        let mit = mit.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in
            ["Permission is hereby granted", "shall be included in all copies", "WITHOUT WARRANTY"]
        {
            assert!(mit.contains(part), "{folder}LICENSE-MIT lacks: {part}");
        }
        let apache = read(&format!("{folder}LICENSE-APACHE"));
        for section in 1..=9 {
            let number = format!("{section}. ");
            let is_there = apache.lines().any(|line| line.trim_start().starts_with(&number));
            assert!(is_there, "{folder}LICENSE-APACHE has no section {section}");
        }
        assert!(apache.contains("END OF TERMS AND CONDITIONS"));
        assert!(apache.trim_end().ends_with("limitations under the License."));
    }
}

#[test]
fn published_packages_say_what_a_registry_asks() {
    for folder in
        ["core", "seal", "embedded", "azure", "conformance", "runtime", "macros", "cli", "server"]
    {
        let path = format!("{folder}/Cargo.toml");
        let manifest = read(&path);
        for key in [
            "description",
            "license",
            "repository",
            "readme",
            "keywords",
            "categories",
            "documentation",
            "rust-version",
        ] {
            let is_given = manifest.lines().any(|line| {
                line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.']))
            });
            assert!(is_given, "{path} has no `{key}`");
        }
    }
    for folder in ["core", "seal", "embedded", "azure", "runtime"] {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let section = between(&manifest, "[package.metadata.docs.rs]", "\n\n");
        assert_eq!(section.len(), 1);
        assert!(section[0].contains("all-features = true") && section[0].contains("docsrs"));
        let library = read(&format!("{folder}/src/lib.rs"));
        assert!(library.contains("#![cfg_attr(docsrs, feature(doc_cfg))]"));
    }
}

#[test]
fn what_the_library_is_made_of_does_not_use_it() {
    for folder in ["core", "seal", "embedded", "azure", "conformance", "server"] {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let section = between(&manifest, "\n[dependencies]\n", "\n\n");
        assert_eq!(section.len(), 1, "{folder} has dependencies");
        let uses = section[0]
            .lines()
            .find(|line| line.starts_with("entable.") || line.starts_with("entable "));
        assert_eq!(uses, None, "{folder} uses the library");
    }
}

/// The file of the advisories that the frozen client of Azure tables carries.
const FROZEN: &str = "deny-azure-data-tables.toml";

/// Returns all advisories that are ignored, with their reasons.
fn ignored() -> Vec<(String, String)> {
    let mut all = [ignored_in("deny.toml"), ignored_in(FROZEN)].concat();
    all.sort();
    all
}

fn ignored_in(file: &str) -> Vec<(String, String)> {
    let config = read(file);
    let list = between(&config, "\nignore = [", "\n]");
    assert_eq!(list.len(), 1, "{file} has one list of ignored advisories");
    let entries = list[0].lines().filter(|line| !line.trim().is_empty());
    let entries = entries.map(|line| {
        let id = between(line, "id = \"", "\"");
        let reason = between(line, "reason = \"", "\" }");
        assert!(id.len() == 1 && reason.len() == 1, "an id and a reason, found: {line}");
        (id[0].to_owned(), reason[0].to_owned())
    });
    entries.collect()
}

#[test]
fn no_program_has_an_ignored_advisory_without_the_frozen_client() {
    for (id, reason) in ignored_in("deny.toml") {
        assert!(reason.contains("which no program runs"), "{id} belongs in {FROZEN}: {reason}");
    }
    let config = read("deny.toml");
    let excluded = between(&config, "\nexclude = [", "]");
    let lock = read("Cargo.lock");
    for name in between(excluded[0], "\"", "\"").into_iter().filter(|name| *name != ", ") {
        let (name, version) = name.split_once('@').unwrap_or((name, "0.21.0"));
        let package = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&package), "{name} {version} is not in Cargo.lock");
    }
}

#[test]
fn ignored_advisories_are_about_crates_that_are_locked() {
    let lock = read("Cargo.lock");
    let ignored = ignored();
    assert!(!ignored.is_empty());
    for (id, reason) in &ignored {
        let number = id.strip_prefix("RUSTSEC-").and_then(|rest| rest.split_once('-'));
        let is_id = number.is_some_and(|(year, number)| {
            year.len() == 4 && number.len() == 4 && format!("{year}{number}").parse::<u64>().is_ok()
        });
        assert!(is_id, "{id} is no id of an advisory");
        let (crate_name, why) = reason.split_once(": ").expect("a reason begins with a crate");
        let (name, version) = crate_name.split_once(' ').expect("a crate has a version");
        let package = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&package), "{id}: {name} {version} is not in Cargo.lock any more");
        assert!(why.len() > 40, "{id}: a reason says what is wrong and why it does no harm");
    }
    let mut ids: Vec<_> = ignored.iter().map(|(id, _)| id).collect();
    ids.dedup();
    assert_eq!(ids.len(), ignored.len(), "sorted, each once");
}

/// Crates whose every version, or every version below one, has an advisory that this project has met.
const MET: [(&str, &str); 4] = [
    ("instant", "RUSTSEC-2024-0384"),
    ("paste", "RUSTSEC-2024-0436"),
    ("rustls-pemfile", "RUSTSEC-2025-0134"),
    ("fxhash", "RUSTSEC-2025-0057"),
];

#[test]
fn a_crate_with_a_known_advisory_has_its_reason() {
    let (lock, ignored) = (read("Cargo.lock"), ignored());
    for (name, advisory) in MET {
        let is_locked = lock.contains(&format!("name = \"{name}\"\n"));
        let is_ignored = ignored.iter().any(|(id, _)| id == advisory);
        assert_eq!(is_locked, is_ignored, "{name} and {advisory}");
    }
}

#[test]
fn the_rust_version_is_what_dependencies_need() {
    let manifest = read("Cargo.toml");
    let version = between(&manifest, "rust-version = \"1.", "\"")[0].parse::<u32>().unwrap();
    let toolchain = read("rust-toolchain.toml");
    let pinned = between(&toolchain, "channel = \"1.", ".")[0].parse::<u32>().unwrap();
    assert!(
        version <= pinned,
        "the pinned compiler is 1.{pinned}, the packages ask for 1.{version}"
    );
    // The highest version that a direct dependency declares: redb's.
    assert_eq!(version, 90);
}

/// The workflow of the public host runs the same checks, and compares releases with every feature that can be on
/// together with the others.
#[test]
fn the_workflow_runs_the_checks_and_compares_every_feature() {
    let workflow = read(".github/workflows/ci.yml");
    assert!(workflow.contains("- run: .ci/run\n"), "the workflow does not run .ci/run");
    let compared = workflow.split("--features ").nth(1).unwrap().lines().next().unwrap();
    let manifest = read("runtime/Cargo.toml");
    let features = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let features = features.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    // `azure-wire` is a part of `azure`, whose other carrier would make the choice explicit.
    let left_out = ["default", "azure-wire", "azure-data-tables"];
    let mut wanted: Vec<&str> = features.filter(|name| !left_out.contains(name)).collect();
    let mut compared: Vec<&str> = compared.split(',').collect();
    wanted.sort_unstable();
    compared.sort_unstable();
    assert_eq!(compared, wanted);
}

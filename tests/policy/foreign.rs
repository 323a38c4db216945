//! Types of other crates in public signatures: a new major version of such a crate is one of entable too. The page of
//! features lists each with its reason, and this compares the list with the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use crate::{CRATES, Source, sources, workspace};

/// Files without public items, though some of their items are `pub`: types that no public module re-exports.
const INTERNAL: [&str; 12] = [
    "core/src/backend/layer/span_fields.rs",
    "core/src/backend/layer/verb_counts.rs",
    "runtime/src/__private/",
    "azure/src/data_tables/sender.rs",
    "azure/src/wire/",
    "core/src/row/json/",
    "embedded/src/group.rs",
    "embedded/src/overlay.rs",
    "embedded/src/unfinished_file.rs",
    "embedded/src/watched_file.rs",
    "seal/src/authentic/work.rs",
    "seal/src/content_cipher.rs",
];

/// Returns the crates that the library depends on, as code names them.
fn crates() -> BTreeSet<String> {
    ["core", "seal", "embedded", "azure", "runtime"].into_iter().flat_map(dependencies).collect()
}

fn dependencies(package: &str) -> BTreeSet<String> {
    let manifest = workspace().join(package).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let names = names.filter(|name| !name.is_empty() && !name.starts_with('#'));
    names.map(|name| name.replace('-', "_")).filter(|name| !name.starts_with("entable_")).collect()
}

/// Returns the code of a file that is compiled without tests.
fn code(source: &Source) -> String {
    let lines = source.lines.iter().filter(|line| !line.is_test);
    lines.flat_map(|line| [line.code.as_str(), "\n"]).collect()
}

fn names(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// Returns the types of other crates that a file imports, with their crates.
fn imports(code: &str, crates: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut imports = BTreeMap::new();
    for statement in code.split(';') {
        let path = statement.rfind("use ").map_or(statement, |at| &statement[at + "use ".len()..]);
        let Some(origin) = crates.iter().find(|name| path.starts_with(&format!("{name}::"))) else {
            continue;
        };
        imports.extend(
            names(path).filter(|name| is_type(name)).map(|name| (name.to_owned(), origin.clone())),
        );
    }
    imports
}

/// Returns what is public of a file, as far as its text shows it: signatures of functions, fields, aliases, re-exports,
/// and impls of traits.
fn signatures(code: &str) -> Vec<String> {
    let mut signatures = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let begins = line.trim_start();
        if !begins.starts_with("pub ") && !line.starts_with("impl") {
            continue;
        }
        let mut signature = line.to_owned();
        let is_field = begins.starts_with("pub ") && begins.ends_with(',') && begins.contains(": ");
        while !is_field && !signature.contains(['{', ';']) {
            let Some(line) = lines.next() else { break };
            signature.push_str(line);
        }
        // The braces of a re-export hold names.
        if !begins.starts_with("pub use ") {
            signature.truncate(signature.find(['{', ';']).unwrap_or(signature.len()));
        }
        signatures.push(signature);
    }
    signatures
}

/// Returns the types of other crates in a file's signatures, as `crate::Type`.
fn foreign_types(code: &str, crates: &BTreeSet<String>) -> BTreeSet<String> {
    let imports = imports(code, crates);
    let mut found = BTreeSet::new();
    for signature in signatures(code) {
        for name in names(&signature).filter(|name| is_type(name)) {
            found.extend(imports.get(name).map(|origin| format!("{origin}::{name}")));
        }
        for origin in crates {
            for (at, _) in signature.match_indices(&format!("{origin}::")) {
                let is_whole =
                    !signature[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                let path =
                    signature[at..].split(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
                let last = path.clone().next().and_then(|path| path.rsplit("::").next());
                found.extend(
                    last.filter(|last| is_whole && is_type(last))
                        .map(|last| format!("{origin}::{last}")),
                );
            }
        }
    }
    found
}

/// Returns the types that the page lists, as `crate::Type`, and whether each row has a reason.
fn listed() -> BTreeSet<String> {
    let page = fs::read_to_string(workspace().join("docs/features.md")).unwrap();
    let section = page.split("\n## Types of other crates\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut listed = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [origin, types, reason] = cells[..] else { panic!("not three cells: {row}") };
        assert!(reason.len() > 10, "no reason: {row}");
        let origin = origin.split('`').nth(1).unwrap().replace(' ', "_");
        listed.extend(types.split('`').skip(1).step_by(2).map(|name| format!("{origin}::{name}")));
    }
    listed
}

#[test]
fn types_of_other_crates_are_listed_with_reasons() {
    let crates = crates();
    assert!(crates.contains("time") && crates.contains("object_store"), "{crates:?}");
    let mut found = BTreeSet::new();
    for source in sources(&CRATES) {
        if INTERNAL.iter().any(|internal| source.path.starts_with(internal)) {
            continue;
        }
        found.extend(foreign_types(&code(&source), &crates));
    }
    let listed = listed();
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/features.md does not list {missing:?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "docs/features.md lists {gone:?}, which no signature has");
}

#[test]
fn types_are_found_in_signatures_alone() {
    let crates = BTreeSet::from(["time".to_owned(), "bytes".to_owned()]);
    let found = |code: &str| foreign_types(code, &crates).into_iter().collect::<Vec<_>>();
    let import = "use bytes::{Bytes, BytesMut};\nuse time::Date;\n";
    let of_import = |code: &str| found(&format!("{import}{code}"));
    assert_eq!(
        of_import("pub fn a(\n    b: &Bytes,\n) {\n    BytesMut::new()\n}"),
        ["bytes::Bytes"]
    );
    assert_eq!(of_import("    pub at: Option<Date>,\nfn a() -> Bytes {"), ["time::Date"]);
    assert_eq!(of_import("impl KeyPart for Date {"), ["time::Date"]);
    assert_eq!(of_import("pub(crate) fn a() -> Date {"), Vec::<String>::new());
    assert_eq!(found("pub fn a() -> time::OffsetDateTime;"), ["time::OffsetDateTime"]);
    assert_eq!(found("pub use bytes::Bytes;"), ["bytes::Bytes"]);
    assert_eq!(found("pub fn a() -> runtime::Date;"), Vec::<String>::new());
}

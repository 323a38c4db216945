//! Compares the pages with the sources: every link leads to a page and a heading that exist, and every
//! function that the architecture names is in the file that it names. Every example of a derive is
//! tested.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the pages, with their paths relative to the workspace.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "examples"] {
        for entry in fs::read_dir(workspace().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(workspace()).unwrap().to_str().unwrap().to_owned();
                pages.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    pages.sort();
    assert!(pages.len() > 15, "found only {} pages", pages.len());
    pages
}

/// Returns the text without its code blocks, in which nothing is a link or a heading.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the anchors of a page: of its headings, as the host of the repository makes them, and of
/// its `<a id>` elements.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    });
    let ids = text.split("<a id=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    headings.chain(ids).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let (mut broken, mut links) = (Vec::new(), 0);
    for (page, text) in pages() {
        // A link may be broken over two lines, but its target never is.
        for target in prose(&text).split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if target.starts_with("https://") {
                continue;
            }
            links += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = workspace().join(&page);
            let path = if file.is_empty() { path } else { path.parent().unwrap().join(file) };
            let is_there = match fs::read_to_string(&path) {
                Ok(found) => anchor.is_empty() || anchors(&found).contains(anchor),
                Err(_) => path.is_dir() && anchor.is_empty(),
            };
            if !is_there {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(links > 100, "found only {links} links");
    assert!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
}

/// Whether a source defines a function, method or macro of that name.
fn defines(source: &str, name: &str) -> bool {
    ["fn ", "macro_rules! "].iter().any(|keyword| {
        source.match_indices(&format!("{keyword}{name}")).any(|(at, found)| {
            let next = source[at + found.len()..].chars().next();
            next.is_some_and(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

#[test]
fn the_architecture_names_functions_that_exist() {
    let page = fs::read_to_string(workspace().join("docs/architecture.md")).unwrap();
    let (mut missing, mut functions, mut files) = (Vec::new(), 0, 0);
    for name in prose(&page).split('`').skip(1).step_by(2) {
        let (file, function) = match name.split_once(':') {
            Some((file, function)) => (file, Some(function)),
            None => (name, None),
        };
        // Other names in code letters are types, attributes and keys.
        if !file.contains('/') || file.contains([' ', '*', '"']) {
            continue;
        }
        let in_library = workspace().join("runtime/src").join(file);
        let path = if in_library.exists() { in_library } else { workspace().join(file) };
        files += 1;
        if !path.exists() {
            missing.push(format!("no file {file}"));
        } else if let Some(function) = function {
            functions += 1;
            if !fs::read_to_string(path).is_ok_and(|source| defines(&source, function)) {
                missing.push(format!("no function {function} in {file}"));
            }
        }
    }
    assert!(functions > 30 && files > 50, "found only {functions} functions, {files} files");
    assert!(missing.is_empty(), "docs/architecture.md names:\n  {}", missing.join("\n  "));
}

#[test]
fn a_longer_name_is_no_definition() {
    assert!(defines("pub fn insert<E>(", "insert") && defines("fn insert(", "insert"));
    assert!(!defines("fn insert_all(", "insert") && !defines("insert(", "insert"));
}

#[test]
fn the_examples_of_every_derive_are_tests() {
    let tested = fs::read_to_string(workspace().join("tests/src/lib.rs")).expect("the list");
    let pages = fs::read_dir(workspace().join("macros/docs")).expect("the pages");
    for page in pages {
        let name = page.expect("a page").file_name().into_string().expect("a name");
        assert!(tested.contains(&format!("macros/docs/{name}\"")), "no test runs {name}");
    }
}

//! Compares the pages with the sources: every link leads to a page and a heading that exist, every page is in
//! the summary, every sample runs, every setting, error and code has its row, the derive's own page has every key, and every function that the
//! architecture names is in the file that it names. Every example of a derive is tested. A term of our own links to its meaning
//! where a page first uses it, and the pictures of how things work are what their code draws.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

mod browser;
mod glossary;
mod pictures;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Where the host of the repository shows its files.
const REPOSITORY: [&str; 2] = [
    "https://github.com/entable/entable/blob/main/",
    "https://raw.githubusercontent.com/entable/entable/main/",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the pages, with their paths relative to the workspace.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/patterns", "examples"] {
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
            // The registry shows the README without the repository: its links are absolute.
            let own = REPOSITORY.iter().find_map(|host| target.strip_prefix(host));
            if target.starts_with("https://") && own.is_none() {
                continue;
            }
            assert!(
                page != "README.md" || own.is_some(),
                "{target} is dead on the registry's page"
            );
            links += 1;
            let (file, anchor) =
                own.unwrap_or(target).split_once('#').unwrap_or((own.unwrap_or(target), ""));
            let path = workspace().join(&page);
            let path = match (own, file) {
                (Some(_), _) => workspace().join(file),
                (None, "") => path,
                (None, _) => path.parent().unwrap().join(file),
            };
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

/// Returns the pages of the book, with their paths relative to `docs`.
fn chapters() -> Vec<(String, String)> {
    let chapters = pages().into_iter().filter_map(|(page, text)| {
        let page = page.strip_prefix("docs/")?.to_owned();
        (page != "SUMMARY.md").then_some((page, text))
    });
    chapters.collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

#[test]
fn the_summary_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let mut listed: Vec<_> =
        summary.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    listed.sort_unstable();
    let chapters = chapters();
    let mut chapters: Vec<_> = chapters.iter().map(|(page, _)| page.as_str()).collect();
    chapters.sort_unstable();
    assert_eq!(listed, chapters);
}

/// Returns the info strings of a page's code blocks, such as `rust,no_run`.
fn languages(text: &str) -> Vec<&str> {
    let fences = text.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
    fences.step_by(2).collect()
}

#[test]
fn every_sample_is_compiled() {
    let tested = read("tests/src/lib.rs");
    let (mut wrong, mut samples) = (Vec::new(), 0);
    for (page, text) in pages() {
        let mut has_samples = false;
        for language in languages(&text) {
            match language {
                "rust" => has_samples = true,
                // Only where a sample needs the service.
                "rust,no_run" if page == "docs/azure-setup.md" => has_samples = true,
                "sh" | "text" | "toml" | "json" => {}
                // Other languages, whose SDKs the server's judges run.
                "python" | "js" | "go" | "csharp" | "yaml" | "dockerfile"
                    if page == "docs/server.md" => {}
                // Compared with the file of the store.
                "rust,ignore" if page == "docs/write-a-store.md" => {}
                // Read by the test of the envelope.
                "example" if page == "docs/envelope.md" => {}
                other => wrong.push(format!("{page}: a block of `{other}`")),
            }
            samples += usize::from(language.starts_with("rust"));
        }
        let is_included = tested.contains(&format!("include_str!(\"../../{page}\")"));
        if has_samples != is_included {
            wrong.push(format!("{page}: samples {has_samples}, tested {is_included}"));
        }
    }
    assert!(samples > 15, "found only {samples} samples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n  "));
}

#[test]
fn the_page_about_stores_is_the_file_that_is_tested() {
    let page = read("docs/write-a-store.md");
    let blocks = page.split("\n```rust,ignore\n").skip(1);
    let blocks: Vec<_> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    let store = read("tests/third_party_store/store.rs");
    assert_eq!(blocks.join("\n"), store, "the code of the page and the file differ");
    let lines = store.lines().count();
    assert!(lines <= 200, "{lines} lines, 200 are enough for a store");
}

#[test]
fn every_picture_is_shown_and_has_a_dark_form() {
    let pages = pages();
    let mut pictures = 0;
    for entry in fs::read_dir(workspace().join("docs/images")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let picture = fs::read_to_string(&path).unwrap();
        assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"), "{name}");
        for part in ["viewBox=", "<title>", "prefers-color-scheme:dark"] {
            assert!(picture.contains(part), "{name} has no {part}");
        }
        assert!(
            pages.iter().any(|(_, text)| text.contains(&format!("images/{name})"))),
            "no page shows {name}"
        );
        pictures += 1;
    }
    assert!(pictures >= 6, "found only {pictures} pictures");
}

#[test]
fn each_pattern_says_when_how_what_it_costs_and_what_goes_wrong() {
    let (mut wrong, mut patterns) = (Vec::new(), 0);
    for (page, text) in chapters().into_iter().filter(|(page, _)| page.starts_with("patterns/")) {
        patterns += 1;
        for part in
            ["**When.**", "**How.**", "**Cost.**", "**Pitfalls.**", "](../images/", "```rust"]
        {
            if !text.contains(part) {
                wrong.push(format!("{page} has no {part}"));
            }
        }
    }
    assert!(patterns > 14, "found only {patterns} patterns");
    assert!(wrong.is_empty(), "{}", wrong.join("\n  "));
}

/// Returns the names between quotes in a text that look like the name of a setting.
fn quoted_names(text: &str) -> impl Iterator<Item = String> {
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    text.split('"').skip(1).step_by(2).filter(is_name).map(str::to_owned)
}

/// Returns the settings that the derives read: the patterns of matches and the lists of known names.
fn settings() -> BTreeSet<String> {
    let mut settings = BTreeSet::new();
    for entry in fs::read_dir(workspace().join("macros/src/attr")).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if let Some((pattern, _)) = line.split_once("=>") {
                settings.extend(quoted_names(pattern));
            }
        }
        for list in source.split("_KEYS").skip(1).filter_map(|rest| rest.split_once("= [")) {
            settings.extend(quoted_names(list.1.split("];").next().unwrap()));
        }
    }
    settings
}

/// Returns the names in code letters in the cells of a page's tables.
fn tabled(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.flat_map(|row| row.split(" | ").take(3));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_attribute_page_has_every_setting() {
    let settings = settings();
    assert!(settings.len() > 35, "found only {settings:?}");
    let page = tabled(&prose(&read("docs/attributes.md")));
    let missing: Vec<_> = settings.difference(&page).collect();
    assert!(missing.is_empty(), "docs/attributes.md has no row for {missing:?}");
}

/// The documentation that editors show has every key that the book has, with fewer words.
#[test]
fn the_documentation_of_the_derive_has_every_key_of_the_attribute_page() {
    let page = read("docs/attributes.md");
    // The derive's own keys: of the struct, of `index` and `list`, and of fields.
    let start = page.find("\n## On a struct with `TableEntity`").expect("the section");
    let end = page.find("\n## On other derives").expect("the next section");
    let keys: BTreeSet<&str> = page[start..end]
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|key| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .collect();
    assert!(keys.len() > 30, "found only {keys:?}");
    let derive = prose(&read("macros/docs/table_entity.md"));
    let code: Vec<&str> = derive.split('`').skip(1).step_by(2).collect();
    let is_word = |text: &str, key: &str| {
        text.split(|c: char| !c.is_ascii_lowercase() && c != '_').any(|word| word == key)
    };
    let missing: Vec<_> =
        keys.iter().filter(|key| !code.iter().any(|text| is_word(text, key))).collect();
    assert!(missing.is_empty(), "macros/docs/table_entity.md says nothing of {missing:?}");
}

#[test]
fn troubleshooting_has_every_predicate_and_code() {
    let page = prose(&read("docs/troubleshooting.md"));
    let rows: BTreeSet<_> = page.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    let rows: BTreeSet<_> = rows.iter().filter_map(|row| row.split('`').next()).collect();
    let source = read("core/src/error/predicates.rs");
    let predicates: BTreeSet<_> = source
        .lines()
        .filter_map(|line| line.split_once(" => ")?.0.trim().strip_prefix("is_"))
        .map(|name| format!("is_{name}"))
        .collect();
    assert!(predicates.len() > 20, "{predicates:?}");
    let missing: Vec<_> = predicates.iter().filter(|name| !rows.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/troubleshooting.md has no row for {missing:?}");

    for code in entable::ServiceCode::ALL {
        let row = format!("| `{code}` | {} | ", code.status());
        assert!(page.contains(&row), "docs/troubleshooting.md has no row that begins {row}");
    }
    let listed: BTreeSet<_> = rows.iter().filter(|row| row.starts_with("is_")).collect();
    assert_eq!(listed.len(), predicates.len(), "a row for a predicate that does not exist");
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
        let folders = ["runtime/src", "core/src", "seal/src", "embedded/src", "azure/src", ""]
            .map(|folder| workspace().join(folder).join(file));
        let [.., in_workspace] = &folders;
        let path = folders.iter().find(|path| path.exists()).unwrap_or(in_workspace);
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

/// Examples are found by what a reader wants: the first cell of a row is a question, the second links.
#[test]
fn the_examples_are_listed_by_question() {
    let page = read("examples/README.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let mut examples = 0;
    let folder = workspace().join("examples");
    let folders = ["", "blobs", "observing"].map(|of_package| folder.join(of_package));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap();
        let target = match path.is_dir() && path.join("main.rs").exists() {
            true => format!("]({name}/main.rs)"),
            false if name.ends_with(".rs") => format!("]({name})"),
            false => continue,
        };
        let is_answer =
            |row: &&&str| row.split(" | ").nth(1).is_some_and(|cell| cell.contains(&target));
        assert!(
            rows.iter().any(|row| is_answer(&row)),
            "examples/README.md has no question for {name}"
        );
        examples += 1;
    }
    assert!(examples > 25, "found only {examples} examples");
    for row in rows {
        let question = row.trim_start_matches("| ");
        assert!(!question.starts_with('['), "an example where a question belongs: {row}");
    }
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

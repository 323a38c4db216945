//! The structure of the library, as rules that fail: which module may use which, how many files may
//! need each other, and what no file may hold.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

mod border;
mod examples;
mod foreign;
mod graph;
mod mutations;
mod release;
mod structure;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// A source file of the library.
struct Source {
    /// Relative to the workspace.
    path: String,
    lines: Vec<Line>,
}

struct Line {
    number: usize,
    /// The line without comments and the insides of literals.
    code: String,
    text: String,
    /// Inside an item that only tests see.
    is_test: bool,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let mut sources = Vec::new();
    for folder in folders {
        collect(&workspace().join(folder), &mut sources);
    }
    assert!(!sources.is_empty());
    sources
}

fn collect(folder: &Path, into: &mut Vec<Source>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(workspace()).unwrap().to_str().unwrap().replace('\\', "/");
            let mut lines = lines_of(&text);
            if path.contains("/tests/") || path.ends_with("/tests.rs") {
                lines.iter_mut().for_each(|line| line.is_test = true);
            }
            into.push(Source { path, lines });
        }
    }
}

/// The lines of a file; knows comments, literals and the extent of `#[cfg(test)]` items.
fn lines_of(text: &str) -> Vec<Line> {
    let codes = code_of(text);
    let mut lines = Vec::new();
    // Braces that are open in the test item, once it is met.
    let mut test: Option<(usize, bool)> = None;
    for (at, (text, code)) in text.lines().zip(codes.lines()).enumerate() {
        if code.trim_start().starts_with("#[cfg(test)]") {
            test = Some((0, false));
        }
        lines.push(Line {
            number: at + 1,
            code: code.to_owned(),
            text: text.to_owned(),
            is_test: test.is_some(),
        });
        if let Some((open, entered)) = &mut test {
            for c in code.chars() {
                match c {
                    '{' => (*open, *entered) = (*open + 1, true),
                    '}' => *open -= 1,
                    _ => {}
                }
            }
            if *open == 0 && (*entered || code.trim_end().ends_with(';')) {
                test = None;
            }
        }
    }
    lines
}

/// The text with comments and the insides of string and character literals blanked out.
fn code_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let blank = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' if rest.starts_with("r#\"") => rest.find("\"#").map_or(rest.len(), |end| end + 2),
            '\'' => character(rest),
            _ => 0,
        };
        let (blanked, after) = rest.split_at(if blank == 0 { c.len_utf8() } else { blank });
        if blank == 0 {
            out.push(c);
        } else {
            out.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    out
}

/// Bytes of the string literal at the start.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of the character literal at the start; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            text[at + 1..].find('\'').map_or(0, |end| at + 1 + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

fn no_violations(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n  {}", violations.join("\n  "));
}

/// The crates of the library, each above the one before it.
const CRATES: [&str; 5] = ["core/src", "seal/src", "embedded/src", "azure/src", "runtime/src"];

/// The modules of a crate's `lib.rs` with their places in the list.
fn floors(src: &str) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(workspace().join(src).join("lib.rs")).unwrap();
    let names = text.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?;
        line.strip_suffix(';').map(str::to_owned)
    });
    names.enumerate().map(|(at, name)| (name, at)).collect()
}

/// The names that a crate's `lib.rs` re-exports from its modules, with their modules.
fn root_names(src: &str) -> BTreeMap<String, String> {
    const START: &str = "pub use crate::{";
    let text = fs::read_to_string(workspace().join(src).join("lib.rs")).unwrap();
    let mut names = BTreeMap::new();
    for (at, _) in text.match_indices(START) {
        let block = text[at + START.len()..].split("};").next().unwrap();
        let mut module = "";
        for piece in block.split([',', '{', '}']).map(str::trim) {
            let name = match piece.split_once("::") {
                Some((head, name)) => {
                    module = head;
                    name
                }
                None => piece,
            };
            names.insert(name.to_owned(), module.to_owned());
        }
    }
    names
}

/// The top modules that a file's code names after `crate::`.
fn used_modules(source: &Source) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    let code: Vec<&Line> = source.lines.iter().filter(|line| !line.is_test).collect();
    for (at, line) in code.iter().enumerate() {
        for (found, _) in line.code.match_indices("crate::") {
            let after = &line.code[found + "crate::".len()..];
            if let Some(group) = after.strip_prefix('{') {
                // The group may go on over the following lines.
                let mut group = group.to_owned();
                code[at + 1..].iter().for_each(|line| group.push_str(&line.code));
                used.extend(heads_of_group(&group).into_iter().map(|name| (line.number, name)));
            } else {
                used.push((line.number, name_at(after)));
            }
        }
    }
    used
}

/// The first names of the entries of a `{..}` whose opening brace is taken off.
fn heads_of_group(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let (mut depth, mut is_head) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_head = true,
            c if is_head && (c.is_alphanumeric() || c == '_') => {
                heads.push(name_at(&group[at..]));
                is_head = false;
            }
            _ => {}
        }
    }
    heads
}

fn name_at(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn a_module_uses_only_what_stands_above_it() {
    let violations: Vec<_> = CRATES.into_iter().flat_map(uses_of_modules_below).collect();
    no_violations("a module uses modules above its own line in lib.rs", &violations);
}

fn uses_of_modules_below(src: &str) -> Vec<String> {
    let floors = floors(src);
    assert!(floors.len() > 10, "lib.rs was not understood: {floors:?}");
    let root_names = root_names(src);
    let is_known = |(name, module)| root_names.get(name).is_some_and(|found| found == module);
    let known =
        [("Filter", "filter"), ("Embedded", "handle"), ("KeyId", "envelope"), ("Azure", "backend")];
    assert!(known.into_iter().any(is_known), "{root_names:?}");
    let mut violations = Vec::new();
    for source in sources(&[src]) {
        let within = source.path.trim_start_matches(src).trim_start_matches('/');
        let module = within.split('/').next().unwrap().trim_end_matches(".rs");
        let Some(own) = floors.get(module) else { continue };
        for (number, used) in used_modules(&source) {
            let used = root_names.get(&used).unwrap_or(&used);
            // Derives and macros come from elsewhere, and so do the modules of a lower crate.
            let Some(floor) = floors.get(used) else { continue };
            if floor > own {
                violations.push(format!("{}:{number} uses `{used}`, which is below", source.path));
            }
        }
    }
    violations
}

#[test]
fn the_two_wings_do_not_see_each_other() {
    let mut violations = Vec::new();
    for (wing, other) in [("backend", "entity"), ("entity", "backend")] {
        for source in sources(&["runtime/src"]) {
            let of_wing = [format!("runtime/src/{wing}/"), format!("runtime/src/{wing}.rs")];
            if !of_wing.iter().any(|path| source.path.starts_with(path)) {
                continue;
            }
            let used = used_modules(&source).into_iter().filter(|(_, used)| used == other);
            violations.extend(used.map(|(number, _)| format!("{}:{number}", source.path)));
        }
    }
    no_violations("backend and entity do not use each other", &violations);
}

#[test]
fn nothing_panics_on_data() {
    const CALLS: [&str; 8] = [
        ".unwrap()",
        ".expect(",
        ".unwrap_err()",
        ".expect_err(",
        "todo!(",
        "unimplemented!(",
        "unreachable!(",
        "dbg!(",
    ];
    let mut violations = Vec::new();
    for source in sources(&[&CRATES[..], &["macros/src"]].concat()) {
        for line in source.lines.iter().filter(|line| !line.is_test) {
            let calls = CALLS.iter().filter(|call| line.code.contains(**call));
            violations.extend(calls.map(|call| format!("{}:{} {call}", source.path, line.number)));
        }
    }
    no_violations("library code returns errors", &violations);
}

/// Returns whether a line has an arm of a `match` of a condition, which `if` and `else` say more simply.
fn has_arm_of_bool(code: &str) -> bool {
    let is_arm = |(at, value): (usize, &str)| {
        let (before, after) = (code[..at].trim_end(), &code[at + value.len()..]);
        let starts = before.is_empty() || before.ends_with(['{', '}', ',']);
        starts && (after.trim_start().starts_with("=>") || after.starts_with(" if "))
    };
    ["true", "false"].iter().any(|value| code.match_indices(value).any(is_arm))
}

#[test]
fn a_condition_is_an_if() {
    let mut violations = Vec::new();
    for source in sources(&[
        "seal/src",
        "embedded/src",
        "azure/src",
        "conformance/src",
        "runtime/src",
        "macros/src",
        "cli/src",
        "server/src",
    ]) {
        let has_arm = |line: &&Line| {
            let example = line.text.trim_start().strip_prefix("///");
            has_arm_of_bool(&line.code) || example.is_some_and(has_arm_of_bool)
        };
        let arms = source.lines.iter().filter(has_arm);
        violations.extend(arms.map(|line| format!("{}:{}", source.path, line.number)));
    }
    no_violations("a condition is an `if`, not a `match` of `true` and `false`", &violations);
}

#[test]
fn arms_of_conditions_are_found() {
    for arm in [
        "    true => 1,",
        "false if x => {",
        "match x { true => 1, _ => 2 }",
        "{ _ => 1, false => 2 }",
    ] {
        assert!(has_arm_of_bool(arm), "{arm}");
    }
    for other in
        ["    (true, false) => 1,", "truest => 1,", "Some(true) => 1,", "Is { up: true } => 1,"]
    {
        assert!(!has_arm_of_bool(other), "{other}");
    }
}

#[test]
fn sources_are_ascii() {
    let mut violations = Vec::new();
    for source in sources(&[
        "core/src",
        "seal/src",
        "embedded/src",
        "azure/src",
        "conformance/src",
        "runtime/src",
        "macros/src",
    ]) {
        let lines = source.lines.iter().filter(|line| !line.is_test && !line.text.is_ascii());
        violations.extend(lines.map(|line| format!("{}:{}", source.path, line.number)));
    }
    no_violations("library sources are ASCII", &violations);
}

#[test]
fn every_file_says_what_it_is() {
    let silent = sources(&[
        "core/src",
        "seal/src",
        "embedded/src",
        "azure/src",
        "conformance/src",
        "runtime/src",
        "macros/src",
        "tests",
    ])
    .into_iter()
    // Cases of compile errors are about ten lines each and named by their mistake.
    .filter(|source| !source.path.contains("/ui/"))
    .filter(|source| !source.lines.first().is_some_and(|line| line.text.starts_with("//! ")))
    .map(|source| source.path);
    no_violations("a file begins with a line of module docs", &silent.collect::<Vec<_>>());
}

/// The rules above are worth what the reader of sources is.
mod the_reader {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "test.rs".into(), lines: lines_of(text) }
    }

    #[test]
    fn knows_comments_and_literals() {
        assert_eq!(code_of("a // b"), "a     ");
        assert_eq!(code_of("a(\"b \\\" .unwrap()\", 'c')"), "a(                ,    )");
        assert_eq!(code_of("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
        assert_eq!(code_of("'\\'' '\\u{1f}' '{'"), " ".repeat(17));
        assert_eq!(code_of("r#\"x\"#;/* { */"), "      ;       ");
    }

    #[test]
    fn knows_test_items() {
        let text = "a;\n#[cfg(test)]\nmod tests {\n  fn f() {}\n}\nb;\n#[cfg(test)]\nmod t;\nc;";
        let tests: Vec<bool> = lines_of(text).iter().map(|line| line.is_test).collect();
        assert_eq!(tests, [false, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn knows_what_is_used() {
        let text = "use crate::{\n    edm::{Ticks, Value},\n    key,\n};\nlet x = crate::row::Row;\n\
                    #[cfg(test)]\nuse crate::table::Table;\n//! crate::doc";
        let used: Vec<String> = used_modules(&source(text)).into_iter().map(|(_, n)| n).collect();
        assert_eq!(used, ["edm", "key", "row"]);
    }
}

/// The suite is worth what it is checked against: each promise says where it was made.
#[test]
fn every_promise_cites_its_section() {
    let mut promises = 0;
    for source in sources(&["conformance/src"]) {
        // Where the service promises nothing, this crate chose. A setup and a survey promise nothing.
        if ["choice.rs", "setup.rs", "survey.rs"].iter().any(|name| source.path.ends_with(name)) {
            continue;
        }
        for (at, line) in source.lines.iter().enumerate() {
            let is_other = line.text.contains("fn $") || line.text.contains("fn keeps(");
            if is_other || !line.text.trim_start().starts_with("pub async fn ") {
                continue;
            }
            let above = source.lines[..at].iter().rev();
            let docs = above.take_while(|line| line.text.trim_start().starts_with("///"));
            let first = docs.last().map_or("", |line| line.text.trim_start());
            let cites = first.strip_prefix("/// ").is_some_and(|t| t.starts_with(char::is_numeric));
            assert!(cites, "{}:{}: which section promises it?", source.path, line.number);
            promises += 1;
        }
    }
    assert!(promises > 100, "{promises} promises were found");
}

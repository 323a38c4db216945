//! Tests that `docs/guide.md` has every row of the design guide and names every test of it, and no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 4
        && bytes[0].is_ascii_lowercase()
        && bytes[1].is_ascii_digit()
        && bytes[2].is_ascii_digit()
        && bytes[3] == b'_'
}

#[test]
fn the_documentation_names_every_test_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    let folders = ["guide", "sets"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    for entry in folders.into_iter().flatten() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        let functions = source.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
        tests.extend(functions.filter(|name| is_name(name)).map(str::to_owned));
    }
    let documentation = fs::read_to_string(root.join("../docs/guide.md")).unwrap();
    let quoted = documentation.split('`').skip(1).step_by(2);
    let named: BTreeSet<String> = quoted.filter(|name| is_name(name)).map(str::to_owned).collect();
    assert_eq!(named, tests);
}

/// The async tests of `tests/guide/` that do not run on both stores, by the beginnings of their names, each
/// with the words by which the page says where they run.
const ELSEWHERE: [(&str, &str); 25] = [
    ("a13_stored_", ON_THE_EMULATOR),
    ("b06_", ON_PAUSED_TIME),
    ("d09_", ON_PAUSED_TIME),
    ("d11_", ON_PAUSED_TIME),
    ("e05_", ON_PAUSED_TIME),
    ("k09_only_", ON_PAUSED_TIME),
    ("k02_a_folder_of_blobs_takes_", "K2 with an entity's blobs"),
    ("k06_k07_k10_a_crash_", "K6, K7 and K10 with a crash"),
    ("p04_eight_", ON_PAUSED_TIME),
    ("p06_throttling_", ON_PAUSED_TIME),
    ("u01_u02_", "U1, U2 and U5 to U9"),
    ("u05_", "U1, U2 and U5 to U9"),
    ("u06_u07_", "U1, U2 and U5 to U9"),
    ("u06_u08_", "U1, U2 and U5 to U9"),
    ("u08_", "U1, U2 and U5 to U9"),
    ("u09_", "U1, U2 and U5 to U9"),
    ("v12_", ON_PAUSED_TIME),
    ("v13_", "V13 (a second process)"),
    ("y01_", ON_THE_EMULATOR),
    ("y02_", "compute keys, filters, ticks or signatures"),
    ("y04_", ON_THE_EMULATOR),
    ("y07_a_range_", ON_THE_EMULATOR),
    ("y08_", ON_THE_EMULATOR),
    ("z01_", ON_PAUSED_TIME),
    ("z08_", ON_PAUSED_TIME),
];

const ON_PAUSED_TIME: &str =
    "that measure time or wait: of B6, D9, D11, E5, K9, P4, P6, V12, Z1 and Z8";

const ON_THE_EMULATOR: &str =
    "A13 and section Y that send requests to a service | the emulator; marked `ignored`";

#[test]
fn tests_run_where_the_documentation_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/guide.md")).unwrap();
    let (head, _) = page.split_once("# The answers").unwrap();
    let (mut on_both, mut elsewhere) = (0, BTreeSet::new());
    for entry in fs::read_dir(root.join("guide")).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut before = "";
        // Only functions of the file, not those inside of others: these begin their line.
        for function in source.split("\nasync fn ") {
            // The text behind the last function's end belongs to the next function: its attributes.
            let end = function.rsplit_once("\n}\n").map_or(function, |(_, end)| end);
            let attributes = std::mem::replace(&mut before, end);
            let Some((name, rest)) = function.split_once('(') else { continue };
            if !is_name(name) {
                continue;
            }
            let (body, _) = rest.split_once("\n}").unwrap();
            if body.contains("on_both(") {
                on_both += 1;
                continue;
            }
            let exception = ELSEWHERE.iter().find(|(begin, _)| name.starts_with(begin));
            let (begin, words) =
                exception.unwrap_or_else(|| panic!("{name} is not on both stores"));
            assert!(head.contains(words), "the page does not say where {name} runs");
            assert_eq!(attributes.contains("#[ignore"), *words == ON_THE_EMULATOR, "{name}");
            assert_eq!(attributes.contains("start_paused"), *words == ON_PAUSED_TIME, "{name}");
            elsewhere.insert(*begin);
        }
    }
    assert!(on_both > 170, "{on_both} tests run on both stores");
    let listed: BTreeSet<&str> = ELSEWHERE.iter().map(|(begin, _)| *begin).collect();
    assert_eq!(elsewhere, listed);
}

/// The sections of the design guide with the number of their rows, which are numbered from 1.
const SECTIONS: [(char, usize); 26] = [
    ('A', 22),
    ('B', 13),
    ('C', 15),
    ('D', 12),
    ('E', 10),
    ('F', 11),
    ('G', 13),
    ('H', 15),
    ('I', 16),
    ('J', 10),
    ('K', 12),
    ('L', 15),
    ('M', 5),
    ('N', 10),
    ('O', 10),
    ('P', 6),
    ('Q', 5),
    ('R', 5),
    ('S', 3),
    ('T', 4),
    ('U', 11),
    ('V', 18),
    ('W', 10),
    ('X', 15),
    ('Y', 8),
    ('Z', 8),
];

#[test]
fn the_documentation_has_every_row_with_its_status() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/guide.md")).unwrap();
    let mut expected: Vec<String> = SECTIONS
        .iter()
        .flat_map(|(section, rows)| (1..=*rows).map(move |row| format!("{section}{row}")))
        .collect();
    assert_eq!(expected.len(), 282);
    let (mut found, mut statuses) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, says, status, answer, link] = cells.as_slice() else { continue };
        let Some(section) = id.chars().next().filter(char::is_ascii_uppercase) else { continue };
        if id[section.len_utf8()..].parse::<usize>().is_err() {
            continue;
        }
        found.push((*id).to_owned());
        *statuses.entry(*status).or_default() += 1;
        assert!(says.len() > 8, "{id} has no text");
        assert!(link.contains("](https://learn.microsoft.com/"), "{id} has no link");
        match *status {
            "proved" => {
                let has_test = answer.split('`').skip(1).step_by(2).any(is_name);
                let is_elsewhere = answer.contains("`tests/") || answer.starts_with("rows ");
                let is_everywhere = answer.contains("every test of this section");
                assert!(has_test || is_elsewhere || is_everywhere, "{id} names no test: {answer}");
            }
            "documented" => assert!(
                answer.contains(".md") || answer.contains("](#") || answer.len() > 40,
                "{id} names no paragraph: {answer}"
            ),
            "partial" => assert!(
                answer.starts_with("as ") || answer.split_whitespace().count() > 5,
                "{id} gives no reason: {answer}"
            ),
            "not applicable" => {}
            other => panic!("{id} has the status {other}"),
        }
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let count = |status| statuses.get(status).copied().unwrap_or_default();
    let figures = ["proved", "documented", "partial", "not applicable"]
        .map(|status| format!("{} {status}", count(status)))
        .join(", ");
    assert!(
        page.contains(&format!("Of the 282 rows: {figures}.")),
        "the head does not say {figures}"
    );
}

//! Tests that `docs/guide.md` names every test of the design guide and no other.

use std::{collections::BTreeSet, fs, path::Path};

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

//! The deliberate mistakes: each patch says what it breaks and which test notices it, and the list has it.

use std::{fs, path::Path};

use crate::{no_violations, workspace};

/// A patch in `tests/mutations`, by what its first lines say.
struct Mistake {
    name: String,
    sentence: String,
    target: String,
    test: String,
}

impl Mistake {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let line = |start: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(start));
            found.unwrap_or_else(|| panic!("{name} has no line `{start}..`")).to_owned()
        };
        let sentence = line("mistake: ");
        let noticed_by = line("noticed-by: ");
        let (target, test) = noticed_by.split_once(' ').unwrap();
        let (target, test) = (target.to_owned(), test.to_owned());
        Self { name, sentence, target, test }
    }

    /// The line of the list.
    fn row(&self) -> String {
        format!("| `{}` | {} | `{} {}` |", self.name, self.sentence, self.target, self.test)
    }

    /// Whether the test is a function in the file that its path names.
    fn has_test(&self) -> bool {
        let path: Vec<_> = self.test.split("::").collect();
        let Some((test, modules)) = path.split_last() else { return false };
        let file = format!("tests/{}/{}.rs", self.target, modules.join("/"));
        let text = fs::read_to_string(workspace().join(file)).unwrap_or_default();
        text.contains(&format!("fn {test}()"))
    }
}

fn mistakes() -> Vec<Mistake> {
    let folder = fs::read_dir(workspace().join("tests/mutations")).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "patch"));
    paths.sort();
    paths.iter().map(|path| Mistake::read(path)).collect()
}

#[test]
fn the_list_has_each_mistake_and_who_notices_it() {
    let list = fs::read_to_string(workspace().join("tests/mutations.md")).unwrap();
    let listed: Vec<_> = list.lines().filter(|line| starts_with_number(line)).collect();
    let rows: Vec<_> = mistakes().iter().map(Mistake::row).collect();
    assert_eq!(listed, rows);
}

/// Whether a line of the list begins with a patch, which begins with its number.
fn starts_with_number(line: &str) -> bool {
    let cell = line.strip_prefix("| `");
    cell.is_some_and(|cell| cell.starts_with(|first: char| first.is_ascii_digit()))
}

#[test]
fn the_tests_that_notice_mistakes_exist() {
    let mistakes = mistakes();
    assert!(mistakes.len() >= 50, "only {} patches were found", mistakes.len());
    let missing = mistakes.iter().filter(|mistake| !mistake.has_test());
    let missing: Vec<_> = missing.map(Mistake::row).collect();
    no_violations("each mistake is noticed by a test", &missing);
}

//! Counts the public methods whose documentation has an example that asserts something, and holds the number.

use crate::sources;

/// The number of public methods with an asserting example. It may rise: write the new number here.
const WITH_EXAMPLE: usize = 177;

/// Methods that every program calls: each has an asserting example.
const EACH_METHOD_OF: [&str; 7] = [
    "runtime/src/table/typed.rs",
    "runtime/src/table/typed_write.rs",
    "runtime/src/query/build.rs",
    "runtime/src/query/pages.rs",
    "runtime/src/query/fan_out.rs",
    "runtime/src/entity/stored.rs",
    "runtime/src/worker/run.rs",
];

/// Returns the name of a public method that a line begins.
fn method(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("    pub ")?;
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[test]
fn methods_have_examples_that_assert() {
    let (mut with_example, mut missing) = (0, Vec::new());
    for source in sources(&["runtime/src"]) {
        let mut documentation = String::new();
        for line in &source.lines {
            let text = line.text.trim();
            if text.starts_with("///") || text.starts_with("#[") {
                documentation.push_str(text);
                documentation.push('\n');
                continue;
            }
            if let Some(name) = method(&line.text).filter(|_| !line.is_test) {
                let is_hidden = documentation.contains("doc(hidden)");
                if documentation.contains("```") && documentation.contains("assert") {
                    with_example += 1;
                } else if EACH_METHOD_OF.contains(&source.path.as_str()) && !is_hidden {
                    missing.push(format!("{}: {name}", source.path));
                }
            }
            documentation.clear();
        }
    }
    assert!(missing.is_empty(), "no asserting example:\n  {}", missing.join("\n  "));
    assert!(
        with_example >= WITH_EXAMPLE,
        "{with_example} methods have an asserting example, {WITH_EXAMPLE} had one"
    );
}

#[test]
fn no_example_is_ignored() {
    for source in sources(&["runtime/src", "macros/src"]) {
        for line in &source.lines {
            let is_ignored =
                line.text.trim_start().starts_with("//") && line.text.contains("```ignore");
            assert!(!is_ignored, "{}:{}: an example that nobody runs", source.path, line.number);
        }
    }
}

#[test]
fn knows_methods() {
    assert_eq!(method("    pub async fn get<V: FullView>(&self"), Some("get"));
    assert_eq!(method("    pub const fn name(&self)"), Some("name"));
    assert_eq!(method("    pub(crate) fn name(&self)"), None);
    assert_eq!(method("    fn name(&self)"), None);
}

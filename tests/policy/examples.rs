//! Counts the public methods whose documentation has an example that asserts something, and holds the number.

use crate::{CRATES, sources};

/// The number of public methods with an asserting example. It may rise: write the new number here.
const WITH_EXAMPLE: usize = 409;

/// Types that programs use: each of their public methods has an asserting example.
const EACH_METHOD_OF: [&str; 58] = [
    "AccessPolicy",
    "AccountKey",
    "AnyPath",
    "Azure",
    "AzureOptions",
    "Bag",
    "Blob",
    "BlobLog",
    "BlobTarget",
    "Bulk",
    "BulkReport",
    "Client",
    "ClientBuilder",
    "Column",
    "Condition",
    "CostClass",
    "CreateTables",
    "Cursor",
    "Dropped",
    "DynamicEntity",
    "DynamicTable",
    "ETag",
    "Embedded",
    "Error",
    "ErrorKind",
    "Explain",
    "Filter",
    "Flush",
    "KeyRef",
    "KeyScope",
    "Keyring",
    "KeyringBuilder",
    "Keys",
    "Layout",
    "LogRecord",
    "Lookup",
    "Memory",
    "MessageQueue",
    "Page",
    "Partition",
    "Patch",
    "Path",
    "Point",
    "Predicate",
    "Query",
    "Range",
    "Report",
    "RetryPolicy",
    "RowView",
    "Scan",
    "SetOf",
    "SetTable",
    "Stored",
    "Table",
    "Transaction",
    "Upgrade",
    "Value",
    "Worker",
];

/// Returns the name of a public method that a line begins.
fn method(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("    pub ")?;
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Returns the type whose inherent methods a line begins: `Query` of `impl<T, I> Query<T, I> {`.
fn inherent_type(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0
        });
        rest = &rest[end?.0 + 1..];
    }
    let is_trait = rest.contains(" for ");
    let end = rest.find(['<', '{']).unwrap_or(rest.len());
    (!is_trait).then(|| rest[..end].trim())
}

#[test]
fn methods_have_examples_that_assert() {
    let (mut with_example, mut missing) = (0, Vec::new());
    for source in sources(&CRATES) {
        let (mut documentation, mut of) = (String::new(), None);
        for line in &source.lines {
            let text = line.text.trim();
            if line.text.starts_with("impl") {
                of = inherent_type(&line.text);
            }
            if text.starts_with("///") || text.starts_with("#[") {
                documentation.push_str(text);
                documentation.push('\n');
                continue;
            }
            if let Some(name) = method(&line.text).filter(|_| !line.is_test) {
                let is_hidden = documentation.contains("doc(hidden)");
                if documentation.contains("```") && documentation.contains("assert") {
                    with_example += 1;
                } else if of.is_some_and(|of| EACH_METHOD_OF.contains(&of)) && !is_hidden {
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

/// The traits, derives, aliases and empty types of the prelude, which have no inherent methods.
const WITHOUT_METHODS: [&str; 17] = [
    "Aggregate",
    "BoxError",
    "EdmEnum",
    "EdmValue",
    "EntitySet",
    "FromRow",
    "FullView",
    "KeyPart",
    "Message",
    "Projection",
    "Properties",
    "Queue",
    "SetMembers",
    "StreamExt",
    "TableEntity",
    "TryStreamExt",
    "Variant",
];

#[test]
fn each_type_of_the_prelude_has_examples() {
    let prelude = sources(&["runtime/src"]);
    let prelude = prelude.iter().find(|source| source.path.ends_with("src/prelude.rs")).unwrap();
    let code = prelude.lines.iter().filter(|line| !line.text.trim_start().starts_with("//"));
    let code: String = code.map(|line| format!("{}\n", line.text)).collect();
    let names = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names: Vec<&str> =
        names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())).collect();
    assert!(names.contains(&"Client") && names.len() > 40, "{names:?}");
    let known = |name| EACH_METHOD_OF.contains(name) || WITHOUT_METHODS.contains(name);
    let unknown: Vec<&&str> = names.iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "types of the prelude that no test asks for examples: {unknown:?}");
    let gone: Vec<&&str> = WITHOUT_METHODS.iter().filter(|name| !names.contains(name)).collect();
    assert!(gone.is_empty(), "not in the prelude: {gone:?}");
}

#[test]
fn no_example_is_ignored() {
    for source in sources(&[&CRATES[..], &["macros/src"]].concat()) {
        for line in &source.lines {
            let is_ignored =
                line.text.trim_start().starts_with("//") && line.text.contains("```ignore");
            assert!(!is_ignored, "{}:{}: an example that nobody runs", source.path, line.number);
        }
    }
}

#[test]
fn knows_types() {
    assert_eq!(inherent_type("impl Client {"), Some("Client"));
    assert_eq!(inherent_type("impl<E: TableEntity> Table<E> {"), Some("Table"));
    assert_eq!(inherent_type("impl<T, I: Into<Vec<T>>> Query<T, I>"), Some("Query"));
    assert_eq!(inherent_type("impl<E> Clone for Table<E> {"), None);
    assert_eq!(inherent_type("struct Table {"), None);
}

#[test]
fn knows_methods() {
    assert_eq!(method("    pub async fn get<V: FullView>(&self"), Some("get"));
    assert_eq!(method("    pub const fn name(&self)"), Some("name"));
    assert_eq!(method("    pub(crate) fn name(&self)"), None);
    assert_eq!(method("    fn name(&self)"), None);
}

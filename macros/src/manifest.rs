//! Finds out from the manifest of the user's package whether it calls entable by another name.

use std::sync::OnceLock;

/// Returns the name under which the package being compiled depends on entable, if it is another one
/// and the manifest says so. `None` without a manifest, as without cargo.
pub(crate) fn other_name_of_entable() -> Option<&'static str> {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR")?;
        let path = std::path::Path::new(&folder).join("Cargo.toml");
        other_name(&std::fs::read_to_string(path).ok()?)
    };
    NAME.get_or_init(read).as_deref()
}

/// Returns the name of a dependency with `package = "entable"`, unless one is called `entable`.
fn other_name(manifest: &str) -> Option<String> {
    let mut table = String::new();
    let mut found = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = header.to_owned();
        }
        let (in_list, of_table) = match table.rsplit_once("dependencies") {
            Some((_, "")) => (true, None),
            Some((_, rest)) => (false, rest.strip_prefix('.')),
            None => (false, None),
        };
        let key = line.split(['=', '.']).next().unwrap_or_default().trim();
        if of_table == Some("entable") || (in_list && key == "entable") {
            return None;
        }
        let text = line.replace(' ', "");
        if !text.contains("package=\"entable\"") {
            continue;
        }
        match (in_list, of_table) {
            (true, _) => found = Some(key.replace('-', "_")),
            (false, Some(name)) => found = Some(name.replace('-', "_")),
            (false, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::other_name;

    #[test]
    fn a_renamed_dependency_is_found() {
        let inline = "[dependencies]\nmy-tables = { version = \"1\", package = \"entable\" }\n";
        assert_eq!(other_name(inline).as_deref(), Some("my_tables"));
        let table = "[dev-dependencies.tables]\npackage=\"entable\"\n";
        assert_eq!(other_name(table).as_deref(), Some("tables"));
        let target = "[target.'cfg(unix)'.dependencies]\ntables = { package = \"entable\" }\n";
        assert_eq!(other_name(target).as_deref(), Some("tables"));
    }

    #[test]
    fn a_dependency_under_its_own_name_is_left_alone() {
        assert_eq!(other_name("[dependencies]\nentable = \"1\"\n"), None);
        assert_eq!(other_name("[dependencies]\nentable.workspace = true\n"), None);
        let both = "[dependencies]\nold = { package = \"entable\" }\n[dependencies.entable]\n";
        assert_eq!(other_name(both), None);
        assert_eq!(other_name("[package]\nname = \"entable\"\n"), None);
        assert_eq!(other_name("[dependencies]\nserde = \"1\"\n"), None);
    }
}

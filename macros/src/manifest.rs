//! Reads from the manifest of the user's package whether it depends on entable under another name.

use std::{fs, path::Path, sync::OnceLock};

/// Returns the name under which the manifest of the package being compiled depends on entable, if it is not
/// `entable`. Reads the workspace's manifest for an inherited dependency. Returns `None` if there is no such
/// dependency or no manifest, for example in a build without cargo.
pub(crate) fn other_name_of_entable() -> Option<&'static str> {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR")?;
        let folder = Path::new(&folder);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        other_name(&manifest, || workspace_of(folder))
    };
    NAME.get_or_init(read).as_deref()
}

/// Returns the manifest of the workspace that contains a package's folder.
fn workspace_of(folder: &Path) -> Option<String> {
    let manifests = folder.ancestors().map(|folder| fs::read_to_string(folder.join("Cargo.toml")));
    manifests.flatten().find(|manifest| {
        let mut lines = manifest.lines().map(str::trim);
        lines.any(|line| line == "[workspace]" || line.starts_with("[workspace."))
    })
}

/// Returns the name of a dependency with `package = "entable"`. Returns `None` if there is none, or
/// if a dependency is named `entable`. Reads the workspace's manifest for a dependency with
/// `workspace = true`.
fn other_name(manifest: &str, workspace: impl FnOnce() -> Option<String>) -> Option<String> {
    let mut inherited = Vec::new();
    let mut found = None;
    for (name, setting) in dependencies(manifest, false) {
        // The default path `::entable` is then correct, whatever other names the package uses.
        if name == "entable" {
            return None;
        }
        match setting {
            DependencyLine::Package => found = Some(name),
            DependencyLine::Workspace => inherited.push(name),
            DependencyLine::Other => {}
        }
    }
    let of_workspace = || {
        let manifest = (!inherited.is_empty()).then(workspace)??;
        let mut renamed = dependencies(&manifest, true).into_iter();
        renamed.find_map(|(name, setting)| {
            (setting == DependencyLine::Package && inherited.contains(&name)).then_some(name)
        })
    };
    // Cargo turns `-` in a dependency's name into `_` in the crate's name.
    found.or_else(of_workspace).map(|name| name.replace('-', "_"))
}

/// A dependency, as a line of a manifest declares it.
#[derive(Debug, PartialEq, Eq)]
enum DependencyLine {
    /// `package = "entable"`: the dependency is entable.
    Package,
    /// `workspace = true`: the workspace's manifest declares the dependency.
    Workspace,
    Other,
}

/// Reads the lines about dependencies in a manifest. Returns the name of each dependency and what the line says
/// about it. Reads `[workspace.dependencies]` if `of_workspace` is set, otherwise all dependencies of the package
/// itself.
fn dependencies(manifest: &str, of_workspace: bool) -> Vec<(String, DependencyLine)> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        let header = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        if let Some(header) = header {
            table = header.to_owned();
        }
        let Some((before, rest)) = table.rsplit_once("dependencies") else { continue };
        if (before == "workspace.") != of_workspace {
            continue;
        }
        let key = line.split(['=', '.']).next().unwrap_or_default().trim();
        let name = match (rest, header) {
            ("", Some(_)) => continue,
            ("", None) => key,
            (rest, _) => rest.trim_start_matches('.'),
        };
        let text = line.replace(' ', "");
        let setting = if text.contains("package=\"entable\"") {
            DependencyLine::Package
        } else if text.contains("workspace=true") {
            DependencyLine::Workspace
        } else {
            DependencyLine::Other
        };
        found.push((name.to_owned(), setting));
    }
    found
}

#[cfg(test)]
mod tests {
    fn other_name(manifest: &str) -> Option<String> {
        super::other_name(manifest, || None)
    }

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
    #[test]
    fn a_dependency_that_the_workspace_renames_is_found() {
        let workspace = "[workspace]\nmembers = []\n[workspace.dependencies]\nserde = \"1\"\nmy-tables = { package = \"entable\", version = \"1\" }\n";
        let of_workspace =
            |manifest: &str| super::other_name(manifest, || Some(workspace.to_owned()));
        let forms = [
            "[dependencies]\nmy-tables = { workspace = true }\n",
            "[dependencies]\nmy-tables.workspace = true\n",
            "[dev-dependencies.my-tables]\nworkspace = true\n",
        ];
        for manifest in forms {
            assert_eq!(of_workspace(manifest).as_deref(), Some("my_tables"), "{manifest}");
        }
        assert_eq!(of_workspace("[dependencies]\nserde = { workspace = true }\n"), None);
        assert_eq!(of_workspace("[dependencies]\nserde = \"1\"\n"), None);
        // A package at the root of its workspace does not depend on everything in the workspace's list.
        assert_eq!(other_name(&[workspace, "[dependencies]\nserde = \"1\"\n"].concat()), None);
    }

    #[test]
    fn the_manifest_of_the_workspace_is_found() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = super::workspace_of(folder).unwrap_or_default();
        assert!(manifest.contains("[workspace.dependencies]"), "{manifest}");
    }
}

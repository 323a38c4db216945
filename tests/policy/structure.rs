//! The structure of the library: no circles between files, and the floors that each folder writes
//! down.

use std::collections::BTreeSet;

use crate::{
    CRATES,
    graph::{Arrows, Crate, components, declared_order},
    no_violations, workspace,
};

/// Files that may form one component anywhere.
const LARGEST: usize = 5;

/// Files that may form one component in the rooms that are read most.
const LARGEST_IN_A_ROOM: usize = 2;

/// The rooms, each of whose `mod.rs` lists its files in the order in which they use each other.
const ROOMS: [&str; 8] =
    ["plan", "store", "outbox", "query", "table", "worker", "maintain", "data"];

fn arrows(src: &str) -> Arrows {
    Crate::read(&workspace().join(src)).arrows()
}

fn files_of(arrows: &Arrows, folder: &str) -> BTreeSet<String> {
    let prefix = format!("{folder}/");
    arrows.keys().filter(|file| file.starts_with(&prefix)).cloned().collect()
}

#[test]
fn components_are_small() {
    let (mut files, mut violations) = (0, Vec::new());
    for arrows in CRATES.map(arrows) {
        files += arrows.len();
        violations.extend(large_components(&arrows));
    }
    assert!(files > 200, "only {files} files were found");
    no_violations("files that need each other are few", &violations);
}

fn large_components(arrows: &Arrows) -> Vec<String> {
    let all: BTreeSet<String> = arrows.keys().cloned().collect();
    let mut violations = Vec::new();
    for circle in components(&all, arrows) {
        let room = ROOMS.iter().find(|room| {
            let prefix = format!("{room}/");
            circle.iter().all(|file| file.starts_with(&prefix))
        });
        let most = if room.is_some() { LARGEST_IN_A_ROOM } else { LARGEST };
        if circle.len() > most {
            violations.push(format!("{} files: {circle:?}", circle.len()));
        }
    }
    violations
}

#[test]
fn no_circle_of_folders() {
    let circles: Vec<_> = CRATES.iter().flat_map(|src| circles_of_folders(&arrows(src))).collect();
    no_violations("folders do not need each other in a circle", &circles);
}

fn circles_of_folders(arrows: &Arrows) -> Vec<String> {
    let top = |file: &str| file.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
    let mut folders = Arrows::new();
    for (file, targets) in arrows.iter().filter(|(file, _)| *file != "lib.rs") {
        let own = top(file);
        let others = targets.iter().filter(|target| *target != "lib.rs").map(|target| top(target));
        folders.entry(own.clone()).or_default().extend(others.filter(|other| *other != own));
    }
    let nodes = folders.keys().cloned().collect();
    components(&nodes, &folders).into_iter().map(|circle| format!("{circle:?}")).collect()
}

#[test]
fn a_room_is_in_order() {
    let arrows = arrows("runtime/src");
    let src = workspace().join("runtime/src");
    let mut violations = Vec::new();
    for room in ROOMS {
        let order = declared_order(&src.join(room).join("mod.rs"));
        assert!(order.len() > 2, "{room}/mod.rs was not understood");
        let place = |file: &str| {
            let within = file.strip_prefix(&format!("{room}/"))?;
            let module = within.split('/').next()?.trim_end_matches(".rs");
            order.iter().position(|name| name == module)
        };
        for file in files_of(&arrows, room) {
            let Some(own) = place(&file) else { continue };
            for target in &arrows[&file] {
                if place(target).is_some_and(|target| target > own) {
                    violations.push(format!("{file} uses {target}, which stands below it"));
                }
            }
        }
    }
    no_violations("a file uses files above it in its mod.rs", &violations);
}

/// A count of nothing proves nothing: the graph has to find a circle where there is one.
#[test]
fn a_circle_is_found_through_a_re_export() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let fillers: Vec<String> = (0..10).map(|n| format!("mod m{n};")).collect();
    write("lib.rs", &format!("mod a; mod b; {}", fillers.join(" ")));
    for n in 0..10 {
        write(&format!("m{n}.rs"), "");
    }
    write("a/mod.rs", "mod one; pub use one::One;");
    write("a/one.rs", "use crate::b::two; pub struct One; fn f() { two() }");
    write(
        "b.rs",
        "#[cfg(test)] mod tests { use crate::m1; } use crate::a::One; pub fn two() { g!(One) }",
    );
    let arrows = Crate::read(folder.path()).arrows();
    let all: BTreeSet<String> = arrows.keys().cloned().collect();
    let circle: BTreeSet<String> = ["a/one.rs", "b.rs"].map(str::to_owned).into();
    assert_eq!(components(&all, &arrows), [circle]);
}

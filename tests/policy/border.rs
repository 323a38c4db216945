//! What crosses the border of `entable-core` or `entable-seal` without being public: one module of each crate lists it,
//! and it stays small.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, TraitItem, UseTree};

use crate::{no_violations, workspace};

/// A crate whose hidden items other crates of the workspace use.
struct Border {
    folder: &'static str,
    /// The number of hidden items. It may fall: write the new number here.
    most: usize,
    /// One of the hidden items, which shows that the list was understood.
    known: &'static str,
}

const BORDERS: [Border; 2] = [
    Border { folder: "core", most: 150, known: "RowAt" },
    Border { folder: "seal", most: 10, known: "WorkCodes" },
];

/// Sources of crates that use only the public interface of core.
const OUTSIDE: [&str; 3] = ["conformance/src", "server/src", "tests/third_party_store"];

/// The hidden members of the store in a file. Its feature `simulation` adds them, for tests and measurements.
const HIDDEN_IN_EMBEDDED: [&str; 3] = [
    "EmbeddedOptions::count_syncs_into",
    "EmbeddedOptions::journal_after_commits",
    "EmbeddedOptions::simulated_sync_delay",
];

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.to_token_stream().to_string().replace(' ', "") == "#[doc(hidden)]"
    })
}

/// The names of items: methods and fields as `Type::name`, and other items by their names.
#[derive(Default)]
struct Names {
    hidden: BTreeSet<String>,
    shown: BTreeSet<String>,
}

/// Adds the items of a file.
fn add_items(items: Vec<Item>, into: &mut Names) {
    for item in items {
        match item {
            Item::Impl(item) => {
                let of = item.self_ty.to_token_stream().to_string();
                let of = of.split(' ').next().unwrap().to_owned();
                for item in item.items {
                    let (attributes, name) = match item {
                        ImplItem::Fn(item) => (item.attrs, item.sig.ident),
                        ImplItem::Const(item) => (item.attrs, item.ident),
                        _ => continue,
                    };
                    add(&attributes, || format!("{of}::{name}"), into);
                }
            }
            Item::Struct(item) => {
                add(&item.attrs, || item.ident.to_string(), into);
                for field in &item.fields {
                    let Some(name) = &field.ident else { continue };
                    add(&field.attrs, || format!("{}::{name}", item.ident), into);
                }
            }
            Item::Enum(item) => {
                add(&item.attrs, || item.ident.to_string(), into);
                for variant in &item.variants {
                    add(&variant.attrs, || format!("{}::{}", item.ident, variant.ident), into);
                }
            }
            Item::Trait(item) => {
                add(&item.attrs, || item.ident.to_string(), into);
                for inner in &item.items {
                    let (attributes, name) = match inner {
                        TraitItem::Fn(inner) => (&inner.attrs, &inner.sig.ident),
                        TraitItem::Const(inner) => (&inner.attrs, &inner.ident),
                        _ => continue,
                    };
                    add(attributes, || format!("{}::{name}", item.ident), into);
                }
            }
            Item::Fn(item) => add(&item.attrs, || item.sig.ident.to_string(), into),
            Item::Const(item) => add(&item.attrs, || item.ident.to_string(), into),
            Item::Type(item) => add(&item.attrs, || item.ident.to_string(), into),
            _ => {}
        }
    }
}

fn add(attributes: &[Attribute], name: impl Fn() -> String, into: &mut Names) {
    let names = if is_hidden(attributes) { &mut into.hidden } else { &mut into.shown };
    names.insert(name());
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect()
}

/// Returns the items of the sources of a crate.
fn items_of(folder: &str) -> Names {
    let mut names = Names::default();
    for path in files(&workspace().join(folder).join("src")) {
        add_items(syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap().items, &mut names);
    }
    names
}

/// Returns what the documentation of the list names: `Type::name` of a line "- `Type`: `name`, ..", and each name of a
/// line "- `name`, ..".
fn listed(text: &str) -> BTreeSet<String> {
    let mut listed = BTreeSet::new();
    let mut of = String::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("//! ")) {
        let rest = match line.strip_prefix("- ") {
            Some(begin) => {
                let (first, rest) = begin.split_once(": ").unwrap_or(("", begin));
                of = first.trim_matches('`').to_owned();
                rest
            }
            None if line.starts_with("  ") => line,
            None => continue,
        };
        for name in rest.split('`').skip(1).step_by(2) {
            listed.insert(if of.is_empty() { name.to_owned() } else { format!("{of}::{name}") });
        }
    }
    listed
}

/// Returns the names that the modules of the list re-export.
fn re_exported(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        match item {
            Item::Use(item) => add_leaves(&item.tree, &mut names),
            Item::Mod(item) => {
                names.extend(re_exported(&item.content.as_ref().unwrap().1));
            }
            other => panic!("the list has more than re-exports: {}", other.to_token_stream()),
        }
    }
    names
}

fn add_leaves(tree: &UseTree, into: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => add_leaves(&path.tree, into),
        UseTree::Group(group) => group.items.iter().for_each(|tree| add_leaves(tree, into)),
        UseTree::Name(name) => into.push(name.ident.to_string()),
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("the list names each item"),
    }
}

#[test]
fn what_crosses_a_border_is_listed_and_little() {
    for Border { folder, most, known } in BORDERS {
        let list = format!("{folder}/src/__runtime.rs");
        let text = fs::read_to_string(workspace().join(&list)).unwrap();
        let (hidden, listed) = (items_of(folder).hidden, listed(&text));
        let missing: Vec<_> = hidden.difference(&listed).collect();
        assert!(missing.is_empty(), "hidden items that {list} does not list: {missing:?}");
        let gone: Vec<_> = listed.difference(&hidden).collect();
        assert!(gone.is_empty(), "{list} lists {gone:?}, which no source hides");
        let re_exported = re_exported(&syn::parse_file(&text).unwrap().items);
        assert!(re_exported.iter().any(|name| name == known), "{re_exported:?}");
        let count = hidden.len() + re_exported.len();
        assert!(count <= most, "{count} hidden items cross the border of {folder}, {most} may");
    }
}

#[test]
fn the_store_in_a_file_hides_its_switches_for_tests_alone() {
    let hidden: Vec<_> = items_of("embedded").hidden.into_iter().collect();
    assert_eq!(hidden, HIDDEN_IN_EMBEDDED);
}

#[test]
fn the_client_on_azure_hides_nothing() {
    let names = items_of("azure");
    assert!(names.shown.contains("AccountKey::sign_text"), "the sources were not understood");
    assert_eq!(names.hidden, BTreeSet::new());
}

/// The store in a file uses what core keeps for the library, and no hidden member of core's public types.
#[test]
fn the_store_in_a_file_uses_core_as_other_stores_do() {
    let core = items_of("core");
    let mut violations = Vec::new();
    for path in files(&workspace().join("embedded/src")) {
        let mut used = hidden_names_in(&fs::read_to_string(&path).unwrap(), &core);
        // A field of the writer's jobs has the name of a hidden method of core.
        used.retain(|name| !["__runtime", "answer"].contains(&name.as_str()));
        violations.extend(used.iter().map(|name| format!("{} uses {name}", path.display())));
    }
    no_violations("the store in a file uses the documented interface of core", &violations);
}

/// Returns the hidden names that a source uses. Names that core also shows elsewhere are not counted.
fn hidden_names_in(source: &str, core: &Names) -> BTreeSet<String> {
    let last = |name: &String| name.rsplit("::").next().unwrap().to_owned();
    let shown: BTreeSet<_> = core.shown.iter().map(last).collect();
    let mut refused: BTreeSet<_> = core.hidden.iter().map(last).collect();
    refused.insert("__runtime".to_owned());
    let mut used = BTreeSet::new();
    add_names_used(source.parse().unwrap(), &mut used);
    used.into_iter().filter(|name| refused.contains(name) && !shown.contains(name)).collect()
}

/// Adds the names of types, and names after a dot or a colon, because they are not variables.
fn add_names_used(tokens: TokenStream, into: &mut BTreeSet<String>) {
    let mut is_member = false;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => add_names_used(group.stream(), into),
            TokenTree::Ident(name) => {
                let name = name.to_string();
                if is_member || name.starts_with(char::is_uppercase) {
                    into.insert(name);
                }
            }
            _ => {}
        }
        is_member = matches!(&token, TokenTree::Punct(at) if ['.', ':'].contains(&at.as_char()));
    }
}

#[test]
fn a_store_and_its_tests_need_no_hidden_item() {
    let core = items_of("core");
    let mut violations = Vec::new();
    for path in OUTSIDE.iter().flat_map(|folder| files(&workspace().join(folder))) {
        let mut used = hidden_names_in(&fs::read_to_string(&path).unwrap(), &core);
        // The server answers requests with methods that have the name of a hidden method of core.
        used.retain(|name| name != "answer" || !path.starts_with(workspace().join("server")));
        violations.extend(used.iter().map(|name| format!("{} uses {name}", path.display())));
    }
    no_violations("code outside of entable uses the documented interface of core", &violations);
}

#[test]
fn uses_of_hidden_items_are_found() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let core = Names { hidden: names(&["A::b", "A::c", "C::new"]), shown: names(&["A", "D::new"]) };
    let used = "fn f(a: A) { let c = 1; g!([a.b()]); C::new(); core::__runtime::x(c) }";
    assert_eq!(hidden_names_in(used, &core), names(&["b", "__runtime"]));
}

#[test]
fn hidden_items_are_found_and_lists_are_read() {
    let text = "struct A { #[doc(hidden)] pub b: u8, c: u8 } impl<T> D<T> { #[doc(hidden)] pub fn e() {} fn f() {} } \
                #[doc(hidden)] pub fn g() {}";
    let mut found = Names::default();
    add_items(syn::parse_file(text).unwrap().items, &mut found);
    let expected = BTreeSet::from(["A::b", "D::e", "g"].map(str::to_owned));
    assert_eq!(found.hidden, expected);
    assert_eq!(found.shown, BTreeSet::from(["A", "A::c", "D::f"].map(str::to_owned)));
    assert_eq!(listed("//! `no` item\n//! - `A`: `b`\n//! - `D`: `e`\n//! - `g`"), expected);
    assert_eq!(
        listed("//! - `A`: `x`,\n//!   `y`"),
        BTreeSet::from(["A::x".into(), "A::y".into()])
    );
}

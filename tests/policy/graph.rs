//! The graph of a crate's files: a file points to another if its code names an item that the other
//! defines.
//!
//! `use` paths and inline paths are followed through every re-export to the defining file. A `pub
//! use` alone is no arrow. Code in a `mod.rs` counts as code in any file; tests do not count.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::Path,
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, UseTree};

/// The segments of a module's path from the crate's root.
type ModulePath = Vec<String>;

/// The arrows of a crate, by the files' paths relative to `src`.
pub(crate) type Arrows = BTreeMap<String, BTreeSet<String>>;

/// A module: a file, or a `mod` block inside one.
#[derive(Debug, Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    items: HashSet<String>,
    /// The path that each imported name stands for, and whether the import is a re-export.
    imports: BTreeMap<String, (Vec<String>, bool)>,
    globs: Vec<Vec<String>>,
    /// The paths that the module's code names, apart from its imports.
    named: BTreeSet<Vec<String>>,
}

/// All modules of a crate.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    /// Reads the crate whose `lib.rs` is in `src`.
    pub(crate) fn read(src: &Path) -> Self {
        let mut all = Self::default();
        all.add_file(src, &Vec::new(), "lib.rs");
        assert!(all.modules.len() > 10, "the crate was not understood");
        all
    }

    fn add_file(&mut self, src: &Path, at: &ModulePath, file: &str) {
        let text = fs::read_to_string(src.join(file)).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add_module(src, at, file, parsed.items);
    }

    fn add_module(&mut self, src: &Path, at: &ModulePath, file: &str, items: Vec<Item>) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let mut inner = Vec::new();
        for item in items {
            if is_test(attributes(&item)) {
                continue;
            }
            if let Some(name) = name_of(&item) {
                module.items.insert(name);
            }
            match item {
                Item::Use(item) => {
                    let is_public = !matches!(item.vis, syn::Visibility::Inherited);
                    module.import(&item.tree, Vec::new(), is_public);
                }
                Item::Mod(item) => {
                    let name = item.ident.to_string();
                    module.children.insert(name.clone());
                    inner.push((name, item.content.map(|(_, items)| items)));
                }
                item => collect_paths(item.into_token_stream(), &mut module.named),
            }
        }
        self.modules.insert(at.clone(), module);
        for (name, items) in inner {
            let mut path = at.clone();
            path.push(name);
            match items {
                Some(items) => self.add_module(src, &path, file, items),
                None => {
                    let file = [".rs", "/mod.rs"].map(|end| path.join("/") + end);
                    let file = file.iter().find(|file| src.join(file).exists());
                    let file = file.unwrap_or_else(|| panic!("no file of module {path:?}"));
                    self.add_file(src, &path, file);
                }
            }
        }
    }

    /// Returns the arrows between all files.
    pub(crate) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (at, module) in &self.modules {
            let targets = arrows.entry(module.file.clone()).or_default();
            for path in &module.named {
                targets.extend(self.defining_file(at, path));
            }
            targets.remove(&module.file);
        }
        arrows
    }

    /// Returns the file that defines the first item on a path, if the path leads to one of the crate.
    fn defining_file(&self, at: &ModulePath, path: &[String]) -> Option<String> {
        (1..=path.len()).rev().find_map(|length| match self.resolve(at, &path[..length], 0)? {
            (module, Some(_)) => Some(self.modules.get(&module)?.file.clone()),
            (_, None) => None,
        })
    }

    /// Resolves a path seen from module `at` to the defining module, and the item if it is one.
    fn resolve(
        &self,
        at: &ModulePath,
        path: &[String],
        depth: usize,
    ) -> Option<(ModulePath, Option<String>)> {
        // Imports may lead in a circle, and those of another crate of the library lead out of this one.
        if depth > 32 || path.first()?.starts_with("entable_") {
            return None;
        }
        let (mut current, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (at.clone(), &path[1..]),
            "super" => (at.clone(), path),
            _ => (at.clone(), path),
        };
        while rest.first().is_some_and(|first| first == "super") {
            current.pop();
            rest = &rest[1..];
        }
        for (index, name) in rest.iter().enumerate() {
            let module = self.modules.get(&current)?;
            let is_last = index + 1 == rest.len();
            if module.children.contains(name) && !(is_last && module.items.contains(name)) {
                let is_item_too = is_last && module.imports.contains_key(name);
                if !is_item_too {
                    current.push(name.clone());
                    continue;
                }
            }
            if module.items.contains(name) {
                return Some((current, Some(name.clone())));
            }
            let imported = match module.imports.get(name) {
                Some((path, _)) => self.resolve(&current, path, depth + 1)?,
                None => module.globs.iter().find_map(|glob| {
                    let (target, item) = self.resolve(&current, glob, depth + 1)?;
                    if item.is_some() || target == current {
                        return None;
                    }
                    self.resolve(&target, std::slice::from_ref(name), depth + 1)
                })?,
            };
            match imported {
                (module, None) => current = module,
                found => return Some(found),
            }
        }
        Some((current, None))
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, mut prefix: Vec<String>, is_public: bool) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(&path.tree, prefix, is_public);
            }
            UseTree::Name(name) if name.ident == "self" => {
                let alias = prefix.last().cloned().unwrap_or_default();
                self.imports.insert(alias, (prefix, is_public));
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                prefix.push(name.clone());
                self.imports.insert(name, (prefix, is_public));
            }
            UseTree::Rename(rename) => {
                prefix.push(rename.ident.to_string());
                self.imports.insert(rename.rename.to_string(), (prefix, is_public));
            }
            UseTree::Glob(_) => self.globs.push(prefix),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, prefix.clone(), is_public);
                }
            }
        }
    }
}

/// Collects every path of identifiers in the code; the inside of macros is read as tokens too.
fn collect_paths(tokens: TokenStream, into: &mut BTreeSet<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    // Colons since the last identifier, and whether a method or a lifetime comes next.
    let (mut colons, mut is_skipped) = (0, false);
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 && !path.is_empty() {
                    into.insert(std::mem::take(&mut path));
                }
                if !is_skipped {
                    path.push(ident.to_string());
                }
                (colons, is_skipped) = (0, ident == "fn");
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            token => {
                if !path.is_empty() {
                    into.insert(std::mem::take(&mut path));
                }
                colons = 0;
                is_skipped =
                    matches!(&token, TokenTree::Punct(p) if matches!(p.as_char(), '.' | '\''));
                if let TokenTree::Group(group) = token {
                    collect_paths(group.stream(), into);
                }
            }
        }
    }
    if !path.is_empty() {
        into.insert(path);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string().replace(' ', "");
        text.starts_with("#[cfg(test)") || text.starts_with("#[cfg(all(test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns the strongly connected components of two or more nodes among `nodes`, the largest first.
pub(crate) fn components(nodes: &BTreeSet<String>, arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let mut seen = BTreeSet::from([from.clone()]);
        let mut todo = vec![from.clone()];
        while let Some(node) = todo.pop() {
            for next in arrows.get(&node).into_iter().flatten() {
                if nodes.contains(next) && seen.insert(next.clone()) {
                    todo.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        nodes.iter().map(|node| (node, reach(node))).collect();
    let mut found: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (node, seen) in &reached {
        let circle = seen.iter().filter(|other| reached[other].contains(*node));
        let circle: BTreeSet<String> = circle.cloned().collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// Returns the modules that a `mod.rs` declares, in the order in which they stand there.
pub(crate) fn declared_order(mod_rs: &Path) -> Vec<String> {
    let parsed = syn::parse_file(&fs::read_to_string(mod_rs).unwrap()).unwrap();
    let modules = parsed.items.into_iter().filter_map(|item| match item {
        Item::Mod(item) if !is_test(&item.attrs) => Some(item.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

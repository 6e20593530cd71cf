//! Modules whose imports form a cycle.
//!
//! Siblings (modules with the same parent) are compared: one uses another if anything in it or
//! below it names a path into the other. What a parent and its children use of each other is not
//! counted, and neither is test code. Names that a module exports again are followed to where they
//! are defined.

use super::exceptions::{self, Exceptions};
use super::layers;
use crate::Outcome;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A module of a crate.
#[derive(Default)]
struct Module {
    name: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names that `use` declarations bind, with their paths; `*` for all names of a module.
    bound: Vec<(String, Vec<String>)>,
    /// Other paths that begin with `crate`, `self` or `super`.
    named: Vec<Vec<String>>,
    /// Items that are defined here.
    items: BTreeSet<String>,
}

/// All modules of a crate; the first is its root.
struct Tree {
    modules: Vec<Module>,
}

/// Siblings that use each other.
struct Cycle {
    /// Their parent, as in `cohort-engine::coll`.
    within: String,
    names: Vec<String>,
    /// Why, as in `a -> b (c, d)`: within `a`, the modules `c` and `d` name `b`.
    arrows: Vec<String>,
}

/// No siblings use each other in a circle, but those that the exceptions list.
pub fn without_cycles() -> Outcome {
    let allowed = Exceptions::read()?.cycles;
    let mut found: BTreeMap<String, Vec<Cycle>> = BTreeMap::new();
    for (package, root) in layers::roots()? {
        for cycle in Tree::read(&root)?.cycles(&package) {
            found.entry(cycle.within.clone()).or_default().push(cycle);
        }
    }
    let mut complaints = Vec::new();
    for within in allowed.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let cycles = found.get(within).map_or(&[][..], Vec::as_slice);
        let size: usize = cycles.iter().map(|cycle| cycle.names.len()).sum();
        println!("modules of {within} in cycles: {size}");
        let may = allowed.get(within).copied().unwrap_or(0);
        if size < may {
            complaints.push(exceptions::shrink(within, size));
        } else if size > may {
            complaints.push(format!("{size} modules of {within} are in cycles, {may} may:"));
            complaints.extend(cycles.iter().map(Cycle::text));
        }
    }
    super::outcome(complaints)
}

/// The check finds circles through names that are exported again, macros and modules below, and nothing in tests.
pub fn circles_are_seen() -> Outcome {
    let text = "
        pub use c::Exported;
        mod a { fn f(_: crate::b::inner::B) {} }
        mod b { pub mod inner { use crate::Exported; pub struct B; } }
        mod c { fn f() { println!(\"{}\", super::a::f()) } pub struct Exported; }
        mod d { #[cfg(test)] mod tests { use crate::e::E; } pub struct D; }
        mod e { use super::d::D; pub struct E; }";
    let cycles = Tree::parse(text, Path::new("sample.rs"))?.cycles("sample");
    match cycles.as_slice() {
        [cycle] if cycle.names == ["a", "b", "c"] && cycle.within == "sample" => Ok(()),
        other => Err(other.iter().map(Cycle::text).collect()),
    }
}

impl Cycle {
    fn text(&self) -> String {
        format!("  {}\n    {}", self.names.join(", "), self.arrows.join("\n    "))
    }
}

impl Tree {
    /// The modules of the crate whose root is this file.
    fn read(root: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(root).map_err(|error| error.to_string())?;
        Self::parse(&text, root)
    }

    /// The modules of the crate whose root has this text and lies there.
    fn parse(text: &str, root: &Path) -> Result<Self, String> {
        let mut reader = Reader {
            tree: Self { modules: vec![Module::default()] },
            module: 0,
            folder: root.parent().unwrap_or(root).to_path_buf(),
            error: None,
        };
        reader.text(text, root);
        match reader.error {
            Some(error) => Err(error),
            None => Ok(reader.tree),
        }
    }

    /// The module where the item or module with this path, as `from` writes it, is defined. `None` for other crates.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let here = &self.modules[from];
        match first.as_str() {
            "crate" => self.descend(0, rest, depth),
            "self" => self.descend(from, rest, depth),
            "super" => match rest.first() {
                Some(next) if next == "super" => self.resolve(here.parent?, rest, depth),
                _ => self.descend(here.parent?, rest, depth),
            },
            name if here.children.contains_key(name) => self.descend(from, path, depth),
            _ => None,
        }
    }

    fn descend(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let Some((first, rest)) = path.split_first() else {
            return Some(from);
        };
        let here = &self.modules[from];
        if let Some(&child) = here.children.get(first) {
            return self.descend(child, rest, depth);
        }
        // Names that are exported in a circle of globs end somewhere.
        if here.items.contains(first) || depth == 8 {
            return Some(from);
        }
        if let Some((_, path)) = here.bound.iter().find(|(name, _)| name == first) {
            let target = self.resolve(from, path, depth + 1)?;
            return Some(target);
        }
        let globs = here.bound.iter().filter(|(name, _)| name == "*");
        let within = globs.filter_map(|(_, path)| self.resolve(from, path, depth + 1));
        let defines = |module: &usize| self.modules[*module].items.contains(first);
        Some(within.into_iter().find(defines).unwrap_or(from))
    }

    /// The ancestors of a module, itself first. Modules that build scripts write lie in one
    /// called `generated`, which is none of its own: what is in it belongs to what is beside it.
    fn line(&self, module: usize) -> Vec<usize> {
        std::iter::successors(Some(module), |&module| self.modules[module].parent)
            .filter(|&module| self.modules[module].name != "generated")
            .collect()
    }

    fn path(&self, package: &str, module: usize) -> String {
        let mut line = self.line(module);
        line.pop();
        let names = line.iter().rev().map(|&module| self.modules[module].name.as_str());
        std::iter::once(package).chain(names).collect::<Vec<_>>().join("::")
    }

    /// Which siblings use which, and in what modules of theirs.
    fn arrows(&self) -> BTreeMap<(usize, usize), BTreeSet<usize>> {
        let mut arrows: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
        for (from, module) in self.modules.iter().enumerate() {
            let paths = module.bound.iter().map(|(_, path)| path);
            for path in paths.chain(&module.named) {
                let Some(to) = self.resolve(from, path, 0) else {
                    continue;
                };
                let (ours, theirs) = (self.line(from), self.line(to));
                let shared = ours.iter().rev().zip(theirs.iter().rev()).take_while(|(a, b)| a == b).count();
                if shared < ours.len() && shared < theirs.len() {
                    let ends = (ours[ours.len() - 1 - shared], theirs[theirs.len() - 1 - shared]);
                    arrows.entry(ends).or_default().insert(from);
                }
            }
        }
        arrows
    }

    /// The cycles of this crate, each as large as it can be.
    fn cycles(&self, package: &str) -> Vec<Cycle> {
        let arrows = self.arrows();
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for module in 0..self.modules.len() {
            let there = reachable(module, arrows.keys().copied());
            let members: BTreeSet<usize> =
                there.into_iter().filter(|&other| reachable(other, arrows.keys().copied()).contains(&module)).collect();
            if members.len() < 2 || !seen.insert(members.clone()) {
                continue;
            }
            let name = |module: &usize| self.modules[*module].name.clone();
            let inner = |(ends, users): (&(usize, usize), &BTreeSet<usize>)| {
                let within = members.contains(&ends.0) && members.contains(&ends.1);
                let users: Vec<String> = users.iter().map(name).collect();
                within.then(|| format!("{} -> {} ({})", name(&ends.0), name(&ends.1), users.join(", ")))
            };
            found.push(Cycle {
                within: self.path(package, self.modules[module].parent.unwrap_or(0)),
                names: members.iter().map(name).collect(),
                arrows: arrows.iter().filter_map(inner).collect(),
            });
        }
        found
    }
}

/// What can be reached from a module.
fn reachable(from: usize, arrows: impl Iterator<Item = (usize, usize)> + Clone) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        let ends = arrows.clone().filter(|arrow| arrow.0 == module).map(|arrow| arrow.1);
        next.extend(ends.filter(|&end| reached.insert(end)));
    }
    reached
}

/// Reads files into a tree.
struct Reader {
    tree: Tree,
    /// The module that is being read.
    module: usize,
    /// Where its children have their files.
    folder: PathBuf,
    error: Option<String>,
}

impl Reader {
    fn file(&mut self, path: &Path) {
        match std::fs::read_to_string(path) {
            Ok(text) => self.text(&text, path),
            Err(error) => self.error = Some(format!("{}: {error}", path.display())),
        }
    }

    fn text(&mut self, text: &str, path: &Path) {
        match syn::parse_file(text) {
            Ok(file) => self.visit_file(&file),
            Err(error) => self.error = Some(format!("{}: {error}", path.display())),
        }
    }

    fn here(&mut self) -> &mut Module {
        &mut self.tree.modules[self.module]
    }

    fn child(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        let module = self.tree.modules.len();
        self.tree.modules.push(Module { name: name.clone(), parent: Some(self.module), ..Module::default() });
        self.here().children.insert(name.clone(), module);
        let folder = self.folder.clone();
        let outer = std::mem::replace(&mut self.module, module);
        self.folder = folder.join(&name);
        if let Some((_, items)) = &item.content {
            items.iter().for_each(|item| self.visit_item(item));
        } else {
            let own = folder.join(&name).with_extension("rs");
            let file = match path_of(item) {
                Some(path) => folder.join(path),
                None if own.is_file() => own,
                None => folder.join(&name).join("mod.rs"),
            };
            self.file(&file);
        }
        self.module = outer;
        self.folder = folder;
    }

    fn bind(&mut self, tree: &syn::UseTree, mut path: Vec<String>) {
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.bind(&part.tree, path);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.bind(tree, path.clone());
                }
            }
            syn::UseTree::Name(name) => {
                let mut bound = name.ident.to_string();
                if bound == "self" {
                    bound = path.last().cloned().unwrap_or_default();
                } else {
                    path.push(bound.clone());
                }
                self.here().bound.push((bound, path));
            }
            syn::UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                self.here().bound.push((name.rename.to_string(), path));
            }
            syn::UseTree::Glob(_) => self.here().bound.push(("*".into(), path)),
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(colon) if colon.as_char() == ':' && !path.is_empty() => continue,
                TokenTree::Ident(name) if path.is_empty() => {
                    if name == "crate" || name == "super" {
                        path.push(name.to_string());
                    }
                    continue;
                }
                TokenTree::Ident(name) => {
                    path.push(name.to_string());
                    continue;
                }
                _ => {}
            }
            if !path.is_empty() {
                self.here().named.push(std::mem::take(&mut path));
            }
        }
        if !path.is_empty() {
            self.here().named.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = parts(item);
        if attributes.iter().any(is_for_tests) {
            return;
        }
        if let Some(name) = name {
            self.here().items.insert(name.to_string());
        }
        match item {
            syn::Item::Mod(module) => self.child(module),
            syn::Item::Use(tree) => self.bind(&tree.tree, Vec::new()),
            other => visit::visit_item(self, other),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 && ["crate", "super"].contains(&names[0].as_str()) {
            self.here().named.push(names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// The attributes of an item, and its name if others can import it.
fn parts(item: &syn::Item) -> (&[syn::Attribute], Option<&syn::Ident>) {
    match item {
        syn::Item::Const(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        syn::Item::Static(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Union(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        syn::Item::Mod(item) => (&item.attrs, None),
        syn::Item::Use(item) => (&item.attrs, None),
        syn::Item::Impl(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

/// The file that a module's `#[path]` names.
fn path_of(item: &syn::ItemMod) -> Option<String> {
    let paths = item.attrs.iter().filter(|it| it.path().is_ident("path"));
    let named = paths.filter_map(|it| match &it.meta {
        syn::Meta::NameValue(pair) => match &pair.value {
            syn::Expr::Lit(literal) => Some(&literal.lit),
            _ => None,
        },
        _ => None,
    });
    named
        .filter_map(|literal| match literal {
            syn::Lit::Str(text) => Some(text.value()),
            _ => None,
        })
        .next()
}

/// `#[cfg(test)]`, `#[cfg(all(test, ...))]` and the like; not `#[cfg(not(test))]`.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    let text = list.tokens.to_string();
    list.path.is_ident("cfg") && text.contains("test") && !text.contains("not (test")
}

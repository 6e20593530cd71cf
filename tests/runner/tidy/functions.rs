//! Functions of one subject are short.

use super::exceptions::{self, Exceptions};
use super::{outcome, text};
use crate::Outcome;
use std::collections::BTreeMap;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Longest function, in lines from its signature to its closing brace.
const LINES_MAX: usize = 70;

/// A function that is too long.
struct Long {
    name: String,
    line: usize,
    lines: usize,
}

/// No function is longer than [`LINES_MAX`], but those that the exceptions list.
pub fn are_short() -> Outcome {
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (path, source) in text::sources(&["rs", "c", "py"])? {
        for long in long_functions(&path, &source)? {
            let place = text::place_of(&path, long.line - 1);
            let name = format!("{}: {}", text::relative(&path).display(), long.name);
            let entry = found.entry(name).or_insert((place, 0));
            entry.1 = entry.1.max(long.lines);
        }
    }
    let allowed = Exceptions::read()?.functions;
    let mut complaints = Vec::new();
    for (name, (place, lines)) in &found {
        match allowed.get(name) {
            Some(may) if may == lines => {}
            Some(may) if may > lines => complaints.push(exceptions::shrink(name, *lines)),
            _ => complaints.push(format!("{place}: {lines} lines, {LINES_MAX} may be")),
        }
    }
    let gone = allowed.keys().filter(|name| !found.contains_key(*name));
    complaints.extend(gone.map(|name| exceptions::shrink(name, 0)));
    outcome(complaints)
}

/// The check counts functions of each language, those within others too, and no text in strings.
pub fn long_ones_are_seen() -> Outcome {
    let filler = "    x();\n".repeat(LINES_MAX - 2);
    let rust = |extra: &str| format!("struct S;\nimpl S {{\nfn f() {{\n{filler}{extra}}}\n}}\n");
    let c = |extra: &str| format!("static int f(int a,\n      int b) {{\n{filler}{extra}}}\n");
    let python = |extra: &str| format!("class C:\n  def f(self):\n{filler}{extra}\n\nprint()\n");
    let cases = [
        ("a.rs", rust(""), 0),
        ("a.rs", rust("    let s = \"}\";\n"), 1),
        ("a.c", c(""), 1),
        ("a.c", c("").replace("int a,\n", "int a,"), 0),
        ("a.py", python(""), 0),
        ("a.py", python("    y()\n    z()\n"), 1),
    ];
    let wrong =
        cases.into_iter().filter_map(|(name, source, expected)| match long_functions(Path::new(name), &source) {
            Ok(found) if found.len() == expected => None,
            Ok(found) => Some(format!("{name}: {} of {expected}:\n{source}", found.len())),
            Err(error) => Some(error),
        });
    outcome(wrong.collect())
}

fn long_functions(path: &Path, source: &str) -> Result<Vec<Long>, String> {
    let mut all = match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => rust(source).map_err(|error| format!("{}: {error}", path.display()))?,
        Some("py") => python(source),
        _ => c(source),
    };
    all.retain(|function| function.lines > LINES_MAX);
    Ok(all)
}

fn rust(source: &str) -> Result<Vec<Long>, syn::Error> {
    let mut functions = Functions(Vec::new());
    functions.visit_file(&syn::parse_file(source)?);
    Ok(functions.0)
}

struct Functions(Vec<Long>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        self.0.push(Long { name: signature.ident.to_string(), line, lines: block.span().end().line - line + 1 });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// Functions of C as we write it: the signature begins at the margin, and so does the closing brace.
fn c(source: &str) -> Vec<Long> {
    let mut functions = Vec::new();
    let mut begin: Option<(usize, &str)> = None;
    for (number, line) in source.lines().enumerate() {
        let at_margin = line.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if at_margin && line.contains('(') {
            begin = Some((number, line));
        } else if line.starts_with('}') {
            let Some((from, signature)) = begin.take() else {
                continue;
            };
            let head = signature.split('(').next().unwrap_or_default();
            functions.push(Long {
                name: head.rsplit([' ', '*']).next().unwrap_or(head).into(),
                line: from + 1,
                lines: number - from + 1,
            });
        }
    }
    functions
}

/// Functions of Python: up to the last line that is indented more than `def`.
fn python(source: &str) -> Vec<Long> {
    let lines: Vec<&str> = source.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut functions = Vec::new();
    for (from, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("def ") else {
            continue;
        };
        let inside = |line: &&&str| line.is_empty() || indent(line) > indent(lines[from]);
        let body: Vec<&&str> = lines[from + 1..].iter().take_while(inside).collect();
        let blank = body.iter().rev().take_while(|line| line.is_empty()).count();
        functions.push(Long {
            name: rest.split('(').next().unwrap_or(rest).into(),
            line: from + 1,
            lines: 1 + body.len() - blank,
        });
    }
    functions
}

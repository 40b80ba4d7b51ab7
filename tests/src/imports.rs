//! Reads the imports of a crate out of its sources, as text.
//!
//! It sees `use` trees, and paths that begin with `crate`, `super` or `self`. Test code and comments do not count. A
//! name that a crate exports at its root stands for the module that it comes from.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Modules of a crate by path (`hosts/fence`), each with the modules that it imports.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns the code of each module, without comments and tests.
pub fn modules(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let relative = path.strip_prefix(folder).expect("below it");
            let name = relative.with_extension("");
            let name = name.to_str().expect("a plain name");
            let name = name.strip_suffix("/mod").unwrap_or(name);
            let is_test = name
                .split('/')
                .any(|part| ["tests", "testing", "bin"].contains(&part));
            if is_test {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                found.insert(name.to_owned(), code_of(&text));
            }
        }
    }
    found
}

/// Returns the code outside of tests. It relies on rustfmt: an attribute stands on the line before its item, and unit
/// tests come last.
fn code_of(text: &str) -> String {
    let mut lines = text.lines().peekable();
    let mut code = Vec::new();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let next = lines.next().unwrap_or_default();
            if next.starts_with("mod ") && next.ends_with('{') {
                break;
            }
            continue;
        }
        let line = line.split("//").next().unwrap_or_default();
        code.push(line);
    }
    code.join("\n")
}

/// Parser of a `use` tree or of one path: `a::{b, c::D}` gives `a::b` and `a::c::D`.
struct Tree<'t> {
    rest: &'t str,
    paths: Vec<Vec<String>>,
}

impl<'t> Tree<'t> {
    fn read(text: &'t str) -> Vec<Vec<String>> {
        let mut tree = Self {
            rest: text,
            paths: Vec::new(),
        };
        tree.path(&mut Vec::new());
        tree.paths
    }

    fn path(&mut self, before: &mut Vec<String>) {
        let begun = before.len();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix('{') {
                self.rest = rest;
                self.branches(before);
                break;
            }
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at(end);
            before.push(word.to_owned());
            self.rest = rest;
            match rest.strip_prefix("::") {
                Some(rest) if rest.starts_with(|c: char| is_word(c) || c == '{') => {
                    self.rest = rest;
                }
                _ => {
                    self.paths.push(before.clone());
                    break;
                }
            }
        }
        before.truncate(begun);
    }

    fn branches(&mut self, before: &mut Vec<String>) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return;
            }
            self.path(before);
            // `as NAME`, and the comma.
            let end = self.rest.find([',', '}']).unwrap_or(self.rest.len());
            let rest = self.rest.split_at(end).1;
            self.rest = rest.strip_prefix(',').unwrap_or(rest);
            if rest.is_empty() {
                return;
            }
        }
    }
}

/// Returns all paths from the crate's root that a module names.
fn named(module: &str, code: &str, children: &BTreeSet<&str>) -> Vec<Vec<String>> {
    let own: Vec<String> = module.split('/').map(str::to_owned).collect();
    let own = if module == "lib" || module == "main" {
        Vec::new()
    } else {
        own
    };
    let mut all = Vec::new();
    let bytes = code.as_bytes();
    let begins = |at: usize| {
        at == 0
            || bytes
                .get(at - 1)
                .is_some_and(|b| !b.is_ascii_alphanumeric() && !b"_:$".contains(b))
    };
    for (root, up) in [("crate::", None), ("super::", Some(1)), ("self::", Some(0))] {
        for (at, _) in code.match_indices(root).filter(|(at, _)| begins(*at)) {
            for path in Tree::read(code.get(at + root.len()..).unwrap_or_default()) {
                let mut base = match up {
                    None => Vec::new(),
                    Some(up) => own[..own.len().saturating_sub(up)].to_vec(),
                };
                let mut path = path.as_slice();
                while let [first, rest @ ..] = path
                    && first == "super"
                {
                    base.pop();
                    path = rest;
                }
                base.extend(path.iter().cloned());
                all.push(base);
            }
        }
    }
    for child in children {
        for (at, _) in code
            .match_indices(&format!("{child}::"))
            .filter(|(at, _)| begins(*at))
        {
            for path in Tree::read(code.get(at..).unwrap_or_default()) {
                let mut base = own.clone();
                base.extend(path);
                all.push(base);
            }
        }
    }
    all
}

/// Returns the imports of each module of a crate.
pub fn imports(folder: &Path) -> Imports {
    let modules = modules(folder);
    let root = if modules.contains_key("lib") {
        "lib"
    } else {
        "main"
    };
    let children_of = |module: &str| -> BTreeSet<&str> {
        let prefix = if module == root {
            String::new()
        } else {
            format!("{module}/")
        };
        let below = modules.keys().filter_map(|name| name.strip_prefix(&prefix));
        below
            .filter(|name| !name.contains('/') && *name != root)
            .collect()
    };
    let resolve = |path: &[String]| {
        let mut length = path.len();
        while length > 0 {
            let name = path[..length].join("/");
            if modules.contains_key(&name) {
                return Some(name);
            }
            length -= 1;
        }
        None
    };
    // An export of the root stands for the module that it comes from.
    let mut exported = BTreeMap::new();
    for path in named(root, &modules[root], &children_of(root)) {
        if let (Some(module), Some(last)) = (resolve(&path), path.last()) {
            exported.insert(last.clone(), module);
        }
    }
    let mut all = Imports::new();
    for (module, code) in &modules {
        if module == root {
            continue;
        }
        let known = all.entry(module.clone()).or_default();
        for path in named(module, code, &children_of(module)) {
            let at_root = path.first().and_then(|first| exported.get(first));
            let to = resolve(&path).or_else(|| at_root.cloned());
            known.extend(to.filter(|to| to != module && to != root));
        }
    }
    all
}

/// Returns all modules that a module reaches by imports.
fn reached(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(module) = next.pop() {
        for to in imports.get(&module).into_iter().flatten() {
            if seen.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    seen
}

/// Returns the sets of modules that reach each other.
pub fn circles(imports: &Imports) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> = imports
        .keys()
        .map(|module| (module, reached(imports, module)))
        .collect();
    let own = reach
        .iter()
        .filter(|(module, reach)| reach.contains(**module));
    own.map(|(module, all)| {
        let both = all.iter().filter(|other| reach[other].contains(*module));
        both.cloned().collect()
    })
    .collect()
}

//! The plan of the house: modules of a crate import each other in no circle, and the scheduler's folders know only the
//! folders that this table names.
//!
//! Reads the sources as text: `use` trees and paths that begin with `crate`, `super` or `self`. Code for tests and
//! comments do not count. What a crate exports at its root stands for the module that it comes from.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use fairlead_tests::settings;

/// Folders of the scheduler, and the folders that each may know. Facts know nobody, flows know facts, HTTP knows flows.
const ROOMS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("storage", &["base"]),
    ("lifecycle", &["base"]),
    ("known", &["base", "lifecycle", "storage"]),
    ("core", &["base", "known", "storage"]),
    ("views", &["base", "core", "lifecycle"]),
    ("jobs", &["base", "core", "known", "lifecycle"]),
    ("files", &["base", "core", "jobs", "lifecycle"]),
    ("peers", &["base", "core", "known", "storage"]),
    ("people", &["base", "core", "known"]),
    (
        "submission",
        &["base", "core", "known", "lifecycle", "storage"],
    ),
    (
        "dispatching",
        &["base", "core", "jobs", "known", "lifecycle"],
    ),
    (
        "hosts",
        &[
            "base",
            "core",
            "jobs",
            "known",
            "lifecycle",
            "storage",
            "views",
        ],
    ),
    (
        "waiting",
        &[
            "base",
            "core",
            "jobs",
            "known",
            "lifecycle",
            "storage",
            "views",
        ],
    ),
    (
        "timers",
        &[
            "base",
            "core",
            "known",
            "lifecycle",
            "storage",
            "submission",
            "views",
            "waiting",
        ],
    ),
    ("upkeep", &["base", "core", "storage"]),
    (
        "http",
        &[
            "base",
            "core",
            "files",
            "hosts",
            "jobs",
            "known",
            "lifecycle",
            "peers",
            "people",
            "submission",
            "views",
            "waiting",
        ],
    ),
    ("replica", &["base", "core", "dispatching", "http"]),
    (
        "server",
        &["base", "core", "http", "people", "replica", "storage"],
    ),
];

/// Circles that are still to be cut, by crate: the modules of each, sorted.
const CIRCLES: &[(&str, &[&[&str]])] = &[
    (
        "src/job/src",
        &[
            &[
                "fields", "place", "plan", "retry", "shutdown", "stage", "when",
            ],
            &[
                "file",
                "file/error",
                "file/eval",
                "file/expand",
                "file/lexer",
                "file/load",
                "file/mask",
                "file/matrix",
                "file/merge",
                "file/setting",
                "file/shapes",
                "file/template",
                "file/tree",
                "file/yaml",
            ],
        ],
    ),
    (
        "src/dispatch/src",
        &[
            &[
                "bits", "charges", "event", "explain", "idle", "index", "labels", "ledger",
                "limits", "order", "peers", "shape",
            ],
            &["cache", "engine", "evict", "known"],
            &["hosts", "waiting"],
        ],
    ),
    (
        "src/store/src",
        &[
            &[
                "elasticsearch/bulk",
                "elasticsearch/changes",
                "elasticsearch/jobs",
                "elasticsearch/login",
                "elasticsearch/setup",
                "elasticsearch/store",
                "elasticsearch/templates",
            ],
            &["elasticsearch/cluster", "elasticsearch/node"],
            &["embedded/apply", "embedded/tally"],
            &["embedded/copies", "embedded/open", "embedded/schema"],
        ],
    ),
    (
        "src/api/src",
        &[&[
            "client",
            "client/files",
            "client/reply",
            "client/testbox",
            "client/transport",
        ]],
    ),
    (
        "src/cli/src",
        &[
            &["doctor", "doctor/local", "doctor/remote"],
            &["local", "local/fit", "local/lab"],
            &["settings", "settings/file", "settings/resolve"],
        ],
    ),
];

/// The modules of a crate by path (`hosts/fence`), each with those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Crates, by their folders of sources.
const CRATES: &[&str] = &[
    "src/job/src",
    "src/dispatch/src",
    "src/store/src",
    "src/api/src",
    "src/scheduler/src",
    "src/cli/src",
    "testbox-client/src",
];

/// The code of each module, without comments and tests.
fn modules(folder: &Path) -> BTreeMap<String, String> {
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

/// What is compiled outside of tests: rustfmt puts an attribute on the line before what it is for, and unit tests last.
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

/// Reads the paths of a `use` tree, or one path: `a::{b, c::D}` are `a::b` and `a::c::D`.
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

/// All paths from the crate's root that a module names.
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

/// Who imports whom.
fn imports(folder: &Path) -> Imports {
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
    // What the root exports stands for where it comes from.
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

/// Everything that a module reaches by imports.
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

/// Sets of modules that reach each other.
fn circles(imports: &Imports) -> BTreeSet<Vec<String>> {
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

#[test]
fn modules_import_each_other_in_no_circle() {
    let mut problems = Vec::new();
    for folder in CRATES {
        let found = circles(&imports(&settings::project().join(folder)));
        let known = CIRCLES.iter().find(|(name, _)| name == folder);
        let known: BTreeSet<Vec<String>> = known
            .map_or(&[][..], |(_, circles)| *circles)
            .iter()
            .map(|circle| circle.iter().map(|name| (*name).to_owned()).collect())
            .collect();
        let new = found.difference(&known);
        problems.extend(new.map(|circle| format!("{folder}: a circle: {circle:?}")));
        let gone = known.difference(&found);
        problems.extend(gone.map(|circle| format!("{folder}: no circle any more: {circle:?}")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_scheduler_s_rooms_know_only_those_below_them() {
    let imports = imports(&settings::project().join("src/scheduler/src"));
    let room = |module: &str| module.split('/').next().unwrap_or_default().to_owned();
    let mut problems = Vec::new();
    for (from, to) in imports
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)))
    {
        let (room_from, room_to) = (room(from), room(to));
        if room_from == room_to {
            continue;
        }
        let row = ROOMS.iter().find(|(name, _)| *name == room_from);
        if !row.is_some_and(|(_, known)| known.contains(&room_to.as_str())) {
            problems.push(format!(
                "{from} imports {to}: {room_from} does not know {room_to}"
            ));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Where the architecture says that something is, it is.
#[test]
fn the_architecture_names_what_is_there() {
    let root = settings::project();
    let page = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).expect("the page");
    let scheduler = root.join("src/scheduler/src");
    let rooms: BTreeSet<&str> = ROOMS.iter().map(|(name, _)| *name).collect();
    let mut missing = Vec::new();
    for name in page.split('`').skip(1).step_by(2) {
        let first = name.split('/').next().unwrap_or_default();
        let is_room = rooms.contains(first) && name.contains('/');
        let is_path = [
            "src",
            "tests",
            "testbox-client",
            "scheduler-cluster",
            "scripts",
        ]
        .contains(&first)
            && name.contains('/')
            && !name.contains(' ');
        let place = if is_room {
            scheduler.join(name)
        } else if is_path {
            root.join(name)
        } else {
            continue;
        };
        if !place.exists() && !place.with_extension("rs").exists() {
            missing.push(name);
        }
    }
    for room in rooms {
        let is_named =
            page.contains(&format!("| `{room}`")) || page.contains(&format!("`{room}.rs`"));
        let is_there =
            scheduler.join(room).exists() || scheduler.join(room).with_extension("rs").exists();
        if !is_named || !is_there {
            missing.push(room);
        }
    }
    assert!(
        missing.is_empty(),
        "docs/ARCHITECTURE.md and the sources differ: {missing:?}"
    );
}

//! What a reader expects of the sources and no compiler checks: sizes, headers, banned words, links,
//! and that the documents name what exists.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use fairlead_api::{ENDPOINTS, ErrorCode};
use serde_json::Value;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
/// In tests a function may hold a table of cases or all steps of a model.
const TEST_LINES_MAX: usize = 140;

/// Banned in Rust sources. Put together here so that this file does not hold them.
const BANNED: &[(&str, &str)] = &[
    (concat!("to", "do!("), "finish it, or leave it out"),
    (concat!("unimpl", "emented!("), "finish it, or leave it out"),
    (concat!("#[ig", "nore"), "a test runs or does not exist"),
    (concat!("#[al", "low("), "say #[expect(lint, reason = ..)]"),
    (
        concat!("#![al", "low("),
        "say #![expect(lint, reason = ..)]",
    ),
    (concat!("dbg", "!("), "use tracing"),
];

/// Banned in tests besides: wait for a condition with a deadline instead.
const SLEEPS: &[&str] = &[concat!("thread::sl", "eep"), concat!("time::sl", "eep")];

/// Programs below `tests/` that are no tests themselves: measured as programs, and they may have a timer of their own.
const PROGRAMS: &[&str] = &[
    "tests/bench/src/",
    "tests/faults/src/",
    "tests/simulation/src/",
];

/// Folders of one machine, and hosts of one site: neither belongs in a project.
const PLACES: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("artif", "actory"),
    concat!(".jf", "rog."),
];

struct Source {
    path: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is inside the workspace")
        .to_owned()
}

/// All text files of the project with one of these endings, sorted by path.
fn sources(endings: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry of it").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let hidden = name.starts_with('.') && name != ".ci";
            if path.is_dir() {
                if !hidden && name != "target" && !name.starts_with("fairlead-") {
                    folders.push(path);
                }
            } else if !hidden && endings.iter().any(|ending| name.ends_with(ending)) {
                let relative = path.strip_prefix(&root).expect("below the root");
                found.push(Source {
                    path: relative.to_string_lossy().into_owned(),
                    text: fs::read_to_string(&path)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn is_test(path: &str) -> bool {
    let is_program = PROGRAMS.iter().any(|folder| path.starts_with(folder));
    path.starts_with("tests/") && !is_program
        || path.contains("/tests/")
        || path.ends_with("/tests.rs")
}

fn fail_if_any(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn rust_files_are_short_and_begin_with_what_they_own() {
    let mut problems = Vec::new();
    for source in sources(&[".rs"]) {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            problems.push(format!(
                "{}: {lines} lines, at most {FILE_LINES_MAX}",
                source.path
            ));
        }
        if !source.text.starts_with("//!") {
            problems.push(format!("{}: does not begin with //!", source.path));
        }
        problems.extend(long_functions(&source));
    }
    fail_if_any(&problems);
}

/// Relies on rustfmt: a function's last line is a closing brace at the indentation of its first.
fn long_functions(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let in_tests = is_test(&source.path);
    let limit = if in_tests {
        TEST_LINES_MAX
    } else {
        FUNCTION_LINES_MAX
    };
    let mut problems = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let head = code.split(['(', '<']).next().unwrap_or_default();
        let mut words = head.split_whitespace();
        let is_function = words.any(|word| word == "fn") && !code.starts_with("//");
        if !is_function {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let end = format!("{indent}}}");
        let length = lines[at..]
            .iter()
            .position(|line| *line == end)
            .unwrap_or(0)
            + 1;
        let declared_only = lines[at..]
            .iter()
            .find(|line| line.ends_with(';') || line.ends_with('{') || line.ends_with('}'))
            .is_some_and(|line| !line.ends_with('{'));
        if length > limit && !declared_only {
            problems.push(format!(
                "{}:{}: a function of {length} lines, at most {limit}",
                source.path,
                at + 1
            ));
        }
    }
    problems
}

#[test]
fn nothing_is_unfinished_skipped_or_silenced() {
    let mut problems = Vec::new();
    for source in sources(&[".rs"]) {
        let all_tests = is_test(&source.path);
        let mut in_tests = all_tests;
        for (number, line) in source.text.lines().enumerate() {
            in_tests |= line.trim() == "#[cfg(test)]";
            let mut refuse = |word: &str, instead: &str| {
                problems.push(format!(
                    "{}:{}: {word} ({instead})",
                    source.path,
                    number + 1
                ));
            };
            for (word, instead) in BANNED {
                if line.contains(word) {
                    refuse(word, instead);
                }
            }
            for word in SLEEPS {
                if in_tests && line.contains(word) {
                    refuse(word, "wait for a condition with a deadline");
                }
            }
        }
    }
    fail_if_any(&problems);
}

#[test]
fn no_place_of_one_machine_or_site_is_named() {
    let mut problems = Vec::new();
    let endings = [
        ".rs",
        ".md",
        ".toml",
        ".yaml",
        ".json",
        ".ci/run",
        "lint",
        "test",
        "elasticsearch",
    ];
    for source in sources(&endings) {
        for (number, line) in source.text.lines().enumerate() {
            for place in PLACES {
                if line.contains(place) {
                    problems.push(format!("{}:{}: {place}", source.path, number + 1));
                }
            }
        }
    }
    fail_if_any(&problems);
}

/// clippy sees a held `Ref`, but not `Option<Ref>`: `let x = map.get(..);` keeps a shard locked.
#[test]
fn no_guard_of_a_dashmap_is_kept() {
    let mut problems = Vec::new();
    for source in sources(&[".rs"]) {
        let maps: BTreeSet<&str> = source
            .text
            .lines()
            .filter_map(|line| line.split_once("DashMap<"))
            .filter_map(|(before, _)| before.trim().rsplit([' ', '(']).find(|w| w.ends_with(':')))
            .map(|name| name.trim_end_matches(':'))
            .collect();
        for (number, line) in source.text.lines().enumerate() {
            let keeps = maps.iter().any(|map| {
                [".get(", ".get_mut("].iter().any(|get| {
                    line.split_once(&format!("{map}{get}"))
                        .is_some_and(|(_, rest)| rest.ends_with(");") && !rest.contains(")."))
                })
            });
            if keeps && line.trim_start().starts_with("let ") {
                problems.push(format!(
                    "{}:{}: a guard is kept; copy out of the map in one expression",
                    source.path,
                    number + 1
                ));
            }
        }
    }
    fail_if_any(&problems);
}

#[test]
fn every_mapping_is_strict() {
    let mut seen = 0;
    for source in sources(&[".json"]) {
        if !source.path.starts_with("es-mappings/") {
            continue;
        }
        seen += 1;
        let template: Value = serde_json::from_str(&source.text)
            .unwrap_or_else(|error| panic!("{}: {error}", source.path));
        let mappings = template
            .pointer("/template/mappings")
            .or_else(|| template.get("mappings"))
            .unwrap_or_else(|| panic!("{}: no mappings", source.path));
        assert_eq!(mappings["dynamic"], "strict", "{}", source.path);
        no_loose_object(&source.path, mappings);
    }
    assert!(seen > 0, "es-mappings/ holds no template");
}

fn no_loose_object(path: &str, value: &Value) {
    if let Value::Object(fields) = value {
        if let Some(dynamic) = fields.get("dynamic") {
            assert_eq!(dynamic, "strict", "{path}: an object inside is not strict");
        }
        fields
            .values()
            .for_each(|field| no_loose_object(path, field));
    }
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let root = root();
    let mut problems = Vec::new();
    for source in sources(&[".md"]) {
        for target in links(&source.text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() {
                root.join(&source.path)
            } else {
                let folder = root.join(&source.path);
                folder.parent().expect("a file is in a folder").join(file)
            };
            if !path.exists() {
                problems.push(format!("{}: {target} does not exist", source.path));
            } else if !anchor.is_empty() && !has_heading(&path, anchor) {
                problems.push(format!("{}: {target} has no such heading", source.path));
            }
        }
    }
    fail_if_any(&problems);
}

/// Targets of `[text](target)` that stay inside the project.
fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.contains(' '))
        .collect()
}

fn has_heading(path: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(path).expect("a linked file");
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let slug: String = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            slug == anchor
        })
}

#[test]
fn the_documents_name_files_that_exist() {
    let root = root();
    let mut problems = Vec::new();
    for source in sources(&[".md"]) {
        let words = source
            .text
            .split(|c: char| c.is_whitespace() || "`()[]\"',;:".contains(c));
        for word in words {
            let word = word.trim_end_matches('.');
            let ours = ["scripts/", "examples/", "es-mappings/", "docs/"]
                .iter()
                .any(|folder| {
                    word.strip_prefix(folder)
                        .is_some_and(|rest| !rest.is_empty())
                });
            if ours && !word.contains(['*', '<', '|', '$']) && !root.join(word).exists() {
                problems.push(format!("{}: {word} does not exist", source.path));
            }
        }
    }
    fail_if_any(&problems);
}

#[test]
fn every_endpoint_and_error_code_is_documented() {
    let text = fs::read_to_string(root().join("docs/api.md")).expect("docs/api.md");
    let mut problems = Vec::new();
    for endpoint in ENDPOINTS {
        let cell = format!("`{} {}`", endpoint.method, endpoint.path);
        if !text.contains(&cell) {
            problems.push(format!("docs/api.md: {cell} is missing"));
        }
    }
    for code in ErrorCode::ALL {
        let row = format!("| `{}` | {} |", code.as_str(), code.status());
        if !text.contains(&row) {
            problems.push(format!("docs/api.md: no row {row}"));
        }
    }
    fail_if_any(&problems);
}

#[test]
fn every_invariant_names_checks_that_exist() {
    let text = fs::read_to_string(root().join("docs/invariants.md")).expect("docs/invariants.md");
    for number in 1..=9 {
        assert!(
            text.contains(&format!("## I{number} ")),
            "I{number} is missing"
        );
    }
    let rust: String = sources(&[".rs"])
        .into_iter()
        .map(|source| source.text)
        .collect();
    let mut problems = Vec::new();
    for name in text.split('`').skip(1).step_by(2) {
        let is_function = name.contains('_')
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_function && !rust.contains(name) {
            problems.push(format!("docs/invariants.md: nothing is called {name}"));
        }
    }
    fail_if_any(&problems);
}

//! Checks that no compiler does: sizes, headers, banned words, links, and that the documents name existing things.

use std::{collections::BTreeSet, fs, path::Path};

use fairlead_api::ErrorCode;
use fairlead_tests::{settings::project, sources::sources};
use serde_json::Value;

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 60;
/// Maximum number of lines of an arm of an exhaustive match.
const ARM_LINES_MAX: usize = 10;
/// Maximum number of lines of a function in tests, which may hold a table of cases or all steps of a model.
const TEST_LINES_MAX: usize = 140;

/// Texts that are banned in Rust sources. They are split here so that this file does not contain them.
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

/// Texts that are also banned in tests. Wait for a condition with a deadline instead.
const SLEEPS: &[&str] = &[concat!("thread::sl", "eep"), concat!("time::sl", "eep")];

/// Programs below `tests/` that are not tests. They are measured as programs, and may have their own timer.
const PROGRAMS: &[&str] = &[
    "tests/bench/src/",
    "tests/faults/src/",
    "tests/measure/src/",
    "tests/simulation/src/",
];

/// Folders of one machine, and hosts of one site. Neither belongs in a project.
const PLACES: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("artif", "actory"),
    concat!(".jf", "rog."),
];

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
        let limit = if is_test(&source.path) {
            TEST_LINES_MAX
        } else {
            FUNCTION_LINES_MAX
        };
        let text: Vec<&str> = source.text.lines().collect();
        for (name, lines) in functions(&text) {
            let lines = lines.len() - exhaustive(lines);
            if lines > limit {
                problems.push(format!(
                    "{}: {name}: {lines} lines, at most {limit}",
                    source.path
                ));
            }
        }
    }
    fail_if_any(&problems);
}

/// Returns the name of a function that begins on this line, with any visibility.
fn function_name(line: &str) -> Option<&str> {
    let mut code = line.trim_start();
    if let Some(rest) = code.strip_prefix("pub") {
        code = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1,
            None => rest,
        };
    }
    let head = code.split(['(', '<']).next()?;
    let mut words = head.split_whitespace();
    let qualifiers = ["async", "const", "extern", "unsafe", "\"C\""];
    let word = words.find(|word| !qualifiers.contains(word))?;
    words.next().filter(|_| word == "fn")
}

/// Returns the number of lines of a function that are an exhaustive match at its top. The compiler checks its arms, and
/// they are one table. With a leftover `_` or a long arm the match counts like any other code.
fn exhaustive(function: &[&str]) -> usize {
    let first = function.first().copied().unwrap_or_default();
    let indent = " ".repeat(first.len() - first.trim_start().len() + 4);
    let (arm, deeper) = (format!("{indent}    "), format!("{indent}     "));
    let is_match = |line: &&str| {
        let head = line.strip_prefix(indent.as_str()).unwrap_or_default();
        let head = head.trim_start_matches("let answer = ");
        head.starts_with("match ") && head.ends_with('{')
    };
    let Some(begin) = function.iter().position(is_match) else {
        return 0;
    };
    let arms = function.get(begin + 1..).unwrap_or_default();
    let end = arms
        .iter()
        .position(|line| line.starts_with(&indent) && !line.starts_with(&arm));
    let arms = arms.get(..end.unwrap_or(0)).unwrap_or_default();
    let heads = arms.iter().enumerate();
    let heads = heads.filter(|(_, line)| line.starts_with(&arm) && !line.starts_with(&deeper));
    let heads: Vec<usize> = heads.map(|(at, _)| at).collect();
    let longest = heads.windows(2).map(|pair| pair[1] - pair[0]).max();
    let has_leftover = arms
        .iter()
        .any(|line| line.starts_with(&format!("{arm}_ ")));
    if has_leftover || longest.unwrap_or(0) > ARM_LINES_MAX {
        return 0;
    }
    arms.len()
}

/// Returns the functions with a body, and the lines of each. It relies on rustfmt: a function's last line is a closing
/// brace at the indentation of its first.
fn functions<'t>(lines: &'t [&'t str]) -> Vec<(&'t str, &'t [&'t str])> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let after = lines.get(at..).unwrap_or_default();
        let is_declared_only = after
            .iter()
            .find(|line| line.ends_with([';', '{', '}']))
            .is_some_and(|line| !line.ends_with('{'));
        if is_declared_only {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", line.get(..indent).unwrap_or_default());
        let last = after.iter().position(|line| *line == end).unwrap_or(0);
        found.push((name, after.get(..=last).unwrap_or_default()));
    }
    found
}

#[test]
fn functions_are_measured_whoever_may_call_them() {
    let heads = [
        "fn a() {",
        "pub fn a<T>(",
        "pub(crate) fn a() {",
        "pub(super) async fn a() {",
        "pub(in crate::b) const fn a() {",
        "    async unsafe fn a() {",
    ];
    for head in heads {
        assert_eq!(function_name(head), Some("a"), "{head}");
    }
    for other in [
        "// fn a()",
        "a: fn(u8) -> u8,",
        "let a = fn_of(1);",
        "pub struct A;",
    ] {
        assert_eq!(function_name(other), None, "{other}");
    }
    let text = "impl A {\n    pub(crate) fn a() {\n        b();\n    }\n}\nfn c();\n";
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(functions(&lines), [("a", &lines[1..4])]);
}

#[test]
fn an_exhaustive_match_is_measured_by_its_longest_arm() {
    let of = |arms: &str| {
        let text = format!("fn a() {{\n    match b {{\n{arms}    }}\n}}\n");
        exhaustive(&text.lines().collect::<Vec<_>>())
    };
    let plain = "        A => 1,\n".repeat(70);
    assert_eq!(of(&plain), 70);
    assert_eq!(of(&format!("{plain}        _ => 2,\n")), 0);
    let program = format!(
        "        A => {{\n{}        }}\n",
        "            b();\n".repeat(12)
    );
    assert_eq!(of(&format!("{program}{plain}")), 0);
    assert_eq!(exhaustive(&["fn a() {", "    b();", "}"]), 0);
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

/// A process that a test or a measurement leaves behind takes ports and memory from all later ones.
#[test]
fn who_starts_processes_has_a_reaper_for_them() {
    let mut problems = Vec::new();
    for source in sources(&[".rs"]) {
        let places = ["tests/", "scheduler-cluster/", "testbox-client/tests/"];
        let is_ours = places.iter().any(|place| source.path.starts_with(place));
        let starts = source.text.contains(concat!(".spa", "wn()"));
        if is_ours && starts && !source.text.contains("reaper") {
            let path = &source.path;
            problems.push(format!("{path}: give its processes `reaper::variable()`"));
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
    let root = project();
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

/// Returns the targets of `[text](target)` inside the project.
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
    let root = project();
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
fn every_error_code_is_documented() {
    let text = fs::read_to_string(project().join("docs/api.md")).expect("docs/api.md");
    let mut problems = Vec::new();
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
    let text =
        fs::read_to_string(project().join("docs/invariants.md")).expect("docs/invariants.md");
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

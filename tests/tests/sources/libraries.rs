//! The libraries of the lock file against `deny.toml`: licenses, sources, bans and doubled versions.
//!
//! `cargo deny` reads the same file and checks more (advisories, the texts of licenses). It is not installed everywhere;
//! this test runs wherever the tests do.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use serde::Deserialize;
use spdx::{Expression, ParseMode};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
    skip: Vec<Named>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    /// Libraries that may bring it anyway.
    #[serde(default)]
    wrappers: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    name: String,
}

fn deny() -> Deny {
    let text = fs::read_to_string(format!("{ROOT}/deny.toml")).expect("deny.toml");
    toml::from_str(&text).expect("deny.toml has the fields that this test reads")
}

/// A library that some part of the workspace is built with on this machine's target, with all features.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Library {
    name: String,
    /// Compatible version in the form of `deny.toml`: `1`, `0.9`.
    version: String,
    license: String,
    /// Source of the library. Empty: the registry of Rust.
    source: String,
}

impl Library {
    /// Parses a line of `cargo tree`: `name v1.2.3 (source) (proc-macro)`, and the license behind a tab.
    fn of(line: &str) -> Option<Self> {
        let (package, license) = line.split_once('\t')?;
        let mut words = package.splitn(3, ' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let source = words.next().unwrap_or_default();
        let source = source.replace("(proc-macro)", "").replace("(*)", "");
        let mut numbers = version.split('.');
        let version = match (numbers.next()?, numbers.next()?) {
            ("0", minor) => format!("0.{minor}"),
            (major, _) => major.to_owned(),
        };
        Some(Self {
            name: name.to_owned(),
            version,
            license: license.replace("(*)", "").trim().to_owned(),
            source: source.trim().to_owned(),
        })
    }

    fn named(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

fn tree(more: &[&str]) -> String {
    let tree = Command::new(env!("CARGO"))
        .current_dir(ROOT)
        .args(["tree", "--workspace", "--all-features", "--locked"])
        .args([
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
            "--format",
            "{p}\t{l}",
        ])
        .args(more)
        .output()
        .expect("cargo tree");
    let said = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "cargo tree: {said}");
    String::from_utf8_lossy(&tree.stdout).into_owned()
}

/// Returns the crates that directly depend on a library.
fn bringers(name: &str) -> BTreeSet<String> {
    let tree = tree(&["--invert", name, "--depth", "1"]);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let others = names.filter(|other| !other.is_empty() && *other != name);
    others.map(str::to_owned).collect()
}

/// Returns all libraries, without the workspace's own crates.
fn libraries() -> BTreeSet<Library> {
    let tree = tree(&[]);
    let all = tree
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| Library::of(line).unwrap_or_else(|| panic!("cargo tree says '{line}'")));
    all.filter(|library| !library.source.starts_with("(/"))
        .collect()
}

fn is_allowed(license: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = Expression::parse_mode(license, ParseMode::LAX);
    expression.is_ok_and(|expression| {
        expression.evaluate(|requirement| allowed.contains(&requirement.to_string()))
    })
}

#[test]
fn each_library_has_an_allowed_license_and_comes_from_the_registry() {
    let (Deny { licenses, bans }, libraries) = (deny(), libraries());
    assert!(libraries.len() > 100, "{} libraries", libraries.len());
    let denied: BTreeMap<&str, &Ban> = bans
        .deny
        .iter()
        .map(|ban| (ban.name.as_str(), ban))
        .collect();
    let mut problems = Vec::new();
    for library in &libraries {
        if !is_allowed(&library.license, &licenses.allow) {
            problems.push(format!(
                "{}: license '{}'",
                library.named(),
                library.license
            ));
        }
        if !library.source.is_empty() {
            problems.push(format!("{}: source {}", library.named(), library.source));
        }
        if let Some(ban) = denied.get(library.name.as_str()) {
            let bring_it = bringers(&library.name);
            let others: Vec<&String> = bring_it.difference(&ban.wrappers).collect();
            if !others.is_empty() {
                problems.push(format!(
                    "{}: deny.toml bans it below {others:?}",
                    library.named()
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_library_is_there_once_or_deny_toml_says_why_not() {
    let (Deny { bans, .. }, libraries) = (deny(), libraries());
    let skipped: BTreeSet<String> = bans.skip.into_iter().map(|skip| skip.name).collect();
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for library in &libraries {
        let named = versions.entry(&library.name).or_default();
        named.insert(library.named());
    }
    versions.retain(|_, named| named.len() > 1);
    let doubled: BTreeSet<&String> = versions.values().flatten().collect();
    let unsaid = versions.values().filter_map(|named| {
        let unsaid: Vec<&str> = named.difference(&skipped).map(String::as_str).collect();
        (unsaid.len() > 1).then(|| format!("versions beside each other: {}", unsaid.join(", ")))
    });
    let unused = skipped.iter().filter(|skip| !doubled.contains(skip));
    let unused = unused.map(|skip| format!("{skip}: deny.toml skips it, and need not"));
    let problems: Vec<String> = unsaid.chain(unused).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn licenses_are_read_as_expressions() {
    let allowed = BTreeSet::from([
        "MIT".to_owned(),
        "Apache-2.0 WITH LLVM-exception".to_owned(),
    ]);
    for good in [
        "MIT",
        "MIT OR GPL-2.0",
        "GPL-2.0/MIT",
        "Apache-2.0 WITH LLVM-exception OR 0BSD",
    ] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["", "GPL-2.0", "MIT AND GPL-2.0", "Apache-2.0", "nonsense"] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

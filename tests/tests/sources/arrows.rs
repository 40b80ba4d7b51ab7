//! Checks the workspace's layers, from `cargo metadata`: allowed dependencies, versions and lints. Cargo itself refuses
//! cycles; this test refuses forbidden arrows.

use std::{collections::BTreeMap, fs};

use cargo_metadata::{CargoOpt, Metadata, MetadataCommand, Package};

/// For each member, the members it may depend on, tests included. Crates of tests follow the `fairlead` row.
const ARROWS: &[(&str, &[&str])] = &[
    ("fairlead-cases", &[]),
    ("fairlead-chart", &[]),
    ("fairlead-crash", &[]),
    ("fairlead-dashboard", &[]),
    ("fairlead-job", &[]),
    ("fairlead-dispatch", &[]),
    ("fairlead-reaper", &[]),
    ("fairlead-scaler", &[]),
    (
        "fairlead-replay",
        &["fairlead-chart", "fairlead-dispatch", "fairlead-scaler"],
    ),
    ("fairlead-api", &["fairlead-job"]),
    ("fairlead-content", &["fairlead-api"]),
    ("fairlead-store", &["fairlead-job"]),
    (
        "fairlead-testbox",
        &[
            "fairlead-api",
            "fairlead-cases",
            "fairlead-content",
            "fairlead-crash",
            "fairlead-job",
            // Only its tests depend on this.
            "fairlead-reaper",
        ],
    ),
    (
        "fairlead-base",
        &[
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-content",
            // Only its tests depend on this.
            "fairlead-fixtures",
        ],
    ),
    (
        "fairlead-lifecycle",
        &[
            "fairlead-base",
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-content",
            // Only its tests depend on this.
            "fairlead-fixtures",
        ],
    ),
    (
        "fairlead-known",
        &[
            "fairlead-base",
            "fairlead-lifecycle",
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-cases",
            "fairlead-content",
            "fairlead-scaler",
            // Only its tests depend on this.
            "fairlead-fixtures",
        ],
    ),
    (
        "fairlead-scheduler",
        &[
            "fairlead-base",
            "fairlead-lifecycle",
            "fairlead-known",
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-cases",
            "fairlead-content",
            "fairlead-dashboard",
            "fairlead-scaler",
            // Only its tests depend on this.
            "fairlead-fault-store",
            "fairlead-fixtures",
        ],
    ),
    ("fairlead-cluster", &["fairlead-api", "fairlead-reaper"]),
    (
        "fairlead",
        &[
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-scheduler",
            "fairlead-testbox",
            "fairlead-cases",
            "fairlead-content",
            "fairlead-replay",
        ],
    ),
    (
        "fairlead-tests",
        &[
            "fairlead-job",
            "fairlead-store",
            "fairlead-api",
            "fairlead-reaper",
        ],
    ),
    ("fairlead-attack", &["fairlead-api", "fairlead-tests"]),
    (
        "fairlead-measure",
        &["fairlead-api", "fairlead-attack", "fairlead-tests"],
    ),
    ("fairlead-fault-store", &["fairlead-job", "fairlead-store"]),
    ("fairlead-fixtures", &["fairlead-job", "fairlead-store"]),
    (
        "fairlead-simulation",
        &[
            "fairlead-content",
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-scheduler",
            "fairlead-testbox",
        ],
    ),
    (
        "fairlead-faults",
        &[
            "fairlead-job",
            "fairlead-api",
            "fairlead-cluster",
            "fairlead-reaper",
            "fairlead-simulation",
            "fairlead-testbox",
            // Only its tests depend on this.
            "fairlead-tests",
        ],
    ),
    (
        "fairlead-bench",
        &[
            "fairlead-chart",
            "fairlead-job",
            "fairlead-dispatch",
            "fairlead-store",
            "fairlead-api",
            "fairlead-cluster",
            "fairlead-reaper",
        ],
    ),
];

/// Libraries that would break a crate's promise, in any version: the engine is pure, the API links no server.
const NEVER: &[(&str, &[&str])] = &[
    (
        "fairlead-crash",
        &["tokio", "serde", "serde_json", "rand", "jiff", "tracing"],
    ),
    (
        "fairlead-dispatch",
        &["tokio", "serde", "serde_json", "rand", "jiff", "tracing"],
    ),
    // Rules of a job's life: a state and a time in, the next state out.
    (
        "fairlead-lifecycle",
        &["tokio", "reqwest", "rand", "jiff", "tracing", "parking_lot"],
    ),
    // It uses jiff to parse times; clippy checks that it never asks for the present time (clippy.toml).
    ("fairlead-job", &["tokio", "reqwest", "rand"]),
    (
        "fairlead-api",
        &["warp", "hyper", "rusqlite", "elasticsearch", "clap"],
    ),
    (
        "fairlead-testbox",
        &["warp", "hyper", "rusqlite", "elasticsearch"],
    ),
    // The launcher only starts programs. Programs that measure and judge them are below tests/.
    (
        "fairlead-cluster",
        &["warp", "hyper", "rusqlite", "elasticsearch"],
    ),
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .no_deps()
        .exec()
        .expect("cargo metadata of the workspace")
}

fn members(metadata: &Metadata) -> BTreeMap<&str, &Package> {
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.as_str(), package))
        .collect()
}

#[test]
fn every_member_depends_only_on_the_layers_below_it() {
    let metadata = metadata();
    let members = members(&metadata);
    for (name, package) in &members {
        let allowed = ARROWS
            .iter()
            .find_map(|(member, below)| (member == name).then_some(*below))
            .unwrap_or_else(|| {
                panic!("{name} is not in the table of layers: say where it belongs")
            });
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            assert!(
                !members.contains_key(to) || allowed.contains(&to),
                "{name} must not depend on {to}: it may use {allowed:?}"
            );
        }
    }
    assert_eq!(members.len(), ARROWS.len(), "a layer has no member");
}

#[test]
fn pure_and_light_crates_stay_so() {
    let metadata = metadata();
    let members = members(&metadata);
    for (name, never) in NEVER {
        for dependency in &members[name].dependencies {
            let to = dependency.name.as_str();
            let in_tests_only = dependency.kind == cargo_metadata::DependencyKind::Development;
            assert!(
                in_tests_only || !never.contains(&to),
                "{name} must not depend on {to}"
            );
        }
    }
}

#[test]
fn versions_are_at_the_root_only_and_lints_are_shared() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        let text = fs::read_to_string(&package.manifest_path).expect("a member's Cargo.toml");
        let mut section = "";
        let mut shares_lints = false;
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
            } else if !line.is_empty() && !line.starts_with('#') {
                let from_root = line.contains("workspace = true");
                shares_lints |= section == "lints" && from_root;
                assert!(
                    !section.ends_with("dependencies") || from_root,
                    "{name}: '{line}' says its own version; put it in the root's [workspace.dependencies]"
                );
                let is_version = section == "package" && line.starts_with("version");
                assert!(
                    !is_version || line == "version.workspace = true",
                    "{name}: {line}"
                );
            }
        }
        assert!(shares_lints, "{name} does not say [lints] workspace = true");
    }
}

/// A test target that no part names would never run.
#[test]
fn each_test_target_is_in_one_part_of_the_tests() {
    let metadata = metadata();
    let mut targets = BTreeMap::new();
    for (name, package) in members(&metadata) {
        let tests = package.targets.iter().filter(|target| target.is_test());
        for target in tests {
            targets.insert(target.name.clone(), (name, 0));
        }
    }
    let parts = metadata.workspace_root.join("scripts/parts");
    let parts = fs::read_to_string(parts).expect("scripts/parts");
    let lines = parts.lines().filter(|line| !line.starts_with('#'));
    // The oldest server gets a part that another server gets, too.
    for line in lines.filter(|line| !line.starts_with("oldest")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            if let ["--test", name] = pair {
                let known = targets.get_mut(*name);
                let (_, times) = known.unwrap_or_else(|| panic!("{line}: no target is so named"));
                *times += 1;
            }
        }
    }
    for (target, (member, times)) in targets {
        assert_eq!(
            times, 1,
            "scripts/parts names {target} of {member} so often"
        );
    }
}

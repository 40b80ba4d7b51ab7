//! Checks the plan of the house: no circles of imports in a crate, and the scheduler's folders know only those that
//! this table names.

use std::{collections::BTreeSet, fs};

use fairlead_tests::{
    imports::{calls_of_core, circles, imports, methods_of_core, modules, scheduler},
    settings,
};

/// Folders of the scheduler, lowest first, each with the lower folders that it may know. Facts are separate crates,
/// which all folders may know. Flows know facts, and HTTP knows flows.
const ROOMS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("people", &["core"]),
    ("peers", &["core", "people"]),
    ("placement", &["core"]),
    ("jobs", &["core", "people", "placement"]),
    ("files", &["core", "people", "jobs"]),
    ("content", &["core", "people"]),
    ("care", &["files"]),
    ("reuse", &["core", "people", "placement", "jobs", "files"]),
    ("waiting", &["core", "jobs", "reuse"]),
    (
        "submission",
        &[
            "core",
            "peers",
            "people",
            "placement",
            "jobs",
            "waiting",
            "reuse",
        ],
    ),
    ("samples", &["core"]),
    ("shards", &["core", "jobs", "files", "reuse", "submission"]),
    ("dispatching", &["core", "people", "jobs", "submission"]),
    (
        "hosts",
        &[
            "core",
            "peers",
            "people",
            "placement",
            "jobs",
            "submission",
            "dispatching",
        ],
    ),
    (
        "scaling",
        &["core", "people", "placement", "jobs", "submission", "hosts"],
    ),
    (
        "views",
        &[
            "core",
            "placement",
            "jobs",
            "waiting",
            "submission",
            "hosts",
            "scaling",
            "samples",
        ],
    ),
    (
        "bulk",
        &[
            "core",
            "people",
            "placement",
            "jobs",
            "submission",
            "shards",
            "hosts",
        ],
    ),
    (
        "dashboard",
        &["core", "people", "placement", "samples", "views"],
    ),
    ("webhooks", &["core", "people", "jobs", "views"]),
    (
        "timers",
        &[
            "core",
            "peers",
            "people",
            "jobs",
            "waiting",
            "reuse",
            "submission",
            "views",
        ],
    ),
    (
        "upkeep",
        &[
            "core",
            "peers",
            "people",
            "jobs",
            "files",
            "waiting",
            "reuse",
            "submission",
            "dispatching",
            "hosts",
            "scaling",
            "samples",
            "shards",
            "timers",
            "webhooks",
            "bulk",
        ],
    ),
    (
        "http",
        &[
            "core",
            "peers",
            "people",
            "jobs",
            "files",
            "content",
            "waiting",
            "reuse",
            "submission",
            "hosts",
            "scaling",
            "views",
            "timers",
            "samples",
            "upkeep",
            "webhooks",
            "shards",
            "bulk",
            "dashboard",
        ],
    ),
    (
        "replica",
        &[
            "core",
            "people",
            "peers",
            "files",
            "content",
            "waiting",
            "reuse",
            "dispatching",
            "hosts",
            "scaling",
            "shards",
            "timers",
            "upkeep",
            "http",
            "webhooks",
            "dashboard",
        ],
    ),
    ("server", &["core", "people", "files", "http", "replica"]),
];

/// Crates of facts. The architecture names their modules like those of the scheduler's folders.
const FACTS: &[&str] = &["base", "lifecycle", "known"];

/// Crates, by their folders of sources.
const CRATES: &[&str] = &[
    "src/job/src",
    "src/dispatch/src",
    "src/store/src",
    "src/content/src",
    "src/api/src",
    "src/base/src",
    "src/lifecycle/src",
    "src/known/src",
    "src/scheduler/src",
    "src/cli/src",
    "testbox-client/src",
];

#[test]
fn modules_import_each_other_in_no_circle() {
    let mut problems = Vec::new();
    for folder in CRATES {
        let found = if *folder == "src/scheduler/src" {
            circles(&scheduler())
        } else {
            circles(&imports(&settings::project().join(folder)))
        };
        problems.extend(
            found
                .iter()
                .map(|circle| format!("{folder}: a circle: {circle:?}")),
        );
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The protocol is pure, because simulated agents run it in virtual time and replay it.
#[test]
fn the_agent_s_protocol_has_no_clock_no_io_and_no_chance() {
    let folder = settings::project().join("testbox-client/src/protocol");
    let never = [
        "Instant", "HashMap", "HashSet", "async", "crate::", "tokio", "tracing", "uuid", "fs::",
    ];
    let mut problems = Vec::new();
    let modules = modules(&folder);
    for (name, code) in &modules {
        let found = never.iter().filter(|word| code.contains(**word));
        problems.extend(found.map(|word| format!("protocol/{name} has '{word}'")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(modules.contains_key("core"), "{:?}", modules.keys());
}

/// A reader that found no methods or no calls would find no arrows either.
#[test]
fn methods_of_the_core_are_found() {
    let modules = modules(&settings::project().join("src/scheduler/src"));
    let methods = methods_of_core(&modules);
    assert!(methods.len() > 250, "{}", methods.len());
    let calls = calls_of_core(&modules["hosts/work_requests"], &methods);
    assert!(calls.contains("hosts/fence"), "{calls:?}");
    let rounds = calls_of_core(&modules["upkeep/rounds"], &methods);
    assert!(rounds.contains("waiting/alarms"), "{rounds:?}");
}

#[test]
fn the_scheduler_s_rooms_know_only_those_below_them() {
    let imports = scheduler();
    let room = |module: &str| module.split('/').next().unwrap_or_default().to_owned();
    let mut problems = Vec::new();
    for (at, (name, known)) in ROOMS.iter().enumerate() {
        let lower = &ROOMS[..at];
        let higher = known
            .iter()
            .filter(|one| lower.iter().all(|(name, _)| name != *one));
        problems
            .extend(higher.map(|one| format!("{name} may not know {one}: it is no lower folder")));
    }
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

/// Checks that the things that the architecture names exist in the named places.
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
        let place = if FACTS.contains(&first) && name.contains('/') {
            root.join("src").join(name.replacen('/', "/src/", 1))
        } else if is_room {
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

//! Checks the plan of the house: no circles of imports in a crate, and the scheduler's folders know only those that
//! this table names.

use std::{collections::BTreeSet, fs};

use fairlead_tests::{
    imports::{circles, imports, modules},
    settings,
};

/// Folders of the scheduler, lowest first, each with the lower folders that it may know. Facts are separate crates,
/// which all folders may know. Flows know facts, and HTTP knows flows. A flow imports the flows
/// that it is given.
const ROOMS: &[(&str, &[&str])] = &[
    ("ctx", &[]),
    ("people", &["ctx"]),
    ("placement", &["ctx"]),
    ("jobs", &["ctx", "people", "placement"]),
    ("peers", &["ctx", "jobs"]),
    ("files", &["ctx", "people", "jobs"]),
    ("content", &["ctx", "people"]),
    ("care", &["files"]),
    ("reuse", &["ctx", "people", "placement", "jobs", "files"]),
    ("waiting", &["ctx", "jobs", "reuse"]),
    (
        "submission",
        &[
            "ctx",
            "people",
            "placement",
            "jobs",
            "peers",
            "reuse",
            "waiting",
        ],
    ),
    ("samples", &["ctx", "people", "jobs"]),
    (
        "shards",
        &["ctx", "jobs", "peers", "files", "reuse", "submission"],
    ),
    ("dispatching", &["ctx", "people", "jobs", "submission"]),
    (
        "hosts",
        &[
            "ctx",
            "people",
            "placement",
            "jobs",
            "peers",
            "submission",
            "dispatching",
        ],
    ),
    (
        "scaling",
        &["ctx", "people", "placement", "jobs", "submission", "hosts"],
    ),
    (
        "views",
        &[
            "ctx",
            "people",
            "placement",
            "jobs",
            "waiting",
            "submission",
            "samples",
            "hosts",
            "scaling",
        ],
    ),
    (
        "bulk",
        &[
            "ctx",
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
        &[
            "ctx",
            "people",
            "placement",
            "jobs",
            "peers",
            "files",
            "samples",
            "views",
        ],
    ),
    ("webhooks", &["ctx", "people", "jobs", "views"]),
    (
        "timers",
        &[
            "ctx",
            "people",
            "jobs",
            "peers",
            "reuse",
            "submission",
            "views",
        ],
    ),
    (
        "upkeep",
        &[
            "ctx",
            "people",
            "placement",
            "jobs",
            "peers",
            "files",
            "waiting",
            "submission",
            "samples",
            "dispatching",
            "hosts",
            "timers",
        ],
    ),
    (
        "flows",
        &[
            "ctx",
            "people",
            "placement",
            "jobs",
            "peers",
            "files",
            "content",
            "reuse",
            "waiting",
            "submission",
            "samples",
            "shards",
            "dispatching",
            "hosts",
            "scaling",
            "views",
            "bulk",
            "dashboard",
            "webhooks",
            "timers",
            "upkeep",
        ],
    ),
    ("rounds", &["dispatching", "flows"]),
    (
        "http",
        &[
            "ctx",
            "people",
            "jobs",
            "peers",
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
            "flows",
        ],
    ),
    (
        "replica",
        &[
            "waiting",
            "reuse",
            "shards",
            "timers",
            "webhooks",
            "dispatching",
            "flows",
            "rounds",
            "http",
        ],
    ),
    ("server", &["people", "files", "flows", "http", "replica"]),
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
        let found = circles(&imports(&settings::project().join(folder)));
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

#[test]
fn the_scheduler_s_rooms_know_only_those_below_them() {
    let imports = imports(&settings::project().join("src/scheduler/src"));
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

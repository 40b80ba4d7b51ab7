//! Real consoles, if `FAIRLEAD_CRASH_LOGS` names a folder of them, else the samples: shares of crashes that are found,
//! classed and named.
//!
//! A file begins with a header up to the first empty line. `TITLE:` names the crash (none: no crash), `TYPE:` its
//! class, and `CORRUPTED:` tells that the console is mangled.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use fairlead_crash::Crash;

use crate::{samples::SAMPLES, scan};

struct Log {
    name: String,
    title: Option<String>,
    class: Option<String>,
    is_corrupted: bool,
    crash: Option<Crash>,
}

impl Log {
    fn read(name: String, bytes: &[u8]) -> Self {
        let headless = bytes.first() == Some(&b'\n');
        let end = bytes.windows(2).position(|pair| pair == b"\n\n");
        let end = if headless {
            0
        } else {
            end.unwrap_or(bytes.len())
        };
        let (header, console) = bytes.split_at(end);
        let header = String::from_utf8_lossy(header).into_owned();
        let field = |key: &str| {
            let value = header
                .lines()
                .find_map(|line| line.strip_prefix(key))?
                .trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        Self {
            name,
            title: field("TITLE:"),
            class: field("TYPE:"),
            is_corrupted: field("CORRUPTED:").is_some(),
            crash: scan(console),
        }
    }

    fn signature(&self) -> Option<&str> {
        self.crash.as_ref().map(|crash| crash.signature.as_str())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of these tests that reads the environment"
)]
fn folder() -> Option<PathBuf> {
    let folder = std::env::var("FAIRLEAD_CRASH_LOGS").ok()?;
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

/// Returns all files below a folder, in a stable order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false if path.extension().is_none() => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}

/// Returns the samples, each twice under one title, and two consoles without a crash.
fn samples() -> Vec<Log> {
    let mut logs = Vec::new();
    for (console, _, class, title) in SAMPLES {
        let header = format!("TITLE: {title}\nTYPE: {class}\n\n");
        let later = console
            .replace("PID: 77", "PID: 1234")
            .replace("0x1/0x2", "0x3f/0x1f2");
        for (copy, console) in [*console, &later].into_iter().enumerate() {
            let name = format!("{title} ({copy})");
            logs.push(Log::read(name, format!("{header}{console}\n").as_bytes()));
        }
    }
    for console in [
        "\nall is well\n",
        "\n[    1.000000] WARNING: a sensor is warm\n",
    ] {
        logs.push(Log::read(console.trim().to_owned(), console.as_bytes()));
    }
    logs
}

fn logs() -> Vec<Log> {
    let Some(folder) = folder() else {
        return samples();
    };
    let logs: Vec<Log> = files(&folder)
        .into_iter()
        .map(|path| {
            let bytes =
                fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Log::read(path.display().to_string(), &bytes)
        })
        .collect();
    assert!(
        logs.iter().any(|log| log.title.is_some()),
        "{}: no crash logs",
        folder.display()
    );
    logs
}

/// Fails unless at least this percentage is good.
fn at_least<'a>(percent: usize, what: &str, all: impl Iterator<Item = (bool, &'a str)>) {
    let all: Vec<(bool, &str)> = all.collect();
    let bad: Vec<&str> = all
        .iter()
        .filter(|(good, _)| !good)
        .map(|(_, name)| *name)
        .collect();
    let good = all.len() - bad.len();
    assert!(
        good * 100 >= all.len() * percent,
        "{what}: {good} of {}, at least {percent} %: {bad:#?}",
        all.len()
    );
}

#[test]
fn crashes_are_found_classed_and_named() {
    let logs = logs();
    let (crashes, clean): (Vec<&Log>, Vec<&Log>) = logs.iter().partition(|log| log.title.is_some());
    at_least(
        98,
        "found",
        crashes
            .iter()
            .map(|log| (log.crash.is_some(), log.name.as_str())),
    );
    let alarms: Vec<&str> = clean
        .iter()
        .filter(|log| log.crash.is_some())
        .map(|log| log.name.as_str())
        .collect();
    assert!(alarms.len() <= 1, "false alarms: {alarms:#?}");

    let classes = crashes.iter().filter_map(|log| {
        let is_right = log.crash.as_ref()?.class.word() == log.class.as_deref()?;
        Some((is_right, log.name.as_str()))
    });
    at_least(92, "class", classes);

    let mut titles: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    for log in crashes.iter().filter(|log| !log.is_corrupted) {
        titles
            .entry(log.title.as_deref().unwrap_or_default())
            .or_default()
            .push(log.signature());
    }
    let repeated = titles.iter().filter(|(_, signatures)| signatures.len() > 1);
    let equal = repeated.map(|(title, signatures)| {
        let is_equal = signatures
            .windows(2)
            .all(|pair| pair[0].is_some() && pair[0] == pair[1]);
        (is_equal, *title)
    });
    at_least(90, "equal signatures of a title", equal);

    let mut pairs = Vec::new();
    for (index, one) in crashes.iter().enumerate() {
        for other in &crashes[index + 1..] {
            let is_apart = one.signature().is_none() || one.signature() != other.signature();
            if one.title != other.title {
                pairs.push((is_apart, one.signature().unwrap_or_default()));
            }
        }
    }
    at_least(98, "pairs of titles apart", pairs.into_iter());
}

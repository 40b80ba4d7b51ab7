//! `fairlead hosts import DIR`: reads host files of a lab and registers the machines.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use fairlead_api::Client;
use fairlead_job::{FsSource, JobFileError, Spec, file::read_plain};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, or_dash},
};

/// Maximum number of files in one folder.
const FILES_MAX: usize = 50_000;
/// Lists that each import replaces, so that removed items disappear.
const RESET: [&str; 3] = ["tags", "devices", "mac_addr"];
/// Prefixes of the names of guest sizes, which are not machines.
const GUESTS: [&str; 3] = ["vm", "dc", "vt"];

#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The folder of the host files, or one that holds it as `hosts` (beside `groups`)
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Show what would be registered, and register nothing
    #[arg(long)]
    dry_run: bool,
}

/// Result of the import of one file.
#[derive(Debug, Serialize)]
struct Imported {
    name: String,
    /// One of `registered`, `would be registered`, `skipped` or `refused`.
    outcome: &'static str,
    /// Reason, if it is not registered.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Host as it is sent.
    #[serde(skip_serializing_if = "Spec::is_empty")]
    host: Spec,
}

pub(super) async fn run(
    args: &ImportArgs,
    context: &Context,
    client: &Client,
) -> anyhow::Result<u8> {
    let files = HostFiles::find(&args.dir)?;
    let mut outcomes = Vec::new();
    for name in files.machines() {
        outcomes.push(match files.read(name) {
            Err(error) => refused(name, error.to_string()),
            Ok(host) if is_guest(name, &host) => Imported {
                name: name.to_owned(),
                outcome: "skipped",
                reason: "it describes a guest, which needs no registration".to_owned(),
                host: Spec::new(),
            },
            Ok(host) => register(args.dry_run, client, name, host).await?,
        });
    }
    let paper = context.output.paper();
    context.print(&outcomes, |outcomes| table(outcomes, paper))?;
    let any_refused = outcomes.iter().any(|outcome| outcome.outcome == "refused");
    Ok(if any_refused { exit::REFUSED } else { exit::OK })
}

/// Registers the machines. A refusal of one machine does not stop the others; an unreachable scheduler does.
async fn register(
    dry_run: bool,
    client: &Client,
    name: &str,
    mut host: Spec,
) -> Result<Imported, Failure> {
    for field in RESET {
        host.entry(field).or_insert_with(|| json!([]));
    }
    let outcome = if dry_run {
        "would be registered"
    } else {
        match client.register_host(name, &host).await {
            Ok(()) => "registered",
            Err(error) if matches!(error.status(), Some(400 | 409 | 422)) => {
                return Ok(refused(name, error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
    };
    Ok(Imported {
        name: name.to_owned(),
        outcome,
        reason: String::new(),
        host,
    })
}

fn refused(name: &str, reason: String) -> Imported {
    Imported {
        name: name.to_owned(),
        outcome: "refused",
        reason,
        host: Spec::new(),
    }
}

/// Returns true if it is a guest size rather than a machine.
fn is_guest(name: &str, host: &Spec) -> bool {
    let kind = name.split('-').next().unwrap_or_default();
    let is_machine = host.contains_key("mac_addr") || host.contains_key("mac");
    !is_machine && (GUESTS.contains(&kind) || host.contains_key("provider"))
}

/// Host files of a lab by name, and the folder of their groups.
struct HostFiles {
    files: BTreeMap<String, PathBuf>,
    include_dirs: Vec<PathBuf>,
}

impl HostFiles {
    fn find(dir: &Path) -> Result<Self, Failure> {
        let below = dir.join("hosts");
        let folder = if below.is_dir() {
            below
        } else {
            dir.to_owned()
        };
        let mut files = files_of(&folder)?;
        let groups = [dir.join("groups"), dir.join("hosts").join("groups")];
        let groups: Vec<PathBuf> = groups.into_iter().filter(|dir| dir.is_dir()).collect();
        for (name, path) in groups
            .iter()
            .map(|dir| files_of(dir))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
        {
            files.entry(name).or_insert(path);
        }
        if files.is_empty() {
            let message = format!("'{}' holds no host file", folder.display());
            let hint = "name the folder that holds one YAML file for each machine";
            return Err(Failure::local(message, hint));
        }
        let include_dirs = [dir.to_owned(), folder].into_iter().chain(groups).collect();
        Ok(Self {
            files,
            include_dirs,
        })
    }

    /// Returns the names of files that are not the group of others.
    fn machines(&self) -> impl Iterator<Item = &str> {
        let names = self.files.keys().map(String::as_str);
        let groups: BTreeSet<&str> = names.clone().filter_map(group_of).collect();
        let in_groups = |path: &PathBuf| path.parent().is_some_and(|dir| dir.ends_with("groups"));
        let machines = self
            .files
            .iter()
            .filter(move |(name, path)| !groups.contains(name.as_str()) && !in_groups(path));
        machines.map(|(name, _)| name.as_str())
    }

    /// Returns the keys of a machine's file, over those of its group's file.
    fn read(&self, name: &str) -> Result<Spec, JobFileError> {
        let read = |path: &PathBuf| read_plain(path, &self.include_dirs, &FsSource);
        let of = |name: &str| self.files.get(name).map(read).transpose();
        let mut host = group_of(name)
            .map(of)
            .transpose()?
            .flatten()
            .unwrap_or_default();
        host.extend(of(name)?.unwrap_or_default());
        Ok(host)
    }
}

/// Returns the group in a host name: `taishan200` in `taishan200--a61`.
fn group_of(name: &str) -> Option<&str> {
    name.split_once("--").map(|(group, _)| group)
}

/// Returns the files of a folder by host name, without `.yaml`.
fn files_of(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("'{}' cannot be read: {error}", folder.display());
        Failure::local(message, "name a folder of host files")
    };
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| !name.starts_with('.') && path.is_file()) else {
            continue;
        };
        let stem = name.strip_suffix(".yaml").or(name.strip_suffix(".yml"));
        let is_other = stem.is_none() && (name.contains('.') || name == "README");
        if is_other {
            continue;
        }
        files.insert(stem.unwrap_or(name).to_owned(), path);
        if files.len() > FILES_MAX {
            let message = format!("'{}' holds over {FILES_MAX} files", folder.display());
            return Err(Failure::local(message, "name a folder of host files"));
        }
    }
    Ok(files)
}

fn table(outcomes: &[Imported], paper: Paper) -> String {
    let mut grid = Grid::new(&["host", "outcome", "arch", "memory", "CPUs", "MAC", "reason"]);
    for outcome in outcomes {
        let said = |field: &str| or_dash(&shown(outcome.host.get(field)));
        grid.row([
            outcome.name.clone(),
            outcome.outcome.to_owned(),
            said("arch"),
            said("memory"),
            said("nr_cpu"),
            said("mac_addr"),
            or_dash(&outcome.reason.replace('\n', " ")),
        ]);
    }
    grid.render(paper)
}

/// Returns a text unchanged, or a list with commas.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| shown(Some(item))).collect();
            items.join(",")
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(files: &[(&str, &str)]) -> tempfile::TempDir {
        let lab = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = lab.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        lab
    }

    #[test]
    fn machines_get_what_their_group_says() {
        let lab = lab(&[
            ("groups/taishan", "arch: aarch64\nmemory: 256G\n"),
            ("hosts/taishan--a61", "mac_addr: a\n"),
            ("hosts/taishan--a62.yaml", "memory: 128G\n"),
            ("hosts/skl", "arch: x86_64\n"),
            ("hosts/skl--1", "<<: taishan\n"),
            ("hosts/README", "no: host\n"),
            ("hosts/notes.txt", "no: host\n"),
        ]);
        let files = HostFiles::find(lab.path()).unwrap();
        let machines: Vec<_> = files.machines().collect();
        assert_eq!(machines, ["skl--1", "taishan--a61", "taishan--a62"]);
        let read = |name: &str| Value::Object(files.read(name).unwrap());
        let of_group = json!({"arch": "aarch64", "memory": "256G", "mac_addr": "a"});
        assert_eq!(read("taishan--a61"), of_group);
        assert_eq!(read("taishan--a62")["memory"], "128G");
        assert_eq!(read("skl--1")["arch"], "aarch64", "its own words win");
    }

    #[test]
    fn guests_are_no_machines() {
        let host = |text: Value| text.as_object().cloned().unwrap();
        assert!(is_guest("vm-2p8g", &Spec::new()));
        assert!(is_guest("x", &host(json!({"provider": "qemu"}))));
        assert!(!is_guest("vm-2p8g", &host(json!({"mac_addr": "a"}))));
        assert!(!is_guest("lkp-skl-d01", &Spec::new()));
    }

    #[test]
    fn a_folder_without_hosts_is_refused() {
        let empty = lab(&[("notes.txt", "x")]);
        let error = HostFiles::find(empty.path()).err().unwrap();
        assert!(error.message.contains("no host file"), "{}", error.message);
        assert!(HostFiles::find(Path::new("/no/such")).is_err());
    }
}

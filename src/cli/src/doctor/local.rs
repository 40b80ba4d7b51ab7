//! Checks of this machine: the data folder of a scheduler, and how many files it may open.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use fairlead_job::units::counted;
use fairlead_scheduler::{KeyState, StartError};
use rustix::process::{Resource, getrlimit};

use super::check::{Check, FILES_MIN, some};

const MODES: &str = "file modes";
const FILES: &str = "open files here";
const KEY: &str = "sealing key";
/// Permission bits of the group and of all others.
const OTHERS: u32 = 0o077;
/// Folder below the data folder with kernels that every booting machine gets.
const PUBLIC: &str = "srv";

/// Checks a data folder and its machine. `None`: no folder is named.
pub(crate) fn of_folder(data: Option<&Path>) -> Vec<Check> {
    let Some(data) = data else {
        let why = "--data is missing";
        let todo = "on the machine of the scheduler, run: fairlead doctor --data DIR";
        return [FILES, MODES]
            .map(|name| Check::not_made(name, why, todo))
            .to_vec();
    };
    vec![open_files(getrlimit(Resource::Nofile).maximum), modes(data)]
}

/// Checks the key that seals secrets and signs job tokens in the store. `None`: neither --data nor --elasticsearch is
/// set.
pub(crate) fn of_key(found: Option<Result<KeyState, StartError>>) -> Check {
    match found {
        None => Check::not_made(
            KEY,
            "neither --data nor --elasticsearch is set",
            "run: fairlead doctor --data DIR, or --elasticsearch URL",
        ),
        Some(Err(error)) => Check::not_made(
            KEY,
            error.to_string(),
            "a running scheduler locks its embedded store; check while it is stopped",
        ),
        Some(Ok(KeyState::Good)) => Check::ok(KEY, "the store has the key"),
        Some(Ok(KeyState::None)) => Check::ok(
            KEY,
            "the store has no key and no jobs; the first start creates the key",
        ),
        Some(Ok(KeyState::Lost { jobs })) => Check::problem(
            KEY,
            format!(
                "the key is missing, and the store has {}",
                counted(jobs, "job", "jobs")
            ),
            "before a scheduler starts, import the keys of a backup (fairlead key show --export): fairlead key import FILE",
        ),
        Some(Ok(KeyState::Unreadable)) => Check::problem(
            KEY,
            "the key in the store is malformed",
            "restore the settings document 'sealing-key' from a backup",
        ),
    }
}

/// Checks the limit of open files. A scheduler raises its own limit up to the hard one.
fn open_files(hard: Option<u64>) -> Check {
    match hard {
        Some(hard) if hard < FILES_MIN => Check::problem(
            FILES,
            format!("a process here may open {hard} files; a scheduler needs {FILES_MIN}"),
            "raise the hard limit: LimitNOFILE=65536 in the systemd unit, or ulimit -Hn 65536",
        ),
        Some(hard) => Check::ok(FILES, format!("a process here may open {hard} files")),
        None => Check::ok(FILES, "a process here may open any number of files"),
    }
}

/// Checks that other users of this machine cannot read the data folder.
fn modes(data: &Path) -> Check {
    let mode = match fs::metadata(data) {
        Ok(metadata) => metadata.mode(),
        Err(error) => {
            return Check::problem(
                MODES,
                format!("cannot read {}: {error}", data.display()),
                "use the folder of `fairlead serve --data`",
            );
        }
    };
    if mode & OTHERS == 0 {
        return Check::ok(
            MODES,
            format!("only its owner can enter {}", data.display()),
        );
    }
    match open_below(data) {
        Ok(open) if open.is_empty() => Check::ok(
            MODES,
            format!(
                "other users can enter {}, but read nothing in it",
                data.display()
            ),
        ),
        Ok(open) => Check::problem(
            MODES,
            format!(
                "other users can read {} of {}: {}",
                counted(open.len(), "entry", "entries"),
                data.display(),
                some(&open)
            ),
            format!(
                "run: chmod 700 '{}'; to share results, run chmod -R go= on all other folders",
                data.display()
            ),
        ),
        Err(error) => Check::not_made(
            MODES,
            format!("cannot read all of {}: {error}", data.display()),
            "run the check as the user of the scheduler",
        ),
    }
}

/// Returns the entries of a folder that the group or others can access. An open folder stands for its contents, and a
/// closed one protects them. Links are not followed.
fn open_below(data: &Path) -> io::Result<Vec<String>> {
    let mut open = Vec::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.mode() & OTHERS != 0 && !metadata.is_symlink() && entry.file_name() != PUBLIC {
            open.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    open.sort();
    Ok(open)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::doctor::check::Verdict;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_read_is_named() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("fairlead.db"), "").unwrap();
        fs::create_dir(data.path().join("srv")).unwrap();
        chmod(data.path(), 0o755);
        chmod(&data.path().join("fairlead.db"), 0o644);
        chmod(&data.path().join("srv"), 0o755);
        let open = modes(data.path());
        assert_eq!(open.verdict, Verdict::Problem, "{open:?}");
        assert!(open.found.ends_with(": fairlead.db"), "{open:?}");
        assert!(open.todo.starts_with("run: chmod 700"), "{open:?}");
        chmod(&data.path().join("fairlead.db"), 0o600);
        assert_eq!(modes(data.path()).verdict, Verdict::Ok);
        chmod(data.path(), 0o700);
        chmod(&data.path().join("fairlead.db"), 0o644);
        assert_eq!(modes(data.path()).verdict, Verdict::Ok);
        assert_eq!(modes(&data.path().join("none")).verdict, Verdict::Problem);
    }

    #[test]
    fn few_files_are_a_problem() {
        assert_eq!(open_files(Some(1024)).verdict, Verdict::Problem);
        assert_eq!(open_files(Some(65_536)).verdict, Verdict::Ok);
        assert_eq!(open_files(None).verdict, Verdict::Ok);
        assert!(
            of_folder(None)
                .iter()
                .all(|check| check.verdict == Verdict::NotMade)
        );
    }
}

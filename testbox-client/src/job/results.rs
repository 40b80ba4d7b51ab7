//! Selects the files of a result folder to upload.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum number of entries that are read for each file that may be uploaded. It also bounds trees of empty folders.
const ENTRIES_PER_FILE: usize = 10;
/// Maximum length of a result's path below its root that the scheduler accepts, bytes.
const PATH_BYTES_MAX: usize = 1024;
/// Number of characters shown of a path that is too long.
const PATH_SHOWN: usize = 60;
/// File with the job's output. The agent writes it.
pub(crate) const OUTPUT: &str = "output";

/// Files of one result folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    /// Path on this machine, and name below the result root.
    pub(crate) files: Vec<(PathBuf, String)>,
    /// Reasons for results that are missing in `files`, each with its first file.
    pub(crate) left_out: Vec<String>,
}

/// Walks `root` in order of names. Symbolic links are not followed; they, sockets, pipes and devices are not results.
/// Files of users other than `owner` are left out as well, except for the output, because hard links may lead to them.
/// Blocks.
pub(crate) fn collect(
    root: &Path,
    owner: Option<u32>,
    files_max: usize,
    bytes_max: u64,
) -> Results {
    let mut results = Results::default();
    let mut bytes = 0_u64;
    let mut entries = 0;
    let entries_max = files_max.saturating_mul(ENTRIES_PER_FILE);
    let mut folders = vec![(root.to_owned(), String::new())];
    if !fs::symlink_metadata(root).is_ok_and(|about| about.is_dir()) {
        results.leave_out("the result folder is gone".to_owned());
        return results;
    }
    while let Some((folder, prefix)) = folders.pop() {
        let mut names = match names_in(&folder, entries_max) {
            Ok(names) => names,
            Err(error) => {
                results.leave_out(format!("'{prefix}' cannot be read: {error}"));
                continue;
            }
        };
        names.sort();
        for name in names {
            entries += 1;
            if entries > entries_max {
                results.leave_out(format!("there are more than {entries_max} entries"));
                return results;
            }
            let path = folder.join(&name);
            let Ok(about) = fs::symlink_metadata(&path) else {
                continue;
            };
            let relative = match result_name(&prefix, &path, &about, owner) {
                Ok(relative) => relative,
                Err(why) => {
                    results.leave_out(why);
                    continue;
                }
            };
            if about.is_dir() {
                folders.push((path, format!("{relative}/")));
            } else if about.is_file() {
                bytes = bytes.saturating_add(about.len());
                if results.files.len() >= files_max {
                    results.leave_out(format!("there are more than {files_max} files"));
                    return results;
                }
                if bytes > bytes_max {
                    bytes -= about.len();
                    results.leave_out(format!("'{relative}' is beyond {bytes_max} bytes in all"));
                    continue;
                }
                results.files.push((path, relative));
            }
        }
    }
    results
}

/// Returns the name of `path` below the result root. `prefix` is the name of its folder. The error is the reason why it
/// is not a result.
fn result_name(
    prefix: &str,
    path: &Path,
    about: &fs::Metadata,
    owner: Option<u32>,
) -> Result<String, String> {
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| format!("{} is no UTF-8 name", path.display()))?;
    let relative = format!("{prefix}{name}");
    if relative.len() > PATH_BYTES_MAX {
        let shown: String = relative.chars().take(PATH_SHOWN).collect();
        return Err(format!(
            "'{shown}…' is a path of more than {PATH_BYTES_MAX} bytes"
        ));
    }
    let is_its_own = owner.is_none_or(|owner| about.uid() == owner);
    if about.is_file() && !is_its_own && relative != OUTPUT {
        return Err(format!("'{relative}' is another user's file"));
    }
    Ok(relative)
}

/// Returns at most one more name than `entries_max`, which is enough to detect an excess.
fn names_in(folder: &Path, entries_max: usize) -> std::io::Result<Vec<std::ffi::OsString>> {
    fs::read_dir(folder)?
        .take(entries_max.saturating_add(1))
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect()
}

impl Results {
    /// Notes a missing result. Only a few reasons are kept.
    pub(crate) fn leave_out(&mut self, why: String) {
        const REASONS_MAX: usize = 3;
        if self.left_out.len() < REASONS_MAX {
            self.left_out.push(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{ffi::OsStrExt, fs::symlink};

    use super::*;

    fn names(results: &Results) -> Vec<&str> {
        let names = results.files.iter().map(|(_, name)| name.as_str());
        names.collect()
    }

    #[test]
    fn files_are_found_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        for name in ["a/b/deep", "z", "a/x"] {
            fs::write(root.join(name), name).unwrap();
        }
        symlink("/etc/passwd", root.join("link")).unwrap();
        symlink("/etc", root.join("a/folder")).unwrap();
        let results = collect(root, None, 10, 1000);
        let mut found = names(&results);
        found.sort_unstable();
        assert_eq!(found, ["a/b/deep", "a/x", "z"]);
        assert!(results.left_out.is_empty());
    }

    #[test]
    fn a_path_that_no_scheduler_takes_is_left_out_with_all_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = dir.path().to_owned();
        for _ in 0..10 {
            folder.push("x".repeat(200));
        }
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("deep"), "").unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        let results = collect(dir.path(), None, 10, 1000);
        assert_eq!(names(&results), ["a"]);
        assert!(results.left_out[0].contains("1024 bytes"), "{results:?}");
    }

    #[test]
    fn a_file_of_another_user_is_no_result_but_the_output_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["output", "a"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let me = fs::metadata(dir.path()).unwrap().uid();
        assert_eq!(
            names(&collect(dir.path(), Some(me), 10, 10)),
            ["a", "output"]
        );
        let others = collect(dir.path(), Some(me + 1), 10, 10);
        assert_eq!(names(&others), ["output"]);
        assert!(others.left_out[0].contains("another user"), "{others:?}");
    }

    #[test]
    fn what_is_beyond_a_limit_is_left_out_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a", "b", "c"] {
            fs::write(root.join(name), "12345").unwrap();
        }
        let few = collect(root, None, 2, 1000);
        assert_eq!(names(&few), ["a", "b"]);
        assert!(few.left_out[0].contains("more than 2 files"));
        let small = collect(root, None, 10, 12);
        assert_eq!(names(&small), ["a", "b"]);
        assert!(small.left_out[0].contains("'c' is beyond 12 bytes"));
        fs::write(root.join(OsStr::from_bytes(b"\xff")), "").unwrap();
        assert!(collect(root, None, 10, 1000).left_out[0].contains("UTF-8"));
        assert_eq!(collect(&root.join("none"), None, 10, 10).left_out.len(), 1);
        symlink("/etc", root.join("etc")).unwrap();
        assert!(collect(&root.join("etc"), None, 10, 10).files.is_empty());
    }
}

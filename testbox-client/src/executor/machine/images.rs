//! Images of virtual machines: folders with a kernel, and an initrd, a disk, or both.
//!
//! The contract with an image: its first process finds the disks `fairlead-in` and `fairlead-out` by their serial
//! numbers. The first is a tar archive of `/fairlead`, read-only. The process writes `begun` at the start of the second,
//! and runs `/bin/sh /fairlead/.guest/entry`. It puts the exit code into `.guest/code`. Then it writes a tar archive of
//! `result`, `.guest/note` and `.guest/code` to the second disk, and turns the machine off.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Magic bytes of a disk in format qcow2.
const QCOW2: &[u8; 4] = b"QFI\xfb";
/// Maximum length of an image's own kernel command line, bytes.
const COMMAND_LINE_BYTES_MAX: u64 = 2048;

/// An image that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: Option<PathBuf>,
    /// Disk that all machines share, with its format. Each machine writes to its own layer.
    pub(crate) disk: Option<(PathBuf, &'static str)>,
    /// More words for the kernel command line.
    pub(crate) command_line: String,
}

/// Reason why there is no such image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    #[error("'{0}' is no name of an image here (hint: the name of a folder, without '/')")]
    Name(String),
    #[error("'{name}' is not in {} (hint: fairlead-testbox image build {name})", dir.display())]
    Missing { name: String, dir: PathBuf },
    #[error("'{name}' cannot be read: {error}")]
    Unreadable { name: String, error: io::Error },
}

impl Image {
    /// Returns the names of all images in `dir`, sorted.
    pub(crate) fn names(dir: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(dir) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| Self::find(dir, name).is_ok())
            .collect();
        names.sort();
        names
    }

    /// Finds an image by its name in `dir`.
    ///
    /// # Errors
    /// Fails if the name is not a folder name, if no such folder has a kernel, or if it is unreadable.
    pub(crate) fn find(dir: &Path, name: &str) -> Result<Self, ImageError> {
        if name.contains('/') || name.starts_with('.') {
            return Err(ImageError::Name(name.to_owned()));
        }
        let folder = dir.join(name);
        let part = |file: &str| Some(folder.join(file)).filter(|path| path.is_file());
        let Some(kernel) = part("kernel") else {
            return Err(ImageError::Missing {
                name: name.to_owned(),
                dir: dir.to_owned(),
            });
        };
        let unreadable = |error| ImageError::Unreadable {
            name: name.to_owned(),
            error,
        };
        let disk = part("disk").map(|disk| format_of(&disk).map(|format| (disk, format)));
        let command_line = part("cmdline").map(|file| words_in(&file)).transpose();
        Ok(Self {
            kernel,
            initrd: part("initrd"),
            disk: disk.transpose().map_err(unreadable)?,
            command_line: command_line.map_err(unreadable)?.unwrap_or_default(),
        })
    }
}

fn format_of(disk: &Path) -> io::Result<&'static str> {
    let mut start = Vec::new();
    File::open(disk)?
        .take(QCOW2.len() as u64)
        .read_to_end(&mut start)?;
    Ok(if start == QCOW2 { "qcow2" } else { "raw" })
}

fn words_in(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(file)?;
    file.take(COMMAND_LINE_BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_folder_with_a_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("one");
        fs::create_dir(&folder).unwrap();
        let missing = Image::find(dir.path(), "one").unwrap_err().to_string();
        assert!(missing.contains("image build one"), "{missing}");
        fs::write(folder.join("kernel"), "k").unwrap();
        fs::write(folder.join("disk"), b"QFI\xfb...").unwrap();
        fs::write(folder.join("cmdline"), "quiet\n  a=b\n").unwrap();
        let image = Image::find(dir.path(), "one").unwrap();
        assert_eq!(image.initrd, None);
        assert_eq!(image.disk, Some((folder.join("disk"), "qcow2")));
        assert_eq!(image.command_line, "quiet a=b");
        fs::write(folder.join("disk"), "").unwrap();
        let image = Image::find(dir.path(), "one").unwrap();
        assert_eq!(image.disk.unwrap().1, "raw");
        fs::create_dir(dir.path().join("empty")).unwrap();
        assert_eq!(Image::names(dir.path()), ["one"]);
        for name in ["../one", ".", "a/b"] {
            assert!(Image::find(dir.path(), name).is_err());
        }
    }
}

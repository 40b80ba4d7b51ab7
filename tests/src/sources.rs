//! Text files of the project, for tests of its sources.

use std::fs;

use crate::settings::project;

/// A text file.
#[derive(Debug)]
pub struct Source {
    /// Path below the workspace's root.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// Returns all text files of the project with one of these endings, sorted by path.
pub fn sources(endings: &[&str]) -> Vec<Source> {
    let root = project();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
                .path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let hidden = name.starts_with('.') && name != ".ci";
            if path.is_dir() {
                if !hidden
                    && name != "target"
                    && name != "node_modules"
                    && !name.starts_with("fairlead-")
                {
                    folders.push(path);
                }
            } else if !hidden && endings.iter().any(|ending| name.ends_with(ending)) {
                let relative = path.strip_prefix(&root).unwrap_or(&path);
                found.push(Source {
                    path: relative.to_string_lossy().into_owned(),
                    text: fs::read_to_string(&path)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

//! Loads a file's documents: finds and joins includes, and puts document 1 under all others.

use std::{
    collections::VecDeque,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use super::{
    at::At,
    error::{Files, JobFileError, not_utf8, printable},
    limits::{
        DOCUMENTS_MAX, FILES_MAX, INCLUDE_DEPTH_MAX, KEYS_COPIED_MAX, KEYS_MAX, SEARCH_FOLDERS_MAX,
    },
    merge,
    source::Source,
    template::Texts,
    tree::{Entry, Kind, Node},
    yaml,
};

/// A document with all that it includes, and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) at: At,
    pub(crate) entries: Vec<Entry>,
}

/// Reads files and what they include.
pub(crate) struct Loader<'a> {
    pub(crate) files: Files,
    source: &'a dyn Source,
    include_dirs: &'a [PathBuf],
    /// The files that are being read, outermost first: absolute, without `..`.
    open: Vec<PathBuf>,
    /// Documents made so far, of all files.
    made: usize,
    /// Top-level keys copied so far.
    copied: usize,
    /// True if dotted keys stay as they are: in files of settings, which set paths later.
    keep_paths: bool,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(source: &'a dyn Source, include_dirs: &'a [PathBuf]) -> Self {
        Self {
            files: Files::default(),
            source,
            include_dirs,
            open: Vec::new(),
            made: 0,
            copied: 0,
            keep_paths: false,
        }
    }

    /// The documents of the file `path`.
    pub(crate) fn file(&mut self, path: &Path) -> Result<Vec<Document>, JobFileError> {
        let name = path.to_string_lossy();
        let bytes = self.source.read(path).map_err(|error| {
            let hint = if error.kind() == io::ErrorKind::NotFound {
                "check the path"
            } else {
                ""
            };
            JobFileError::whole("read", &name, format!("cannot be read: {error}"), hint)
        })?;
        self.text(path, &bytes)
    }

    /// The documents of a file of settings: as [`Loader::file`], but dotted keys stay.
    pub(crate) fn settings(&mut self, path: &Path) -> Result<Vec<Document>, JobFileError> {
        self.keep_paths = true;
        let documents = self.file(path);
        self.keep_paths = false;
        documents
    }

    /// Puts entries over others, within [`KEYS_MAX`] and [`KEYS_COPIED_MAX`].
    fn put_all(
        &mut self,
        under: &mut Vec<Entry>,
        over: &[Entry],
        at: At,
    ) -> Result<(), JobFileError> {
        self.copied = self
            .copied
            .saturating_add(under.len())
            .saturating_add(over.len());
        if self.copied > KEYS_COPIED_MAX {
            let message = format!("more than {KEYS_COPIED_MAX} keys in all documents together");
            return Err(self
                .files
                .error(at, "too_large", message, "use fewer documents"));
        }
        if self.keep_paths {
            for entry in over {
                merge::put_top(under, entry.clone());
            }
        } else {
            merge::put_all(under, over, &self.files)?;
        }
        if under.len() > KEYS_MAX {
            let message = format!("more than {KEYS_MAX} keys in one document");
            return Err(self.files.error(at, "too_large", message, "split the file"));
        }
        Ok(())
    }

    /// The documents of `bytes`, which are the file `path`.
    pub(crate) fn text(
        &mut self,
        path: &Path,
        bytes: &[u8],
    ) -> Result<Vec<Document>, JobFileError> {
        let name = path.to_string_lossy();
        let text = std::str::from_utf8(bytes).map_err(|problem| not_utf8(&name, bytes, problem))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let file = self.files.add(&name, text);
        let roots = yaml::documents(text, file, &self.files, Texts::Templates)?;
        self.open.push(normal(&self.source.absolute(path)));
        let documents = self.join(&roots, path);
        self.open.pop();
        documents
    }

    /// Document n is document 1 with each key of n replaced whole; includes come under each one's own keys.
    fn join(&mut self, roots: &[Arc<Node>], path: &Path) -> Result<Vec<Document>, JobFileError> {
        let mut documents: Vec<Document> = Vec::new();
        for root in roots {
            let Kind::Map(entries) = &root.kind else {
                continue;
            };
            let (includes, own): (Vec<&Entry>, Vec<&Entry>) =
                entries.iter().partition(|e| e.sets("<<"));
            let own: Vec<Entry> = own.into_iter().cloned().collect();
            let base = documents
                .first()
                .map(|d| d.entries.clone())
                .unwrap_or_default();
            for mut entries in self.heads(base, &includes, path)? {
                self.made += 1;
                if self.made > DOCUMENTS_MAX {
                    let message =
                        format!("more than {DOCUMENTS_MAX} documents, those of includes too");
                    return Err(self
                        .files
                        .error(root.at, "too_large", message, "split the file"));
                }
                self.put_all(&mut entries, &own, root.at)?;
                documents.push(Document {
                    at: root.at,
                    entries,
                });
            }
        }
        Ok(documents)
    }

    /// Returns the entries under a document's own keys: `base` with every way to take one document of each include.
    fn heads(
        &mut self,
        base: Vec<Entry>,
        includes: &[&Entry],
        path: &Path,
    ) -> Result<Vec<Vec<Entry>>, JobFileError> {
        let mut heads = vec![base];
        for include in includes {
            let Entry::One(key, node) = include else {
                continue;
            };
            let items: Vec<&Node> = match &node.kind {
                Kind::List(items) => items.iter().map(Arc::as_ref).collect(),
                _ => vec![node],
            };
            for item in items {
                let included = self.included(item, key.at, path)?;
                if heads.len().saturating_mul(included.len()) > DOCUMENTS_MAX {
                    let message = format!("more than {DOCUMENTS_MAX} documents by includes");
                    return Err(self.files.error(
                        key.at,
                        "too_large",
                        message,
                        "include fewer documents",
                    ));
                }
                let mut next = Vec::with_capacity(heads.len() * included.len());
                for head in &heads {
                    for document in &included {
                        let mut entries = head.clone();
                        self.put_all(&mut entries, document, key.at)?;
                        next.push(entries);
                    }
                }
                heads = next;
            }
        }
        Ok(heads)
    }

    /// The documents that one `<<:` brings: of a file, of a file with changes, or a map by alias.
    fn included(
        &mut self,
        item: &Node,
        at: At,
        path: &Path,
    ) -> Result<Vec<Vec<Entry>>, JobFileError> {
        let (name, changes) = match &item.kind {
            Kind::Scalar(Value::String(name)) => (name.as_str(), Vec::new()),
            Kind::Map(entries) => {
                let is_file = |e: &Entry| e.sets("file");
                let file = entries.iter().find(|e| is_file(e));
                let Some(file) = file else {
                    return Ok(vec![entries.clone()]);
                };
                let changes = entries.iter().filter(|e| !is_file(e)).cloned().collect();
                match file {
                    Entry::One(_, node) => match &node.kind {
                        Kind::Scalar(Value::String(name)) => (name.as_str(), changes),
                        other => return Err(self.not_a_name(other.word(), node.at)),
                    },
                    Entry::Zip(_) => return Err(self.not_a_name("zipped", item.at)),
                }
            }
            other => return Err(self.not_a_name(other.word(), item.at)),
        };
        let found = self.find(name, path, at)?;
        let documents = self.include(&found, at)?;
        let mut included = Vec::with_capacity(documents.len());
        for mut document in documents {
            self.put_all(&mut document.entries, &changes, at)?;
            included.push(document.entries);
        }
        Ok(included)
    }

    fn not_a_name(&self, word: &str, at: At) -> JobFileError {
        let message = format!("{word} where '<<' needs the name of a file");
        self.files.error(
            at,
            "include_place",
            message,
            "write '<<: FILE' or '<<: {file: FILE, key: value}'",
        )
    }

    /// Reads an included file.
    fn include(&mut self, found: &Path, at: At) -> Result<Vec<Document>, JobFileError> {
        let absolute = normal(&self.source.absolute(found));
        if self.open.contains(&absolute) {
            let chain: Vec<String> = self
                .open
                .iter()
                .chain([&absolute])
                .map(|p| short(p))
                .collect();
            let message = format!("files include each other: {}", chain.join(" > "));
            return Err(self.files.error(
                at,
                "include_cycle",
                message,
                "remove one of the includes",
            ));
        }
        if self.open.len() > INCLUDE_DEPTH_MAX || self.files.len() >= FILES_MAX {
            let message = format!(
                "more than {INCLUDE_DEPTH_MAX} includes in a row, or {FILES_MAX} files in all"
            );
            return Err(self
                .files
                .error(at, "include_depth", message, "include fewer files"));
        }
        let bytes = self.source.read(found).map_err(|error| {
            let message = format!(
                "included file '{}' cannot be read: {error}",
                printable(&found.to_string_lossy(), 200)
            );
            self.files.error(at, "include_read", message, "")
        })?;
        let documents = self.text(found, &bytes)?;
        if documents.is_empty() {
            let message = format!(
                "included file '{}' is empty",
                printable(&found.to_string_lossy(), 200)
            );
            return Err(self
                .files
                .error(at, "include_empty", message, "remove the include"));
        }
        Ok(documents)
    }

    /// Where `name` is: in the including file's folder, in the include folders, then below the nearest `jobs/`.
    fn find(&self, name: &str, including: &Path, at: At) -> Result<PathBuf, JobFileError> {
        let shown = printable(name, 200);
        if name.trim().is_empty() || name.contains('\0') {
            let message = format!("'{shown}' is not the name of a file");
            return Err(self
                .files
                .error(at, "include_place", message, "write '<<: FILE'"));
        }
        let folder = including.parent().unwrap_or(Path::new(""));
        let mut places = vec![folder.join(name)];
        places.extend(self.include_dirs.iter().map(|dir| dir.join(name)));
        if let Some(found) = places.iter().find(|p| self.source.is_file(p)) {
            return Ok(found.clone());
        }
        if let Some(found) = self.below_jobs(name, folder) {
            return Ok(found);
        }
        let refused = places.first().map(|p| self.source.read(p));
        if let Some(Err(error)) =
            refused.filter(|r| matches!(r, Err(e) if e.kind() == io::ErrorKind::Unsupported))
        {
            let message = format!("'{shown}' is included, but {error}");
            return Err(self.files.error(
                at,
                "include_refused",
                message,
                "expand the file first: fairlead submit does",
            ));
        }
        let places: Vec<String> = places
            .iter()
            .map(|p| printable(&p.to_string_lossy(), 200))
            .collect();
        let message = format!(
            "included file '{shown}' does not exist (looked for {}, then below jobs/)",
            places.join(", ")
        );
        Err(self.files.error(
            at,
            "include_not_found",
            message,
            "name its folder with -I DIR",
        ))
    }

    /// `name` below the nearest `jobs/` folder that has it, walking up from `folder`.
    fn below_jobs(&self, name: &str, folder: &Path) -> Option<PathBuf> {
        let start = normal(&self.source.absolute(folder));
        for ancestor in start.ancestors() {
            let jobs = ancestor.join("jobs");
            let direct = [jobs.join(name), ancestor.join(name)];
            let within = if name.starts_with("jobs/") {
                &direct[..]
            } else {
                &direct[..1]
            };
            if let Some(found) = within.iter().find(|p| self.source.is_file(p)) {
                return Some(found.clone());
            }
            let mut folders: VecDeque<PathBuf> = self.source.folders(&jobs).into();
            let mut looked = 0;
            while let Some(folder) = folders.pop_front().filter(|_| looked < SEARCH_FOLDERS_MAX) {
                looked += 1;
                let candidate = folder.join(name);
                if self.source.is_file(&candidate) {
                    return Some(candidate);
                }
                folders.extend(self.source.folders(&folder));
            }
        }
        None
    }
}

/// `path` without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(clean.components().next_back(), Some(Component::Normal(_))) =>
            {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// The last part of a path, for a chain of includes.
fn short(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.to_string_lossy(), |n| n.to_string_lossy())
        .chars()
        .take(60)
        .collect()
}

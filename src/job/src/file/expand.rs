//! Expands a job file: files, settings, documents, matrix, and the removal of duplicates.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    at::At,
    error::{Files, JobFileError},
    limits::{EXPANDED_BYTES_MAX, JOBS_MAX},
    load::{Document, Loader},
    matrix::{Counter, Made, Matrix, Size},
    merge,
    setting::{Meaning, Setting},
    source::Source,
    tree::{Entry, Key, Kind},
};
use crate::{
    Misspelt, Spec,
    misspelt::{Holds, meant},
};

/// How a job file is expanded.
#[derive(Debug, Clone)]
pub struct ExpandOptions {
    /// Folders to look for included files in, after the including file's own. Default: none.
    pub include_dirs: Vec<PathBuf>,
    /// Set where the file sets nothing; of two for one key the later wins. Default: none.
    pub defaults: Vec<Setting>,
    /// Set whatever the file says, in order. Default: none.
    pub overrides: Vec<Setting>,
    /// How often each job is wanted, after equal ones were made one. At least 1, the default.
    pub repeat: u32,
    /// The most jobs that may come out, repeats counted. Default [`JOBS_MAX`].
    pub jobs_max: usize,
    /// The most bytes that they may take together, roughly. Default [`EXPANDED_BYTES_MAX`].
    pub bytes_max: u64,
}

impl Default for ExpandOptions {
    fn default() -> Self {
        Self {
            include_dirs: Vec::new(),
            defaults: Vec::new(),
            overrides: Vec::new(),
            repeat: 1,
            jobs_max: JOBS_MAX,
            bytes_max: EXPANDED_BYTES_MAX,
        }
    }
}

/// Result of expanding a job file.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// Its jobs. Never empty.
    pub jobs: Vec<Spec>,
    /// Keys that were probably meant to be fields, each place once.
    pub misspelt: Vec<Misspelt>,
}

/// Reads and expands the job file `path`: every combination of its lists, in the order of the file, no job
/// twice. Never empty.
///
/// # Errors
/// Whatever is wrong with the file, with its place; see [`JobFileError::code`].
pub fn expand_file(
    path: &Path,
    options: &ExpandOptions,
    source: &dyn Source,
) -> Result<Vec<Spec>, JobFileError> {
    Ok(read_file(path, options, source)?.jobs)
}

/// As [`expand_file`], and says which keys are probably misspelt.
///
/// # Errors
/// As [`expand_file`].
pub fn read_file(
    path: &Path,
    options: &ExpandOptions,
    source: &dyn Source,
) -> Result<Expanded, JobFileError> {
    let mut loader = Loader::new(source, &options.include_dirs);
    let documents = loader.file(path)?;
    let name = path.to_string_lossy();
    expand(loader, documents, &name, options, &mut |_| true)
}

/// Expands `text`, any bytes, as if it were the file `name`.
///
/// ```
/// use fairlead_job::{ExpandOptions, NoFiles, expand_text};
///
/// let text = b"suite: hackbench\nnr_threads: [1, 8]\nhackbench: {mode: [process, threads]}\n";
/// let jobs = expand_text("job.yaml", text, &ExpandOptions::default(), &NoFiles)?;
/// assert_eq!(jobs.len(), 4);
/// assert_eq!(jobs[3]["hackbench"]["mode"], "threads");
/// # Ok::<(), fairlead_job::JobFileError>(())
/// ```
///
/// # Errors
/// As [`expand_file`].
pub fn expand_text(
    name: &str,
    text: &[u8],
    options: &ExpandOptions,
    source: &dyn Source,
) -> Result<Vec<Spec>, JobFileError> {
    Ok(read_text(name, text, options, source)?.jobs)
}

/// As [`expand_text`], and says which keys are probably misspelt.
///
/// # Errors
/// As [`expand_file`].
pub fn read_text(
    name: &str,
    text: &[u8],
    options: &ExpandOptions,
    source: &dyn Source,
) -> Result<Expanded, JobFileError> {
    let mut loader = Loader::new(source, &options.include_dirs);
    let documents = loader.text(Path::new(name), text)?;
    expand(loader, documents, name, options, &mut |_| true)
}

/// As [`expand_text`], if `may` allows the bytes that the jobs will take, roughly. It is asked once before the jobs
/// are made, and for each addition by templates.
///
/// # Errors
/// As [`expand_file`], and `no_memory` when `may` said no.
pub fn expand_text_within(
    name: &str,
    text: &[u8],
    options: &ExpandOptions,
    source: &dyn Source,
    may: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<Spec>, JobFileError> {
    let mut loader = Loader::new(source, &options.include_dirs);
    let documents = loader.text(Path::new(name), text)?;
    Ok(expand(loader, documents, name, options, may)?.jobs)
}

fn expand(
    mut loader: Loader<'_>,
    mut documents: Vec<Document>,
    name: &str,
    options: &ExpandOptions,
    may: &mut dyn FnMut(u64) -> bool,
) -> Result<Expanded, JobFileError> {
    if documents.is_empty() {
        let hint = "a job file names at least a suite or a script";
        return Err(JobFileError::whole(
            "empty",
            name,
            "the file holds no job".to_owned(),
            hint,
        ));
    }
    let defaults = settings(&mut loader, &options.defaults)?;
    let overrides = settings(&mut loader, &options.overrides)?;
    let files = &loader.files;
    for document in &mut documents {
        for entry in defaults.iter().rev() {
            put_default(&mut document.entries, entry, files)?;
        }
        for entry in &overrides {
            put_setting(&mut document.entries, entry, files)?;
        }
        document
            .entries
            .retain(|entry| merge::removed(entry).is_none());
    }
    let bytes = check_size(&documents, name, options, files)?;
    if !may(bytes) {
        return Err(no_memory(name, bytes));
    }
    let jobs = unfold(&documents, name, options.bytes_max, files, may)?;
    Ok(Expanded {
        jobs: repeated(jobs, options.repeat),
        misspelt: misspelt(&documents, files),
    })
}

/// Keys of all documents that are near misses of fields, with their places.
fn misspelt(documents: &[Document], files: &Files) -> Vec<Misspelt> {
    let mut found = Vec::new();
    for document in documents {
        let is_set = |field: &str| document.entries.iter().any(|entry| entry.sets(field));
        for entry in &document.entries {
            let holds = match entry {
                Entry::One(_, node) => match &node.kind {
                    Kind::Scalar(Value::Null) => Holds::Nothing,
                    Kind::Map(_) => Holds::Map,
                    Kind::Scalar(_) | Kind::Template(_) | Kind::List(_) => Holds::Value,
                },
                Entry::Zip(_) => Holds::Value,
            };
            for key in entry.keys() {
                let Some(meant) = meant(&key.text, holds, is_set) else {
                    continue;
                };
                let one = Misspelt {
                    key: key.text.clone(),
                    meant,
                    file: files.name_of(key.at).to_owned(),
                    line: key.at.line,
                };
                if !found.contains(&one) {
                    found.push(one);
                }
            }
        }
    }
    found
}

/// The entries of all settings, in order; files are read.
fn settings(loader: &mut Loader<'_>, settings: &[Setting]) -> Result<Vec<Entry>, JobFileError> {
    let mut entries = Vec::new();
    for setting in settings {
        match setting.meaning(&mut loader.files)? {
            Meaning::Entry(entry) => entries.push(entry),
            Meaning::File(path) => {
                let documents = loader.settings(path)?;
                let [document] = documents.as_slice() else {
                    let message = format!("{} documents where one was expected", documents.len());
                    let hint = "a file of settings holds one document";
                    return Err(JobFileError::whole(
                        "setting",
                        &path.to_string_lossy(),
                        message,
                        hint,
                    ));
                };
                entries.extend(document.entries.iter().cloned());
            }
        }
    }
    Ok(entries)
}

/// Sets an entry whatever is there. Keys of settings are paths.
fn put_setting(entries: &mut Vec<Entry>, entry: &Entry, files: &Files) -> Result<(), JobFileError> {
    match entry {
        Entry::One(key, value) if key.text.contains('.') => {
            merge::put_path(entries, key, value, files)
        }
        Entry::One(..) | Entry::Zip(_) => {
            merge::put_top(entries, entry.clone());
            Ok(())
        }
    }
}

/// Sets an entry where nothing is set.
fn put_default(entries: &mut Vec<Entry>, entry: &Entry, files: &Files) -> Result<(), JobFileError> {
    let is_set = |key: &Key| {
        let is_removed = entries
            .iter()
            .any(|e| merge::removed(e) == Some(key.text.as_str()));
        is_removed || merge::has_path(entries, &key.text)
    };
    if entry.keys().iter().any(is_set) {
        return Ok(());
    }
    put_setting(entries, entry, files)
}

fn no_memory(name: &str, bytes: u64) -> JobFileError {
    let message = format!("no memory for {bytes} bytes of jobs now");
    JobFileError::whole("no_memory", name, message, "try again, or split the file")
}

/// Refuses what would be too much, with the number, before memory is spent on it; else the bytes that it will take.
fn check_size(
    documents: &[Document],
    name: &str,
    options: &ExpandOptions,
    files: &Files,
) -> Result<u64, JobFileError> {
    let refuse =
        |code, message: String, hint: &str| Err(JobFileError::whole(code, name, message, hint));
    if options.repeat == 0 {
        return refuse(
            "repeat",
            "repeat is 0; expected at least 1".to_owned(),
            "leave -n out to run each job once",
        );
    }
    let mut counter = Counter::new(files);
    let mut total = Size { jobs: 0, bytes: 0 };
    for document in documents {
        let size = counter.document(document)?;
        total.jobs = total.jobs.saturating_add(size.jobs);
        total.bytes = total
            .bytes
            .saturating_add(size.jobs.saturating_mul(size.bytes));
    }
    let repeat = u64::from(options.repeat);
    let (jobs, bytes) = (
        total.jobs.saturating_mul(repeat),
        total.bytes.saturating_mul(repeat),
    );
    if usize::try_from(jobs).map_or(true, |n| n > options.jobs_max) {
        let shown = if jobs == u64::MAX {
            "more than 18446744073709551614".to_owned()
        } else {
            jobs.to_string()
        };
        let message = format!(
            "the file expands to {shown} jobs; at most {} are made",
            options.jobs_max
        );
        return refuse(
            "too_many_jobs",
            message,
            "shorten its lists, or split the file",
        );
    }
    if bytes > options.bytes_max {
        let message = format!(
            "the file's {jobs} jobs would take {bytes} bytes; at most {} are used",
            options.bytes_max
        );
        return refuse(
            "too_large",
            message,
            "shorten its lists or its script, or split the file",
        );
    }
    Ok(bytes)
}

/// Every job of every document, each once. [`check_size`] was asked before.
fn unfold(
    documents: &[Document],
    name: &str,
    bytes_max: u64,
    files: &Files,
    may: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<Spec>, JobFileError> {
    let mut jobs: Vec<Spec> = Vec::new();
    let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut dropped: Option<At> = None;
    let mut computed = 0;
    for document in documents {
        let matrix = Matrix::new(document);
        for n in 0..matrix.count() {
            let before = computed;
            let made = matrix.job(n, &mut computed, files)?;
            if computed > before && !may(computed - before) {
                return Err(no_memory(name, computed));
            }
            let mut job = match made {
                Made::Job(job) => job,
                Made::Dropped(at) => {
                    dropped = Some(at);
                    continue;
                }
            };
            if computed > bytes_max {
                return Err(too_large(name, bytes_max));
            }
            if job.get("cluster").is_some_and(|c| !c.is_null()) && !job.contains_key("node_roles") {
                job.insert("node_roles".to_owned(), Value::from("server client"));
            }
            let same = known.entry(fingerprint(&job)).or_default();
            if !same.iter().any(|&n| jobs.get(n) == Some(&job)) {
                same.push(jobs.len());
                jobs.push(job);
            }
        }
    }
    match (jobs.is_empty(), dropped) {
        (true, Some(at)) => {
            let message = "no job is left: a template gives nil for every combination".to_owned();
            Err(files.error(
                at,
                "no_jobs",
                message,
                "check the names of the keys in the template",
            ))
        }
        (true, None) => Err(JobFileError::whole(
            "no_jobs",
            name,
            "no job is left".to_owned(),
            "",
        )),
        (false, _) => Ok(jobs),
    }
}

fn too_large(name: &str, bytes_max: u64) -> JobFileError {
    let message = format!("the file's templates make more than {bytes_max} bytes of text");
    JobFileError::whole("too_large", name, message, "split the file")
}

/// A number that equal jobs share, whatever the order of their keys.
fn fingerprint(job: &Spec) -> u64 {
    job.iter().fold(0u64, |sum, (key, value)| {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        match value {
            Value::Object(inner) => fingerprint(inner).hash(&mut hasher),
            other => other.hash(&mut hasher),
        }
        sum.wrapping_add(hasher.finish())
    })
}

/// The jobs, then all of them again, `repeat` times in all.
fn repeated(jobs: Vec<Spec>, repeat: u32) -> Vec<Spec> {
    let once = jobs.len();
    let mut all = jobs;
    for _ in 1..repeat {
        all.extend_from_within(..once);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;

    #[test]
    fn misspelt_keys_are_told_with_their_lines() {
        let text = "suite: s\n\nneed_memroy: 4g\nruntme|x: [1|2, 3|4]\n---\nqueu: a\n";
        let options = ExpandOptions {
            overrides: vec![Setting::parse("testbx=dc").unwrap()],
            ..ExpandOptions::default()
        };
        let read = read_text("job.yaml", text.as_bytes(), &options, &NoFiles).unwrap();
        let told: Vec<String> = read.misspelt.iter().map(Misspelt::to_string).collect();
        assert_eq!(
            told,
            [
                "job.yaml:3: need_memroy is no field of a job; did you mean need_memory?",
                "job.yaml:4: runtme is no field of a job; did you mean runtime?",
                "setting 'testbx':1: testbx is no field of a job; did you mean testbox?",
                "job.yaml:6: queu is no field of a job; did you mean queue?",
            ]
        );
    }
}

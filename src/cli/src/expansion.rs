//! Expands the arguments of a command line to jobs. Reads job files and stdin; submits nothing.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use fairlead_job::{
    Misspelt, Spec,
    file::{ExpandOptions, Expanded, FsSource, Setting, Source, limits, read_file, read_text},
};

use crate::{
    context::Context,
    exit::Failure,
    words::{FileWords, Word, Words},
};

/// The options of `run` and `submit` that say which jobs are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    pub(crate) words: Words,
    /// Folder to search for included files; repeatable
    #[arg(short = 'I', long = "include-dir", value_name = "DIR")]
    pub(crate) include_dirs: Vec<PathBuf>,
    /// Number of copies of each job
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
}

/// The jobs of one file.
#[derive(Debug)]
pub(crate) struct FileJobs {
    /// File as it was named.
    pub(crate) file: String,
    /// Jobs of the file, never empty.
    pub(crate) jobs: Vec<Spec>,
    /// Keys that are probably misspelt fields.
    pub(crate) misspelt: Vec<Misspelt>,
}

/// Reports probably misspelt keys on stderr. With `strict` it fails.
pub(crate) fn mind_keys(
    files: &[FileJobs],
    strict: bool,
    context: &Context,
) -> Result<(), Failure> {
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| &file.misspelt)
        .map(ToString::to_string)
        .collect();
    if strict && !found.is_empty() {
        return Err(Failure::usage(
            found.join("\n"),
            "correct them; without --strict, such keys are parameters of the job",
        ));
    }
    for one in found {
        context.output.remark(&format!("warning: {one}"));
    }
    Ok(())
}

impl JobsArgs {
    /// Expands every file. Fails with the first that cannot be expanded. `more_dirs` are searched last.
    pub(crate) fn expand(&self, more_dirs: &[String]) -> Result<Vec<FileJobs>, Failure> {
        let mut include_dirs = self.include_dirs.clone();
        include_dirs.extend(more_dirs.iter().map(PathBuf::from));
        let files = self.words.files()?;
        files
            .into_iter()
            .map(|words| self.expand_one(&words, &include_dirs))
            .collect()
    }

    fn expand_one(&self, words: &FileWords, include_dirs: &[PathBuf]) -> Result<FileJobs, Failure> {
        let mut source = WithTexts::default();
        let options = ExpandOptions {
            include_dirs: include_dirs.to_vec(),
            defaults: settings(&words.before, include_dirs, &mut source)?,
            overrides: settings(&words.after, include_dirs, &mut source)?,
            repeat: self.repeat,
            ..ExpandOptions::default()
        };
        let Expanded { jobs, misspelt } = if words.file.as_os_str() == "-" {
            read_text("stdin", &stdin()?, &options, &source)?
        } else {
            read_file(&words.file, &options, &source)?
        };
        Ok(FileJobs {
            file: words.file.to_string_lossy().into_owned(),
            jobs,
            misspelt,
        })
    }
}

fn settings(
    words: &[Word],
    include_dirs: &[PathBuf],
    source: &mut WithTexts,
) -> Result<Vec<Setting>, Failure> {
    let setting = |word: &Word| match word {
        Word::Assign(text) => Ok(Setting::parse(text)?),
        Word::Set(text) => Ok(Setting::file(source.add(text))),
        Word::Include(path) => Ok(Setting::file(found(path, include_dirs))),
        Word::File(path) => Err(Failure::usage(
            format!("{} is a job file, not a setting", path.display()),
            "",
        )),
    };
    words.iter().map(setting).collect()
}

/// Returns the include as named, or in the first folder that has it.
fn found(path: &Path, include_dirs: &[PathBuf]) -> PathBuf {
    let places = include_dirs.iter().map(|dir| dir.join(path));
    std::iter::once(path.to_owned())
        .chain(places)
        .find(|place| place.is_file())
        .unwrap_or_else(|| path.to_owned())
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = io::stdin()
        .take(limits::FILE_BYTES_MAX + 1)
        .read_to_end(&mut text);
    read.map_err(|error| Failure::local(format!("cannot read stdin: {error}"), ""))?;
    if u64::try_from(text.len()).map_or(true, |bytes| bytes > limits::FILE_BYTES_MAX) {
        let limit = limits::FILE_BYTES_MAX;
        return Err(Failure::usage(
            format!("stdin is larger than {limit} bytes"),
            "split the file",
        ));
    }
    Ok(text)
}

/// The disk, and the texts of `-s` as files, so that their errors also have a place and a snippet.
#[derive(Debug, Default)]
struct WithTexts {
    texts: Vec<(PathBuf, String)>,
}

impl WithTexts {
    /// Adds a text under a name that no file on a disk has.
    fn add(&mut self, text: &str) -> PathBuf {
        let name = PathBuf::from(format!("-s (number {})", self.texts.len() + 1));
        self.texts.push((name.clone(), text.to_owned()));
        name
    }

    fn text(&self, path: &Path) -> Option<&str> {
        self.texts
            .iter()
            .find(|(name, _)| name == path)
            .map(|(_, text)| text.as_str())
    }
}

impl Source for WithTexts {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.text(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => FsSource.read(path),
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        FsSource.is_file(path)
    }

    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        FsSource.folders(path)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        FsSource.absolute(path)
    }
}

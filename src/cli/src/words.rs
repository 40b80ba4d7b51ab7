//! Arguments of `run` and `submit` whose order matters: job files, `KEY=VALUE`, `-s`, `-i`.
//!
//! For each file, a setting before it is a default, and a setting after it is an override. So `a.yaml nr=1 b.yaml`
//! overrides `nr` in a.yaml and gives b.yaml a default. `-s` always overrides. Of equals, the later one wins.

use std::path::{Path, PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::NonEmptyStringValueParser,
};

use crate::exit::Failure;

const WORDS: &str = "words";
const INCLUDE: &str = "include";
const SET: &str = "set";

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=_-./:,+@%".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// One word of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// A job file. `-` is stdin.
    File(PathBuf),
    /// `KEY=VALUE`.
    Assign(String),
    /// `-s 'KEY: VALUE'`.
    Set(String),
    /// `-i FILE`.
    Include(PathBuf),
}

impl Word {
    /// Parses a positional word. With `=` it is an assignment, unless a `/` stands before the `=`. A file with such a
    /// name can always be given as `./a=b.yaml`.
    fn positional(text: &str) -> Self {
        match text.split_once('=') {
            Some((key, _)) if !key.contains('/') => Self::Assign(text.to_owned()),
            _ => Self::File(PathBuf::from(text)),
        }
    }
}

/// All words in the order of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Words(Vec<Word>);

/// A file, and the words for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileWords {
    pub(crate) file: PathBuf,
    /// Defaults. Later ones win.
    pub(crate) before: Vec<Word>,
    /// Overrides. Later ones win.
    pub(crate) after: Vec<Word>,
}

impl Words {
    /// Returns a file without other words.
    pub(crate) fn file(file: &Path) -> Self {
        Self(vec![Word::File(file.to_owned())])
    }

    /// Returns the files, each with its defaults and overrides.
    pub(crate) fn files(&self) -> Result<Vec<FileWords>, Failure> {
        let files: Vec<FileWords> = self
            .0
            .iter()
            .enumerate()
            .filter_map(|(place, word)| match word {
                Word::File(file) => Some(self.around(place, file)),
                _ => None,
            })
            .collect();
        if files.is_empty() {
            return Err(Failure::usage(
                "the command has settings but no job file",
                "add a file, for example: fairlead submit job.yaml nr_threads=8",
            ));
        }
        if files
            .iter()
            .filter(|file| file.file.as_os_str() == "-")
            .count()
            > 1
        {
            return Err(Failure::usage("'-' (stdin) is named more than once", ""));
        }
        Ok(files)
    }

    fn around(&self, place: usize, file: &Path) -> FileWords {
        let mut words = FileWords {
            file: file.to_owned(),
            before: Vec::new(),
            after: Vec::new(),
        };
        for (index, word) in self.0.iter().enumerate() {
            match word {
                Word::File(_) => {}
                Word::Set(_) => words.after.push(word.clone()),
                _ if index < place => words.before.push(word.clone()),
                _ => words.after.push(word.clone()),
            }
        }
        words
    }
}

impl Args for Words {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new(WORDS)
                    .value_name("FILE|KEY=VALUE")
                    .required(true)
                    .action(ArgAction::Append)
                    .num_args(1..)
                    .value_parser(NonEmptyStringValueParser::new())
                    .value_hint(clap::ValueHint::FilePath)
                    .help("Job files ('-' is stdin) and settings. KEY=VALUE before a file sets a default; after it, overrides a key. a.b=x sets a nested key"),
            )
            .arg(
                Arg::new(SET)
                    .short('s')
                    .long("set")
                    .value_name("'KEY: VALUE'")
                    .action(ArgAction::Append)
                    .value_parser(NonEmptyStringValueParser::new())
                    .help("Override a key of all files, as YAML, at any position"),
            )
            .arg(
                Arg::new(INCLUDE)
                    .short('i')
                    .long("include")
                    .value_name("FILE")
                    .action(ArgAction::Append)
                    .value_parser(NonEmptyStringValueParser::new())
                    .value_hint(clap::ValueHint::FilePath)
                    .help("Take settings from a YAML file: defaults before a job file, overrides after it"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Words {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut placed: Vec<(usize, Word)> = Vec::new();
        let mut take = |id: &str, word: fn(&str) -> Word| {
            let texts = matches.get_many::<String>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            placed.extend(places.zip(texts).map(|(place, text)| (place, word(text))));
        };
        take(WORDS, Word::positional);
        take(SET, |text| Word::Set(text.to_owned()));
        take(INCLUDE, |text| Word::Include(PathBuf::from(text)));
        placed.sort_by_key(|(place, _)| *place);
        Ok(Self(placed.into_iter().map(|(_, word)| word).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Words {
        let command = Words::augment_args(Command::new("t")).arg(Arg::new("n").short('n'));
        let words = std::iter::once("t").chain(line.split(' '));
        Words::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    fn assign(text: &str) -> Word {
        Word::Assign(text.into())
    }

    #[test]
    fn order_decides_between_default_and_override_for_each_file() {
        let files = parse("-i x.yaml a=1 f.yaml b.c=2 -n 3 -i y.yaml g.yaml d=4")
            .files()
            .unwrap();
        let include = |path: &str| Word::Include(path.into());
        assert_eq!(
            files,
            [
                FileWords {
                    file: "f.yaml".into(),
                    before: vec![include("x.yaml"), assign("a=1")],
                    after: vec![assign("b.c=2"), include("y.yaml"), assign("d=4")],
                },
                FileWords {
                    file: "g.yaml".into(),
                    before: vec![
                        include("x.yaml"),
                        assign("a=1"),
                        assign("b.c=2"),
                        include("y.yaml")
                    ],
                    after: vec![assign("d=4")],
                },
            ]
        );
    }

    #[test]
    fn a_set_overrides_wherever_it_stands() {
        let files = parse("-s a:1 f.yaml").files().unwrap();
        assert_eq!(files[0].before, []);
        assert_eq!(files[0].after, [Word::Set("a:1".into())]);
    }

    #[test]
    fn a_word_with_an_equals_sign_is_a_setting_unless_it_is_a_path() {
        assert_eq!(Word::positional("a=/b/c.yaml"), assign("a=/b/c.yaml"));
        assert_eq!(
            Word::positional("./a=b.yaml"),
            Word::File("./a=b.yaml".into())
        );
        assert_eq!(Word::positional("-"), Word::File("-".into()));
    }

    #[test]
    fn settings_without_a_file_and_stdin_twice_are_refused() {
        assert!(parse("a=1").files().is_err());
        assert!(parse("- a=1 -").files().is_err());
    }
}

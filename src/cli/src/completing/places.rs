//! Which words of the command line are names of what: one table for all commands.

use clap::{Arg, Command};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use fairlead_job::{Health, Stage};

use super::asked::{Kind, labs, names};

/// Source of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The lab.
    Lab(Kind),
    /// The labs of this machine.
    Labs,
    Stages,
    Healths,
}

/// Options and words with the same meaning in all commands.
const EVERYWHERE: &[(&str, Source)] = &[
    ("submit_id", Source::Lab(Kind::Submits)),
    ("suite", Source::Lab(Kind::Suites)),
    ("of", Source::Lab(Kind::Accounts)),
    ("queue", Source::Lab(Kind::Queues)),
    ("host", Source::Lab(Kind::Hosts)),
    ("stage", Source::Stages),
    ("health", Source::Healths),
    ("shards_of", Source::Lab(Kind::Jobs)),
    ("lab", Source::Labs),
    ("account", Source::Lab(Kind::Accounts)),
];

/// Words of one command. They take precedence over the common ones.
const IN_COMMANDS: &[(&str, &str, Source)] = &[
    ("jobs", "words", Source::Lab(Kind::Parameters)),
    ("log", "words", Source::Lab(Kind::Jobs)),
    ("results", "words", Source::Lab(Kind::Jobs)),
    ("wait", "words", Source::Lab(Kind::JobsAndSubmits)),
    ("watch", "words", Source::Lab(Kind::JobsAndSubmits)),
    ("rerun", "words", Source::Lab(Kind::Jobs)),
    ("hold", "words", Source::Lab(Kind::Waiting)),
    ("release", "words", Source::Lab(Kind::Waiting)),
    ("edit", "words", Source::Lab(Kind::Waiting)),
    ("cancel", "words", Source::Lab(Kind::Waiting)),
    ("terminate", "words", Source::Lab(Kind::Running)),
    ("job", "id", Source::Lab(Kind::Jobs)),
    ("tests", "id", Source::Lab(Kind::Jobs)),
    ("explain", "id", Source::Lab(Kind::Jobs)),
    ("reuse", "id", Source::Lab(Kind::Jobs)),
    ("get", "id", Source::Lab(Kind::Contents)),
    ("content", "id", Source::Lab(Kind::Contents)),
    ("content", "ids", Source::Lab(Kind::Contents)),
    ("hosts", "name", Source::Lab(Kind::Hosts)),
    ("hosts", "names", Source::Lab(Kind::Hosts)),
    ("hosts", "accounts", Source::Lab(Kind::Accounts)),
    ("queues", "name", Source::Lab(Kind::Queues)),
    ("queues", "users", Source::Lab(Kind::Accounts)),
    ("account delete", "name", Source::Lab(Kind::Accounts)),
    ("timers", "name", Source::Lab(Kind::Timers)),
    ("timers", "names", Source::Lab(Kind::Timers)),
    // The lab of an account is not one of this machine's labs.
    ("account add", "lab", Source::Lab(Kind::Nothing)),
    ("serve", "lab", Source::Lab(Kind::Nothing)),
    ("serve", "host", Source::Lab(Kind::Nothing)),
];

/// Returns the command line with a source for each word.
pub(super) fn with_sources(command: Command) -> Command {
    with_sources_in("", command)
}

fn with_sources_in(path: &str, command: Command) -> Command {
    let command = command.mut_args(|arg| match source_of(path, arg.get_id().as_str()) {
        Some(source) => completed_by(arg, source),
        None => arg,
    });
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        with_sources_in(path.trim_start(), sub)
    })
}

/// Returns the source for a word of a command, such as `hosts drain`.
fn source_of(path: &str, id: &str) -> Option<Source> {
    let is_in = |command: &str| {
        let rest = path.strip_prefix(command);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let own = IN_COMMANDS
        .iter()
        .find(|(command, name, _)| is_in(command) && *name == id)
        .map(|(.., source)| *source);
    let all = EVERYWHERE.iter().find(|(name, _)| *name == id);
    own.or(all.map(|(_, source)| *source))
}

fn completed_by(arg: Arg, source: Source) -> Arg {
    match source {
        Source::Lab(Kind::Nothing) => arg,
        Source::Lab(kind) => arg.add(ArgValueCandidates::new(move || names(kind))),
        Source::Labs => arg.add(ArgValueCandidates::new(labs)),
        Source::Stages => arg.add(ArgValueCandidates::new(|| {
            with_others(Stage::ALL.iter().map(ToString::to_string))
        })),
        Source::Healths => arg.add(ArgValueCandidates::new(|| {
            with_others(Health::ALL.iter().map(ToString::to_string))
        })),
    }
}

/// Returns the words, and after them each with a `!`, which means all others.
fn with_others(words: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let words: Vec<String> = words.collect();
    let others = words.iter().map(|word| format!("!{word}"));
    let others: Vec<String> = others.collect();
    let all = words.into_iter().chain(others);
    all.map(CompletionCandidate::new).collect()
}

/// Returns the words of the table that no command has.
#[cfg(test)]
pub(crate) fn missing(mut root: Command) -> Vec<String> {
    root.build();
    let has = |command: &Command, id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let is_there = |path: &str, id: &str| {
        let own = path
            .split(' ')
            .try_fold(&root, |at, name| at.find_subcommand(name));
        own.is_some_and(|own| has(own, id) || own.get_subcommands().any(|sub| has(sub, id)))
    };
    let everywhere = EVERYWHERE.iter().map(|(id, _)| *id);
    let everywhere = everywhere.filter(|id| !root.get_subcommands().any(|sub| has(sub, id)));
    let named = IN_COMMANDS
        .iter()
        .filter(|(.., source)| *source != Source::Lab(Kind::Nothing))
        .filter(|(path, id, _)| !is_there(path, id));
    let named = named.map(|(path, id, _)| format!("{path} {id}"));
    named.chain(everywhere.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_source_of_its_command() {
        for (path, id, source) in [
            ("jobs", "stage", Some(Source::Stages)),
            ("cancel", "words", Some(Source::Lab(Kind::Waiting))),
            ("submit", "words", None),
            ("hosts drain", "names", Some(Source::Lab(Kind::Hosts))),
            ("hosts", "name", Some(Source::Lab(Kind::Hosts))),
            ("queues set", "name", Some(Source::Lab(Kind::Queues))),
            ("account add", "name", None),
            ("jobs", "lab", Some(Source::Labs)),
        ] {
            assert_eq!(source_of(path, id), source, "{path} {id}");
        }
    }

    #[test]
    fn stages_are_offered_also_as_all_others() {
        let words = with_others(Stage::ALL.iter().map(ToString::to_string));
        let words: Vec<String> = words
            .iter()
            .map(|word| word.get_value().to_string_lossy().into_owned())
            .collect();
        assert!(words.contains(&"running".to_owned()) && words.contains(&"!finish".to_owned()));
    }
}

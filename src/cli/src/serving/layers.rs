//! Flags, environment and file, one over the other.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, CommandFactory, error::ErrorKind, parser::ValueSource};

use super::{
    file::{self, Said},
    keys::{Key, Kind, flags, keys},
};
use crate::{
    command_line::CommandLine,
    exit::Failure,
    settings::{API_KEY, Environment, PASSWORD},
};

/// A setting of the replica, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) name: String,
    /// As it was said; empty: it has no value.
    pub(crate) value: String,
    pub(crate) from: String,
}

/// What was said where.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// Words that are added to the command line.
    added: Vec<OsString>,
    settings: Vec<Resolved>,
}

impl Layers {
    /// Reads all of them for this command line; of another command than `serve` there are none.
    pub(crate) fn of(words: &[OsString], env: &Environment) -> Result<Self, Failure> {
        // What is missing or wrong in these words is told by the whole line.
        let lenient = CommandLine::command().ignore_errors(true);
        let Ok(matches) = lenient.try_get_matches_from(words) else {
            return Ok(Self::default());
        };
        let Some(("serve", matches)) = matches.subcommand() else {
            return Ok(Self::default());
        };
        let path = matches.try_get_one::<PathBuf>("config").ok().flatten();
        Self::new(matches, path.map(PathBuf::as_path), env)
    }

    fn new(matches: &ArgMatches, path: Option<&Path>, env: &Environment) -> Result<Self, Failure> {
        let keys = keys();
        let file = path.map(|path| file::read(path, &keys)).transpose()?;
        let file = file.unwrap_or_default();
        let on_line = |key: &&Key| {
            let known = matches.try_contains_id(&key.id).unwrap_or(false);
            known && matches.value_source(&key.id) == Some(ValueSource::CommandLine)
        };
        let said = keys.iter().filter(on_line).map(|key| key.name.as_str());
        let mut settled: Vec<&str> = said.collect();
        // A switch that is off excludes nothing.
        let mut active = settled.clone();
        let mut found: BTreeMap<&str, Resolved> = BTreeMap::new();
        for key in keys.iter().filter(on_line) {
            let values = matches.get_raw(&key.id).into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            found.insert(
                &key.name,
                resolved(key, values.join(","), format!("flag --{}", key.name)),
            );
        }
        let mut added = Vec::new();
        for is_env in [true, false] {
            let (above, above_active) = (settled.clone(), active.clone());
            for key in &keys {
                let variable = key.variable();
                let (values, from) = if is_env {
                    let Some(text) = env.of_serve(&variable) else {
                        continue;
                    };
                    (divided(key, text), format!("environment {variable}"))
                } else {
                    let Some(Said { values, line }) = file.get(&key.name) else {
                        continue;
                    };
                    let path = path.map(Path::display);
                    let place = path.map(|path| format!("{path}:{line}"));
                    (
                        values.clone(),
                        format!("file {}", place.unwrap_or_default()),
                    )
                };
                let excludes = |other: &String| above_active.contains(&other.as_str());
                if above.contains(&key.name.as_str()) || key.conflicts.iter().any(excludes) {
                    continue;
                }
                if let Some(variable) = secret_variable(key).filter(|_| !is_env)
                    && env.get(variable).is_some()
                {
                    let from = format!("environment {variable}");
                    found.insert(&key.name, resolved(key, "(hidden)".to_owned(), from));
                    continue;
                }
                let words = words(key, &values).ok_or_else(|| bad(key, &from, &values))?;
                check(&words, key, &from)?;
                if !words.is_empty() {
                    active.push(&key.name);
                }
                added.extend(words.into_iter().map(OsString::from));
                found.insert(&key.name, resolved(key, values.join(","), from));
                settled.push(&key.name);
            }
        }
        let all = keys.iter().map(|key| {
            let usual = || resolved(key, key.default.clone(), "default".to_owned());
            found.get(key.name.as_str()).cloned().unwrap_or_else(usual)
        });
        Ok(Self {
            settings: all.collect(),
            added,
        })
    }

    /// The command line with all that is said elsewhere.
    pub(crate) fn line(&self, words: Vec<OsString>) -> Vec<OsString> {
        let mut line = words;
        line.extend(self.added.iter().cloned());
        line
    }

    /// Every setting, in the order of the help.
    pub(crate) fn settings(&self) -> &[Resolved] {
        &self.settings
    }
}

/// The variable that holds the secret itself, which wins over a file that the configuration names.
fn secret_variable(key: &Key) -> Option<&'static str> {
    match key.name.as_str() {
        "elasticsearch-password-file" => Some(PASSWORD),
        "elasticsearch-api-key-file" => Some(API_KEY),
        _ => None,
    }
}

fn resolved(key: &Key, value: String, from: String) -> Resolved {
    let value = match key.kind {
        Kind::Switch if value.is_empty() => "true".to_owned(),
        Kind::Switch | Kind::One | Kind::Many => value,
    };
    Resolved {
        name: key.name.clone(),
        value,
        from,
    }
}

fn divided(key: &Key, text: &str) -> Vec<String> {
    match key.kind {
        Kind::Many => text.split(',').map(|part| part.trim().to_owned()).collect(),
        Kind::Switch | Kind::One => vec![text.to_owned()],
    }
}

/// The words of the command line that say the same; none: that cannot be said.
fn words(key: &Key, values: &[String]) -> Option<Vec<String>> {
    let flag = |value: &String| format!("--{}={value}", key.name);
    match (key.kind, values) {
        (Kind::Switch, [one]) if one == "true" => Some(vec![format!("--{}", key.name)]),
        (Kind::Switch, [one]) if one == "false" => Some(Vec::new()),
        (Kind::Switch, _) => None,
        (Kind::Many, _) => Some(values.iter().map(flag).collect()),
        (Kind::One, _) => Some(vec![flag(&values.join(","))]),
    }
}

fn bad(key: &Key, from: &str, values: &[String]) -> Failure {
    let message = format!("{from}: {}: '{}' is not valid", key.name, values.join(","));
    Failure::usage(message, format!("expected {}", key.unit))
}

/// Refuses a value that the flag alone would refuse, with its place.
fn check(words: &[String], key: &Key, from: &str) -> Result<(), Failure> {
    let line = std::iter::once("serve").chain(words.iter().map(String::as_str));
    let Err(error) = flags().try_get_matches_from(line) else {
        return Ok(());
    };
    let is_alone = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict
    );
    if is_alone {
        return Ok(());
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    Err(Failure::usage(
        format!("{from}: {first}"),
        format!("{}: {}", key.name, key.help),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    fn layers(line: &str, variables: &[(&str, &str)], text: &str) -> Result<Layers, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        fs::write(&path, text).unwrap();
        let words = format!("fairlead serve --config {} {line}", path.display());
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let env = Environment::of_serving(variables);
        let layers = Layers::of(&words, &env)?;
        CommandLine::try_parse_from(layers.line(words))
            .map(|_| layers)
            .map_err(|error| Failure::usage(error.to_string(), ""))
    }

    fn origin(layers: &Layers, name: &str) -> (String, String) {
        let found = layers.settings().iter().find(|found| found.name == name);
        let found = found.unwrap();
        let from = found.from.split('/').next_back().unwrap();
        (found.value.clone(), from.to_owned())
    }

    #[test]
    fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
        let text = "listen = '127.0.0.1:1'\nlease = '2m'\nkeep-months = 3\nhost-name = ['a', 'b']\nvip-for-all = true\nboot-secrets = false\n";
        let variables = [
            ("FAIRLEAD_SERVE_LISTEN", "127.0.0.1:2"),
            ("FAIRLEAD_SERVE_LEASE", "3m"),
            ("FAIRLEAD_SERVE_DEVICES_LATER", "true"),
        ];
        let layers = layers("--listen 127.0.0.1:3", &variables, text).unwrap();
        for (name, value, from) in [
            ("listen", "127.0.0.1:3", "flag --listen"),
            ("lease", "3m", "environment FAIRLEAD_SERVE_LEASE"),
            (
                "devices-later",
                "true",
                "environment FAIRLEAD_SERVE_DEVICES_LATER",
            ),
            ("keep-months", "3", "serve.toml:3"),
            ("host-name", "a,b", "serve.toml:4"),
            ("vip-for-all", "true", "serve.toml:5"),
            ("boot-secrets", "false", "serve.toml:6"),
            ("suspect-after", "3", "default"),
            ("default-testbox", "dc", "default"),
        ] {
            assert_eq!(
                origin(&layers, name),
                (value.to_owned(), from.to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_flag_that_excludes_a_key_wins_and_two_keys_that_exclude_each_other_are_refused() {
        let wins = layers("--open", &[], "auth = true\n").unwrap();
        assert_eq!(origin(&wins, "auth").1, "default");
        layers("", &[], "auth = true\nopen = true\n").unwrap_err();
        let needs = layers("--index-prefix x", &[], "elasticsearch = 'http://a:1'\n").unwrap();
        assert_eq!(origin(&needs, "index-prefix").1, "flag --index-prefix");
    }

    #[test]
    fn what_is_wrong_names_its_place_and_what_is_expected() {
        for (text, said, hint) in [
            (
                "\nlissten = 'x'\n",
                "serve.toml:2: unknown key 'lissten'",
                "'listen'",
            ),
            (
                "keep_months = 3\n",
                "unknown key 'keep_months'",
                "'keep-months'",
            ),
            (
                "keep-months = 1001\n",
                "serve.toml:1: invalid value '1001'",
                "months",
            ),
            ("lease = 'long'\n", "invalid value 'long'", "lease"),
            (
                "auth = 'yes'\n",
                "serve.toml:1: auth: 'yes'",
                "true or false",
            ),
            ("lease = 1.5\n", "serve.toml:1: lease: 1.5", "whole number"),
            ("[serve]\nlisten = 'x'\n", "unknown key 'serve'", "lists"),
            (
                "listen = \n",
                "serve.toml: TOML parse error at line 1",
                "TOML",
            ),
            ("config = 'x'\n", "unknown key 'config'", ""),
        ] {
            let failure = layers("", &[], text).unwrap_err();
            assert!(failure.message.contains(said), "{text}: {failure}");
            assert!(failure.hint.contains(hint), "{text}: {failure}");
        }
        let variables = [("FAIRLEAD_SERVE_AUTH", "perhaps")];
        let failure = layers("", &variables, "").unwrap_err();
        assert!(failure.message.contains("environment FAIRLEAD_SERVE_AUTH"));
    }
}

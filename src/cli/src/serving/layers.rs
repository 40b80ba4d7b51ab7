//! Flags, environment and file, one over the other.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Command, error::ErrorKind, parser::ValueSource};

use super::{
    file::{self, Said},
    keys::{Key, Kind, keys},
};
use crate::{
    exit::Failure,
    settings::{API_KEY, Environment, PASSWORD},
};

/// A setting of the replica, and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) name: String,
    /// Value as written. Empty: no value.
    pub(crate) value: String,
    pub(crate) from: String,
}

/// Settings by their sources.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// Words that are added to the command line.
    added: Vec<OsString>,
    settings: Vec<Resolved>,
}

impl Layers {
    /// Reads all sources for this command line. Commands other than `serve` have none.
    pub(crate) fn of(
        line: &Command,
        words: &[OsString],
        env: &Environment,
    ) -> Result<Self, Failure> {
        // Errors in these words are reported by the parser of the whole line.
        let lenient = line.clone().ignore_errors(true);
        let flags = line.find_subcommand("serve");
        let matches = lenient.try_get_matches_from(words).ok();
        let (Some(matches), Some(flags)) = (matches, flags) else {
            return Ok(Self::default());
        };
        let Some(("serve", matches)) = matches.subcommand() else {
            return Ok(Self::default());
        };
        let path = matches.try_get_one::<PathBuf>("config").ok().flatten();
        Self::new(flags, matches, path.map(PathBuf::as_path), env)
    }

    fn new(
        flags: &Command,
        matches: &ArgMatches,
        path: Option<&Path>,
        env: &Environment,
    ) -> Result<Self, Failure> {
        let keys = keys(flags);
        let file = path.map(|path| file::read(path, &keys)).transpose()?;
        let file = file.unwrap_or_default();
        let mut settling = Settling::of_line(flags, matches, &keys);
        settling.layer(&keys, |key| {
            let variable = key.variable();
            let text = env.of_serve(&variable)?;
            Some((divided(key, text), format!("environment {variable}")))
        })?;
        for key in &keys {
            if let Some(variable) = secret_variable(key)
                && env.get(variable).is_some()
                && file.contains_key(&key.name)
            {
                settling.note(
                    key,
                    "(hidden)".to_owned(),
                    format!("environment {variable}"),
                );
            }
        }
        settling.layer(&keys, |key| {
            let Said { values, line } = file.get(&key.name)?;
            let path = path.map_or_else(String::new, |path| path.display().to_string());
            Some((values.clone(), format!("file {path}:{line}")))
        })?;
        let Settling { found, added, .. } = settling;
        let all = keys.iter().map(|key| {
            let usual = || resolved(key, key.default.clone(), "default".to_owned());
            found.get(&key.name).cloned().unwrap_or_else(usual)
        });
        Ok(Self {
            settings: all.collect(),
            added,
        })
    }

    /// Returns the command line with the settings of all sources.
    pub(crate) fn line(&self, words: Vec<OsString>) -> Vec<OsString> {
        let mut line = words;
        line.extend(self.added.iter().cloned());
        line
    }

    /// Returns every setting, in the order of the help.
    pub(crate) fn into_settings(self) -> Vec<Resolved> {
        self.settings
    }
}

/// Settings of the upper layers. Each layer adds the keys that they do not set.
struct Settling<'f> {
    flags: &'f Command,
    found: BTreeMap<String, Resolved>,
    /// Keys that exclude others. A switch that is off excludes nothing.
    active: Vec<String>,
    added: Vec<OsString>,
}

impl<'f> Settling<'f> {
    /// Returns the settings of the command line itself.
    fn of_line(flags: &'f Command, matches: &ArgMatches, keys: &[Key]) -> Self {
        let mut settling = Self {
            flags,
            found: BTreeMap::new(),
            active: Vec::new(),
            added: Vec::new(),
        };
        for key in keys {
            let is_known = matches.try_contains_id(&key.id).unwrap_or(false);
            if !is_known || matches.value_source(&key.id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = matches.get_raw(&key.id).into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            settling.note(key, values.join(","), format!("flag --{}", key.name));
            settling.active.push(key.name.clone());
        }
        settling
    }

    fn note(&mut self, key: &Key, value: String, from: String) {
        let resolved = resolved(key, value, from);
        self.found.entry(key.name.clone()).or_insert(resolved);
    }

    /// Adds a layer's values of keys that no upper layer sets or excludes.
    fn layer(
        &mut self,
        keys: &[Key],
        said: impl Fn(&Key) -> Option<(Vec<String>, String)>,
    ) -> Result<(), Failure> {
        let above = self.active.clone();
        for key in keys {
            let is_settled = self.found.contains_key(&key.name);
            if is_settled || key.conflicts.iter().any(|other| above.contains(other)) {
                continue;
            }
            let Some((values, from)) = said(key) else {
                continue;
            };
            let words = words(key, &values).ok_or_else(|| bad(key, &from, &values))?;
            check(self.flags, &words, key, &from)?;
            if !words.is_empty() {
                self.active.push(key.name.clone());
            }
            self.added.extend(words.into_iter().map(OsString::from));
            self.note(key, values.join(","), from);
        }
        Ok(())
    }
}

/// Returns the variable with the secret itself. It overrides a file that the configuration names.
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

/// Returns the command-line words with the same meaning. `None`: there are none.
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

/// Fails for a value that the flag alone would refuse, and names its place.
fn check(flags: &Command, words: &[String], key: &Key, from: &str) -> Result<(), Failure> {
    let line = std::iter::once("serve").chain(words.iter().map(String::as_str));
    let Err(error) = flags.clone().try_get_matches_from(line) else {
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
mod tests;

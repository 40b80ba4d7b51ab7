//! Tests of the layers: what wins, and what is refused with its place.

use std::fs;

use clap::{CommandFactory, Parser};

use super::*;
use crate::command_line::CommandLine;

fn layers(line: &str, variables: &[(&str, &str)], text: &str) -> Result<Layers, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.toml");
    fs::write(&path, text).unwrap();
    let words = format!("fairlead serve --config {} {line}", path.display());
    let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    let env = Environment::of_serving(variables);
    let layers = Layers::of(&CommandLine::command(), &words, &env)?;
    CommandLine::try_parse_from(layers.line(words))
        .map(|_| layers)
        .map_err(|error| Failure::usage(error.to_string(), ""))
}

fn origin(layers: &Layers, name: &str) -> (String, String) {
    let found = layers.settings.iter().find(|found| found.name == name);
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

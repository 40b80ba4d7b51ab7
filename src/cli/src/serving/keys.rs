//! The keys of the configuration of `fairlead serve`, as the command line defines them.

use clap::{Arg, ArgAction, Command};

/// Flags about settings, which are not settings themselves.
const NO_KEYS: [&str; 3] = ["config", "check", "help"];
/// Prefix of the variables.
const VARIABLE: &str = "FAIRLEAD_SERVE_";

/// Kind of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Switch,
    One,
    /// A list. The flag is repeated on the command line.
    Many,
}

/// One key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// Name of the flag without `--`, and of the key in the file.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Name of its value on the command line.
    pub(crate) unit: String,
    /// Default value. Empty: none.
    pub(crate) default: String,
    pub(crate) help: String,
    /// Name of the flag in the parser.
    pub(super) id: String,
    /// Keys that exclude this one.
    pub(super) conflicts: Vec<String>,
}

impl Key {
    /// Returns the name of the variable: `FAIRLEAD_SERVE_KEEP_MONTHS`.
    pub(crate) fn variable(&self) -> String {
        let name = self.name.replace('-', "_").to_ascii_uppercase();
        format!("{VARIABLE}{name}")
    }

    fn of(command: &Command, arg: &Arg) -> Option<Self> {
        let name = arg.get_long()?.to_owned();
        if NO_KEYS.contains(&name.as_str()) {
            return None;
        }
        let kind = match arg.get_action() {
            ArgAction::SetTrue => Kind::Switch,
            ArgAction::Append => Kind::Many,
            _ => Kind::One,
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let units = arg.get_value_names().unwrap_or_default();
        let unit = match kind {
            Kind::Switch => "true or false",
            Kind::One | Kind::Many => units.first().map_or("VALUE", |unit| unit.as_str()),
        };
        let (help, said) = divided(&help);
        let built_in = arg.get_default_values().iter();
        let built_in: Vec<_> = built_in.map(|value| value.to_string_lossy()).collect();
        let default = match kind {
            Kind::Switch => "false".to_owned(),
            Kind::One | Kind::Many if built_in.concat().is_empty() => said,
            Kind::One | Kind::Many => built_in.join(","),
        };
        let longs = command.get_arg_conflicts_with(arg).into_iter();
        let conflicts = longs.filter_map(Arg::get_long).map(str::to_owned);
        Some(Self {
            unit: unit.to_owned(),
            conflicts: conflicts.collect(),
            id: arg.get_id().to_string(),
            name,
            kind,
            default,
            help,
        })
    }
}

/// Splits a help text into the text and the value in `[default: dc]`.
fn divided(help: &str) -> (String, String) {
    let Some((text, rest)) = help.split_once(" [default: ") else {
        return (help.to_owned(), String::new());
    };
    let (default, rest) = rest.split_once(']').unwrap_or((rest, ""));
    (format!("{text}{rest}"), default.to_owned())
}

/// Returns every key of these flags, in the order of the help.
pub(crate) fn keys(flags: &Command) -> Vec<Key> {
    let mut command = flags.clone();
    command.build();
    let all = command.get_arguments();
    let mut keys: Vec<Key> = all.filter_map(|arg| Key::of(&command, arg)).collect();
    let pairs: Vec<(String, String)> = keys
        .iter()
        .flat_map(|key| {
            key.conflicts
                .iter()
                .map(|other| (other.clone(), key.name.clone()))
        })
        .collect();
    for (name, other) in pairs {
        if let Some(key) = keys.iter_mut().find(|key| key.name == name)
            && !key.conflicts.contains(&other)
        {
            key.conflicts.push(other);
        }
    }
    keys
}

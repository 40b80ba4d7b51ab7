//! The variables of the environment that have to do with settings.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use super::origin::{Origin, Setting};

/// Variable with the password of an Elasticsearch user.
pub(crate) const PASSWORD: &str = "FAIRLEAD_ELASTICSEARCH_PASSWORD";
/// Variable with an API key of Elasticsearch.
pub(crate) const API_KEY: &str = "FAIRLEAD_ELASTICSEARCH_API_KEY";

/// Prefix of the variables for settings of `fairlead serve`.
const SERVING: &str = "FAIRLEAD_SERVE_";

/// Variables that are read. Nothing else in the environment influences settings.
const VARIABLES: &[&str] = &[
    "FAIRLEAD_SERVER",
    "FAIRLEAD_TOKEN",
    "FAIRLEAD_TOKEN_FILE",
    "FAIRLEAD_ACCOUNT",
    "FAIRLEAD_CONFIG",
    PASSWORD,
    API_KEY,
    "FAIRLEAD_LOG",
    "FAIRLEAD_LAB",
    "NO_COLOR",
    "RUST_LOG",
    "TERM",
    "XDG_CONFIG_HOME",
    "HOME",
    "USER",
    "LOGNAME",
];

/// The environment, read once. An empty variable counts as missing. `Debug` shows only names.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<&'static str, String>, BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// Returns the process's own environment.
    pub(crate) fn of_process() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that reads the environment"
        )]
        let read = |name: &&'static str| std::env::var(name).ok().map(|value| (*name, value));
        let known = Self::of(VARIABLES.iter().filter_map(read));
        let all = std::env::vars_os();
        let texts = all.filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let value = value.into_string().ok().filter(|value| !value.is_empty())?;
            name.starts_with(SERVING).then_some((name, value))
        });
        Self(known.0, texts.collect())
    }

    /// Returns a setting of `fairlead serve` by the name of its variable.
    pub(crate) fn of_serve(&self, variable: &str) -> Option<&str> {
        self.1.get(variable).map(String::as_str)
    }

    /// Returns an environment with these settings of `fairlead serve`.
    #[cfg(test)]
    pub(crate) fn of_serving(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(BTreeMap::new(), variables.iter().map(owned).collect())
    }

    /// Returns an environment with these variables.
    pub(crate) fn of(variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(
            variables
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            BTreeMap::new(),
        )
    }

    pub(crate) fn get(&self, name: &'static str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn setting(&self, name: &'static str) -> Option<Setting<String>> {
        self.get(name)
            .map(|value| Setting::new(value.to_owned(), Origin::Variable(name)))
    }

    /// Returns the environment without the variables for server and account, and the names of the removed ones.
    pub(super) fn without_connection(&self) -> (Self, Vec<&'static str>) {
        let ours = [
            "FAIRLEAD_SERVER",
            "FAIRLEAD_TOKEN",
            "FAIRLEAD_TOKEN_FILE",
            "FAIRLEAD_ACCOUNT",
        ];
        let mut rest = self.clone();
        rest.0.retain(|name, _| !ours.contains(name));
        let gone = ours.into_iter().filter(|name| self.get(name).is_some());
        (rest, gone.collect())
    }

    pub(crate) fn config_home(&self) -> Option<PathBuf> {
        // By the standard, a relative path here is ignored.
        let xdg = self
            .get("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        xdg.or_else(|| self.get("HOME").map(|home| Path::new(home).join(".config")))
    }
}

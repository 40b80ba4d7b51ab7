//! Merges flags, environment, files and defaults. Pure except for the files that it reads.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use fairlead_api::client::ClientConfig;

use super::{
    environment::Environment,
    file::{self, ConfigFile, divided},
    flags::Flags,
    labs::{checked, lab, labs_folder, remarks},
    origin::{Origin, Setting},
};
use crate::exit::Failure;

/// Default address of the scheduler.
const SERVER: &str = "http://127.0.0.1:3000";

/// Time for which requests retry over all replicas. A restart of a scheduler takes less.
const RETRY_FOR: Duration = Duration::from_secs(3);

/// Every setting with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Configuration file that was looked for.
    pub(crate) config_file: Setting<Option<PathBuf>>,
    /// Lab whose server and token are used. `None`: those of the configuration file.
    pub(crate) lab: Setting<Option<String>>,
    /// Remarks on conflicting settings, printed once.
    pub(crate) remarks: Vec<String>,
    pub(crate) server: Setting<Vec<String>>,
    pub(crate) account: Setting<Option<String>>,
    pub(crate) token: Setting<Option<String>>,
    pub(crate) testbox: Setting<Option<String>>,
    pub(crate) arch: Setting<Option<String>>,
    pub(crate) include_dirs: Setting<Vec<String>>,
}

impl Settings {
    /// Reads the files and resolves the settings.
    pub(crate) fn resolve(flags: &Flags, env: &Environment) -> Result<Self, Failure> {
        let home = env.config_home();
        let config_file = config_path(flags, env, home.as_deref());
        let config = match &config_file.value {
            Some(path) => ConfigFile::read(path, config_file.origin != Origin::Default)?,
            None => ConfigFile::default(),
        };
        let lab = lab(flags, env, &config)?;
        let (env, remarks) = nearer(flags, env, lab.as_ref());
        let env = &env;
        let folder = labs_folder(&config_file, home.as_deref());
        let config = match &lab {
            Some(lab) => config.with_lab(&folder, &lab.value)?,
            None => config,
        };
        let compass = home.filter(|_| lab.is_none());
        let compass = compass
            .as_deref()
            .map(|dir| dir.join("compass-ci/defaults/account.yaml"));
        let (compass_account, compass_token) =
            compass.as_deref().map_or((None, None), file::compass_ci);
        let flag = |name, value: &Option<String>| {
            value
                .clone()
                .map(|value| Setting::new(value, Origin::Flag(name)))
        };

        let account = flag("--account", &flags.account)
            .or_else(|| env.setting("FAIRLEAD_ACCOUNT"))
            .or(config.text("account")?)
            .or(compass_account)
            .or_else(|| env.setting("USER"))
            .or_else(|| env.setting("LOGNAME"))
            .or_else(|| file::user_of_process().map(|name| Setting::new(name, Origin::Default)));
        let own = match &lab {
            Some(lab) => Some(folder.join(format!("{}.token", lab.value))),
            None => env.config_home().map(|dir| dir.join("fairlead/token")),
        };
        let token = match flag("--token", &flags.token) {
            None => token(flags, env, &config, own.as_deref())?.or(compass_token),
            said => said,
        };
        Ok(Self {
            server: server(flags, env, &config)?,
            account: optional(account),
            token: optional(token),
            testbox: optional(config.text("testbox")?),
            arch: optional(config.text("arch")?),
            include_dirs: include_dirs(&config, &config_file)?,
            lab: optional(lab),
            remarks,
            config_file,
        })
    }

    /// Returns true if the account was not named, so that it is only the user of this machine.
    pub(crate) fn account_is_assumed(&self) -> bool {
        matches!(
            self.account.origin,
            Origin::Variable("USER" | "LOGNAME") | Origin::Default | Origin::Unset
        )
    }

    /// Returns the client configuration for the scheduler.
    pub(crate) fn client_config(&self) -> ClientConfig {
        let mut config = ClientConfig::new(self.server.value.iter().cloned());
        config.token.clone_from(&self.token.value);
        // A person waits for the answer, and may have mistyped the address.
        config.retry_for = RETRY_FOR;
        config
    }
}

fn optional(found: Option<Setting<String>>) -> Setting<Option<String>> {
    match found {
        Some(Setting { value, origin }) => Setting::new(Some(value), origin),
        None => Setting::new(None, Origin::Unset),
    }
}

/// Returns the labs that have a file. An unreadable folder has none.
pub(crate) fn lab_names(flags: &Flags, env: &Environment) -> Vec<String> {
    let home = env.config_home();
    let config_file = config_path(flags, env, home.as_deref());
    let folder = labs_folder(&config_file, home.as_deref());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".yaml").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn config_path(flags: &Flags, env: &Environment, home: Option<&Path>) -> Setting<Option<PathBuf>> {
    if let Some(path) = &flags.config {
        return Setting::new(Some(path.clone()), Origin::Flag("--config"));
    }
    if let Some(path) = env.get("FAIRLEAD_CONFIG") {
        return Setting::new(Some(path.into()), Origin::Variable("FAIRLEAD_CONFIG"));
    }
    Setting::new(
        home.map(|dir| dir.join("fairlead/config.yaml")),
        Origin::Default,
    )
}

fn server(
    flags: &Flags,
    env: &Environment,
    config: &ConfigFile,
) -> Result<Setting<Vec<String>>, Failure> {
    let given: Vec<String> = flags.server.iter().flat_map(|text| divided(text)).collect();
    if !given.is_empty() {
        return checked(Setting::new(given, Origin::Flag("--server")));
    }
    if let Some(found) = env.setting("FAIRLEAD_SERVER") {
        let urls: Vec<String> = divided(&found.value).collect();
        if !urls.is_empty() {
            return checked(Setting::new(urls, found.origin));
        }
    }
    let found = config.list("server", true)?;
    checked(found.unwrap_or_else(|| Setting::new(vec![SERVER.to_owned()], Origin::Default)))
}

/// Returns the environment without the variables that the command line overrides, and remarks on them.
fn nearer(
    flags: &Flags,
    env: &Environment,
    lab: Option<&Setting<String>>,
) -> (Environment, Vec<String>) {
    // A lab on the command line overrides the environment.
    let Some(lab) = lab.filter(|lab| lab.origin == Origin::Flag("--lab")) else {
        return (env.clone(), remarks(flags, env));
    };
    let (rest, ignored) = env.without_connection();
    let mut said = remarks(flags, &rest);
    if !ignored.is_empty() {
        said.push(format!(
            "--lab {} wins over {}",
            lab.value,
            ignored.join(", ")
        ));
    }
    (rest, said)
}

/// Returns the token from all sources except `--token` and compass-ci.
fn token(
    flags: &Flags,
    env: &Environment,
    config: &ConfigFile,
    own: Option<&Path>,
) -> Result<Option<Setting<String>>, Failure> {
    if let Some(path) = &flags.token_file {
        return file::token_file(path, true);
    }
    if let Some(token) = env.setting("FAIRLEAD_TOKEN") {
        return Ok(Some(token));
    }
    if let Some(path) = env.get("FAIRLEAD_TOKEN_FILE") {
        return file::token_file(Path::new(path), true);
    }
    if let Some(token) = config.text("token")? {
        return Ok(Some(token));
    }
    if let Some(path) = config.text("token_file")? {
        return file::token_file(&beside(&path.origin, &path.value), true);
    }
    own.map_or(Ok(None), |path| file::token_file(path, false))
}

fn include_dirs(
    config: &ConfigFile,
    config_file: &Setting<Option<PathBuf>>,
) -> Result<Setting<Vec<String>>, Failure> {
    let Some(mut found) = config.list("include_dirs", false)? else {
        return Ok(Setting::new(Vec::new(), Origin::Unset));
    };
    let origin = Origin::File(config_file.value.clone().unwrap_or_default(), 0);
    for dir in &mut found.value {
        *dir = beside(&origin, dir).to_string_lossy().into_owned();
    }
    Ok(found)
}

/// Resolves a file's path relative to the file that names it.
fn beside(origin: &Origin, path: &str) -> PathBuf {
    match origin {
        Origin::File(file, _) => file.parent().unwrap_or(Path::new("")).join(path),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn env(&self, more: &[(&'static str, &str)]) -> Environment {
            let home = [("HOME", self.0.path().to_str().unwrap().to_owned())];
            let more = more
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            Environment::of(home.into_iter().chain(more))
        }
    }

    #[test]
    fn flag_over_environment_over_file_over_default() {
        let home = Home::new();
        let resolve = |flags: &Flags, env| {
            let found = Settings::resolve(flags, &env).unwrap().server;
            (found.value.join(" "), found.origin)
        };
        let env = [("FAIRLEAD_SERVER", "http://e1, http://e2,")];
        let flags = Flags {
            server: vec!["http://f".into()],
            ..Flags::default()
        };

        assert_eq!(
            resolve(&Flags::default(), home.env(&[])),
            (SERVER.into(), Origin::Default)
        );
        let file = home.write(
            ".config/fairlead/config.yaml",
            "account: x\nserver: http://c\n",
        );
        assert_eq!(
            resolve(&Flags::default(), home.env(&[])),
            ("http://c".into(), Origin::File(file, 2))
        );
        assert_eq!(
            resolve(&Flags::default(), home.env(&env)),
            (
                "http://e1 http://e2".into(),
                Origin::Variable("FAIRLEAD_SERVER")
            )
        );
        assert_eq!(
            resolve(&flags, home.env(&env)),
            ("http://f".into(), Origin::Flag("--server"))
        );
    }

    #[test]
    fn compass_ci_s_account_file_comes_after_our_own_and_before_the_user() {
        let home = Home::new();
        let env = home.env(&[("USER", "u")]);
        let resolve = || Settings::resolve(&Flags::default(), &env).unwrap();
        assert_eq!(
            resolve().account,
            Setting::new(Some("u".into()), Origin::Variable("USER"))
        );
        assert_eq!(resolve().token, Setting::new(None, Origin::Unset));
        let path = home.write(
            ".config/compass-ci/defaults/account.yaml",
            "my_email: a@b\nmy_account: c\nmy_token: t-1\n",
        );
        assert_eq!(
            resolve().account,
            Setting::new(Some("c".into()), Origin::File(path.clone(), 2))
        );
        assert_eq!(
            resolve().token,
            Setting::new(Some("t-1".into()), Origin::File(path, 3))
        );
        home.write(".config/fairlead/config.yaml", "account: ours\n");
        home.write(".config/fairlead/token", "t-2\n");
        assert_eq!(resolve().account.value.as_deref(), Some("ours"));
        assert_eq!(resolve().token.value.as_deref(), Some("t-2"));
    }

    #[test]
    fn paths_in_the_file_are_meant_from_its_folder() {
        let home = Home::new();
        home.write("x/secret", "t\n");
        let config = home.write(
            "x/c.yaml",
            "token_file: secret\ninclude_dirs: [inc, /abs]\n",
        );
        let flags = Flags {
            config: Some(config),
            ..Flags::default()
        };
        let settings = Settings::resolve(&flags, &home.env(&[])).unwrap();
        assert_eq!(settings.token.value.as_deref(), Some("t"));
        let inc = home.0.path().join("x/inc").to_string_lossy().into_owned();
        assert_eq!(settings.include_dirs.value, [inc, "/abs".to_owned()]);
    }

    #[test]
    fn a_file_that_was_asked_for_must_be_there_and_a_relative_xdg_folder_is_ignored() {
        let home = Home::new();
        let flags = Flags {
            config: Some("/nonexistent/c.yaml".into()),
            ..Flags::default()
        };
        assert!(Settings::resolve(&flags, &home.env(&[])).is_err());
        let flags = Flags {
            token_file: Some("/nonexistent".into()),
            ..Flags::default()
        };
        assert!(Settings::resolve(&flags, &home.env(&[])).is_err());
        home.write(".config/fairlead/config.yaml", "account: a\n");
        let settings =
            Settings::resolve(&Flags::default(), &home.env(&[("XDG_CONFIG_HOME", "rel")])).unwrap();
        assert_eq!(settings.account.value.as_deref(), Some("a"));
    }

    #[test]
    fn a_token_file_holds_a_token_only() {
        let home = Home::new();
        for text in ["", "\n", "a b\n", "a\nb\n"] {
            let flags = Flags {
                token_file: Some(home.write("t", text)),
                ..Flags::default()
            };
            assert!(
                Settings::resolve(&flags, &home.env(&[])).is_err(),
                "{text:?}"
            );
        }
    }
}

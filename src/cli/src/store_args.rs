//! Store options of the command line, and its login. Elasticsearch secrets come from the environment or from files,
//! never from the command line.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fairlead_scheduler::{Config, ElasticConfig, StoreChoice};

use crate::{
    exit::Failure,
    settings::{API_KEY, Environment, PASSWORD},
};

/// Where the jobs are kept.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgs {
    /// Folder for results, logs and, without --elasticsearch, the embedded store [default: fairlead-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep jobs in this Elasticsearch; separate several nodes by commas
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    elasticsearch: Vec<String>,
    /// Prefix of all indices [default: fairlead]
    #[arg(long, value_name = "PREFIX", requires = "elasticsearch")]
    index_prefix: Option<String>,
    /// Certificates (PEM) of the authority that signed the certificates of Elasticsearch
    #[arg(long, value_name = "FILE", requires = "elasticsearch")]
    elasticsearch_ca: Option<PathBuf>,
    /// User of Elasticsearch; give its password in `FAIRLEAD_ELASTICSEARCH_PASSWORD` or a file
    #[arg(long, value_name = "NAME", requires = "elasticsearch")]
    elasticsearch_user: Option<String>,
    /// File with the password of the user
    #[arg(long, value_name = "FILE", requires = "elasticsearch")]
    elasticsearch_password_file: Option<PathBuf>,
    /// File with an encoded API key, instead of a user; or use `FAIRLEAD_ELASTICSEARCH_API_KEY`
    #[arg(long, value_name = "FILE", requires = "elasticsearch")]
    elasticsearch_api_key_file: Option<PathBuf>,
}

impl StoreArgs {
    /// Returns true if a store is named.
    pub(crate) fn is_given(&self) -> bool {
        self.data.is_some() || !self.elasticsearch.is_empty()
    }

    /// Returns the data folder, if one is named.
    pub(crate) fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// Returns a replica's configuration with this store, and defaults for everything else.
    pub(crate) fn config(&self, env: &Environment) -> Result<Config, Failure> {
        let data = self
            .data
            .clone()
            .unwrap_or_else(|| PathBuf::from("fairlead-data"));
        let mut config = Config::embedded(data);
        let urls: Vec<String> = self
            .elasticsearch
            .iter()
            .map(|url| url.trim().to_owned())
            .filter(|url| !url.is_empty())
            .collect();
        if urls.is_empty() && !self.elasticsearch.is_empty() {
            return Err(Failure::usage(
                "--elasticsearch names no address",
                "give its URL; for the embedded store, leave the option out",
            ));
        }
        if !urls.is_empty() {
            config.store = StoreChoice::Elasticsearch(Box::new(self.elastic(urls, env)?));
        }
        Ok(config)
    }

    fn elastic(&self, urls: Vec<String>, env: &Environment) -> Result<ElasticConfig, Failure> {
        let mut config = ElasticConfig {
            urls,
            username: self.elasticsearch_user.clone(),
            password: secret(
                "--elasticsearch-password-file",
                self.elasticsearch_password_file.as_deref(),
                env.get(PASSWORD),
            )?,
            api_key: secret(
                "--elasticsearch-api-key-file",
                self.elasticsearch_api_key_file.as_deref(),
                env.get(API_KEY),
            )?,
            ca_pem: self
                .elasticsearch_ca
                .as_deref()
                .map(certificates)
                .transpose()?,
            ..ElasticConfig::default()
        };
        if let Some(prefix) = &self.index_prefix {
            config.index_prefix.clone_from(prefix);
        }
        // The error names the values and gives a hint.
        config
            .check()
            .map_err(|error| Failure::usage(error.to_string(), ""))?;
        Ok(config)
    }
}

/// Returns a secret from a file (its only line), or else from the environment.
fn secret(
    flag: &str,
    path: Option<&Path>,
    variable: Option<&str>,
) -> Result<Option<String>, Failure> {
    let Some(path) = path else {
        return Ok(variable.map(str::to_owned));
    };
    let text = read(flag, path)?;
    // Newlines added by an editor or `echo` are removed; spaces may belong to a password.
    let line = text.trim_end_matches(['\r', '\n']);
    if line.is_empty() || line.contains(char::is_control) {
        return Err(Failure::usage(
            format!(
                "{flag} {}: expected one line that contains only the secret",
                path.display()
            ),
            "write the secret into it, with mode 600",
        ));
    }
    Ok(Some(line.to_owned()))
}

fn certificates(path: &Path) -> Result<String, Failure> {
    let text = read("--elasticsearch-ca", path)?;
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(Failure::usage(
            format!(
                "--elasticsearch-ca {}: the file has no PEM certificate",
                path.display()
            ),
            "use the certificate of the authority; its text begins with -----BEGIN CERTIFICATE-----",
        ));
    }
    Ok(text)
}

fn read(flag: &str, path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read {flag} {}: {error}", path.display()),
            "check the path, and whether the user of fairlead may read the file",
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        store: StoreArgs,
    }

    type Variables<'a> = &'a [(&'static str, &'a str)];

    const PEM: &str = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";

    fn config(words: &str, env: Variables) -> Result<Config, Failure> {
        let words = std::iter::once("serve").chain(words.split_whitespace());
        let env = env.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Line::try_parse_from(words)
            .unwrap()
            .store
            .config(&Environment::of(env))
    }

    fn elastic(words: &str, env: Variables) -> Result<ElasticConfig, Failure> {
        match config(&format!("--elasticsearch https://a:1 {words}"), env)?.store {
            StoreChoice::Elasticsearch(elastic) => Ok(*elastic),
            StoreChoice::Embedded => panic!("the embedded store"),
        }
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap().to_owned();
        (folder, path)
    }

    #[test]
    fn several_nodes_make_one_store() {
        let words = "--elasticsearch http://a:1,http://b:2 --index-prefix p";
        let StoreChoice::Elasticsearch(elastic) = config(words, &[]).unwrap().store else {
            panic!()
        };
        assert_eq!(
            (elastic.urls.len(), elastic.index_prefix.as_str()),
            (2, "p")
        );
    }

    #[test]
    fn secrets_come_from_files_or_the_environment() {
        let (_folder, path) = file("from file\r\n");
        let user = "--elasticsearch-user ann";
        let given = elastic(user, &[(PASSWORD, "from env")]).unwrap();
        assert_eq!(given.username.as_deref(), Some("ann"));
        assert_eq!(given.password.as_deref(), Some("from env"));
        let words = format!("{user} --elasticsearch-password-file {path}");
        let given = elastic(&words, &[(PASSWORD, "from env")]).unwrap();
        assert_eq!(given.password.as_deref(), Some("from file"));
        let given = elastic("", &[(API_KEY, "a2V5")]).unwrap();
        assert_eq!(given.api_key.as_deref(), Some("a2V5"));
        let (_folder, path) = file("a2V5Mg==\n");
        let words = format!("--elasticsearch-api-key-file {path}");
        let given = elastic(&words, &[]).unwrap();
        assert_eq!(given.api_key.as_deref(), Some("a2V5Mg=="));
        let (_folder, path) = file(PEM);
        let given = elastic(&format!("--elasticsearch-ca {path}"), &[]).unwrap();
        assert_eq!(given.ca_pem.as_deref(), Some(PEM));
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_what_to_do() {
        let user = "--elasticsearch-user ann";
        let (_folder, empty) = file("\n");
        let (_folder, two_lines) = file("hidden\nhidden\n");
        let cases: &[(&str, Variables, &str)] = &[
            (user, &[(API_KEY, "hidden"), (PASSWORD, "hidden")], "'ann'"),
            (user, &[], "'ann' has no password"),
            ("", &[(PASSWORD, "hidden")], PASSWORD),
            ("", &[(API_KEY, "name:hidden")], "encoded"),
            (
                &format!("--elasticsearch-password-file {empty}"),
                &[],
                &empty,
            ),
            (
                &format!("--elasticsearch-api-key-file {two_lines}"),
                &[],
                &two_lines,
            ),
            ("--elasticsearch-api-key-file nowhere", &[], "nowhere"),
            (
                &format!("--elasticsearch-ca {two_lines}"),
                &[],
                "BEGIN CERTIFICATE",
            ),
            ("--elasticsearch http://ann:hidden@b", &[], "'b'"),
        ];
        for (words, env, said) in cases {
            let failure = elastic(words, env).unwrap_err();
            let text = failure.to_string();
            assert_eq!(failure.code, crate::exit::USAGE, "{text}");
            assert!(
                text.contains(said) && text.contains("hint: "),
                "{words}: {text}"
            );
            assert!(!text.contains("hidden"), "{words}: {text}");
        }
        let (_folder, path) = file(PEM);
        let words = format!("--elasticsearch http://a:1 --elasticsearch-ca {path}");
        assert!(
            config(&words, &[])
                .unwrap_err()
                .to_string()
                .contains("http://a:1")
        );
        // Without Elasticsearch the variables are ignored, and the flags are an error.
        config("", &[(PASSWORD, "x"), (API_KEY, "x")]).unwrap();
        Line::try_parse_from(["serve", "--elasticsearch-user", "ann"]).unwrap_err();
    }

    #[test]
    fn nothing_shows_a_secret() {
        let (_folder, path) = file("hidden1");
        let words = format!(
            "--elasticsearch https://a --elasticsearch-user ann --elasticsearch-password-file {path}"
        );
        let shown = format!("{:?}", config(&words, &[(PASSWORD, "hidden2")]).unwrap());
        assert!(
            shown.contains("ann") && !shown.contains("hidden"),
            "{shown}"
        );
        let env = Environment::of([(API_KEY, "hidden".to_owned())]);
        assert_eq!(format!("{env:?}"), format!("{{{API_KEY:?}}}"));
    }
}

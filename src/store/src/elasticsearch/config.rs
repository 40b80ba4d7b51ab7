//! Configuration: how to reach the cluster, and the names and settings of the indices.

use std::{fmt, time::Duration};

use reqwest::Url;

use crate::StoreError;

/// Address of Elasticsearch and settings of its use. `Debug` shows no secret.
#[derive(Clone)]
pub struct ElasticConfig {
    /// URL of every node that may be asked, `http://host:port` or `https://…`; at least one. Nodes are asked in turn;
    /// a node that does not answer is left out for a while. URLs contain no user or password.
    pub urls: Vec<String>,
    /// Prefix of the name of every index and template: 1 to 100 of `a-z 0-9 - _`, a letter or digit first. Default
    /// `fairlead`.
    pub index_prefix: String,
    /// User for basic authentication, with `password`.
    pub username: Option<String>,
    /// Password of `username`.
    pub password: Option<String>,
    /// API key in the form that Elasticsearch calls `encoded`, instead of a user.
    pub api_key: Option<String>,
    /// Certificates (PEM) of the authorities that sign the nodes' certificates. The public authorities are built in;
    /// those of the system are not used.
    pub ca_pem: Option<String>,
    /// Maximum time of one try of one request. A whole call, with its retries, takes at most three times that. A
    /// start repeats a call that was not answered for six times that. Default 10 s.
    pub request_timeout: Duration,
    /// Time until searches see writes, in the notation of Elasticsearch. Default `1s`.
    pub refresh_interval: String,
    /// Copies of each shard besides the primary. Default `None`: one if there is a second node for it.
    pub replicas: Option<u32>,
    /// Shards of each index. Default 1; more only with more nodes than copies.
    pub shards: u32,
    /// Minimum number of cached documents of waiting jobs; the maximum is twice as many. Elasticsearch need not read
    /// them to change them. Some 200 bytes each. Default 30,000.
    pub documents_kept: u32,
}

impl Default for ElasticConfig {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            index_prefix: "fairlead".to_owned(),
            username: None,
            password: None,
            api_key: None,
            ca_pem: None,
            request_timeout: Duration::from_secs(10),
            refresh_interval: "1s".to_owned(),
            replicas: None,
            shards: 1,
            documents_kept: 30_000,
        }
    }
}

impl fmt::Debug for ElasticConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElasticConfig")
            .field("urls", &self.shown_urls())
            .field("index_prefix", &self.index_prefix)
            .field("username", &self.username)
            .field("request_timeout", &self.request_timeout)
            .field("refresh_interval", &self.refresh_interval)
            .field("replicas", &self.replicas)
            .field("shards", &self.shards)
            .field("documents_kept", &self.documents_kept)
            .finish_non_exhaustive()
    }
}

impl ElasticConfig {
    /// Returns the URLs for display, without any password.
    pub fn shown_urls(&self) -> String {
        let shown: Vec<&str> = self.urls.iter().map(|url| without_user(url)).collect();
        shown.join(", ")
    }

    /// Checks the configuration, so that errors show early and clearly. No message contains a secret.
    ///
    /// # Errors
    /// Fails with [`StoreError::Unusable`] if a URL, name or number is invalid, or if logins contradict each other.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.urls.is_empty() {
            return refuse(
                "no URL of Elasticsearch was given".to_owned(),
                "give --elasticsearch http://HOST:9200",
            );
        }
        let prefix = &self.index_prefix;
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let starts_well = prefix.bytes().next().is_some_and(plain);
        let all_well = prefix.bytes().all(|b| plain(b) || b == b'-' || b == b'_');
        if !starts_well || !all_well || prefix.len() > 100 {
            return refuse(
                format!("index prefix '{prefix}' cannot be a prefix of index names"),
                "use 1 to 100 of a-z, 0-9, '-' and '_', beginning with a letter or digit",
            );
        }
        if self.shards == 0 || self.request_timeout.is_zero() {
            return refuse(
                "shards and the request timeout must be at least 1".to_owned(),
                "leave them out for the defaults",
            );
        }
        self.check_urls()?;
        self.check_login()
    }

    fn check_urls(&self) -> Result<(), StoreError> {
        for url in &self.urls {
            let name = without_user(url);
            let Ok(parsed) = Url::parse(url) else {
                return refuse(format!("'{name}' is not a URL"), URL_HINT);
            };
            if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
                return refuse(format!("'{name}' is not an http or https URL"), URL_HINT);
            }
            if !parsed.username().is_empty() || parsed.password().is_some() {
                return refuse(
                    format!(
                        "the URL of '{name}' has a user or a password in it, which others can see"
                    ),
                    "give the user by --elasticsearch-user, and the password by \
                    FAIRLEAD_ELASTICSEARCH_PASSWORD or --elasticsearch-password-file",
                );
            }
        }
        if self.ca_pem.is_some() && !self.urls.iter().any(|url| is_https(url)) {
            return refuse(
                format!(
                    "a certificate of an authority is given, and {} is not asked over https",
                    self.shown_urls()
                ),
                "write https:// in --elasticsearch, or leave out --elasticsearch-ca",
            );
        }
        Ok(())
    }

    fn check_login(&self) -> Result<(), StoreError> {
        match (&self.username, &self.password, &self.api_key) {
            (Some(user), _, Some(_)) => refuse(
                format!("user '{user}' and an API key are both given; use one of them"),
                "leave out --elasticsearch-user, or the API key \
                (--elasticsearch-api-key-file, FAIRLEAD_ELASTICSEARCH_API_KEY)",
            ),
            (Some(user), None, None) => refuse(
                format!("user '{user}' has no password"),
                "give it by FAIRLEAD_ELASTICSEARCH_PASSWORD or --elasticsearch-password-file",
            ),
            (Some(user), Some(_), None) if user.is_empty() || user.contains(':') => refuse(
                format!("'{user}' cannot be a user of Elasticsearch"),
                "give --elasticsearch-user the name alone",
            ),
            (None, Some(_), _) => refuse(
                "a password is given without a user".to_owned(),
                "give --elasticsearch-user, or leave out the password \
                (--elasticsearch-password-file, FAIRLEAD_ELASTICSEARCH_PASSWORD)",
            ),
            (None, None, Some(key)) if !is_base64(key) => refuse(
                "the API key is not in the form that Elasticsearch calls 'encoded'".to_owned(),
                "give the value of 'encoded' of the answer that made the key: one word of \
                letters, digits, '+', '/', '-', '_' and '='",
            ),
            _ => Ok(()),
        }
    }
}

const URL_HINT: &str = "give URLs as https://HOST:9200, several with commas";

fn refuse<T>(reason: String, hint: &str) -> Result<T, StoreError> {
    Err(StoreError::Unusable {
        reason,
        hint: hint.to_owned(),
    })
}

/// Returns true if a URL is asked over TLS.
pub(super) fn is_https(url: &str) -> bool {
    url.to_ascii_lowercase().starts_with("https:")
}

/// Returns true if the text can stand in a header and is no secret with its name before a colon.
fn is_base64(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"+/-_=".contains(&b);
    !text.is_empty() && text.bytes().all(fits)
}

/// Returns `https://user:secret@host` without `user:secret@`.
pub(super) fn without_user(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(prefix: &str, urls: &[&str]) -> ElasticConfig {
        ElasticConfig {
            index_prefix: prefix.to_owned(),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            ..ElasticConfig::default()
        }
    }

    #[test]
    fn prefixes_that_name_no_index_are_refused() {
        for good in ["fairlead", "lab-1_x", "9"] {
            config(good, &["http://a:1"]).check().unwrap();
        }
        let long = "x".repeat(101);
        for bad in ["", "-a", "_a", "Lab", "a*", "a b", "a/b", "ä", &long] {
            let error = config(bad, &["http://a:1"]).check().unwrap_err();
            assert!(error.to_string().contains("hint:"), "{bad}");
        }
        config("fairlead", &[]).check().unwrap_err();
    }

    #[test]
    fn urls_that_cannot_be_asked_are_refused() {
        for good in [
            "http://a:1",
            "https://a",
            "HTTPS://a:9200/",
            "http://[::1]:9200/es",
        ] {
            config("fairlead", &[good]).check().unwrap();
        }
        for bad in ["nonsense", "ftp://a", "http://", "a:9200"] {
            let error = config("fairlead", &["http://a:1", bad])
                .check()
                .unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
        for bad in [
            "https://ann:secret@a:1",
            "https://:secret@a",
            "http://ann@a/",
        ] {
            let words = config("fairlead", &[bad]).check().unwrap_err().to_string();
            assert!(!words.contains("secret") && words.contains("'a"), "{words}");
            assert!(words.contains("--elasticsearch-user"), "{words}");
        }
    }

    #[test]
    fn logins_that_contradict_each_other_are_refused() {
        let check = |user: Option<&str>, password: Option<&str>, key: Option<&str>| {
            let config = ElasticConfig {
                username: user.map(str::to_owned),
                password: password.map(str::to_owned),
                api_key: key.map(str::to_owned),
                ..config("fairlead", &["http://a:1"])
            };
            config.check().map_err(|error| error.to_string())
        };
        check(None, None, None).unwrap();
        check(Some("ann"), Some("secret:1"), None).unwrap();
        check(None, None, Some("c2VjcmV0Og==")).unwrap();
        let refused = [
            check(Some("ann"), Some("secret"), Some("secret")),
            check(Some("ann"), None, None),
            check(Some("ann:"), Some("secret"), None),
            check(None, Some("secret"), None),
            check(None, None, Some("name:secret")),
            check(None, None, Some("secret\n")),
        ];
        for refused in refused {
            let words = refused.unwrap_err();
            assert!(
                words.contains("hint:") && !words.contains("secret"),
                "{words}"
            );
        }
    }

    #[test]
    fn a_certificate_is_for_https() {
        let with_ca = |urls: &[&str]| ElasticConfig {
            ca_pem: Some("x".to_owned()),
            ..config("fairlead", urls)
        };
        with_ca(&["http://a:1", "https://b:1"]).check().unwrap();
        let error = with_ca(&["http://a:1"]).check().unwrap_err();
        assert!(error.to_string().contains("http://a:1"), "{error}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut config = config("fairlead", &["https://me:secret1@host:9200"]);
        config.password = Some("secret2".to_owned());
        config.api_key = Some("secret3".to_owned());
        let shown = format!("{config:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("host:9200"), "{shown}");
    }
}

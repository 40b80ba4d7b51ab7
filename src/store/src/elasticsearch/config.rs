//! How to reach the cluster, and what is made there.

use std::{fmt, time::Duration};

use crate::StoreError;

/// Where Elasticsearch is and how it is used. `Debug` shows no secret.
#[derive(Clone)]
pub struct ElasticConfig {
    /// Every node that may be asked, `http://host:port` or `https://…`; at least one. They are asked in
    /// turn; one that does not answer is left alone for a while.
    pub urls: Vec<String>,
    /// Begins the name of every index and template: 1 to 100 of `a-z 0-9 - _`, a letter or digit first.
    /// Default `fairlead`.
    pub index_prefix: String,
    /// User for basic authentication, with `password`.
    pub username: Option<String>,
    /// See `username`.
    pub password: Option<String>,
    /// An encoded API key; wins over a user.
    pub api_key: Option<String>,
    /// Certificates (PEM) of the authorities that sign the nodes', besides those of the system.
    pub ca_pem: Option<String>,
    /// How long one try of one request may take. A whole call, with its retries, takes at most three
    /// times that. Default 10 s.
    pub request_timeout: Duration,
    /// How soon writes are seen by searches, as Elasticsearch writes it. Default `1s`.
    pub refresh_interval: String,
    /// Copies beside the first. Default `None`: one when there is a second node for it.
    pub replicas: Option<u32>,
    /// Shards of each index. Default 1; more only with more nodes than copies.
    pub shards: u32,
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
            .finish_non_exhaustive()
    }
}

impl ElasticConfig {
    /// The URLs for people: without a password that may be in them.
    pub(super) fn shown_urls(&self) -> String {
        let shown: Vec<&str> = self.urls.iter().map(|url| without_user(url)).collect();
        shown.join(", ")
    }

    /// Refuses what can only fail later and less clearly.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let refuse = |reason: String, hint: &str| {
            Err(StoreError::Unusable {
                reason,
                hint: hint.to_owned(),
            })
        };
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
                format!("index prefix '{prefix}' cannot begin the name of an index"),
                "use 1 to 100 of a-z, 0-9, '-' and '_', beginning with a letter or digit",
            );
        }
        if self.shards == 0 || self.request_timeout.is_zero() {
            return refuse(
                "shards and the request timeout must be at least 1".to_owned(),
                "leave them out for the defaults",
            );
        }
        Ok(())
    }
}

/// `https://user:secret@host` without `user:secret@`.
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
    fn secrets_are_not_shown() {
        let mut config = config("fairlead", &["https://me:secret1@host:9200"]);
        config.password = Some("secret2".to_owned());
        config.api_key = Some("secret3".to_owned());
        let shown = format!("{config:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("host:9200"), "{shown}");
    }
}

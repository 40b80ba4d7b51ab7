//! How the lab reuses results, as last read or written.

use std::sync::Arc;

use fairlead_api::{ReuseSettings, SuiteReuse};
use fairlead_job::reuse_within_s;
use fairlead_store::{DocKind, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use fairlead_base::{
    patterns::matches,
    storage::small_doc::{DocError, SmallDoc, SmallDocs},
};

/// Id of the settings document.
pub const REUSE_DOC: &str = "reuse";
/// Default percentage of reusable jobs that run anyway, to compare their results.
pub const AUDIT_PERCENT: u8 = 1;
/// Maximum number of suite patterns.
const SUITES_MAX: usize = 100;
/// Maximum length of a pattern or salt, bytes.
const TEXT_BYTES_MAX: usize = 256;

/// The stored settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReuseDoc {
    pub salt: String,
    pub audit_percent: Option<u8>,
    pub performance: Vec<String>,
    pub suites: Vec<SuiteReuse>,
}

impl SmallDoc for ReuseDoc {
    const KIND: DocKind = DocKind::Setting;
}

impl From<ReuseDoc> for ReuseSettings {
    fn from(doc: ReuseDoc) -> Self {
        Self {
            salt: doc.salt,
            audit_percent: doc.audit_percent,
            performance: doc.performance,
            suites: doc.suites,
        }
    }
}

impl From<ReuseSettings> for ReuseDoc {
    fn from(said: ReuseSettings) -> Self {
        Self {
            salt: said.salt,
            audit_percent: said.audit_percent,
            performance: said.performance,
            suites: said.suites,
        }
    }
}

/// Checks new settings.
///
/// # Errors
/// Returns a description of the problem.
pub fn checked(doc: &ReuseDoc) -> Result<(), String> {
    if doc.audit_percent.is_some_and(|percent| percent > 100) {
        return Err("audit_percent: at most 100".to_owned());
    }
    if doc.performance.len() > SUITES_MAX || doc.suites.len() > SUITES_MAX {
        return Err(format!("at most {SUITES_MAX} suites"));
    }
    let suites = doc.suites.iter().map(|one| &one.suite);
    let names = doc.performance.iter().chain(suites);
    if names.clone().any(String::is_empty) {
        return Err("a suite has no name".to_owned());
    }
    if names
        .chain([&doc.salt])
        .any(|text| text.len() > TEXT_BYTES_MAX)
    {
        return Err(format!("texts have at most {TEXT_BYTES_MAX} bytes"));
    }
    for one in &doc.suites {
        reuse_within_s(&Value::from(one.within.as_str()))
            .map_err(|error| format!("suite '{}': {error}", one.suite))?;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Known {
    version: Option<Version>,
    doc: Arc<ReuseDoc>,
}

/// Settings that apply to submits.
#[derive(Debug, Default)]
pub struct ReuseRules(Mutex<Known>);

impl ReuseRules {
    /// Returns all settings.
    pub fn all(&self) -> Arc<ReuseDoc> {
        Arc::clone(&self.0.lock().doc)
    }

    /// Adopts a document that was read or written, unless a newer one is known.
    pub fn are(&self, version: Version, doc: &ReuseDoc) {
        let mut known = self.0.lock();
        if known.version < Some(version) {
            known.version = Some(version);
            known.doc = Arc::new(doc.clone());
        }
    }

    /// Reads the settings from the store, in real time.
    pub async fn reload(&self, docs: &SmallDocs) -> Result<(), DocError> {
        if let Some(read) = docs.read::<ReuseDoc>(REUSE_DOC).await? {
            self.are(read.version, &read.doc);
        }
        Ok(())
    }
}

impl ReuseDoc {
    /// Returns true if the jobs of a suite always run.
    pub fn measures(&self, suite: &str) -> bool {
        self.performance
            .iter()
            .any(|pattern| matches(pattern, suite))
    }

    /// Returns the default maximum age of a reusable result for a suite, seconds. `None`: jobs run.
    pub fn default_s(&self, suite: &str) -> Option<u64> {
        let one = self.suites.iter().find(|one| matches(&one.suite, suite))?;
        reuse_within_s(&Value::from(one.within.as_str())).ok()
    }

    /// Returns the percentage of reusable jobs that run anyway.
    pub fn audit_percent(&self) -> u8 {
        self.audit_percent.unwrap_or(AUDIT_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(pairs: &[(&str, &str)]) -> ReuseDoc {
        let one = |(suite, within): &(&str, &str)| SuiteReuse {
            suite: (*suite).to_owned(),
            within: (*within).to_owned(),
        };
        ReuseDoc {
            suites: pairs.iter().map(one).collect(),
            ..ReuseDoc::default()
        }
    }

    #[test]
    fn the_first_suite_that_fits_says_how_old() {
        let doc = suites(&[("ltp-io", "1h"), ("ltp*", "14d")]);
        assert_eq!(checked(&doc), Ok(()));
        assert_eq!(doc.default_s("ltp-io"), Some(3_600));
        assert_eq!(doc.default_s("ltp-mm"), Some(14 * 86_400));
        assert_eq!(doc.default_s("iozone"), None);
        let measuring = ReuseDoc {
            performance: vec!["io*".to_owned()],
            ..doc
        };
        assert!(measuring.measures("iozone") && !measuring.measures("ltp"));
    }

    #[test]
    fn nonsense_is_refused() {
        for (doc, word) in [
            (suites(&[("x", "soon")]), "suite 'x'"),
            (suites(&[("x", "400d")]), "366d"),
            (suites(&[("", "1d")]), "no name"),
            (suites(&vec![("x", "1d"); 101]), "at most 100"),
            (
                ReuseDoc {
                    audit_percent: Some(101),
                    ..ReuseDoc::default()
                },
                "audit_percent",
            ),
            (
                ReuseDoc {
                    salt: "x".repeat(257),
                    ..ReuseDoc::default()
                },
                "256 bytes",
            ),
        ] {
            let problem = checked(&doc).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}

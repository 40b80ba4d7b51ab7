//! A report of a testbox about its job, as it was sent: read and checked.

use fairlead_content::Digest;
use fairlead_job::{DataReadiness, Health, IMAGE_DIGEST_DIGITS, Stage};
use fairlead_store::CaseCounts;

use fairlead_base::{
    errors::{JobError, excerpt},
    text::cut,
};

/// Maximum number of milestones of a job.
pub const MILESTONES_MAX: usize = 100;
/// Maximum length of the list of milestones in one report, bytes.
const MILESTONES_BYTES_MAX: usize = 4096;
/// Maximum renewal, seconds: 30 days, as in compass-ci.
const RENEW_S_MAX: u64 = 30 * 86_400;
/// Maximum length of a testbox's address, bytes.
const ADDRESS_MAX: usize = 128;
/// Required form of the list of milestones.
const WORDS: &str = "a list of at most 100 words";
/// Maximum length of a stored reason, bytes.
const REASON_MAX: usize = 300;
/// Maximum length of a stored crash title, bytes.
const SIGNATURE_MAX: usize = 256;

/// A checked report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Stage that the job reached.
    pub stage: Option<Stage>,
    /// Health with which the job ended.
    pub health: Option<Health>,
    /// Readiness of its files.
    pub readiness: Option<DataReadiness>,
    /// Milestones that the job passed.
    pub milestones: Vec<String>,
    /// Extension of the job's time limit, s.
    pub renew_s: Option<u64>,
    /// Exit code of the job's script.
    pub exit_code: Option<i32>,
    /// Address under which its peers reach the testbox.
    pub address: Option<String>,
    /// Reason of the end, as a sentence.
    pub reason: String,
    /// True if the next try must avoid this host.
    pub avoid_host: bool,
    /// Content id of its outputs.
    pub outputs: Option<Digest>,
    /// Digest of the image that it ran in. Empty: not reported.
    pub image_digest: String,
    /// Title of the kernel crash that it printed.
    pub crash_signature: String,
    /// Peak memory of the job, MB. 0: not reported.
    pub peak_memory_mb: u32,
    /// CPU time of the job, milliseconds. 0: not reported.
    pub cpu_ms: u32,
    /// True if its results have test cases.
    pub has_cases: bool,
    /// Counts of test cases, if the report says that the results are complete. They are read from the results.
    pub cases: Option<CaseCounts>,
    /// Attempt that the report belongs to.
    pub attempt: Option<u16>,
    /// Token of its claim.
    pub token: Option<String>,
}

impl Report {
    /// Returns true if it reports that an attempt with test cases ended, or that its results are complete.
    pub fn brings_cases(&self) -> bool {
        self.has_cases && self.ends()
    }

    /// Returns true if it reports that an attempt ended, or that its results are complete.
    pub fn ends(&self) -> bool {
        let are_in = matches!(
            self.readiness,
            Some(DataReadiness::Uploaded | DataReadiness::Complete)
        );
        are_in || self.stage.is_some_and(Stage::is_terminal)
    }

    /// Parses the parameters of a query.
    pub fn of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, JobError> {
        let mut report = Self::default();
        for (name, value) in pairs {
            let bad = |expected: &str| JobError::BadReport {
                name: name.to_owned(),
                shown: excerpt(value),
                expected: expected.to_owned(),
            };
            match name {
                "job_stage" => {
                    report.stage = Some(value.parse().map_err(|_| bad(&words(Stage::ALL)))?);
                }
                "job_health" => {
                    report.health = Some(value.parse().map_err(|_| bad(&words(Health::ALL)))?);
                }
                "job_state" => {
                    read_state(&mut report, value).ok_or_else(|| bad("a stage or a health"))?;
                }
                "job_data_readiness" => {
                    report.readiness =
                        Some(value.parse().map_err(|_| bad(&words(DataReadiness::ALL)))?);
                }
                "milestones" => {
                    report.milestones = read_milestones(value).ok_or_else(|| bad(WORDS))?;
                }
                "renew_seconds" => {
                    report.renew_s =
                        Some(renewal(value).ok_or_else(|| bad("1 to 2592000 seconds"))?);
                }
                "exit_code" => {
                    report.exit_code = Some(value.parse().map_err(|_| bad("a whole number"))?);
                }
                "address" => {
                    let address = read_address(value);
                    report.address = Some(address.ok_or_else(|| bad("an address or a host name"))?);
                }
                "attempt" => report.attempt = Some(value.parse().map_err(|_| bad("1 to 65535"))?),
                "job_token" => report.token = Some(value.to_owned()),
                "reason" => cut(value, REASON_MAX).clone_into(&mut report.reason),
                "peak_memory_mb" => {
                    report.peak_memory_mb = value.parse().map_err(|_| bad("whole MB"))?;
                }
                "avoid_host" => report.avoid_host = matches!(value, "1" | "true"),
                "has_cases" => report.has_cases = matches!(value, "1" | "true"),
                "outputs" => {
                    report.outputs = Some(value.parse().map_err(|_| bad("the id of a put"))?);
                }
                "image_digest" => report.image_digest = read_digits(value, bad)?,
                "cpu_ms" => report.cpu_ms = value.parse().map_err(|_| bad("milliseconds"))?,
                "crash_signature" => {
                    cut(value, SIGNATURE_MAX).clone_into(&mut report.crash_signature);
                }
                // Other values are for watchers; old clients send any words.
                _ => {}
            }
        }
        Ok(report)
    }
}

fn read_address(value: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-%_".contains(&byte);
    let is_one = (1..=ADDRESS_MAX).contains(&value.len()) && value.bytes().all(is_plain);
    is_one.then(|| value.to_owned())
}

fn read_digits(value: &str, bad: impl Fn(&str) -> JobError) -> Result<String, JobError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if value.len() == IMAGE_DIGEST_DIGITS && value.bytes().all(is_digit) {
        return Ok(value.to_owned());
    }
    Err(bad("32 hexadecimal digits"))
}

fn renewal(value: &str) -> Option<u64> {
    value.parse().ok().filter(|s| (1..=RENEW_S_MAX).contains(s))
}

fn read_milestones(value: &str) -> Option<Vec<String>> {
    let words: Vec<_> = value
        .split(',')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    (words.len() <= MILESTONES_MAX && value.len() <= MILESTONES_BYTES_MAX).then_some(words)
}

fn read_state(report: &mut Report, value: &str) -> Option<()> {
    let word = if value == "finished" { "finish" } else { value };
    if let Ok(stage) = word.parse() {
        report.stage = Some(stage);
    } else {
        report.health = Some(word.parse().ok()?);
    }
    Some(())
}

fn words<W: Copy + std::fmt::Display>(all: &[W]) -> String {
    format!(
        "one of {}",
        all.iter().map(W::to_string).collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use fairlead_api::ErrorCode;

    use super::*;
    use fairlead_base::errors::Refusal;

    #[test]
    fn unknown_words_are_refused_by_name() {
        for pair in [
            ("job_stage", "started"),
            ("job_health", "good"),
            ("renew_seconds", "-1"),
            ("exit_code", "x"),
            ("outputs", "x"),
            ("image_digest", "sha256:abc"),
        ] {
            let refusal = Report::of([pair].into_iter()).unwrap_err();
            let body = Refusal::from(refusal).body();
            assert!(
                body.code == ErrorCode::BadQuery && body.message.contains(pair.0),
                "{body:?}"
            );
        }
    }
}

//! The documents of a job in each layout.

use std::fmt::{self, Display, Formatter, Write};

use serde_json::{Value, json};

use super::super::{
    raw::{Raw, Version},
    sample::{Run, Sample, create_body_line, create_line},
};

/// Placeholder of the text of a body.
const TEXT: &str = "@text@";
/// Refresh interval of an index of bodies, which nobody searches.
const UNSEARCHED_REFRESH: &str = "30s";
/// Length of the text from which the bodies' texts are cut, bytes.
const TEXT_BYTES: usize = 1 << 20;

/// Layout of a stored job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// State in one index, body in another.
    TwoIndices,
    /// Both in one index. The body has the same id with a suffix.
    OneIndex,
    /// Both in one document.
    OneDocument,
}

impl Layout {
    pub(super) const ALL: [Self; 3] = [Self::TwoIndices, Self::OneIndex, Self::OneDocument];
}

impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoIndices => "two indices",
            Self::OneIndex => "both documents in one index",
            Self::OneDocument => "one document",
        })
    }
}

/// Indices of a layout, and the lines that write to them.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) layout: Layout,
    /// Index of the states.
    pub(super) states: String,
    bodies: String,
    waiting: String,
    ended: String,
    body: String,
    job_id: String,
}

impl Form {
    /// Creates indices for this layout, like those of the scheduler.
    pub(super) async fn make(raw: &Raw, sample: &Sample, layout: Layout) -> anyhow::Result<Self> {
        let jobs = &sample.jobs_index;
        let make = async |name: &str| {
            let index = jobs.replace("-jobs-", name);
            raw.copy_index(jobs, &index).await?;
            anyhow::Ok(index)
        };
        let states = make(match layout {
            Layout::TwoIndices => "-two-",
            Layout::OneIndex => "-one-",
            Layout::OneDocument => "-whole-",
        })
        .await?;
        let mut bodies = states.clone();
        if layout == Layout::TwoIndices {
            bodies = make("-two-bodies-").await?;
            raw.refresh_every(&bodies, UNSEARCHED_REFRESH).await?;
        }
        Ok(Self::new(sample, layout, states, bodies))
    }

    fn new(sample: &Sample, layout: Layout, states: String, bodies: String) -> Self {
        let text = json!({"text": TEXT});
        let state = |document: Value| {
            let mut document = document;
            if layout == Layout::OneDocument {
                document["body"] = text.clone();
            }
            document.to_string()
        };
        let body = if layout == Layout::TwoIndices {
            json!({"job_id": sample.job_id, "format": 1, "body": text})
        } else {
            // None of its fields is indexed.
            json!({"body": text})
        };
        Self {
            layout,
            states,
            bodies,
            waiting: state(serde_json::from_str(&sample.state).unwrap_or_default()),
            ended: state(Value::Object(sample.finished.clone())),
            body: body.to_string(),
            job_id: sample.job_id.clone(),
        }
    }

    /// Returns all its indices, separated by commas.
    pub(super) fn indices(&self) -> String {
        if self.layout == Layout::TwoIndices {
            format!("{},{}", self.states, self.bodies)
        } else {
            self.states.clone()
        }
    }

    /// Returns the lines that create a waiting job.
    pub(super) fn create(&self, id: &str, text: &str) -> String {
        self.lines(&self.waiting, id, text)
    }

    /// Returns the lines that create an ended job.
    pub(super) fn create_ended(&self, id: &str, text: &str) -> String {
        self.lines(&self.ended, id, text)
    }

    fn lines(&self, state: &str, id: &str, text: &str) -> String {
        let document = |document: &str| document.replace(&self.job_id, id).replace(TEXT, text);
        let state = document(state);
        let mut lines = format!("{}\n{state}\n", create_line(&self.states, id));
        let create = match self.layout {
            Layout::OneDocument => return lines,
            Layout::TwoIndices => create_line(&self.bodies, id),
            Layout::OneIndex => create_body_line(&self.bodies, id),
        };
        let body = document(&self.body);
        // Writing to a text cannot fail.
        let _ = write!(lines, "{create}\n{body}\n");
        lines
    }

    /// Selects the versions of states among those of all documents.
    pub(super) fn of_states(&self, all: Vec<Version>) -> Vec<Version> {
        let documents = if self.layout == Layout::OneDocument {
            1
        } else {
            2
        };
        all.into_iter().step_by(documents).collect()
    }

    /// Returns the lines that claim job `n` of a run.
    pub(super) fn claim(&self, sample: &Sample, run: Run, n: usize, at: Version) -> String {
        sample.claim_in(&self.states, run, n, at)
    }
}

/// Texts of bodies. They are about as compressible as real text, and each job has its own.
#[derive(Debug)]
pub(super) struct Texts {
    all: String,
    bytes: usize,
}

impl Texts {
    /// Returns texts of this length.
    pub(super) fn new(bytes: usize) -> Self {
        let mut all = String::new();
        let mut n: u64 = 1;
        while all.len() < TEXT_BYTES + bytes {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let _ = write!(all, "{:x} ", n >> 40);
        }
        Self { all, bytes }
    }

    /// Returns the length of each text, bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the text of the nth job.
    pub(super) fn of(&self, nth: usize) -> &str {
        // Texts of neighbours begin far apart.
        let from = nth.wrapping_mul(611_953) % TEXT_BYTES;
        self.all.get(from..from + self.bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(layout: Layout) -> Form {
        let sample = Sample::of_documents(
            r#"{"job_id":"77","stage":"submit"}"#,
            r#"{"body":{"script":"true"}}"#,
        );
        Form::new(&sample, layout, "s".to_owned(), "b".to_owned())
    }

    fn documents(lines: &str) -> Vec<Value> {
        let lines = lines.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_job_has_two_documents_or_one() {
        let two = documents(&form(Layout::TwoIndices).create("8", "x y"));
        let state = json!({"job_id": "8", "stage": "submit"});
        assert_eq!(two[0], json!({"create": {"_index": "s", "_id": "8"}}));
        assert_eq!(two[1], state);
        assert_eq!(two[2], json!({"create": {"_index": "b", "_id": "8"}}));
        assert_eq!(
            two[3],
            json!({"job_id": "8", "format": 1, "body": {"text": "x y"}})
        );
        let one = documents(&form(Layout::OneIndex).create("8", "x y"));
        assert_eq!(one[1], state);
        assert_eq!(
            one[2],
            json!({"create": {"_index": "b", "_id": "8-body", "routing": "8"}})
        );
        assert_eq!(one[3], json!({"body": {"text": "x y"}}));
        let whole = documents(&form(Layout::OneDocument).create_ended("8", "x y"));
        assert_eq!(whole.len(), 2);
        assert_eq!(
            whole[1],
            json!({"job_id": "8", "stage": "finish", "body": {"text": "x y"}})
        );
    }

    #[test]
    fn each_body_has_a_text_of_its_own() {
        let texts = Texts::new(1_500);
        assert!((0..1_000).all(|n| texts.of(n).len() == 1_500));
        assert_ne!(texts.of(1), texts.of(2));
        assert!(
            texts
                .of(1)
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_hexdigit())
        );
    }
}

//! Writes an expanded job as YAML that reads back as the same job: one line per top-level key, nested values in JSON
//! (which is YAML), scripts as block text.

use fairlead_job::Spec;
use serde_json::Value;

/// Returns the job as YAML, with a newline at the end.
pub(crate) fn of(job: &Spec) -> String {
    if job.is_empty() {
        return "{}\n".to_owned();
    }
    job.iter().map(|(key, value)| line(key, value)).collect()
}

fn line(key: &str, value: &Value) -> String {
    let key = if is_plain_key(key) {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    };
    match value {
        Value::Null => format!("{key}:\n"),
        Value::String(text) => match block(text) {
            Some(block) => format!("{key}: {block}"),
            None => format!("{key}: {value}\n"),
        },
        other => format!("{key}: {other}\n"),
    }
}

/// Returns true if a key needs no quotes in any YAML version, and has no other meaning.
fn is_plain_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let word = |w: &&str| key.eq_ignore_ascii_case(w);
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(plain)
        && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
            .iter()
            .any(word)
}

/// Returns a text of several lines as a literal block, if that keeps it exactly. The same holds for a text that would
/// elsewhere be taken for a template.
fn block(text: &str) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let simple = (text.contains('\n') || body.contains("{{"))
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\t', '\n'])
        && body
            .chars()
            .all(|c| c == '\n' || c == '\t' || !c.is_control())
        && !body.contains(['\u{feff}', '\u{85}', '\u{2028}', '\u{2029}'])
        && body
            .lines()
            .all(|line| line.is_empty() || !line.trim().is_empty());
    if !simple {
        return None;
    }
    let mark = if text.ends_with('\n') { "|" } else { "|-" };
    let indented = body.split('\n').map(|l| {
        if l.is_empty() {
            String::new()
        } else {
            format!("  {l}")
        }
    });
    Some(format!(
        "{mark}\n{}\n",
        indented.collect::<Vec<_>>().join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use fairlead_job::file::{ExpandOptions, NoFiles, expand_text};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same_job() {
        let job = json!({
            "suite": "s", "n": 8, "f": 1.5, "nothing": null, "yes": true, "octal": "0644", "word": "yes",
            "empty": "", "quote": "it's \"x\": # y", "on": "off", "if role server": {"netserver": null},
            "hackbench": {"mode": "process", "deep": {"a": {"b": "c: d"}}},
            "script": "#!/bin/sh\n\necho {{ x }}\n\tif a; then\n  b\n",
            "no_end": "a\nb", "two_ends": "a\n\n", "spaced": "  a\nb", "blank": "a\n  \nb",
            "curly": "{{ a }}", "control": "a\u{1}b\nc", "percent": "100%", "hash": "# no",
            "tags": ["a", "b"],
        });
        let Value::Object(job) = job else { panic!() };
        let text = of(&job);
        let back = expand_text("t", text.as_bytes(), &ExpandOptions::default(), &NoFiles);
        assert_eq!(back.unwrap_or_else(|e| panic!("{e}\n{text}")), [job]);
    }

    #[test]
    fn a_script_stays_readable() {
        let Value::Object(job) = json!({"script": "echo a\necho b\n"}) else {
            panic!()
        };
        assert_eq!(of(&job), "script: |\n  echo a\n  echo b\n");
    }
}

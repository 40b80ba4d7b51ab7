//! Parameters of a job: for tables, for its script, and to distinguish the jobs of one matrix.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{Spec, Use, fields, is_field};

/// Bytes of one variable's value. A larger one is left out.
pub const VARIABLE_BYTES_MAX: usize = 32 * 1024;
/// Bytes of all variables of a job together, names counted; what comes after is left out.
pub const ENVIRONMENT_BYTES_MAX: usize = 256 * 1024;

/// Levels of maps that are looked into. Job files have at most [`crate::file::limits::NESTING_MAX`].
const LEVELS_MAX: usize = 40;

/// The key of a stored job that says which submit rule changed it.
pub const SUBMIT_RULE: &str = "submit_rule";

/// Names a submit, so that it may be repeated: it says nothing of what the job does, and no script sees it.
pub const IDEMPOTENCY_KEY: &str = "idempotency_key";

/// The parameters of one job, for tables: key (dotted inside a program) and value, in the job's order.
/// Leaves out where and how it runs, who submitted it, and its script.
pub fn parameters(spec: &Spec) -> Vec<(String, String)> {
    let shown = |key: &str| !is_field(key, Use::Hidden) && !is_field(key, Use::Infrastructure);
    flat(spec, shown)
}

/// Returns the programs of a job that stand by themselves and not in a section `program`. These are each map that is
/// no field, and the suite if it is named without parameters.
pub fn programs(spec: &Spec) -> impl Iterator<Item = (&str, &Value)> {
    let suite = spec.get("suite").and_then(Value::as_str);
    let fields = spec.iter().map(|(key, value)| (key.as_str(), value));
    fields.filter(move |(key, value)| match value {
        Value::Object(_) => !is_field(key, Use::Section) && !is_secret(key),
        Value::Null => suite == Some(*key),
        _ => false,
    })
}

/// Returns a hash that is equal for jobs that run the same test with the same parameters on the same kind of testbox.
/// Submitters and the order of fields do not matter: 32 hexadecimal digits. `parameters` are those of the job.
pub fn fingerprint(spec: &Spec, parameters: &[(String, String)]) -> String {
    let named = fields(Use::Compared).filter_map(|field| {
        let text = match spec.get(field)? {
            Value::Null => return None,
            Value::String(text) => Cow::from(text),
            other => other.to_string().into(),
        };
        Some((field, text))
    });
    let parameters = parameters.iter();
    let parameters = parameters.map(|(key, value)| (key.as_str(), Cow::from(value)));
    let said: BTreeMap<&str, Cow<'_, str>> = parameters.chain(named).collect();
    let mut hasher = blake3::Hasher::new();
    for text in said.iter().flat_map(|(key, value)| [*key, value]) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let mut print = hasher.finalize().to_hex().to_string();
    print.truncate(32);
    print
}

/// For each job of a set, only the parameters that differ between its jobs. These may be about where it
/// runs too, when the matrix is over that.
pub fn varying(specs: &[&Spec]) -> Vec<Vec<(String, String)>> {
    let rows: Vec<Vec<(String, String)>> = specs
        .iter()
        .map(|spec| flat(spec, |key| !is_field(key, Use::Hidden)))
        .collect();
    // For each key its values, and in how many jobs it is.
    let mut seen: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for (key, value) in rows.iter().flatten() {
        let (values, jobs) = seen.entry(key).or_default();
        values.insert(value);
        *jobs += 1;
    }
    let differs = |key: &str| {
        seen.get(key)
            .is_some_and(|(values, jobs)| values.len() > 1 || *jobs < rows.len())
    };
    rows.iter()
        .map(|row| {
            row.iter()
                .filter(|(key, _)| differs(key))
                .cloned()
                .collect()
        })
        .collect()
}

/// The scalars of a spec with dotted keys; lists of scalars joined. Null is empty text.
pub(crate) fn flat(spec: &Spec, shown: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (key, value) in spec.iter().filter(|(key, _)| shown(key) && !is_secret(key)) {
        flatten(key, value, 0, &mut found);
    }
    found
}

fn flatten(path: &str, value: &Value, level: usize, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) if level < LEVELS_MAX => {
            for (key, inner) in map
                .iter()
                .filter(|(key, _)| !is_secret(key) && key.as_str() != "script")
            {
                flatten(&format!("{path}.{key}"), inner, level + 1, found);
            }
        }
        // A program without parameters is not a parameter.
        Value::Null if level == 0 => {}
        other => found.extend(text(other).map(|text| (path.to_owned(), text))),
    }
}

/// A scalar as text, a list of scalars joined by blanks.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) => {
            let scalars: Option<Vec<String>> = items
                .iter()
                .map(|i| if i.is_array() { None } else { text(i) })
                .collect();
            scalars.map(|s| s.join(" "))
        }
        Value::Object(_) => None,
    }
}

/// Keys whose values are nobody else's business.
fn is_secret(key: &str) -> bool {
    const WORDS: [&str; 6] = [
        "secret",
        "token",
        "password",
        "passwd",
        "private_key",
        "credential",
    ];
    let has = |word: &str| {
        let mut parts = key.as_bytes().windows(word.len());
        parts.any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    WORDS.into_iter().any(has)
}

/// Variables that a job may not set: they change which programs run, not what they do.
fn is_reserved(name: &str) -> bool {
    const EXACT: [&str; 24] = [
        "PATH",
        "HOME",
        "IFS",
        "SHELL",
        "ENV",
        "PWD",
        "OLDPWD",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "CDPATH",
        "PS4",
        "UID",
        "EUID",
        "PPID",
        "SHELLOPTS",
        "BASHOPTS",
        "GLOBIGNORE",
        "PROMPT_COMMAND",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYOPT",
    ];
    const PREFIXES: [&str; 5] = ["LD_", "DYLD_", "BASH_", "FAIRLEAD_", "GCONV_"];
    const OURS: [&str; 4] = ["JOB_ID", "RESULT_ROOT", "JOB_TOKEN", "HOSTNAME"];
    // Some systems compare names without case; lower-case ones are parameters as any other.
    EXACT.contains(&name)
        || OURS.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A job's parameters as environment variables for its script, sorted by nothing but the job's own order.
///
/// Top-level scalars under their key; a program's parameters twice, as `mode` and as `hackbench_mode`; lists
/// of scalars joined by blanks; null as empty. The first to claim a name keeps it, top-level keys before
/// programs'. Names become `[A-Za-z_][A-Za-z0-9_]*`. Left out are the script, the idempotency key, secrets, values with NUL or
/// over [`VARIABLE_BYTES_MAX`], and names such as `PATH`, `LD_PRELOAD`, `HOME` and `IFS`.
pub fn environment(spec: &Spec) -> Vec<(String, String)> {
    let mut variables = Variables::default();
    let open = |key: &String| !is_secret(key) && !is_field(key, Use::Withheld);
    for (key, value) in spec
        .iter()
        .filter(|(key, value)| open(key) && !value.is_object())
    {
        variables.add(key, value);
    }
    for (key, value) in spec.iter().filter(|(key, _)| open(key)) {
        if let Value::Object(map) = value {
            variables.add_map(key, map, 0);
        }
    }
    variables.found
}

#[derive(Default)]
struct Variables {
    found: Vec<(String, String)>,
    names: BTreeSet<String>,
    bytes: usize,
}

impl Variables {
    fn add(&mut self, name: &str, value: &Value) {
        let Some(text) = text(value) else { return };
        let name = sanitized(name);
        let bytes = self.bytes + name.len() + text.len() + 2;
        if is_reserved(&name)
            || text.contains('\0')
            || text.len() > VARIABLE_BYTES_MAX
            || bytes > ENVIRONMENT_BYTES_MAX
            || !self.names.insert(name.clone())
        {
            return;
        }
        self.bytes = bytes;
        self.found.push((name, text));
    }

    /// The flattened names first: they can clash only with a top-level key.
    fn add_map(&mut self, path: &str, map: &Spec, level: usize) {
        for (key, value) in map
            .iter()
            .filter(|(key, _)| !is_secret(key) && key.as_str() != "script")
        {
            let longer = format!("{path}_{key}");
            match value {
                Value::Object(inner) if level < LEVELS_MAX => {
                    self.add_map(&longer, inner, level + 1);
                }
                _ => {
                    self.add(&longer, value);
                    self.add(key, value);
                }
            }
        }
    }
}

fn sanitized(name: &str) -> String {
    let mut clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if clean.is_empty() || clean.starts_with(|c: char| c.is_ascii_digit()) {
        clean.insert(0, '_');
    }
    clean.truncate(256);
    clean
}

#[cfg(test)]
mod tests;

//! `shards`: one job in parts, its *shards*, that run side by side and have one result.

use serde_json::{Map, Value, json};

use crate::{
    FieldError, JobId, Spec,
    fields::{
        limits::limit_s,
        read::{known_keys, present, refuse, whole, yes},
        table::{Use, fields, is_field},
    },
    units::shown,
};

/// Most shards of one job.
pub const SHARDS_MAX: u16 = 1_000;
/// Most values of one field in `by`, and most fields there.
const BY_MAX: usize = 64;
/// The field.
const FIELD: &str = "shards";
const EXAMPLE: &str = "shards: 20, or shards: {count: 20, within: 1h, fail_fast: true}";

/// How a job is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shards {
    /// Shards of each way to run the job, 1 to 1,000.
    pub count: u16,
    /// How long all of it may take from the submit on, seconds, at least 1; `None`: as long as it takes.
    pub within_s: Option<u64>,
    /// True if the first shard that fails for good stops the others.
    pub fail_fast: bool,
    /// A script that prints the tests, one on each line, which are then packed into the shards.
    pub list: Option<String>,
    /// Of all shards only those with these numbers, from 1, sorted; empty: all.
    only: Vec<u16>,
    /// Fields and their values: each combination is a way to run the job, with `count` shards.
    by: Vec<(String, Vec<Value>)>,
}

/// A shard's place: in its way, and among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardIndex {
    /// Among the shards of its way, from 0.
    pub index: u16,
    /// So many its way has.
    pub total: u16,
}

impl Shards {
    /// Reads `shards`; `None`: the job is whole.
    ///
    /// # Errors
    /// It is no number and no such map, or makes fewer than 2 or more than 1,000 shards.
    pub fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        let shards = match present(spec, FIELD) {
            None => return Ok(None),
            Some(Value::Object(map)) => Self::of_map(map)?,
            Some(number) => Self {
                count: count(FIELD, number)?,
                within_s: None,
                fail_fast: false,
                list: None,
                only: Vec::new(),
                by: Vec::new(),
            },
        };
        if present(spec, "cluster").is_some() {
            let problem = "a cluster has no shards".to_owned();
            return refuse(FIELD, problem, "omit either shards or cluster");
        }
        let total = shards.all();
        if (2..=u64::from(SHARDS_MAX)).contains(&total) {
            return Ok(Some(shards));
        }
        let problem = format!("{total} shards; 2 to {SHARDS_MAX} are possible");
        refuse(FIELD, problem, EXAMPLE)
    }

    fn of_map(map: &Map<String, Value>) -> Result<Self, FieldError> {
        const KEYS: [&str; 6] = ["count", "within", "fail_fast", "list", "only", "by"];
        known_keys(FIELD, map, &KEYS, EXAMPLE)?;
        let by = by(map)?;
        let list = list(map)?;
        if list.is_some() && !by.is_empty() {
            let problem = "list and by exclude each other".to_owned();
            return refuse(FIELD, problem, "submit one job with a list for each system");
        }
        let count = match present(map, "count") {
            Some(number) => count("shards.count", number)?,
            None if by.is_empty() => {
                return refuse(FIELD, "count is missing".to_owned(), EXAMPLE);
            }
            None => 1,
        };
        let shards = Self {
            count,
            only: only(map)?,
            within_s: limit_s(map, "within").map_err(|error| error.below(FIELD))?,
            fail_fast: yes(map, "fail_fast").map_err(|error| error.below(FIELD))?,
            list,
            by,
        };
        let Some(last) = shards.only.last() else {
            return Ok(shards);
        };
        if shards.list.is_some() {
            let problem = "list and only exclude each other".to_owned();
            return refuse("shards.only", problem, "list the tests that are to run");
        }
        let all = shards.all();
        if u64::from(*last) <= all {
            return Ok(shards);
        }
        let problem = format!("shard {last} of {all}");
        refuse("shards.only", problem, "name shards from 1 to their number")
    }

    /// How many shards there are without `only`.
    fn all(&self) -> u64 {
        self.ways().saturating_mul(u64::from(self.count))
    }

    /// The number of shard `n` (from 1) among all of them.
    pub fn number(&self, n: u16) -> u16 {
        let place = usize::from(n.saturating_sub(1));
        self.only.get(place).copied().unwrap_or(n)
    }

    /// How many ids a job takes that runs this: one for itself, one for each shard, and one for what lists its tests.
    pub fn ids(spec: &Spec) -> u16 {
        let shards = Self::of(spec).ok().flatten();
        shards.map_or(1, |shards| shards.id_count())
    }

    /// The same, of a job with these shards.
    pub fn id_count(&self) -> u16 {
        let lister = u16::from(self.list.is_some());
        self.total().saturating_add(1).saturating_add(lister)
    }

    /// Returns the spec of the job that lists the tests of `whole`.
    pub fn list_spec(&self, whole: &Spec, parent: JobId) -> Spec {
        let mut spec = common(whole);
        let script = self.list.clone().unwrap_or_default();
        spec.insert("script".to_owned(), json!(script));
        spec.insert("shard_of".to_owned(), json!(parent));
        spec.insert("shard".to_owned(), json!(0));
        spec
    }

    /// How many combinations `by` has.
    fn ways(&self) -> u64 {
        let values = self.by.iter().map(|(_, values)| values.len() as u64);
        values.fold(1, u64::saturating_mul)
    }

    /// How many shards there are in all, 1 to 1,000.
    pub fn total(&self) -> u16 {
        if !self.only.is_empty() {
            return u16::try_from(self.only.len()).unwrap_or(SHARDS_MAX);
        }
        u16::try_from(self.all()).unwrap_or(SHARDS_MAX)
    }

    /// Returns true if its shards differ in more than their numbers.
    pub fn is_varied(&self) -> bool {
        !self.by.is_empty()
    }

    /// The place of shard `n` (from 1).
    pub fn index(&self, n: u16) -> ShardIndex {
        ShardIndex {
            index: self.number(n).saturating_sub(1) % self.count.max(1),
            total: self.count,
        }
    }

    /// Returns the spec of shard `n` (from 1) of the job `whole`, with the numbers by which its program finds its
    /// part.
    pub fn spec(&self, whole: &Spec, parent: JobId, n: u16) -> Spec {
        let mut spec = common(whole);
        let mut way = usize::from(self.number(n).saturating_sub(1) / self.count.max(1));
        for (field, values) in self.by.iter().rev() {
            if let Some(value) = values.get(way % values.len().max(1)) {
                if field == "testbox" {
                    // The job's fields of the place hold for another testbox.
                    spec.shift_remove("tbox_group");
                    spec.shift_remove("tbox_type");
                }
                spec.insert(field.clone(), value.clone());
            }
            way /= values.len().max(1);
        }
        let ShardIndex { index, total } = self.index(n);
        spec.insert("shard_of".to_owned(), json!(parent));
        spec.insert("shard".to_owned(), json!(n));
        spec.insert("shard_index".to_owned(), json!(index));
        spec.insert("shard_total".to_owned(), json!(total));
        spec
    }
}

fn count(field: &str, value: &Value) -> Result<u16, FieldError> {
    let count = whole(field, value, 1, i64::from(SHARDS_MAX))?;
    Ok(u16::try_from(count).unwrap_or(SHARDS_MAX))
}

/// Returns the spec that all shards share, without the fields of the whole.
fn common(whole: &Spec) -> Spec {
    let mut spec = whole.clone();
    for field in fields(Use::OfWhole) {
        spec.shift_remove(field);
    }
    spec
}

/// `list: SCRIPT`.
fn list(map: &Map<String, Value>) -> Result<Option<String>, FieldError> {
    match present(map, "list") {
        None => Ok(None),
        Some(Value::String(script)) if !script.contains('\0') => Ok(Some(script.clone())),
        Some(other) => refuse(
            "shards.list",
            format!("{} where a script was expected", shown(other)),
            "write a script that prints one test on each line",
        ),
    }
}

/// `only: [3, 7]`.
fn only(map: &Map<String, Value>) -> Result<Vec<u16>, FieldError> {
    const FIELD: &str = "shards.only";
    let numbers = match present(map, "only") {
        None => return Ok(Vec::new()),
        Some(Value::Array(numbers)) => numbers.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let numbers = numbers.iter().map(|number| count(FIELD, number));
    let mut numbers: Vec<u16> = numbers.collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// `by: {os: [debian, fedora]}`.
fn by(map: &Map<String, Value>) -> Result<Vec<(String, Vec<Value>)>, FieldError> {
    const FIELD: &str = "shards.by";
    const EXAMPLE: &str = "write by: {os: [debian, fedora]}";
    let fields = match present(map, "by") {
        None => return Ok(Vec::new()),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            let problem = format!("{} where a map was expected", shown(other));
            return refuse(FIELD, problem, EXAMPLE);
        }
    };
    let mut by = Vec::new();
    for (field, values) in fields {
        let name = format!("{FIELD}.{field}");
        if is_field(field, Use::Common) {
            let problem = "all shards have this field in common".to_owned();
            return refuse(&name, problem, "name a field that says where a shard runs");
        }
        let values = match values {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        if values.is_empty() || values.len() > BY_MAX {
            let problem = format!("{} values; 1 to {BY_MAX} are possible", values.len());
            return refuse(&name, problem, EXAMPLE);
        }
        by.push((field.clone(), values));
    }
    if by.len() > BY_MAX {
        let problem = format!("{} fields; at most {BY_MAX} are possible", by.len());
        return refuse(FIELD, problem, EXAMPLE);
    }
    Ok(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: &Value) -> Spec {
        value.as_object().cloned().unwrap_or_default()
    }

    fn read(shards: &Value) -> Result<Option<Shards>, String> {
        let job = spec(&json!({"suite": "x", "shards": shards}));
        Shards::of(&job).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_or_a_map_says_how_many() {
        let plain = read(&json!(20)).unwrap().unwrap();
        assert_eq!((plain.total(), plain.within_s), (20, None));
        let all = json!({"count": 3, "within": "1h", "fail_fast": true, "by": {"os": ["a", "b"]}});
        let all = read(&all).unwrap().unwrap();
        assert_eq!((all.total(), all.within_s), (6, Some(3_600)));
        assert!(all.fail_fast && all.is_varied());
        let by = json!({"by": {"os": ["a", "b"], "arch": ["x", "y", "z"]}});
        assert_eq!(read(&by).unwrap().unwrap().total(), 6);
        assert_eq!(read(&json!(null)), Ok(None));
    }

    #[test]
    fn each_combination_has_all_shards() {
        let job = spec(&json!({
            "suite": "x", "name": "t", "os": "none", "testbox": "vm-1p1g", "tbox_type": "vm",
            "shards": {"count": 2, "by": {"os": ["a", "b"], "testbox": ["dc-1g", "hw"]}},
        }));
        let shards = Shards::of(&job).unwrap().unwrap();
        let parent = JobId::new(7);
        let ran: Vec<String> = (1..=shards.total())
            .map(|n| {
                let shard = shards.spec(&job, parent, n);
                let said = |field: &str| shard.get(field).cloned().unwrap_or_default();
                assert_eq!(
                    (said("shards"), said("name"), said("tbox_type")),
                    (Value::Null, Value::Null, Value::Null)
                );
                assert_eq!((said("shard"), said("shard_of")), (json!(n), json!(parent)));
                let [os, testbox, index] = ["os", "testbox", "shard_index"].map(said);
                format!("{os} {testbox} {index}").replace('"', "")
            })
            .collect();
        let expected = [
            "a dc-1g 0",
            "a dc-1g 1",
            "a hw 0",
            "a hw 1",
            "b dc-1g 0",
            "b dc-1g 1",
            "b hw 0",
            "b hw 1",
        ];
        assert_eq!(ran, expected);
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (shards, word) in [
            (json!(1), "1 shards"),
            (json!(0), "shards: "),
            (json!(1_001), "shards: "),
            (json!("many"), "shards: "),
            (json!([2]), "shards: "),
            (json!({}), "count is missing"),
            (json!({"count": 2, "wihtin": 1}), "wihtin"),
            (json!({"count": 2, "within": "soon"}), "shards.within"),
            (json!({"count": 2, "fail_fast": 7}), "shards.fail_fast"),
            (json!({"count": 2, "list": 7}), "shards.list: "),
            (
                json!({"count": 2, "list": "ls", "by": {"os": ["a"]}}),
                "exclude",
            ),
            (json!({"count": 2, "by": "os"}), "shards.by: "),
            (json!({"count": 2, "by": {"os": []}}), "shards.by.os"),
            (json!({"count": 2, "by": {"queue": ["a"]}}), "in common"),
            (
                json!({"count": 600, "by": {"os": ["a", "b"]}}),
                "1200 shards",
            ),
        ] {
            let why = read(&shards).unwrap_err();
            assert!(why.contains(word), "{shards}: {why}");
        }
        let cluster = spec(&json!({"suite": "x", "shards": 2, "cluster": "cs-s1-c1"}));
        assert!(Shards::of(&cluster).is_err());
    }
}

//! Fuzz tests: any bytes get an answer quickly, on a small stack, without a panic.
//!
//! `FAIRLEAD_FUZZ_CASES` sets the number of cases (100 000 by default). Cases are arbitrary bytes, real job files with
//! mistakes, and random pieces of YAML and templates. A failing case is printed as a whole, shrunk.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    thread,
};

use fairlead_job::{
    ExpandOptions, JobFields, Setting, SiteDefaults, Source, Spec, environment, expand_text,
    parameters, varying,
};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use serde_json::Value;

use crate::common;

/// Bytes of the stack that a case runs on: what test threads and tokio's workers have.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// Cases unless the environment says otherwise.
const CASES: u32 = 100_000;

/// Pieces that job files are made of, and some that break them.
const PIECES: [&str; 59] = [
    "suite: s\n",
    "a: ",
    "b:\n",
    "- ",
    "\n",
    "\n  ",
    "\n    ",
    "  ",
    " ",
    "\t",
    "---\n",
    "...\n",
    "<<: f.yaml\n",
    "<< : {file: f.yaml, a: 1}\n",
    "<<: me.yaml\n",
    "<<: *x\n",
    "<<: [a, b]\n",
    "{{",
    "}}",
    "{{ a }}",
    "{{ a.b ? 1 : nil }}",
    "{{ a =~ /1|b/ }}",
    "{{ case a when 1 then 2 end }}",
    "{{ if a == 1",
    " else ",
    " elsif b",
    " end }}",
    " || ",
    "'",
    "\"",
    "\\",
    "|\n",
    ">-\n",
    "# c",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ": ",
    ":",
    "? ",
    "&x ",
    "*x",
    "!!str ",
    "!t ",
    "<%= 1 %>",
    "a|b: [1|2, 3|4]\n",
    "a.b: 1\n",
    "if role x:\n",
    "script: |\n",
    "tags: [a, b]\n",
    "cluster: c\n",
    "\u{0}",
    "\u{feff}",
    "\u{2028}",
    "é",
    "0644",
    "need_memory: 8g\n",
];

/// A few files in memory: one to include, one that includes itself.
struct Few;

impl Source for Few {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("f.yaml") => Ok(b"a: [1, 2]\nf: {g: 1}\n---\na: 3\n".to_vec()),
            Some("me.yaml") => Ok(b"<<: me.yaml\nz: 1\n".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        self.read(path).is_ok()
    }
}

/// Job files to make mistakes in.
fn seeds() -> Vec<Vec<u8>> {
    let mut folders = vec![common::own_golden()];
    if let Some(corpus) = common::corpus() {
        folders.extend(["golden", "jobs", "hosts", "include"].map(|f| corpus.join(f)));
    }
    let files = folders.iter().flat_map(|folder| common::files(folder));
    let is_job = |path: &PathBuf| path.extension().is_none_or(|e| e != "json");
    // The largest would only make each case slower.
    let seeds: Vec<Vec<u8>> = files
        .filter(is_job)
        .map(|f| fs::read(f).expect("seed"))
        .filter(|s| s.len() < 4096)
        .collect();
    assert!(seeds.len() >= 12);
    seeds
}

#[derive(Debug, Clone)]
enum Mistake {
    Byte(usize, u8),
    Piece(usize, usize),
    Cut(usize, usize),
    Copy(usize, usize, usize),
}

fn mistake() -> impl Strategy<Value = Mistake> {
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Mistake::Byte(at, byte)),
        (any::<usize>(), 0..PIECES.len()).prop_map(|(at, piece)| Mistake::Piece(at, piece)),
        (any::<usize>(), 1..40usize).prop_map(|(at, length)| Mistake::Cut(at, length)),
        (any::<usize>(), any::<usize>(), 1..40usize)
            .prop_map(|(from, to, n)| Mistake::Copy(from, to, n)),
    ]
}

fn with_mistakes(mut text: Vec<u8>, mistakes: &[Mistake]) -> Vec<u8> {
    for mistake in mistakes {
        let size = text.len() + 1;
        match *mistake {
            Mistake::Byte(at, byte) => text.insert(at % size, byte),
            Mistake::Piece(at, piece) => {
                let at = at % size;
                text.splice(at..at, PIECES[piece].bytes());
            }
            Mistake::Cut(at, length) => {
                let at = at % size;
                text.drain(at..(at + length).min(size - 1));
            }
            Mistake::Copy(from, to, length) => {
                let from = from % size;
                let part = text[from..(from + length).min(size - 1)].to_vec();
                let to = to % size;
                text.splice(to..to, part);
            }
        }
    }
    text
}

fn bytes(seeds: &[Vec<u8>]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let pieces = || {
        vec(0..PIECES.len(), 0..40)
            .prop_map(|all| all.iter().map(|&n| PIECES[n]).collect::<String>())
    };
    let seed = prop::sample::select(seeds.to_vec());
    prop_oneof![
        1 => vec(any::<u8>(), 0..300),
        3 => pieces().prop_map(String::into_bytes),
        4 => (seed, vec(mistake(), 1..6)).prop_map(|(seed, mistakes)| with_mistakes(seed, &mistakes)),
        1 => (0..PIECES.len(), 1..400usize, pieces()).prop_map(|(n, times, end)| (PIECES[n].repeat(times) + &end).into_bytes()),
    ]
}

/// What must hold of any bytes.
fn check(text: &[u8], options: &ExpandOptions) {
    match expand_text("job.yaml", text, options, &Few) {
        Err(error) => {
            assert!(!error.code.is_empty() && !error.message.is_empty());
            assert!(!error.to_string().contains(['\0', '\u{1b}']), "{error:?}");
            let lines = text.split(|&b| b == b'\n' || b == b'\r').count() + text.len();
            assert!(
                usize::try_from(error.line).expect("line") <= lines,
                "{error}"
            );
        }
        Ok(jobs) => {
            assert!(!jobs.is_empty() && jobs.len() <= options.jobs_max);
            let distinct: BTreeSet<String> = common::as_set(&jobs, &[]);
            assert_eq!(distinct.len(), jobs.len(), "no job twice");
            for job in &jobs {
                assert!(!has_expandable_list(job), "{job:?}");
                let defaults = SiteDefaults::default();
                if let Ok(plan) = JobFields::parse(job, &defaults) {
                    assert!(
                        !plan.host_keys.is_empty() && plan.timeout_s > 0 && !plan.suite.is_empty()
                    );
                }
                for (name, value) in environment(job) {
                    assert!(!name.is_empty() && !name.contains('=') && !value.contains('\0'));
                }
                parameters(job);
            }
            assert_eq!(varying(&jobs.iter().collect::<Vec<_>>()).len(), jobs.len());
        }
    }
}

/// The keys whose lists stay lists.
const KEPT: [&str; 11] = [
    "target_machines",
    "cache_dirs",
    "tags",
    "milestones",
    "needs",
    "ssh_pub_key",
    "upload_dirs",
    "initrds_uri",
    "modules_uri",
    "kernel_rpms_url",
    "boot_params",
];

/// Whether a list is left anywhere but where lists stay lists.
fn has_expandable_list(job: &Spec) -> bool {
    job.iter().any(|(key, value)| match value {
        Value::Object(inner) if key.starts_with("if ") => has_expandable_list(inner),
        Value::Object(inner) if key == "sched" => inner
            .iter()
            .any(|(key, value)| key != "devices" && has_list(value)),
        Value::Array(_) => !KEPT.contains(&key.as_str()),
        other => has_list(other),
    })
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(map) => map.values().any(has_list),
        _ => false,
    }
}

fn options() -> ExpandOptions {
    ExpandOptions {
        defaults: vec![Setting::parse("a.d=1").expect("setting")],
        overrides: vec![Setting::parse("z.y=[1, 2]").expect("setting")],
        jobs_max: 64,
        bytes_max: 1024 * 1024,
        ..ExpandOptions::default()
    }
}

/// Runs `work` on a thread with a small stack; a stack overflow there would end the whole test run.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(work)
        .expect("thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn any_bytes_give_jobs_or_an_error() {
    let cases = common::fuzz_cases().unwrap_or(CASES);
    on_a_small_stack(move || {
        let plain = ExpandOptions {
            jobs_max: 64,
            bytes_max: 1024 * 1024,
            ..ExpandOptions::default()
        };
        let set = options();
        let config = Config {
            cases,
            failure_persistence: None,
            ..Config::default()
        };
        let strategy = (bytes(&seeds()), any::<bool>());
        let result = TestRunner::new(config).run(&strategy, |(text, with_settings)| {
            check(&text, if with_settings { &set } else { &plain });
            Ok(())
        });
        if let Err(failure) = result {
            panic!("{failure}");
        }
    });
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn deep_and_wide_files_are_refused_on_a_small_stack() {
    on_a_small_stack(|| {
        let deep = 99_999;
        let mut cases: Vec<String> = [
            "[", "{a: ", "- ", "? ", "a:\n ", "&a [", "{{ ", "{{ if ", "!!seq [", "[{", "'", "\"",
            "<<: {",
        ]
        .iter()
        .map(|piece| format!("x: {}", piece.repeat(deep)))
        .collect();
        cases.push(lines(2000, |n| format!("{}a:", " ".repeat(n))));
        cases.push(format!("x: {{{{ {} 1 }}}}", "a ? ".repeat(1500)));
        cases.push(format!(
            "x: {{{{ {} }}}}",
            "case a when 1 then ".repeat(400)
        ));
        cases.push(format!("{}: 1", vec!["a"; 1000].join(".")));
        cases.push(lines(40, |n| {
            format!("a{n}: &x{n} [*x{}, *x{}]", n.max(1) - 1, n.max(1) - 1)
        }));
        let bomb = lines(30, |n| {
            format!("a{n}: &x{n} {{l: *x{m}, r: *x{m}}}", m = n.max(1) - 1)
        });
        cases.push(bomb.replacen("{l: *x0, r: *x0}", "[1, 2]", 1));
        cases.push(format!(
            "t: &t {}\nall: [{}]",
            "x".repeat(100_000),
            vec!["*t"; 50_000].join(", ")
        ));
        cases.push(lines(60, |n| format!("k{n}: [1, 2]")));
        for case in cases {
            check(case.as_bytes(), &ExpandOptions::default());
            let error = expand_text(
                "deep.yaml",
                case.as_bytes(),
                &ExpandOptions::default(),
                &Few,
            );
            assert!(error.is_err(), "{}", &case[..40.min(case.len())]);
        }
    });
}

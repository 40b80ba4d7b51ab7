//! Tests of refused files: code, place and message.

use std::{fs, path::Path};

use fairlead_job::{
    ExpandOptions, FsSource, JobFileError, NoFiles, Setting, Spec, expand_file, expand_text,
};
use serde_json::json;

fn expand(text: &str) -> Result<Vec<Spec>, JobFileError> {
    expand_text(
        "job.yaml",
        text.as_bytes(),
        &ExpandOptions::default(),
        &NoFiles,
    )
}

#[test]
fn each_mistake_has_its_code_and_place() {
    let deep = format!("a: {}{}", "[".repeat(33), "]".repeat(33));
    let cases: &[(&str, &str, u32, u32)] = &[
        ("", "empty", 0, 0),
        ("# nothing\n---\n", "empty", 0, 0),
        ("- a\n- b\n", "not_a_map", 1, 1),
        ("just text\n", "not_a_map", 1, 1),
        ("suite: a\nb: 1\nsuite: c\n", "duplicate_key", 3, 1),
        ("p: {a: 1, a: 2}\n", "duplicate_key", 1, 11),
        ("a: 1\na|b: [1|2]\n", "duplicate_key", 2, 1),
        ("a|b: [1|2]\nb: 3\n", "duplicate_key", 2, 1),
        ("a:\n\t- 1\n", "syntax", 2, 2),
        ("a: [1, 2\n", "syntax", 1, 4),
        ("a: @b\n", "syntax", 1, 4),
        ("a: *nowhere\n", "syntax", 1, 4),
        ("a: <%= x %>\n", "erb", 1, 4),
        ("<%= x %>: 1\n", "erb", 1, 1),
        ("a: 'x <% y'\n", "erb", 1, 4),
        ("a:\n  - [b, <%= c %>]\n", "erb", 2, 9),
        ("script: |\n  echo <%= x %>\n", "erb", 2, 3),
        ("a: 1\n<% if x %>\nb: 1\n<% end %>\n", "erb", 2, 1),
        ("a: \"b\\0c\"\n", "nul", 1, 4),
        ("a: !ruby/object:X {}\n", "tag", 1, 19),
        ("a: !!int x\n", "tag", 1, 10),
        ("? [a]\n: b\n", "key", 1, 3),
        ("{a: 1}: b\n", "key", 1, 1),
        (": b\n", "key", 1, 1),
        ("a: []\n", "empty_list", 1, 4),
        ("a: {b: [1, []]}\n", "empty_list", 1, 12),
        ("a|b: []\n", "empty_list", 1, 6),
        ("a|b: [1|2, 3]\n", "zip", 1, 12),
        ("a|b: [1|2|3]\n", "zip", 1, 7),
        ("a|b:\n", "zip", 1, 4),
        ("a|b: [{c: 1}]\n", "zip", 1, 7),
        (&deep, "too_deep", 1, 35),
        ("a: &x [*x]\n", "alias_cycle", 1, 8),
        ("a: {{ b\n", "template_open", 1, 4),
        ("a: {{ b + 1 }}\n", "template_syntax", 1, 9),
        ("a: {{ b && c }}\n", "template_syntax", 1, 9),
        ("a: {{ b != c }}\n", "template_syntax", 1, 9),
        ("a: {{ `ls` }}\n", "template_syntax", 1, 7),
        ("a: {{ b c }}\n", "template_syntax", 1, 9),
        ("a: {{ }}\n", "template_syntax", 1, 7),
        ("a: {{ system('ls') }}\n", "template_syntax", 1, 13),
        (
            "a: {{\n  if b\n    1\n  else\n    2\n}}\n",
            "template_syntax",
            6,
            1,
        ),
        ("a: {{ b ? 1 }}\n", "template_syntax", 1, 13),
        ("a: {{ case b end }}\n", "template_syntax", 1, 14),
        ("a: {{ \"#{b}\" }}\n", "template_syntax", 1, 7),
        ("a: '{{ b + 1 }}'\n", "template_syntax", 1, 10),
        ("a: x {{ 1 - 1 }}\n", "template_syntax", 1, 11),
        ("a: {{ b =~ 'x' }}\n", "template_syntax", 1, 12),
        ("a: {{ b =~ /x }}\n", "template_syntax", 1, 12),
        ("a: {{ b =~ /x/i }}\n", "template_syntax", 1, 15),
        ("a: {{ b == /x/ }}\n", "template_syntax", 1, 12),
        ("a: {{ b !~ /x/ }}\n", "template_syntax", 1, 9),
        ("a: {{ b =~ /(x/ }}\n", "template_pattern", 1, 12),
        ("a: {{ b =~ /x{1000}{9}/ }}\n", "template_pattern", 1, 12),
        ("s: {t: 1}\na: {{ s =~ /t/ }}\n", "template_value", 2, 7),
        ("s: t\na: {{ s.upcase }}\n", "template_value", 2, 7),
        ("s: {t: 1}\na: {{ s }}\n", "template_value", 2, 6),
        ("a: {{ b }}\nb: {{ 1 }}\n", "template_value", 1, 7),
        ("a: {{ a }}\n", "template_value", 1, 7),
        ("a: {{ nosuch }}\n", "no_jobs", 1, 4),
        ("{{ a }}: 1\n", "template_key", 1, 1),
        ("'{{ a }}': 1\n", "template_key", 1, 1),
        ("<<: other.yaml\n", "include_refused", 1, 1),
        ("<<:\n", "include_place", 1, 3),
        ("<<: {file: [a]}\n", "include_place", 1, 12),
        ("a:\n  <<: other.yaml\n", "include_place", 2, 3),
        ("s: text\n---\ns.t: 1\n", "not_a_map", 3, 1),
        (
            "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q: 1\n",
            "path_too_long",
            1,
            1,
        ),
    ];
    let mut wrong = Vec::new();
    for (text, code, line, column) in cases {
        match expand(text) {
            Ok(jobs) => wrong.push(format!("{text:?} gave {jobs:?}")),
            Err(e) if (e.code, e.line, e.column) == (*code, *line, *column) => {}
            Err(e) => wrong.push(format!(
                "{text:?}, expected {code} at {line}:{column}: {} {e}",
                e.code
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_error_shows_place_value_line_and_hint() {
    let error = expand("suite: a\nrun:\n  size: 1\n  size: 2\n").expect_err("twice");
    let expected = "job.yaml:4:3: key 'size' is set twice, on line 3 and on line 4\n\
                    4 |   size: 2\n  \
                    |   ^\n\
                    hint: remove one of them, or start another document with '---'";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn bytes_that_are_not_text_are_refused_with_their_place() {
    let error = expand_text("j", b"a: 1\nb: \xff\n", &ExpandOptions::default(), &NoFiles)
        .expect_err("bytes");
    assert_eq!((error.code, error.line, error.column), ("not_utf8", 2, 4));
    assert!(error.message.contains("0xff"), "{error}");
}

#[test]
fn nothing_hostile_reaches_the_terminal() {
    let error = expand("\"a\\e[31m\": 1\n\"a\\e[31m\": 2\n").expect_err("twice");
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
}

#[test]
fn too_many_jobs_are_refused_with_their_number() {
    let wide: Vec<String> = (0..20)
        .map(|n| format!("k{n}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"))
        .collect();
    let error = expand(&wide.join("\n")).expect_err("too many");
    assert_eq!(error.code, "too_many_jobs");
    assert!(error.message.contains("18446744073709551614"), "{error}");
    let options = ExpandOptions {
        jobs_max: 5,
        ..ExpandOptions::default()
    };
    let error =
        expand_text("j", b"a: [1, 2, 3]\nb: [1, 2]\n", &options, &NoFiles).expect_err("six");
    assert!(error.message.contains("6 jobs; at most 5"), "{error}");
    let options = ExpandOptions {
        repeat: 3,
        jobs_max: 5,
        ..ExpandOptions::default()
    };
    let error = expand_text("j", b"a: [1, 2]\n", &options, &NoFiles).expect_err("six");
    assert_eq!(error.code, "too_many_jobs");
    let script = format!(
        "script: {}\nn: [{}]\n",
        "x".repeat(1_000_000),
        "1, ".repeat(1000)
    );
    assert_eq!(expand(&script).expect_err("a gigabyte").code, "too_large");
}

#[test]
fn files_that_include_each_other_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("write");
    write("a.yaml", "suite: a\n---\n<<: b.yaml\n");
    write("b.yaml", "<<: ./c.yaml\n");
    write(
        "c.yaml",
        "x: 1\n<<: {file: ../NAME/a.yaml}\n"
            .replace("NAME", &name_of(folder.path()))
            .as_str(),
    );
    let error = run(&folder.path().join("a.yaml")).expect_err("cycle");
    assert_eq!((error.code, error.line), ("include_cycle", 2));
    assert!(error.file.ends_with("c.yaml"), "{error}");
    assert!(
        error.message.contains("a.yaml > b.yaml > c.yaml > a.yaml"),
        "{error}"
    );
    for n in 0..20 {
        write(&format!("d{n}.yaml"), &format!("<<: d{}.yaml\n", n + 1));
    }
    assert_eq!(
        run(&folder.path().join("d0.yaml")).expect_err("depth").code,
        "include_depth"
    );
    // Sixteen documents of sixteen documents of sixteen: refused before they are made.
    write("m.yaml", "---\na: 1\n".repeat(60).as_str());
    write("n.yaml", "<<: m.yaml\n<<: m.yaml\n<<: m.yaml\n");
    assert_eq!(
        run(&folder.path().join("n.yaml"))
            .expect_err("documents")
            .code,
        "too_large"
    );
    let error = run(&folder.path().join("nosuch.yaml")).expect_err("no file");
    assert_eq!((error.code, error.line), ("read", 0));
    assert_eq!(run(folder.path()).expect_err("a folder").code, "read");
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .expect("name")
        .to_string_lossy()
        .into_owned()
}

fn run(path: &Path) -> Result<Vec<Spec>, JobFileError> {
    expand_file(path, &ExpandOptions::default(), &FsSource)
}

#[test]
fn included_files_are_found_beside_in_i_folders_and_below_jobs() {
    let root = tempfile::tempdir().expect("folder");
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, text).expect("write");
    };
    write("jobs/deep/er/far.yaml", "from: far\n");
    write("jobs/top.yaml", "from: top\n");
    write("programs/p/jobs/job.yaml", "<<: top.yaml\n");
    write("programs/p/jobs/rooted.yaml", "<<: jobs/top.yaml\n");
    write("jobs/x/job.yaml", "<<: far.yaml\n");
    write("jobs/x/both.yaml", "<<: near.yaml\n");
    write("jobs/x/near.yaml", "from: near\n");
    write("other/near.yaml", "from: other\n");
    write("other/only.yaml", "from: only\n");
    write("jobs/x/only-i.yaml", "<<: only.yaml\n");
    let options = ExpandOptions {
        include_dirs: vec![root.path().join("other")],
        ..ExpandOptions::default()
    };
    for (file, from) in [
        ("programs/p/jobs/job.yaml", "top"),
        ("programs/p/jobs/rooted.yaml", "top"),
        ("jobs/x/job.yaml", "far"),
        ("jobs/x/both.yaml", "near"),
        ("jobs/x/only-i.yaml", "only"),
    ] {
        let jobs = expand_file(&root.path().join(file), &options, &FsSource)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(jobs[0]["from"], json!(from), "{file}");
    }
}

#[test]
fn settings_go_under_and_over_the_file() {
    let parse = |texts: &[&str]| {
        texts
            .iter()
            .map(|t| Setting::parse(t).expect("setting"))
            .collect::<Vec<_>>()
    };
    let file = b"a: 1\np: {m: x, memory.high: 5}\nq:\ng|h: [1|2, 3|4]\n---\nr: 1\n";
    let options = ExpandOptions {
        defaults: parse(&["a=9", "d=1", "d=2", "p.m=9", "p.n=9", "q.s=7", "g=9"]),
        overrides: parse(&[
            "p.memory.high=6",
            "h=[5, 6]",
            "t='8'",
            "u=",
            "w={{ a == 1 ? 'one' : 'two' }}",
        ]),
        ..ExpandOptions::default()
    };
    let jobs = expand_text("j", file, &options, &NoFiles).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(jobs.len(), 8);
    let expected = json!({
        "a": 1, "d": 2, "p": {"m": "x", "memory.high": 6, "n": 9}, "q": {"s": 7}, "g": 1, "h": 5, "t": "8",
        "u": null, "w": "one"
    });
    assert_eq!(json!(jobs[0]), expected);
    for text in [
        "",
        "a",
        "=1",
        "a..b=1",
        ".a=1",
        "a=[1",
        "a={{ b",
        "a={{ b + 1 }}",
        "a='x",
        "<<=f",
        "a=[1]\nb: 2",
        "a=<%= x %>",
    ] {
        let error = Setting::parse(text).expect_err(text);
        assert!(!error.message.is_empty(), "{text}");
    }
}

#[test]
fn a_file_of_settings_goes_under_or_over() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("s.yaml");
    fs::write(&path, "a: 2\nb: 3\nc.d: 4\n").expect("write");
    let under = ExpandOptions {
        defaults: vec![Setting::file(&path)],
        ..ExpandOptions::default()
    };
    let over = ExpandOptions {
        overrides: vec![Setting::file(&path)],
        ..ExpandOptions::default()
    };
    let text = b"a: 1\nc: {d: 0, e: 0}\n";
    let jobs = expand_text("j", text, &under, &FsSource).expect("under");
    assert_eq!(
        json!(jobs),
        json!([{"a": 1, "b": 3, "c": {"d": 0, "e": 0}}])
    );
    let jobs = expand_text("j", text, &over, &FsSource).expect("over");
    assert_eq!(
        json!(jobs),
        json!([{"a": 2, "b": 3, "c": {"d": 4, "e": 0}}])
    );
    fs::write(&path, "a: 2\n---\na: 3\n").expect("write");
    assert_eq!(
        expand_text("j", text, &over, &FsSource)
            .expect_err("two")
            .code,
        "setting"
    );
}

#[test]
fn a_key_that_the_file_takes_away_gets_no_default() {
    let options = ExpandOptions {
        defaults: vec![Setting::parse("kmsg=1").expect("setting")],
        ..ExpandOptions::default()
    };
    let jobs = expand_text("j", b"a: 1\nkmsg-:\n", &options, &NoFiles).expect("jobs");
    assert_eq!(json!(jobs), json!([{"a": 1}]));
    let options = ExpandOptions {
        overrides: options.defaults,
        ..ExpandOptions::default()
    };
    let jobs = expand_text("j", b"a: 1\nkmsg-:\n", &options, &NoFiles).expect("jobs");
    assert_eq!(json!(jobs), json!([{"a": 1, "kmsg": 1}]));
}

#[test]
fn work_is_bounded_and_not_only_size() {
    let keys = |count: usize| {
        (0..count)
            .map(|n| format!("k{n}: 1"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(expand(&keys(1001)).expect_err("keys").code, "too_large");
    let documents: Vec<String> = (0..400).map(|n| format!("{}\nd: {n}", keys(900))).collect();
    assert_eq!(
        expand(&documents.join("\n---\n")).expect_err("nodes").code,
        "too_large"
    );
    let small: Vec<String> = (0..400).map(|n| format!("d: {n}")).collect();
    let copies = format!("{}\n---\n{}", keys(900), small.join("\n---\n"));
    assert_eq!(expand(&copies).expect_err("copies").code, "too_large");
    let long = format!("s: {}\nt: {{{{ s == 'x' }}}}\n", "x".repeat(5000));
    assert_eq!(expand(&long).expect_err("operand").code, "template_value");
    let grows = format!("s: {}\nt: {}\n", "x".repeat(4000), "{{ s }} ".repeat(20));
    assert_eq!(expand(&grows).expect_err("result").code, "template_value");
    let merges = format!(
        "a: &a {{{}}}\nb:\n  <<: [{}]\n",
        keys(900).replace('\n', ", "),
        "*a, ".repeat(500)
    );
    assert_eq!(expand(&merges).expect_err("merges").code, "too_large");
}

#[test]
fn repeats_come_after_equal_jobs_are_one() {
    let options = ExpandOptions {
        repeat: 3,
        ..ExpandOptions::default()
    };
    let jobs = expand_text("j", b"a: [1, 1, 2]\n", &options, &NoFiles).expect("jobs");
    assert_eq!(
        json!(jobs),
        json!([{"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}])
    );
    let options = ExpandOptions {
        repeat: 0,
        ..ExpandOptions::default()
    };
    assert_eq!(
        expand_text("j", b"a: 1\n", &options, &NoFiles)
            .expect_err("none")
            .code,
        "repeat"
    );
}

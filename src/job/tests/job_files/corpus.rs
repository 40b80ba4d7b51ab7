//! Tests real job and host files: each is read, or refused for a reason named here.

use std::fs;

use crate::common;
use fairlead_job::{
    ExpandOptions, FsSource, SiteDefaults, SubmitLimits, dry_run, expand_file, read_file,
};

/// Why a real file may be refused: it computes with ERB, or names a file that is nowhere.
const LEGITIMATE: [&str; 2] = ["erb", "include_not_found"];

#[test]
fn every_real_file_is_read_or_refused_with_its_line() {
    let Some(corpus) = common::corpus() else {
        // Without real files the project's own stand for them.
        for file in common::files(&common::own_golden()) {
            if file.extension().is_some_and(|e| e == "yaml") {
                let options = ExpandOptions {
                    include_dirs: vec![common::own_golden().join("include")],
                    ..ExpandOptions::default()
                };
                expand_file(&file, &options, &FsSource).unwrap_or_else(|e| panic!("{e}"));
            }
        }
        return;
    };
    let options = ExpandOptions {
        include_dirs: vec![corpus.join("include")],
        ..ExpandOptions::default()
    };
    let mut refused = Vec::new();
    let mut read = 0;
    for folder in ["jobs", "hosts", "golden"] {
        for file in common::files(&corpus.join(folder)) {
            if file.extension().is_some_and(|e| e == "json") {
                continue;
            }
            match expand_file(&file, &options, &FsSource) {
                Ok(jobs) => {
                    read += 1;
                    let jobs = jobs.into_iter().filter(|job| {
                        let is_job = folder != "hosts";
                        is_job && job.contains_key("suite")
                    });
                    for outcome in
                        dry_run(jobs, &SiteDefaults::default(), &SubmitLimits::default(), 0)
                    {
                        assert!(outcome.is_ok(), "{}: {outcome:?}", file.display());
                    }
                }
                Err(error) => {
                    let text = fs::read_to_string(&file).expect("text");
                    let line = usize::try_from(error.line).expect("line");
                    let source = text.lines().nth(line - 1).unwrap_or_default();
                    let named = if error.code == "erb" { "<%" } else { "<<" };
                    assert!(
                        LEGITIMATE.contains(&error.code) && source.contains(named),
                        "{error}"
                    );
                    refused.push(error.to_string());
                }
            }
        }
    }

    assert!(
        read > 270 && refused.len() < 10,
        "{read} read, {} refused",
        refused.len()
    );
}

/// Real files say what they mean: nothing in them is told as misspelt.
#[test]
fn no_key_of_a_real_file_is_told_as_misspelt() {
    let own = (common::own_golden(), vec![common::own_golden()]);
    let (include, folders) = match common::corpus() {
        Some(corpus) => {
            let folders = ["jobs", "hosts", "golden"].map(|folder| corpus.join(folder));
            (corpus.join("include"), folders.to_vec())
        }
        None => (own.0.join("include"), own.1),
    };
    let options = ExpandOptions {
        include_dirs: vec![include],
        ..ExpandOptions::default()
    };
    let mut told = Vec::new();
    for file in folders.iter().flat_map(|folder| common::files(folder)) {
        if file.extension().is_none_or(|e| e != "json")
            && let Ok(read) = read_file(&file, &options, &FsSource)
        {
            told.extend(read.misspelt.iter().map(ToString::to_string));
        }
    }
    assert!(told.is_empty(), "{told:#?}");
}

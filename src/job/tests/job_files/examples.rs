//! Tests the project's examples: each gives the jobs that its header promises, and each job has a plan.

use std::path::Path;

use fairlead_job::{
    ExpandOptions, FsSource, JobFields, SiteDefaults, TboxType, environment, expand_file,
};

use crate::common;

#[test]
fn every_example_gives_the_jobs_that_it_promises() {
    let promised = [
        ("compile-like.yaml", 3),
        ("fail.yaml", 3),
        ("hackbench.yaml", 6),
        ("include.yaml", 2),
        ("matrix.yaml", 7),
        ("memory.yaml", 3),
        ("multi-doc.yaml", 5),
        ("sleep.yaml", 1),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in common::files(&folder)
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "yaml"))
    {
        let jobs = expand_file(file, &ExpandOptions::default(), &FsSource)
            .unwrap_or_else(|e| panic!("{e}"));
        for job in &jobs {
            let plan = JobFields::parse(job, &SiteDefaults::default())
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            assert_eq!(plan.tbox_type, TboxType::Dc, "{}", file.display());
            assert!(job["script"].is_string() && !environment(job).is_empty());
        }
        let name = file.file_name().expect("name").to_string_lossy();
        if let Some((_, count)) = promised.iter().find(|(promised, _)| *promised == name) {
            assert_eq!(jobs.len(), *count, "{name}");
        }
    }
    assert!(
        promised
            .iter()
            .map(|(name, _)| name)
            .all(|name| folder.join(name).is_file())
    );
}

//! Fits jobs to this machine, and finds jobs that cannot run here before anything starts.

use fairlead_job::{CONTENT_TAG, JobFields, SiteDefaults, Spec, TboxType, Use, fields};
use serde_json::Value;

use super::machine::Machine;
use crate::{exit::Failure, submission::Entry};

/// Options for fitting jobs to this machine.
#[derive(Debug)]
pub(crate) struct Fit<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) site: &'a SiteDefaults,
    /// True if each job keeps its own requirements for a testbox.
    pub(crate) as_is: bool,
    /// True if jobs without a script have a runner.
    pub(crate) runner: bool,
}

impl Fit<'_> {
    /// Changes the jobs. Fails with the first that cannot run here.
    pub(crate) fn fit(&self, entries: &mut [Entry]) -> Result<(), Failure> {
        for Entry { file, spec, params } in entries {
            if !self.as_is {
                settle(spec, self.machine.arch);
            }
            let pairs: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
            self.check(spec).map_err(|mut failure| {
                failure.message = if pairs.is_empty() {
                    format!("{file}: {}", failure.message)
                } else {
                    format!(
                        "{file} ({}): {}",
                        crate::table::cut(&pairs.join(" "), 80),
                        failure.message
                    )
                };
                failure
            })?;
        }
        Ok(())
    }

    fn check(&self, spec: &Spec) -> Result<(), Failure> {
        let plan = JobFields::parse(spec, self.site)
            .map_err(|error| Failure::usage(error.to_string(), error.hint))?;
        let here = self.machine;
        if plan.tbox_type != TboxType::Hw && plan.memory_mb > here.memory_mb {
            return Err(Failure::usage(
                format!(
                    "the job needs {} MB of memory; this machine has {} MB free",
                    plan.memory_mb, here.memory_mb
                ),
                "reduce it, for example with need_memory=512M after the file",
            ));
        }
        if !self.runner && spec.get("script").is_none_or(Value::is_null) {
            return Err(Failure::usage(
                "the job has no script, and there is no runner",
                "add a script, or set a command with --runner",
            ));
        }
        let lacks = self.lacks(&plan);
        if lacks.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(
            format!("the job cannot run on this machine: {}", lacks.join(", ")),
            "omit --as-is to run it here anyway",
        ))
    }

    /// Returns the requirements of the job that this machine does not meet.
    fn lacks(&self, plan: &JobFields) -> Vec<String> {
        let here = self.machine;
        let mut lacks = Vec::new();
        if plan.tbox_type == TboxType::Hw {
            lacks.push(format!("testbox {} is a machine of its own", plan.testbox));
        }
        if !plan.arch.is_empty() && plan.arch != here.arch {
            lacks.push(format!(
                "it needs arch {}; this machine has {}",
                plan.arch, here.arch
            ));
        }
        if !plan.target_machines.is_empty() && !plan.target_machines.contains(&here.name) {
            lacks.push(format!("target_machines do not name {}", here.name));
        }
        // The agent of a run handles inputs and outputs.
        let tags = plan.tags.iter().filter(|tag| *tag != CONTENT_TAG);
        let tags: Vec<&str> = tags.map(String::as_str).collect();
        if !tags.is_empty() {
            lacks.push(format!("it needs the tags {}", tags.join(" ")));
        }
        if !plan.devices.is_empty() {
            lacks.push(format!("it needs the devices {}", plan.devices.join(" ")));
        }
        lacks
    }
}

/// Sets the job to any container of this machine.
fn settle(spec: &mut Spec, arch: &str) {
    for field in fields(Use::Place).chain(fields(Use::Demand)) {
        spec.shift_remove(field);
    }
    if let Some(Value::Object(sched)) = spec.get_mut("sched") {
        sched.shift_remove("devices");
    }
    spec.insert("testbox".to_owned(), Value::from(TboxType::Dc.as_str()));
    spec.insert("arch".to_owned(), Value::from(arch));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fit(spec: &Value, as_is: bool, runner: bool) -> Result<Spec, String> {
        let machine = Machine {
            name: "here".into(),
            arch: "x86_64",
            memory_mb: 4096,
            processors: 2,
        };
        let site = SiteDefaults {
            arch: "x86_64".into(),
            ..SiteDefaults::default()
        };
        let Value::Object(spec) = spec.clone() else {
            panic!()
        };
        let mut entries = [Entry {
            file: "f.yaml".into(),
            spec,
            params: Vec::new(),
        }];
        let fit = Fit {
            machine: &machine,
            site: &site,
            as_is,
            runner,
        };
        fit.fit(&mut entries)
            .map_err(|failure| failure.to_string())?;
        let [entry] = entries;
        Ok(entry.spec)
    }

    #[test]
    fn wishes_for_a_testbox_are_taken_away() {
        let job = json!({
            "suite": "s", "script": "x", "testbox": "lab--a66", "arch": "aarch64", "tags": ["ssd"],
            "target_machines": ["a66"], "sched": {"devices": ["nvme"], "x": 1}, "need_nodes": 2, "else": {"after": "1m"},
        });
        let fitted = fit(&job, false, false).unwrap();
        assert_eq!(
            Value::Object(fitted),
            json!({"suite": "s", "script": "x", "sched": {"x": 1}, "testbox": "dc", "arch": "x86_64"})
        );
    }

    #[test]
    fn what_can_never_run_is_told_before_the_start() {
        let check = |job: Value, as_is, says: &str| {
            let error = fit(&job, as_is, false).unwrap_err();
            assert!(
                error.starts_with("f.yaml: ") && error.contains(says),
                "{error}"
            );
        };
        check(
            json!({"script": "x", "need_memory": "8g"}),
            false,
            "8192 MB",
        );
        check(
            json!({"script": "x", "need_memory": "lots"}),
            false,
            "need_memory",
        );
        check(json!({"suite": "s"}), false, "no script");
        check(
            json!({"script": "x", "testbox": "a66"}),
            true,
            "a machine of its own",
        );
        check(
            json!({"script": "x", "testbox": "vm", "arch": "riscv64"}),
            true,
            "riscv64",
        );
        check(
            json!({"script": "x", "testbox": "vm", "tags": ["ssd"]}),
            true,
            "tags ssd",
        );
        assert!(fit(&json!({"suite": "s"}), false, true).is_ok());
        assert!(fit(&json!({"script": "x", "testbox": "vm-2p2g"}), true, false).is_ok());
    }
}

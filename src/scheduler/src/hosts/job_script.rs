//! `job.sh`, which a machine without an agent runs: the job's script, or the lines that lkp's submit made
//! (`job2sh`), or a script made of the job's program sections.
//!
//! The sections follow lkp's order: setup, daemons, monitors, programs. Its libraries below `$LKP_SRC/lib` define
//! `run_setup` and the like, and call this file as `job.sh read_job_vars` and `job.sh run_job`.

use fairlead_job::{Spec, environment, programs};
use serde_json::Value;

/// Sections of a job, and lkp's function that runs one entry of each.
const SECTIONS: [(&str, &str); 5] = [
    ("setup", "run_setup"),
    ("daemon", "start_daemon"),
    ("monitor", "run_monitor"),
    ("monitors", "run_monitor"),
    ("program", "run_program"),
];

/// Fields of an entry that are no variables of its program.
const NOT_VARIABLES: [&str; 5] = ["if", "if-role", "depends-on", "pre-script", "post-script"];

/// The text of `job.sh`. It is empty when the job has nothing to run.
pub(super) fn job_sh(spec: &Spec) -> String {
    if let Some(script) = spec.get("script").and_then(Value::as_str) {
        return script.to_owned();
    }
    let lines = spec.get("job2sh").map(lines_of).unwrap_or_default();
    if !lines.is_empty() {
        return format!("#!/bin/sh\n\n{}\n\"$@\"\n", lines.join("\n"));
    }
    let commands = commands(spec);
    if commands.is_empty() {
        return String::new();
    }
    let variables = environment(spec).into_iter();
    let variables = variables.map(|(name, value)| format!("\texport {name}={}\n", quoted(&value)));
    format!(
        "#!/bin/sh\n\nread_job_vars()\n{{\n{}}}\n\nrun_job()\n{{\n\techo $$ > \"$TMP/run-job.pid\"\n\n\
         \t[ -n \"$LKP_SRC\" ] || export LKP_SRC=\"/lkp/${{user:-lkp}}/src\"\n\
         \t. \"$LKP_SRC/lib/http.sh\"\n\t. \"$LKP_SRC/lib/job.sh\"\n\t. \"$LKP_SRC/lib/env.sh\"\n\n\
         \tread_job_vars\n\n{}}}\n\n\"$@\"\n",
        variables.collect::<String>(),
        commands.concat(),
    )
}

/// All texts of a value, in order.
fn lines_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(lines_of).collect(),
        Value::Object(parts) => parts.values().flat_map(lines_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The commands of all sections. Without a section `program`, the maps that stand by themselves are the programs.
fn commands(spec: &Spec) -> Vec<String> {
    let mut commands = Vec::new();
    let mut add = |function: &str, name: &str, about: &Value| {
        if is_name(name) {
            commands.extend(command(function, name, about));
        }
    };
    for (section, function) in SECTIONS {
        if let Some(Value::Object(entries)) = spec.get(section) {
            for (name, about) in entries {
                add(function, name, about);
            }
        }
    }
    if !spec.contains_key("program") {
        for (name, about) in programs(spec) {
            add("run_program", name, about);
        }
    }
    commands
}

/// The lines that run one entry of a section.
fn command(function: &str, name: &str, about: &Value) -> Vec<String> {
    let text = |field: &str| about.get(field).and_then(Value::as_str);
    let script = |field: &str| text(field).map(|script| format!("\t{script}\n"));
    let mut variables = Vec::new();
    add_variables(about, &mut variables);
    let words: Vec<&str> = variables.iter().map(String::as_str).collect();
    let call = [words.as_slice(), &[function, name]].concat().join(" ");
    let condition = text("if").map(str::to_owned);
    let condition = condition.or_else(|| Some(format!("role {}", quoted(text("if-role")?))));
    let call = match condition {
        Some(condition) => format!("\tif {condition}; then\n\t\t{call}\n\tfi\n"),
        None => format!("\t{call}\n"),
    };
    let before = script("pre-script").into_iter();
    before.chain([call]).chain(script("post-script")).collect()
}

fn add_variables(about: &Value, variables: &mut Vec<String>) {
    let Value::Object(fields) = about else { return };
    for (name, value) in fields {
        let text = match value {
            _ if NOT_VARIABLES.contains(&name.as_str()) => continue,
            Value::Object(_) => {
                add_variables(value, variables);
                continue;
            }
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(_) => lines_of(value).join(" "),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        if !name.starts_with(|c: char| c.is_ascii_digit()) {
            variables.push(format!("{name}={}", quoted(&text)));
        }
    }
}

/// Whether a name can stand in a script as it is.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;

    use super::*;

    fn of(spec: Value) -> String {
        let Value::Object(spec) = spec else {
            unreachable!()
        };
        job_sh(&spec)
    }

    #[test]
    fn a_script_wins_over_lines_and_lines_over_sections() {
        let all =
            json!({"script": "echo 1\n", "job2sh": {"a": ["echo 2"]}, "program": {"x": null}});
        assert_eq!(of(all), "echo 1\n");
        let lines = json!({"job2sh": {"a": ["f()", "{ :; }"], "b": ["g() { :; }"]}, "program": {"x": null}});
        assert_eq!(of(lines), "#!/bin/sh\n\nf()\n{ :; }\ng() { :; }\n\"$@\"\n");
        assert_eq!(of(json!({"suite": "x"})), "");
    }

    /// Runs the script with lkp's functions as stubs that say what they were asked.
    #[test]
    fn sections_run_in_the_order_of_lkp_with_their_variables() {
        let script = of(json!({
            "suite": "bench", "runtime": 5, "it's": "a 'word'",
            "program": {"hack": {
                "nr_threads": 8, "mode": "two words", "pre-script": "echo before", "post-script": "echo after",
            }},
            "monitors": {"vmstat": null},
            "setup": {"disk": {"fs": "ext4"}, "bad name; rm": null},
            "daemon": {"server": {"if-role": "server"}, "other": {"if": "[ 1 = 2 ]"}},
        }));
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("lib");
        std::fs::create_dir(&lib).unwrap();
        let stubs = "run_setup() { echo setup $fs \"$@\"; }\nstart_daemon() { echo daemon \"$@\"; }\n\
            run_monitor() { echo monitor \"$@\"; }\nrole() { [ \"$1\" = server ]; }\n\
            run_program() { echo program \"$nr_threads\" \"$mode\" \"$@\" of $suite for $runtime; }\n";
        for (name, text) in [("http", ""), ("job", stubs), ("env", "")] {
            std::fs::write(lib.join(format!("{name}.sh")), text).unwrap();
        }
        let file = dir.path().join("job.sh");
        std::fs::write(&file, &script).unwrap();
        let ran = Command::new("/bin/sh")
            .arg(&file)
            .arg("run_job")
            .env("LKP_SRC", dir.path())
            .env("TMP", dir.path())
            .output()
            .unwrap();
        let (out, errors) = (
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr),
        );
        let wanted = "setup ext4 disk\ndaemon server\nmonitor vmstat\nbefore\n\
            program 8 two words hack of bench for 5\nafter\n";
        assert_eq!((&*out, &*errors), (wanted, ""), "{script}");
    }

    #[test]
    fn maps_that_stand_by_themselves_are_programs() {
        let script = of(json!({
            "suite": "hackbench", "services": {"a": 1}, "secrets": {"k": "v"}, "hackbench": {"nr_threads": 8},
        }));
        assert!(
            script.contains("\tnr_threads='8' run_program hackbench\n"),
            "{script}"
        );
        assert_eq!(script.matches("run_program").count(), 1, "{script}");
        assert!(!script.contains("'v'"), "{script}");
    }
}

//! Scripts of the site around each job: `prolog` before it, `epilog` after it. They prepare and check the machine.

use std::path::{Path, PathBuf};

use fairlead_api::Grant;
use tokio::process::Command;

use super::{context::Context, environment::suite_of, folder::JobFolder, journal::End};
use crate::{
    AgentConfig,
    executor::{MARK, ask},
};

/// Hook that runs scripts of the site.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hook<'a> {
    /// Before the job.
    Prolog,
    /// After the job, which ended in this way.
    Epilog(&'a End),
}

impl Hook<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Prolog => "prolog",
            Self::Epilog(_) => "epilog",
        }
    }
}

/// Runs the scripts of a hook one after the other, as the agent. Their processes have the mark of the job.
///
/// # Errors
/// Returns a description of the first failing script: it cannot be started, has an exit code other than 0, or takes too
/// long.
pub(crate) async fn run(
    context: &Context,
    grant: &Grant,
    folder: &JobFolder,
    mark: &str,
    hook: Hook<'_>,
) -> Result<(), String> {
    let config = &context.config;
    let Some(hooks) = &config.hooks else {
        return Ok(());
    };
    for script in scripts(hooks, hook.name(), &grant.tbox_type, group_of(config)) {
        if tokio::fs::try_exists(&script).await.is_ok_and(|is| !is) {
            continue;
        }
        let mut command = Command::new(&script);
        command
            .current_dir(hooks)
            .env_clear()
            .env(MARK, mark)
            .envs(environment(config, grant, folder, hook));
        let said = ask(command, "", config.hook_limit).await;
        let said = said.map_err(|error| {
            let place = script.strip_prefix(hooks).unwrap_or(&script).display();
            format!("the site's script {place} failed: {error}")
        })?;
        let (job_id, name) = (&grant.job_id, hook.name());
        for line in said.lines() {
            tracing::info!(job_id, name, line, "a script of the site says");
        }
    }
    Ok(())
}

/// Returns the possible paths of the scripts, in order.
fn scripts(hooks: &Path, name: &str, kind: &str, group: &str) -> [PathBuf; 3] {
    [
        hooks.join(name),
        hooks.join("kind").join(kind).join(name),
        hooks.join("group").join(group).join(name),
    ]
}

/// Returns the group of this host, as the scheduler derives it.
fn group_of(config: &AgentConfig) -> &str {
    if config.group.is_empty() {
        config.host.split("--").next().unwrap_or_default()
    } else {
        &config.group
    }
}

/// Returns the environment of a script. It has no parameters of the job.
fn environment(
    config: &AgentConfig,
    grant: &Grant,
    folder: &JobFolder,
    hook: Hook<'_>,
) -> Vec<(&'static str, String)> {
    let here = |path: &Path| path.to_string_lossy().into_owned();
    let mut all = vec![
        ("PATH", config.path.clone()),
        ("LANG", "C.UTF-8".to_owned()),
        ("HOOK", hook.name().to_owned()),
        ("HOST", config.host.clone()),
        ("GROUP", group_of(config).to_owned()),
        ("KIND", grant.tbox_type.clone()),
        ("JOB_ID", grant.job_id.clone()),
        ("ATTEMPT", grant.attempt.to_string()),
        ("SUITE", suite_of(grant).replace('\0', "")),
        ("JOB_YAML", here(&folder.job_yaml())),
        ("RESULT_ROOT", here(&folder.result())),
    ];
    if let Hook::Epilog(end) = hook {
        all.push(("HEALTH", end.health.clone()));
        let code = end.exit_code.map(|code| code.to_string());
        all.push(("EXIT_CODE", code.unwrap_or_default()));
    }
    all
}

//! Watches what a job prints for kernel crashes: those that end the job, and those that are only put on record.

use std::time::Duration;

use fairlead_crash::{Family, Seen, Watch};
use fairlead_job::{Crashes, Health, Spec};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::journal::End;

/// Maximum wait for the lines after the first line of a crash. They contain its name.
const NAME_DELAY: Duration = Duration::from_secs(2);
/// Silence after which no more such lines are expected.
const QUIET: Duration = Duration::from_millis(300);

/// Watches the output of one job for crashes.
#[derive(Debug)]
pub(super) struct CrashWatch {
    /// Patterns to watch for. `None`: no watch.
    watch: Option<Watch>,
    /// Start of the crash that ends the job, and time of the last output.
    begun: Option<(Instant, Instant)>,
    /// Cancelled when a crash must stop the job.
    over: CancellationToken,
}

impl CrashWatch {
    /// Creates the watch that the job asks for. Default: a panic ends the job if its output is the console of its own
    /// machine.
    pub(super) fn of(job: &Spec, is_console: bool) -> Self {
        // The scheduler has refused unreadable patterns.
        let said = Crashes::of(job).ok().flatten();
        let crashes = said.or_else(|| {
            is_console.then(|| Crashes {
                end: vec![Health::Panic],
                note: Vec::new(),
            })
        });
        Self {
            watch: crashes.map(|said| Watch::new(&families(&said.end), &families(&said.note))),
            begun: None,
            over: CancellationToken::new(),
        }
    }

    /// Returns a token that is cancelled once a crash ends the job.
    pub(super) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Takes in output of the job.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        watch.push(bytes);
        if watch.ends().is_some() {
            let now = Instant::now();
            let (since, _) = self.begun.unwrap_or((now, now));
            self.begun = Some((since, now));
        }
    }

    /// Returns when a crash ends the job and its name is final. Then the job is told to stop.
    pub(super) async fn named(&mut self) {
        let Some((since, heard)) = self.begun.filter(|_| !self.over.is_cancelled()) else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until((since + NAME_DELAY).min(heard + QUIET)).await;
        self.over.cancel();
    }

    /// Notes the end of the output.
    pub(super) fn end(&self) {
        if self.begun.is_some() {
            self.over.cancel();
        }
    }

    /// Adds the crash to the end of a job. `by_itself` is true if the job was not told to end.
    pub(super) fn note(self, mut end: End, by_itself: bool) -> End {
        let Seen { ended, noted } = self.watch.map(Watch::finish).unwrap_or_default();
        if let Some(crash) = &ended
            && by_itself
        {
            health(crash.family).as_str().clone_into(&mut end.health);
            end.reason = format!(
                "its output has a crash at line {}: {}",
                crash.line, crash.signature
            );
        }
        end.crash_signature = ended.or(noted).map(|crash| crash.signature);
        end
    }
}

/// Returns the health of a job that such a crash ended.
fn health(family: Family) -> Health {
    match family {
        Family::Panic => Health::Panic,
        Family::Oops => Health::Oops,
        Family::Sanitizer => Health::Sanitizer,
        Family::Lockup => Health::Lockup,
        Family::Lockdep => Health::Lockdep,
        Family::Warning => Health::Warning,
        Family::Leak => Health::Leak,
        Family::Oom => Health::Oom,
    }
}

fn families(healths: &[Health]) -> Vec<Family> {
    let all = Family::ALL.into_iter();
    all.filter(|family| healths.contains(&health(*family)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::end::unrun, *};

    const PANIC: &[u8] =
        b"[    4.2] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0b\n";

    fn watch(job: Value) -> CrashWatch {
        let Value::Object(job) = job else {
            panic!("not an object")
        };
        CrashWatch::of(&job, false)
    }

    fn success() -> End {
        End {
            ran: true,
            ..unrun(Health::Success, String::new())
        }
    }

    #[test]
    fn the_kinds_of_crashes_are_those_that_a_job_can_name() {
        let all = Family::ALL.map(health);
        assert_eq!(all, Health::CRASHES);
        for family in Family::ALL {
            assert_eq!(family.word(), health(family).as_str());
        }
        assert_eq!(families(&[Health::Oom]), [Family::Oom]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_that_ends_a_job_is_named_when_nothing_more_is_printed_or_in_time() {
        let mut watch = watch(json!({"crash": {"end": ["panic"]}}));
        watch.hear(PANIC);
        let since = Instant::now();
        watch.named().await;
        assert_eq!(since.elapsed(), QUIET);
        assert!(watch.over().is_cancelled());
        let end = watch.note(success(), true);
        let name = "kernel panic: Attempted to kill init!";
        assert_eq!(
            (end.health.as_str(), end.crash_signature.as_deref()),
            ("panic", Some(name))
        );
        assert_eq!(
            end.reason,
            format!("its output has a crash at line 1: {name}")
        );

        let mut watch = self::watch(json!({"crash": {"end": ["panic"]}}));
        watch.hear(PANIC);
        let since = Instant::now();
        let mut pieces = tokio::time::interval(QUIET / 2);
        loop {
            tokio::select! {
                biased;
                () = watch.named() => break,
                _ = pieces.tick() => watch.hear(b"more\n"),
            }
        }
        assert_eq!(since.elapsed(), NAME_DELAY);
    }

    #[test]
    fn a_console_is_watched_for_a_panic_unless_the_job_says_otherwise() {
        let ended = |job: Value, is_console| {
            let Value::Object(job) = job else {
                panic!("not an object")
            };
            let mut watch = CrashWatch::of(&job, is_console);
            watch.hear(PANIC);
            watch.note(success(), true).health
        };
        assert_eq!(ended(json!({}), true), "panic");
        assert_eq!(ended(json!({}), false), "success");
        assert_eq!(
            ended(json!({"crash": {"note": ["panic"]}}), true),
            "success"
        );
    }

    #[test]
    fn what_is_only_noted_and_what_others_ended_keeps_its_health() {
        let mut noted = watch(json!({"crash": {"note": ["panic"]}}));
        noted.hear(PANIC);
        let end = noted.note(success(), true);
        assert_eq!(end.health, "success");
        assert!(end.crash_signature.is_some() && end.reason.is_empty());
        let mut stopped = watch(json!({"crash": {"end": ["panic"]}}));
        stopped.hear(PANIC);
        let end = stopped.note(unrun(Health::Terminate, String::new()), false);
        assert_eq!(end.health, "terminate");
        assert!(end.crash_signature.is_some());
        let mut silent = watch(json!({}));
        silent.hear(PANIC);
        assert_eq!(silent.note(success(), true), success());
    }
}

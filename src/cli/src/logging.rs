//! Logs to stderr by `tracing`. Owns the default filter; `FAIRLEAD_LOG` or `RUST_LOG` overrides it.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{exit::Failure, settings::Environment};

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Starts logging. `default` is a filter in the form of `RUST_LOG`, used if neither variable is set.
pub(crate) fn start(default: &str, format: LogFormat, env: &Environment) -> Result<(), Failure> {
    let named = ["FAIRLEAD_LOG", "RUST_LOG"];
    let found = named
        .into_iter()
        .find_map(|name| Some((name, env.get(name)?)));
    let (name, filter) = found.unwrap_or(("the default", default));
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        let message = format!("{name}: '{filter}' is not a filter of logs: {error}");
        Failure::usage(
            message,
            "for example info, or warn,fairlead_scheduler=debug",
        )
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    let started = match format {
        LogFormat::Text => registry
            .with(lines.with_ansi(io::stderr().is_terminal()))
            .try_init(),
        LogFormat::Json => registry.with(lines.json()).try_init(),
    };
    started.map_err(|error| Failure::local(format!("cannot log: {error}"), ""))
}

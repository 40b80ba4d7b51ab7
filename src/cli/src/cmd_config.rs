//! `fairlead config`: the settings and their origins.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    cmd_serve::ServeArgs,
    context::Context,
    exit, serving,
    settings::{KEYS, Origin, Setting},
    table::{Grid, or_dash},
};

/// Settings to show.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: ConfigAction,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigAction {
    /// Show every setting, its value and its origin
    Show,
    /// List the keys of the configuration file
    Keys,
    /// List the keys of the configuration of `fairlead serve`
    Serve,
}

pub(crate) fn run(args: &ConfigArgs, context: &Context) -> anyhow::Result<u8> {
    match args.what {
        ConfigAction::Show => show(context)?,
        ConfigAction::Keys => keys(context)?,
        ConfigAction::Serve => serve_keys(context)?,
    }
    Ok(exit::OK)
}

fn show(context: &Context) -> anyhow::Result<()> {
    let settings = context.settings()?;
    let optional = |setting: &Setting<Option<String>>| {
        (
            setting.value.clone().map_or(Value::Null, Value::from),
            setting.origin.clone(),
        )
    };
    let path = settings
        .config_file
        .value
        .as_ref()
        .map(|path| path.to_string_lossy().into_owned());
    // A token is a secret: screens are shared and logs are kept.
    let token = settings.token.value.as_ref().map(|_| "(hidden)");
    let rows: Vec<(&str, Value, Origin)> = [
        ("config", (json!(path), settings.config_file.origin.clone())),
        ("lab", optional(&settings.lab)),
        (
            "server",
            (json!(settings.server.value), settings.server.origin.clone()),
        ),
        ("account", optional(&settings.account)),
        ("token", (json!(token), settings.token.origin.clone())),
        ("testbox", optional(&settings.testbox)),
        ("arch", optional(&settings.arch)),
        (
            "include_dirs",
            (
                json!(settings.include_dirs.value),
                settings.include_dirs.origin.clone(),
            ),
        ),
    ]
    .map(|(name, (value, origin))| (name, value, origin))
    .into();
    let all: Map<String, Value> = rows
        .iter()
        .map(|(name, value, origin)| {
            (
                (*name).to_owned(),
                json!({"value": value, "from": origin.to_string()}),
            )
        })
        .collect();
    context.print(&all, |_| {
        let mut grid = Grid::new(&["setting", "value", "from"]);
        for (name, value, origin) in &rows {
            grid.row([(*name).to_owned(), shown(value), origin.to_string()]);
        }
        grid.render(context.output.paper())
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn serve_keys(context: &Context) -> anyhow::Result<()> {
    let flags = ServeArgs::augment_args(clap::Command::new("serve"));
    let keys = serving::keys(&flags);
    let all: Vec<Value> = keys
        .iter()
        .map(|key| {
            json!({
                "key": key.name, "value": key.unit, "is_list": key.kind == serving::Kind::Many,
                "default": key.default, "variable": key.variable(), "meaning": key.help,
            })
        })
        .collect();
    context.print(&all, |_| {
        let mut grid = Grid::new(&["key", "value", "default", "meaning"]);
        for key in &keys {
            grid.row([
                key.name.clone(),
                key.unit.clone(),
                or_dash(&key.default),
                key.help.clone(),
            ]);
        }
        grid.render(context.output.paper())
    })
}

fn keys(context: &Context) -> anyhow::Result<()> {
    let all: Map<String, Value> = KEYS
        .iter()
        .map(|(key, says)| ((*key).to_owned(), Value::from(*says)))
        .collect();
    context.print(&all, |_| {
        let mut grid = Grid::new(&["key", "meaning"]);
        for (key, says) in KEYS {
            grid.row([(*key).to_owned(), (*says).to_owned()]);
        }
        grid.render(context.output.paper())
    })
}

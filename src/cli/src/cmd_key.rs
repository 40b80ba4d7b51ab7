//! `fairlead key`: the keys that seal secrets and sign tokens, directly in the store.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use fairlead_scheduler::{
    KeyView, Keys, RetiredKeys, import_keys, retire_key, rotate_key, show_keys,
};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    store_args::StoreArgs,
    table::{Grid, Paper},
};

/// Maximum size of a file of keys, bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The actions on the keys of the lab.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    what: KeyAction,
}

#[derive(Debug, clap::Subcommand)]
enum KeyAction {
    /// List the keys by their fingerprints, newest first
    Show(ShowArgs),
    /// Add the keys of a backup; existing keys stay
    Import(ImportArgs),
    /// Add a key that seals and signs from a minute later on; older keys still open and verify
    Rotate(RotateArgs),
    /// Drop a key that strangers may know: it opens and verifies nothing any more
    Retire(RetireArgs),
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Print the keys themselves, for a backup; keep it where nobody else can read it
    #[arg(long)]
    export: bool,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
struct ImportArgs {
    /// Output of `key show --export`, the settings document of a backup, or one key of 64 hexadecimal
    /// digits per line; -: stdin
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
struct RotateArgs {
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rotate first, and wait a minute. Timers, previews and receivers of notices are sealed with the new
key. Secrets of jobs that have ended stay sealed for good. Logins of browsers end. Machines that wait
for a boot over the network have a new token after 15 minutes.")]
struct RetireArgs {
    /// Fingerprint of the key, as `key show` lists it
    key: String,
    /// Retire it although jobs that have not ended need it: those that wait with its secrets end as
    /// `abort_invalid`, and those that run with its tokens lose their hosts
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) async fn run(args: &KeyArgs, context: &Context) -> anyhow::Result<u8> {
    let (keys, export) = match &args.what {
        KeyAction::Show(show) => {
            let config = show.store.config(&context.env)?;
            (show_keys(&config).await, show.export)
        }
        KeyAction::Import(import) => {
            let text = read(&import.file)?;
            let config = import.store.config(&context.env)?;
            (import_keys(&config, &text).await, false)
        }
        KeyAction::Rotate(rotate) => {
            let config = rotate.store.config(&context.env)?;
            (rotate_key(&config).await, false)
        }
        KeyAction::Retire(args) => return retire(args, context).await,
    };
    let keys = keys.map_err(|error| Failure::local(error.to_string(), ""))?;
    if export {
        context.output.json(&keys.export)?;
    } else {
        context.print(&keys, |keys| table(keys, context.output.paper()))?;
    }
    Ok(exit::OK)
}

async fn retire(args: &RetireArgs, context: &Context) -> anyhow::Result<u8> {
    let config = args.store.config(&context.env)?;
    let retired = retire_key(&config, &args.key, args.force).await;
    let retired = retired.map_err(|error| Failure::local(error.to_string(), ""))?;
    context.print(&retired, |retired| {
        let RetiredKeys {
            keys,
            sealed_anew,
            waiting,
            running,
        } = retired;
        let shown = table(keys, context.output.paper());
        format!(
            "{shown}\nsealed anew: {sealed_anew} timers, previews and receivers; jobs that needed it: {waiting} waiting, {running} running"
        )
    })?;
    Ok(exit::OK)
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin()
            .take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
    } else {
        std::fs::File::open(file)
            .and_then(|opened| opened.take(FILE_BYTES_MAX).read_to_string(&mut text))
    };
    read.map(|_| text).map_err(|error| {
        Failure::local(
            format!("cannot read {}: {error}", file.display()),
            "use a file from 'fairlead key show --export'",
        )
    })
}

fn table(keys: &Keys, paper: Paper) -> String {
    if keys.keys.is_empty() {
        return "there is no key; a new lab creates its first key at its start".to_owned();
    }
    let mut grid = Grid::new(&["key", "since", "use"]);
    for key in &keys.keys {
        let since = if key.from_ms == 0 {
            "-".to_owned()
        } else {
            clock::shown(key.from_ms)
        };
        grid.row([key.id.clone(), since, does(key)]);
    }
    grid.render(paper)
}

/// Returns a description of the use of a key.
fn does(key: &KeyView) -> String {
    if key.retired_ms > 0 {
        return format!("retired {}", clock::shown(key.retired_ms));
    }
    let does = if key.seals {
        "seals and opens"
    } else if key.from_ms > clock::now_ms() {
        "opens; seals soon"
    } else {
        "opens"
    };
    does.to_owned()
}

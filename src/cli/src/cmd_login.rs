//! `fairlead login`: checks a token, and keeps it in a file that only its owner may read.

use std::{
    fs,
    io::{self, BufRead, IsTerminal, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use fairlead_api::client::{Client, ClientConfig};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use crate::{
    context::Context,
    exit::{self, Failure},
    settings::check_lab,
};

/// Where the token is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The token comes from --token-file, --token, or standard input; on a terminal it is asked for and not
shown. With --lab NAME, the server and the token are kept under that name, and later commands take
--lab NAME. Without it, the token is kept for the server of the settings.")]
pub(crate) struct LoginArgs {
    /// Keep the token although nothing could check it
    #[arg(long)]
    unchecked: bool,
}

pub(crate) async fn run(args: &LoginArgs, context: &Context) -> anyhow::Result<u8> {
    let lab = context.flags.lab.clone();
    if let Some(lab) = &lab {
        check_lab(lab)?;
    }
    let folder = folder(context)?;
    let servers = servers(context, lab.as_deref(), &folder)?;
    let token = token(context, &servers)?;
    let account = if args.unchecked {
        None
    } else {
        Some(check(&servers, &token).await?)
    };
    let path = match &lab {
        None => folder.join("token"),
        Some(lab) => folder.join("labs").join(format!("{lab}.token")),
    };
    write_secret(&path, &token)?;
    if let Some(lab) = &lab {
        write_lab(&folder.join("labs").join(format!("{lab}.yaml")), &servers)?;
    }
    let shown = json!({ "account": account, "lab": lab, "server": servers, "token_file": path });
    context.print(&shown, |_| {
        let who = account.map_or_else(|| "unchecked".to_owned(), |name| format!("you are {name}"));
        let how = lab.map_or_else(String::new, |lab| {
            format!("\nuse it: fairlead --lab {lab} jobs")
        });
        format!(
            "{who} at {}; the token is in {}{how}",
            servers.join(", "),
            path.display()
        )
    })?;
    Ok(exit::OK)
}

/// Returns the folder of the configuration.
fn folder(context: &Context) -> Result<PathBuf, Failure> {
    let file = context.flags.config.clone();
    let file = file.or_else(|| context.env.get("FAIRLEAD_CONFIG").map(PathBuf::from));
    let beside = file.and_then(|file| file.parent().map(Path::to_owned));
    let usual = || Some(context.env.config_home()?.join("fairlead"));
    beside.or_else(usual).ok_or_else(|| {
        Failure::usage(
            "no folder for the token is known",
            "set HOME, or name a configuration file with --config",
        )
    })
}

/// Returns the URLs of the scheduler. For a new lab the command line must name them.
fn servers(context: &Context, lab: Option<&str>, folder: &Path) -> Result<Vec<String>, Failure> {
    let is_new = lab.is_some_and(|lab| !folder.join("labs").join(format!("{lab}.yaml")).exists());
    if !is_new {
        return Ok(context.settings()?.server.value);
    }
    if context.flags.server.is_empty() {
        return Err(Failure::usage(
            format!(
                "the server of lab '{}' is not known",
                lab.unwrap_or_default()
            ),
            "add --server URL",
        ));
    }
    Ok(context.flags.server.clone())
}

/// Returns the token from the options, or from standard input.
fn token(context: &Context, servers: &[String]) -> Result<String, Failure> {
    if let Some(token) = &context.flags.token {
        return Ok(token.clone());
    }
    let text = if let Some(path) = &context.flags.token_file {
        let read = fs::read_to_string(path);
        read.map_err(|error| {
            Failure::local(format!("cannot read {}: {error}", path.display()), "")
        })?
    } else {
        typed(context, servers)?
    };
    let token = text.trim().to_owned();
    if token.is_empty() || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage(
            "this is no token: it is empty, or has blanks in it",
            "give the token that `fairlead account add` printed",
        ));
    }
    Ok(token)
}

/// Reads a line from the terminal or a pipe.
fn typed(context: &Context, servers: &[String]) -> Result<String, Failure> {
    let stdin = io::stdin();
    let is_asked = stdin.is_terminal();
    if is_asked {
        let servers = servers.join(", ");
        context.output.ask(&format!("token for {servers}: "));
    }
    let hidden = Hidden::begin();
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    drop(hidden);
    if is_asked {
        context.output.ask("\n");
    }
    read.map_err(|error| Failure::local(format!("cannot read the token: {error}"), ""))?;
    Ok(line)
}

/// Turns off the terminal's echo until dropped.
struct Hidden(Option<rustix::termios::Termios>);

impl Hidden {
    fn begin() -> Self {
        let Ok(before) = tcgetattr(io::stdin()) else {
            return Self(None);
        };
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        let is_set = tcsetattr(io::stdin(), OptionalActions::Now, &silent).is_ok();
        Self(is_set.then_some(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The terminal may be gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Returns the account of the token.
async fn check(servers: &[String], token: &str) -> Result<String, Failure> {
    let mut config = ClientConfig::new(servers.iter().cloned());
    config.token = Some(token.to_owned());
    let account = Client::new(config)?.whoami().await?;
    if account.my_account.is_empty() {
        return Err(Failure::usage(
            "this lab is open and needs no token",
            "name yourself with --account, or in the configuration",
        ));
    }
    Ok(account.my_account)
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::local(
        format!("cannot write {}: {error}", path.display()),
        "choose another folder with --config FILE",
    )
}

/// Writes a file that only its owner can read, atomically.
fn write_secret(path: &Path, token: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let new = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut open = fs::OpenOptions::new();
        let open = open.write(true).create(true).truncate(true).mode(0o600);
        let mut file = open.open(&new)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        writeln!(file, "{token}")?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error| failed(path, &error))
}

/// Writes the file of a lab, unless it exists, because people may have added to it.
fn write_lab(path: &Path, servers: &[String]) -> Result<(), Failure> {
    if path.exists() {
        return Ok(());
    }
    let servers: Vec<String> = servers
        .iter()
        .map(|server| format!("  - {server}\n"))
        .collect();
    let text = format!(
        "# A lab of `fairlead login`; other keys of the configuration may follow.\nserver:\n{}",
        servers.concat()
    );
    fs::write(path, text).map_err(|error| failed(path, &error))
}

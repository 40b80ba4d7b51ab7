//! Labs by name, and which of several settings of a connection wins.

use std::path::{Path, PathBuf};

use super::{
    environment::Environment,
    file::ConfigFile,
    flags::Flags,
    origin::{Origin, Setting},
};
use crate::exit::Failure;

/// Returns the selected lab, if one is named.
pub(super) fn lab(
    flags: &Flags,
    env: &Environment,
    config: &ConfigFile,
) -> Result<Option<Setting<String>>, Failure> {
    let said = flags.lab.clone();
    let said = said.map(|name| Setting::new(name, Origin::Flag("--lab")));
    let lab = said
        .or_else(|| env.setting("FAIRLEAD_LAB"))
        .or(config.text("lab")?);
    if let Some(lab) = &lab {
        check_lab(&lab.value)?;
    }
    Ok(lab)
}

/// Fails for names that cannot be file names.
pub(crate) fn check_lab(name: &str) -> Result<(), Failure> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(is_good) {
        return Ok(());
    }
    Err(Failure::usage(
        format!("'{name}' is no name of a lab"),
        "use 1 to 64 letters, digits and -_.",
    ))
}

/// Returns the folder of the labs' files, beside the configuration file.
pub(super) fn labs_folder(config_file: &Setting<Option<PathBuf>>, home: Option<&Path>) -> PathBuf {
    let beside = config_file.value.as_deref().and_then(Path::parent);
    let usual = || home.map(|dir| dir.join("fairlead"));
    let folder = beside.map(Path::to_owned).or_else(usual);
    folder.unwrap_or_default().join("labs")
}

/// Fails for a port in place of an address, because a bare number would be a valid but wrong address.
pub(super) fn checked(servers: Setting<Vec<String>>) -> Result<Setting<Vec<String>>, Failure> {
    for server in &servers.value {
        let rest = server
            .split_once("://")
            .map_or(server.as_str(), |(_, rest)| rest);
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        if host.is_empty() || host.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Failure::usage(
                format!("{}: '{server}' names no host", servers.origin),
                "write http://HOST:PORT, for example http://127.0.0.1:3000",
            ));
        }
    }
    Ok(servers)
}

/// Returns a remark on which of two tokens wins.
pub(super) fn remarks(flags: &Flags, env: &Environment) -> Vec<String> {
    let said = ["FAIRLEAD_TOKEN", "FAIRLEAD_TOKEN_FILE"];
    let said: Vec<&str> = said
        .into_iter()
        .filter(|name| env.get(name).is_some())
        .collect();
    let flag = match (&flags.token, &flags.token_file) {
        (Some(_), _) => "--token",
        (None, Some(_)) => "--token-file",
        (None, None) => return Vec::new(),
    };
    if said.is_empty() {
        return Vec::new();
    }
    vec![format!("{flag} wins over {}", said.join(" and "))]
}

//! The flags of every command that name a scheduler and who asks.

use std::path::PathBuf;

/// The flags that have to do with settings.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Flags {
    /// URL of the scheduler; separate replicas by commas. Also `FAIRLEAD_SERVER`, or server in the configuration file
    #[arg(
        long,
        global = true,
        value_name = "URL",
        value_delimiter = ',',
        help_heading = "Connection"
    )]
    pub(crate) server: Vec<String>,
    /// Token of the account. Other users can see it, so prefer `FAIRLEAD_TOKEN` or a token file
    #[arg(long, global = true, value_name = "TOKEN", help_heading = "Connection")]
    pub(crate) token: Option<String>,
    /// File with the token. Also `FAIRLEAD_TOKEN_FILE`, or `token_file` in the configuration file
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub(crate) token_file: Option<PathBuf>,
    /// Account of jobs that name none. Also `FAIRLEAD_ACCOUNT`, or account in the configuration file
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    pub(crate) account: Option<String>,
    /// Lab of `fairlead login --lab`: its server and token. Also `FAIRLEAD_LAB`, or lab in the configuration file
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    pub(crate) lab: Option<String>,
    /// Configuration file. Also `FAIRLEAD_CONFIG` [default: `~/.config/fairlead/config.yaml`]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub(crate) config: Option<PathBuf>,
}

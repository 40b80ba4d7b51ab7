//! `fairlead-cluster`: several replicas of one scheduler on one machine. It is for tests, for trials, and for labs
//! whose one machine must survive upgrades of its scheduler.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use fairlead_cluster::{
    launch::{Asked, Cluster, OwnElastic, Replica, ReplicaView, exit_code, failure_code},
    signals::unless_interrupted,
};
use fairlead_reaper::Reaper;
use serde_json::json;

const EXIT_CODES: &str = "\
Exit codes:
  0  done; status: all replicas are up
  2  the request is impossible; nothing was done
  3  status: not all replicas are up
  4  status: no replica is up
  5  a problem of this machine: a folder, a port, a program";

/// Run several replicas of one scheduler on this machine
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES, max_term_width = 100, disable_help_subcommand = true)]
struct CommandLine {
    /// Folder with the state, the logs and the data of the cluster
    #[arg(long, global = true, default_value = "fairlead-cluster")]
    dir: PathBuf,
    /// Print JSON for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Launch,
}

/// The actions on a cluster of this machine.
#[derive(Debug, Subcommand)]
enum Launch {
    /// Start all stopped replicas, and print their URLs for --server. A start that fails ends those that it began
    Up(UpArgs),
    /// Show the state of each replica
    Status,
    /// Kill a replica (SIGKILL)
    Kill(Which),
    /// Pause a replica (SIGSTOP)
    Pause(Which),
    /// Continue a paused replica (SIGCONT)
    Resume(Which),
    /// Stop a replica in order, if it runs, and start it again
    Restart(Which),
    /// Replace the replicas one after the other, so that some always answer
    Upgrade {
        /// The new program [default: the same path, whose file may be new]
        #[arg(long, value_name = "PATH")]
        binary: Option<PathBuf>,
    },
    /// Stop the replicas in order, and an Elasticsearch that `up` started; all data stays
    Down,
}

#[derive(Debug, Args)]
struct UpArgs {
    /// Number of replicas [default: 3, or as before]
    #[arg(long, value_name = "N")]
    replicas: Option<u16>,
    /// Port of the first replica; the others use the next ones [default: 3000, or as before]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// URLs of the Elasticsearch that holds the jobs, separated by commas
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    elasticsearch: Option<Vec<String>>,
    #[command(flatten)]
    login: LoginArgs,
    /// Start an Elasticsearch with this number of nodes
    #[arg(long, value_name = "NODES", num_args = 0..=1, default_missing_value = "1")]
    #[arg(conflicts_with = "elasticsearch", value_parser = clap::value_parser!(u16).range(1..=9))]
    start_elasticsearch: Option<u16>,
    /// Port of the first node of that Elasticsearch
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 9200,
        requires = "start_elasticsearch"
    )]
    elasticsearch_port: u16,
    /// Prefix of all indices [default: fairlead, or as before]
    #[arg(long, value_name = "PREFIX")]
    index_prefix: Option<String>,
    /// The program [default: `fairlead` beside this one, or as before]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// More arguments of `fairlead serve`, after `--`
    #[arg(last = true, value_name = "ARGUMENTS")]
    more: Vec<String>,
}

/// The credentials with which the replicas log in to Elasticsearch. Passwords and keys in the environment reach them
/// too, as long as each command that starts replicas has them.
#[derive(Debug, Args)]
struct LoginArgs {
    /// Certificates (PEM) of the authority that signed the certificates of Elasticsearch
    #[arg(long = "elasticsearch-ca", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// User of Elasticsearch; give its password in `FAIRLEAD_ELASTICSEARCH_PASSWORD` or a file
    #[arg(long = "elasticsearch-user", value_name = "NAME")]
    user: Option<String>,
    /// File with the password of the user
    #[arg(long = "elasticsearch-password-file", value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// File with an API key, instead of a user; or use `FAIRLEAD_ELASTICSEARCH_API_KEY`
    #[arg(long = "elasticsearch-api-key-file", value_name = "FILE")]
    api_key_file: Option<PathBuf>,
}

impl LoginArgs {
    /// The same for `fairlead serve`, which runs in another folder; `None` when nothing is given.
    fn words(&self) -> io::Result<Option<Vec<String>>> {
        let mut words = Vec::new();
        for (flag, path) in [
            ("--elasticsearch-ca", &self.ca),
            ("--elasticsearch-password-file", &self.password_file),
            ("--elasticsearch-api-key-file", &self.api_key_file),
        ] {
            if let Some(path) = path {
                let path = std::path::absolute(path)?;
                words.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
            }
        }
        if let Some(user) = &self.user {
            words.extend(["--elasticsearch-user".to_owned(), user.clone()]);
        }
        Ok((!words.is_empty()).then_some(words))
    }
}

#[derive(Debug, Args)]
struct Which {
    /// Number of the replica, from 1
    number: u16,
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match run(carry_out(&line, &line.command)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            remark(&format!("error: {error:#}"));
            ExitCode::from(failure_code(&error))
        }
    }
}

fn run(work: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

async fn carry_out(line: &CommandLine, command: &Launch) -> anyhow::Result<u8> {
    let dir = &line.dir;
    match command {
        Launch::Up(args) => unless_interrupted(up(line, args)).await?,
        Launch::Status => {
            let views = Cluster::look(dir).await?;
            show(line, &views)?;
            return Ok(exit_code(&views));
        }
        Launch::Kill(which) => Cluster::open(dir)?.kill(which.number).await?,
        Launch::Pause(which) => Cluster::open(dir)?.pause(which.number)?,
        Launch::Resume(which) => Cluster::open(dir)?.resume(which.number)?,
        Launch::Restart(which) => {
            if !Cluster::open(dir)?.restart(which.number).await? {
                remark("it did not stop in time and was killed");
            }
        }
        Launch::Upgrade { binary } => {
            let mut cluster = Cluster::open(dir)?;
            cluster
                .upgrade(binary.clone(), |step| remark(&step))
                .await?;
        }
        Launch::Down => {
            for number in Cluster::open(dir)?.down().await? {
                remark(&format!(
                    "replica {number} did not stop in time and was killed"
                ));
            }
        }
    }
    Ok(0)
}

async fn up(line: &CommandLine, args: &UpArgs) -> anyhow::Result<()> {
    let asked = Asked {
        replicas: args.replicas,
        port: args.port,
        elasticsearch: args.elasticsearch.clone(),
        login: args.login.words()?,
        own_elasticsearch: args.start_elasticsearch.map(|nodes| OwnElastic {
            nodes,
            port: args.elasticsearch_port,
        }),
        index_prefix: args.index_prefix.clone(),
        binary: args.binary.clone(),
        more: (!args.more.is_empty()).then(|| args.more.clone()),
    };
    let cluster = Cluster::up(&line.dir, asked, Reaper::start()?).await?;
    let urls: Vec<String> = cluster.replicas().iter().map(Replica::url).collect();
    if line.json {
        let elasticsearch = &cluster.settings().elasticsearch;
        print(&json!({"urls": urls, "elasticsearch": elasticsearch}).to_string())?;
    } else {
        print(&urls.join(","))?;
    }
    Ok(cluster.leave()?)
}

fn show(line: &CommandLine, views: &[ReplicaView]) -> anyhow::Result<()> {
    if line.json {
        return print(&serde_json::to_string_pretty(views)?);
    }
    for view in views {
        let ReplicaView {
            number,
            url,
            condition,
            says,
            ..
        } = view;
        let pid = view
            .pid
            .map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        print(format!("{number:>2}  {condition:<6}  {url}  {pid:>7}  {says}").trim_end())?;
    }
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stdout().lock(), "{text}")?)
}

/// Nobody reading a remark is no error.
fn remark(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <CommandLine as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn an_elasticsearch_is_named_or_started_and_never_both() {
        let parse = |line: &str| CommandLine::try_parse_from(line.split(' '));
        let line = parse("x up --start-elasticsearch -- --auth").unwrap();
        let Launch::Up(args) = line.command else {
            panic!()
        };
        assert_eq!(args.start_elasticsearch, Some(1));
        assert_eq!(args.more, ["--auth"]);
        assert!(parse("x up --start-elasticsearch 3 --elasticsearch http://a").is_err());
        assert!(parse("x up --elasticsearch-port 9300").is_err());
    }
}

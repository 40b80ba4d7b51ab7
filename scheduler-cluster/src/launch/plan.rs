//! Plans a cluster: the options of the command, then the stored settings, then the defaults.

use std::path::PathBuf;

use super::{
    elastic::OwnElastic,
    error::LaunchError,
    folder::{Memory, Replica, Settings},
};

/// Most replicas of one cluster on one machine.
const REPLICAS_MAX: u16 = 64;

/// What `up` was asked for; what is `None` stays as it was, or takes the default.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// How many replicas, 1 to 64. Default 3.
    pub replicas: Option<u16>,
    /// Port of the first. Default 3000.
    pub port: Option<u16>,
    /// URLs of an Elasticsearch that runs.
    pub elasticsearch: Option<Vec<String>>,
    /// How to log in there, as arguments of `fairlead serve`. Default none.
    pub login: Option<Vec<String>>,
    /// One to start.
    pub own_elasticsearch: Option<OwnElastic>,
    /// Prefix of all indices. Default `fairlead`.
    pub index_prefix: Option<String>,
    /// The program. Default `fairlead`, where this program is.
    pub binary: Option<PathBuf>,
    /// More arguments of `fairlead serve`. Default none.
    pub more: Option<Vec<String>>,
}

/// What is to run, and whether its settings differ from what is known.
pub(super) fn planned(asked: Asked, known: Option<Memory>) -> Result<(Memory, bool), LaunchError> {
    let known_settings = known.as_ref().map(|known| &known.settings);
    let (elasticsearch, own_elasticsearch) =
        planned_store(asked.elasticsearch, asked.own_elasticsearch, known_settings)?;
    let binary = match asked.binary {
        Some(binary) => std::path::absolute(&binary)
            .ok()
            .filter(|binary| binary.is_file())
            .ok_or_else(|| {
                LaunchError::usage(
                    format!("'{}' is no program", binary.display()),
                    "--binary PATH of a `fairlead`",
                )
            })?,
        None => match known_settings {
            Some(known) => known.binary.clone(),
            None => own_fairlead()?,
        },
    };
    let settings = Settings {
        binary,
        port: asked
            .port
            .or(known_settings.map(|known| known.port))
            .unwrap_or(3000),
        elasticsearch,
        login: asked
            .login
            .or(known_settings.map(|known| known.login.clone()))
            .unwrap_or_default(),
        index_prefix: asked
            .index_prefix
            .or(known_settings.map(|known| known.index_prefix.clone()))
            .unwrap_or_else(|| "fairlead".to_owned()),
        own_elasticsearch,
        more: asked
            .more
            .or(known_settings.map(|known| known.more.clone()))
            .unwrap_or_default(),
    };
    let changed = known_settings.is_some_and(|known| *known != settings);
    let count = asked
        .replicas
        .or(known
            .as_ref()
            .and_then(|known| u16::try_from(known.replicas.len()).ok()))
        .unwrap_or(3);
    let replicas = replicas(&settings, count, known.map(|known| known.replicas))?;
    Ok((Memory::new(settings, replicas), changed))
}

/// URLs of Elasticsearch, and how it is run if it is our own.
fn planned_store(
    urls: Option<Vec<String>>,
    own: Option<OwnElastic>,
    known: Option<&Settings>,
) -> Result<(Vec<String>, Option<OwnElastic>), LaunchError> {
    match (urls, own) {
        (Some(urls), _) if urls.iter().any(|url| url.contains('@')) => Err(LaunchError::usage(
            "the Elasticsearch URL has a user or a password, and the folder would store it",
            "say --elasticsearch-user and --elasticsearch-password-file",
        )),
        (Some(urls), _) if !urls.is_empty() => Ok((urls, None)),
        (_, own @ Some(_)) => {
            let same = known.filter(|known| known.own_elasticsearch == own);
            let urls = same.map(|known| known.elasticsearch.clone());
            Ok((urls.unwrap_or_default(), own))
        }
        _ => known
            .map(|known| (known.elasticsearch.clone(), known.own_elasticsearch))
            .ok_or_else(|| {
                LaunchError::usage(
                    "several replicas need Elasticsearch, and none is named",
                    "use --elasticsearch URL for a running one, or --start-elasticsearch",
                )
            }),
    }
}

fn replicas(
    settings: &Settings,
    count: u16,
    known: Option<Vec<Replica>>,
) -> Result<Vec<Replica>, LaunchError> {
    let last = settings.port.checked_add(count);
    if !(1..=REPLICAS_MAX).contains(&count) || last.is_none() || settings.port == 0 {
        return Err(LaunchError::usage(
            format!("{count} replicas from port {} on", settings.port),
            format!("1 to {REPLICAS_MAX} replicas, on ports from 1 to 65535"),
        ));
    }
    let known = known.unwrap_or_default();
    let replica = |number: u16| {
        let earlier = known.iter().find(|one| one.number == number);
        let running = earlier.filter(|one| one.is_running());
        Replica {
            number,
            port: settings.port + number - 1,
            binary: running.map_or_else(|| settings.binary.clone(), |one| one.binary.clone()),
            process: running.and_then(|one| one.process.clone()),
        }
    };
    Ok((1..=count).map(replica).collect())
}

/// `fairlead` beside this program.
///
/// # Errors
/// It is not there.
pub fn own_fairlead() -> Result<PathBuf, LaunchError> {
    let here = std::env::current_exe().ok();
    let beside = here.and_then(|path| Some(path.parent()?.join("fairlead")));
    beside.filter(|path| path.is_file()).ok_or_else(|| {
        LaunchError::usage(
            "there is no `fairlead` beside this program",
            "--binary PATH of one",
        )
    })
}

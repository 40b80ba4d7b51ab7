//! Rolling upgrades: one replica at a time, and the next one only when the previous one accepts work again.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Cluster, Condition, LaunchError, ReplicaView};

impl Cluster {
    /// Replaces each replica by one of `binary` (`None`: the same path again, whose file may be new).
    /// `told` hears of each step. A replica that does not come up with the new program is started with
    /// its old one, and the upgrade ends there.
    ///
    /// # Errors
    /// Nothing is touched when the program does not run or a replica is not up: with fewer replicas than
    /// usual nobody wants to lose one more.
    pub async fn upgrade(
        &mut self,
        binary: Option<PathBuf>,
        mut told: impl FnMut(String),
    ) -> Result<(), LaunchError> {
        let binary = binary.unwrap_or_else(|| self.memory.settings.binary.clone());
        let binary =
            std::path::absolute(&binary).map_err(|cause| LaunchError::file(&binary, cause))?;
        let version = version_of(&binary)?;
        for replica in self.replicas() {
            let view = ReplicaView::of(replica).await;
            if view.condition != Condition::Up {
                let number = replica.number;
                return Err(LaunchError::usage(
                    format!("replica {number} is {}: {}", view.condition, view.says),
                    format!(
                        "all replicas must be up before an upgrade: `fairlead-cluster restart {number}`"
                    ),
                ));
            }
        }
        let numbers: Vec<u16> = self.replicas().iter().map(|one| one.number).collect();
        for number in numbers {
            let in_order = self.stop(number).await?;
            if !in_order {
                told(format!(
                    "replica {number} did not stop in time and was killed"
                ));
            }
            self.replace(number, &binary).await?;
            told(format!("replica {number} is up with {version}"));
        }
        self.memory.settings.binary = binary;
        self.folder.save(&self.memory)
    }

    async fn replace(&mut self, number: u16, binary: &Path) -> Result<(), LaunchError> {
        let old = self.replica(number)?.binary.clone();
        self.remember(number, |replica| binary.clone_into(&mut replica.binary))?;
        let started = match self.start(number) {
            Ok(()) => self.wait_ready(number).await,
            Err(error) => Err(error),
        };
        let Err(error) = started else {
            return Ok(());
        };
        self.stop(number).await?;
        self.remember(number, |replica| replica.binary.clone_from(&old))?;
        self.restart(number).await?;
        Err(LaunchError::local(
            format!(
                "{error}\nreplica {number} runs '{}' again, and the upgrade ends here",
                old.display()
            ),
            "see the messages of the new program; earlier replicas run the new program",
        ))
    }
}

/// What the program says it is: nothing is stopped for one that does not even run.
fn version_of(binary: &Path) -> Result<String, LaunchError> {
    let failed = |why: String| {
        LaunchError::usage(
            format!("'{}' does not run: {why}", binary.display()),
            "--binary PATH of a `fairlead`",
        )
    };
    let output = Command::new(binary)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! Wall clocks of replicas that are set to a wrong time: libfaketime reads how wrong from a file of each replica.

use std::{fs, io, path::PathBuf};

use super::rig::script;

/// Places in which Debian and others install the library, below `/usr`.
const PLACES: [&str; 4] = [
    "lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "lib64/faketime/libfaketime.so.1",
    "lib/faketime/libfaketime.so.1",
];

/// Returns the library. `None`: it is not installed, so no clock can be set.
pub(super) fn library() -> Option<PathBuf> {
    let places = PLACES.map(|place| PathBuf::from("/usr").join(place));
    places.into_iter().find(|path| path.exists())
}

/// Clocks of the replicas of a run, in its folder.
#[derive(Debug, Clone)]
pub(super) struct Clocks {
    dir: PathBuf,
    first_port: u16,
}

impl Clocks {
    /// Creates correct clocks. The program that [`Self::program`] names starts replicas with them.
    ///
    /// # Errors
    /// Fails if the files cannot be written.
    pub(super) fn of(
        dir: PathBuf,
        library: &std::path::Path,
        binary: &std::path::Path,
        (first_port, replicas): (u16, u16),
    ) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        let clocks = Self { dir, first_port };
        for number in 1..=replicas {
            clocks.set(number, 0)?;
        }
        // The second word after `--listen` names the replica by its port.
        let text = format!(
            "port=${{3##*:}}\n\
             export LD_PRELOAD='{}' FAKETIME_TIMESTAMP_FILE=\"{}/clock-$port\"\n\
             export FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1\n\
             exec '{}' \"$@\"",
            library.display(),
            clocks.dir.display(),
            binary.display()
        );
        script(&clocks.program(), &text)?;
        Ok(clocks)
    }

    /// Returns a program that starts a `fairlead` with a settable clock.
    pub(super) fn program(&self) -> PathBuf {
        self.dir.join("fairlead-with-clock")
    }

    /// Sets the lead of a replica's clock over the true time, seconds.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(super) fn set(&self, number: u16, ahead_s: i64) -> io::Result<()> {
        let port = self.first_port + number - 1;
        // The file is replaced atomically, so readers never see half of it.
        let (new, path) = (self.dir.join("new"), self.dir.join(format!("clock-{port}")));
        fs::write(&new, format!("{ahead_s:+}\n"))?;
        fs::rename(new, path)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn each_replica_reads_its_own_clock() {
        let dir = tempfile::tempdir().unwrap();
        let show = dir.path().join("show");
        script(&show, "cat \"$FAKETIME_TIMESTAMP_FILE\"").unwrap();
        let none = std::path::Path::new("");
        let clocks = Clocks::of(dir.path().join("clocks"), none, &show, (3300, 3)).unwrap();
        clocks.set(2, -3_600).unwrap();
        let says = |port: u16| {
            let words = ["serve", "--listen", &format!("127.0.0.1:{port}")];
            let ran = Command::new(clocks.program()).args(words).output().unwrap();
            String::from_utf8(ran.stdout).unwrap()
        };
        assert_eq!([3300, 3301, 3302].map(says), ["+0\n", "-3600\n", "+0\n"]);
    }
}

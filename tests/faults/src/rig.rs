//! Parts of the replicas' machine that a run can spoil: their clocks, and the disk of their data folder.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path, path::PathBuf};

use anyhow::Context;
use fairlead_cluster::launch::own_fairlead;
use fairlead_reaper::Reaper;

use super::{
    clocks::{Clocks, library},
    disk::Disk,
    lanes::Kind,
    run::Options,
};

/// Resources that are set up for the kinds of faults of a run.
#[derive(Debug, Default)]
pub(super) struct Rig {
    pub(super) clocks: Option<Clocks>,
    pub(super) disk: Option<Disk>,
}

impl Rig {
    /// Sets up the resources in the folder of a run, without any fault.
    ///
    /// # Errors
    /// Fails if there is no `fairlead`, or if the folder is unusable.
    pub(super) fn set_up(options: &Options, dir: &Path, reaper: &Reaper) -> anyhow::Result<Self> {
        let mut rig = Self::default();
        let mut binary = match &options.binary {
            Some(binary) => std::path::absolute(binary)?,
            None => own_fairlead()?,
        };
        if !binary.is_file() {
            // The start of the replicas reports this.
            return Ok(rig);
        }
        let library = library().filter(|_| options.kinds.contains(&Kind::ReplicaClock));
        if let Some(library) = library {
            let ports = (options.port, options.replicas);
            let clocks = Clocks::of(dir.join("clocks"), &library, &binary, ports)?;
            binary = clocks.program();
            rig.clocks = Some(clocks);
        }
        if options.kinds.contains(&Kind::FolderFull) {
            let disk = Disk::below(dir, &binary, reaper);
            rig.disk = Some(disk.context("the file system of the data folder")?);
        }
        Ok(rig)
    }

    /// Returns the program that starts a replica. `None`: `fairlead` itself.
    pub(super) fn program(&self) -> Option<PathBuf> {
        let on_disk = self.disk.as_ref().map(Disk::program);
        on_disk.or_else(|| self.clocks.as_ref().map(Clocks::program))
    }
}

/// Writes a shell script.
///
/// # Errors
/// Fails if the file cannot be written.
pub(super) fn script(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, format!("#!/bin/sh\n{text}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

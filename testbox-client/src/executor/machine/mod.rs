//! A job's virtual machine: the command line that starts it, its disks, and its power button.

mod disks;
mod images;
mod qemu;
mod qmp;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fairlead_job::Network;
use tokio::process::Command;

pub(crate) use disks::{ResultLimits, Returned};
pub(crate) use images::Image;
pub(crate) use qemu::Qemu;

use self::{disks::Disks, qmp::press_power_button};
use super::{
    engine::can_be_mounted,
    entry::{Entry, Task},
};
use crate::isolation::users::JobUser;

/// Name of a machine's socket, relative to QEMU's working folder, because socket paths must be short.
const SOCKET: &str = "qmp.sock";

/// Plan of a job's virtual machine.
#[derive(Debug, Clone)]
pub(crate) struct MachinePlan {
    pub(crate) qemu: Arc<Qemu>,
    pub(crate) image: Image,
    pub(crate) network: Network,
    pub(crate) memory_mb: u32,
    pub(crate) cpus: u32,
    /// Files and folders of the job's folder, by name, with true if the job may write to them.
    pub(crate) shared: Vec<(PathBuf, String, bool)>,
    /// Limits of its results.
    pub(crate) limits: ResultLimits,
}

/// A machine that was started.
#[derive(Debug)]
pub(crate) struct Machine {
    disks: Disks,
    /// Folder of the job.
    job: PathBuf,
    limits: ResultLimits,
}

impl MachinePlan {
    /// Returns the command that runs a job in its own machine. Its console is the command's output.
    pub(crate) fn command(
        &self,
        task: &Task,
        user: Option<&JobUser>,
    ) -> io::Result<(Command, Machine)> {
        let entry = Entry::of(&task.folder);
        entry.write(task)?;
        let disks = Disks::of(&entry);
        disks.make(&entry, &self.shared, self.limits)?;
        for path in [&disks.inside, &disks.outside, &self.image.kernel] {
            can_be_mounted(path)?;
        }
        let mut command = Command::new(&self.qemu.program);
        command.current_dir(entry.folder());
        // The layer over the image's disk is an unnamed file here, which disappears with its machine.
        command.env_clear().env("TMPDIR", entry.folder());
        command.args(self.qemu.machine());
        command.arg("-m").arg(self.memory_mb.to_string());
        command.arg("-smp").arg(self.cpus.to_string());
        command.args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        command.args(["-serial", "stdio"]);
        command.args(["-qmp", &format!("unix:{SOCKET},server=on,wait=off")]);
        self.boot(&mut command)?;
        drive(&mut command, &disks.inside, "in", "format=raw,readonly=on");
        drive(
            &mut command,
            &disks.outside,
            "out",
            "format=raw,cache=unsafe",
        );
        if self.network == Network::Bridge {
            command.args([
                "-netdev",
                "user,id=net0",
                "-device",
                "virtio-net-pci,netdev=net0,romfile=",
            ]);
        }
        let sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
        match user {
            // QEMU changes its user after it has opened all files.
            Some(user) => command.args(["-runas", &format!("{0}:{0}", user.uid)]),
            None => command.args(["-sandbox", sandbox]),
        };
        let machine = Machine {
            disks,
            job: task.folder.clone(),
            limits: self.limits,
        };
        Ok((command, machine))
    }

    fn boot(&self, command: &mut Command) -> io::Result<()> {
        let image = &self.image;
        command.arg("-kernel").arg(&image.kernel);
        if let Some(initrd) = &image.initrd {
            command.arg("-initrd").arg(initrd);
        }
        if let Some((disk, format)) = &image.disk {
            can_be_mounted(disk)?;
            drive(
                command,
                disk,
                "root",
                &format!("format={format},snapshot=on"),
            );
        }
        let console = self.qemu.console();
        let own = format!("console={console} panic=-1");
        let words = [&own, self.qemu.kernel_words(), &image.command_line];
        let words: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
        command.arg("-append").arg(words.join(" "));
        Ok(())
    }
}

/// Adds a disk that the guest finds by its serial number.
fn drive(command: &mut Command, file: &Path, name: &str, options: &str) {
    let drive = format!("if=none,id={name},file={},{options}", file.display());
    let device = format!("virtio-blk-pci,drive={name},serial=fairlead-{name}");
    command.args(["-drive", &drive, "-device", &device]);
}

impl Machine {
    /// Asks the guest's system to shut down. `pid` is QEMU's.
    pub(crate) async fn ask_to_stop(pid: u32) {
        let socket = PathBuf::from(format!("/proc/{pid}/cwd/{SOCKET}"));
        if let Err(error) = press_power_button(&socket).await {
            tracing::debug!(%error, "a machine has no power button any more");
        }
    }

    /// Extracts the results, and removes the disks. Blocks.
    pub(crate) fn after(&self) -> Returned {
        self.disks.take(&self.job, self.limits)
    }
}

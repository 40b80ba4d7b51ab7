//! QEMU on this host: where it is, and what makes its guests fast. Both are found by booting something very small.
//!
//! The presence of `/dev/kvm` says little: it may be there and not work.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::process::Command;

use crate::executor::tool::{ToolError, ask, exit_code, on_path};

/// How long QEMU may take to tell its version, or to boot something that ends at once.
const ASK_MAX: Duration = Duration::from_secs(30);

/// A sector that a PC boots: it writes 16 to the port of a device that ends QEMU with exit code 2 * 16 + 1.
const PC_SECTOR: [u8; 9] = [0xBA, 0xF4, 0x00, 0xB0, 0x10, 0xEE, 0xF4, 0xEB, 0xFD];
const PC_CODE: i32 = 33;
/// Instructions for a 64-bit Arm machine: they ask its firmware to turn the machine off.
const ARM_WORDS: [u32; 4] = [0x5280_0100, 0x72B0_8000, 0xD400_0002, 0x1400_0000];
const ARM_CODE: i32 = 0;

/// What runs the instructions of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// The processor itself.
    Kvm,
    /// QEMU translates them.
    Tcg,
}

impl Accelerator {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// A QEMU that works here.
#[derive(Debug, Clone)]
pub(crate) struct Qemu {
    pub(crate) program: PathBuf,
    /// With the accelerator, for example `7.2.22 (tcg)`.
    pub(crate) version: String,
    pub(crate) accelerator: Accelerator,
    /// The architecture of its guests, as QEMU names it.
    pub(crate) arch: String,
}

impl Qemu {
    /// Finds the QEMU for guests of `arch` on `path`, and boots something with it.
    ///
    /// # Errors
    /// It is not installed, or does not boot anything.
    pub(crate) async fn find(arch: &str, path: &str, work_dir: &Path) -> Result<Self, ToolError> {
        let package = match arch {
            "x86_64" | "i386" => "qemu-system-x86",
            "aarch64" | "arm" => "qemu-system-arm",
            _ => "qemu-system-misc",
        };
        let name = format!("qemu-system-{arch}");
        let program = on_path(path, &name).ok_or_else(|| ToolError::Missing {
            program: name.clone(),
            package,
        })?;
        let mut version = Command::new(&program);
        version.arg("--version");
        let said = ask(version, package, ASK_MAX).await?;
        let mut qemu = Self {
            program,
            version: version_in(&said),
            accelerator: Accelerator::Tcg,
            arch: arch.to_owned(),
        };
        for accelerator in [Accelerator::Kvm, Accelerator::Tcg] {
            qemu.accelerator = accelerator;
            if qemu.boots(work_dir).await? {
                qemu.version = format!("{} ({})", qemu.version, accelerator.as_str());
                return Ok(qemu);
            }
        }
        Err(ToolError::Failed {
            program: name,
            said: "it boots nothing here".to_owned(),
        })
    }

    /// The machine and processor of its guests.
    pub(crate) fn machine(&self) -> [String; 6] {
        let machine = match self.arch.as_str() {
            "x86_64" | "i386" => "pc",
            _ => "virt",
        };
        let cpu = match self.accelerator {
            Accelerator::Kvm => "host",
            Accelerator::Tcg if self.arch == "riscv64" => "rv64",
            Accelerator::Tcg => "max",
        };
        let accelerator = self.accelerator.as_str();
        ["-machine", machine, "-accel", accelerator, "-cpu", cpu].map(str::to_owned)
    }

    /// The device of its console, as kernels name it.
    pub(crate) fn console(&self) -> &'static str {
        match self.arch.as_str() {
            "aarch64" | "arm" => "ttyAMA0",
            _ => "ttyS0",
        }
    }

    async fn boots(&self, work_dir: &Path) -> Result<bool, ToolError> {
        let (file, bytes, wanted) = match self.arch.as_str() {
            "x86_64" | "i386" => ("probe.img", pc_disk(), PC_CODE),
            "aarch64" => ("probe.bin", arm_program(), ARM_CODE),
            // Translation works everywhere, and nothing else was tried.
            _ => return Ok(self.accelerator == Accelerator::Tcg),
        };
        let file = work_dir.join(file);
        fs::write(&file, bytes).map_err(|error| self.cannot_probe(error))?;
        let mut command = Command::new(&self.program);
        command.args(self.machine());
        command.args([
            "-m",
            "64",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
        ]);
        if self.arch == "aarch64" {
            command.arg("-kernel").arg(&file);
        } else {
            let drive = format!("if=ide,format=raw,file={}", file.display());
            command.args(["-drive", &drive]);
            command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
        }
        Ok(exit_code(command, ASK_MAX).await? == Some(wanted))
    }

    fn cannot_probe(&self, error: io::Error) -> ToolError {
        ToolError::NotStarted {
            program: self.program.display().to_string(),
            error,
        }
    }
}

fn pc_disk() -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[..PC_SECTOR.len()].copy_from_slice(&PC_SECTOR);
    sector[510..].copy_from_slice(&[0x55, 0xAA]);
    sector
}

fn arm_program() -> Vec<u8> {
    ARM_WORDS
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)`.
fn version_in(said: &str) -> String {
    let words = said.split_whitespace();
    let mut after = words.skip_while(|word| *word != "version").skip(1);
    after.next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_tells_its_version() {
        let said = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright\n";
        assert_eq!(version_in(said), "7.2.22");
        assert_eq!(version_in(""), "");
    }

    #[tokio::test]
    async fn a_host_without_it_says_which_package_brings_it() {
        let dir = tempfile::tempdir().unwrap();
        let error = Qemu::find("x86_64", "/nowhere", dir.path()).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("install the package qemu-system-x86"),
            "{error}"
        );
    }
}

//! QEMU on this host: where it is, and what makes its guests fast. Both are found by booting something very small.
//!
//! The presence of `/dev/kvm` says little: it may be there and not work, or be slower than translation.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{process::Command, time::Instant};

use crate::executor::tool::{ToolError, ask, exit_code, on_path};

/// Timeout of the query for QEMU's version.
const ASK_MAX: Duration = Duration::from_secs(30);
/// Timeout of a test boot that takes a quarter of a second.
const BOOT_MAX: Duration = Duration::from_mins(1);

/// Boot sector of a PC, loaded at 0x7c00. It fills 16 MB and sums them up, four times, in protected mode. Then it
/// writes 16 to the port of a device that ends QEMU with exit code 2 * 16 + 1.
#[rustfmt::skip]
const PC_SECTOR: [u8; 118] = [
    0xFA, 0x31, 0xC0, 0x8E, 0xD8, // cli; ds = 0
    0x66, 0x0F, 0x01, 0x16, 0x70, 0x7C, // lgdt [0x7c70]
    0x0F, 0x20, 0xC0, 0x0C, 0x01, 0x0F, 0x22, 0xC0, // cr0 |= 1
    0x66, 0xEA, 0x1B, 0x7C, 0x00, 0x00, 0x08, 0x00, // jump to 8:0x7c1b
    0x66, 0xB8, 0x10, 0x00, 0x8E, 0xD8, 0x8E, 0xC0, 0xFC, // ds = es = 16; cld
    0xBB, 0x04, 0x00, 0x00, 0x00, // ebx = 4
    0xBF, 0x00, 0x00, 0x20, 0x00, 0xB9, 0x00, 0x00, 0x40, 0x00, // 0x7c29: edi = 2 MB; ecx = 4 Mi
    0x89, 0xD8, 0xF3, 0xAB, // eax = ebx; rep stosd
    0xBE, 0x00, 0x00, 0x20, 0x00, 0xB9, 0x00, 0x00, 0x40, 0x00, // esi = 2 MB; ecx = 4 Mi
    0x03, 0x16, 0x83, 0xC6, 0x04, 0x49, 0x75, 0xF8, // 0x7c41: edx += [esi]; esi += 4; until --ecx is 0
    0x4B, 0x75, 0xDD, // until --ebx is 0, from 0x7c29
    0x66, 0xBA, 0xF4, 0x00, 0xB0, 0x10, 0xEE, 0xF4, // out 0xf4, 16; hlt
    0x8D, 0x74, 0x26, 0x00, // nothing
    // 0x7c58: the null descriptor, and descriptors of 4 GB of code and of 4 GB of data.
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xFF, 0xFF, 0x00, 0x00, 0x00, 0x9A, 0xCF, 0x00,
    0xFF, 0xFF, 0x00, 0x00, 0x00, 0x92, 0xCF, 0x00,
    0x17, 0x00, 0x58, 0x7C, 0x00, 0x00, // their place
];
const PC_CODE: i32 = 33;
/// Instructions for a 64-bit Arm machine that ask its firmware to power it off.
const ARM_WORDS: [u32; 4] = [0x5280_0100, 0x72B0_8000, 0xD400_0002, 0x1400_0000];
const ARM_CODE: i32 = 0;

/// Accelerator of guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// Hardware virtualization by the processor.
    Kvm,
    /// Translation by QEMU.
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
    /// Version with the accelerator, for example `7.2.22 (tcg)`.
    pub(crate) version: String,
    pub(crate) accelerator: Accelerator,
    /// Architecture of its guests, by QEMU's name.
    pub(crate) arch: String,
}

impl Qemu {
    /// Finds the QEMU for guests of `arch` on `path`, and test-boots it.
    ///
    /// # Errors
    /// Fails if it is not installed, or if the test boot fails.
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
        let began = Instant::now();
        let translates = qemu.boots(work_dir, BOOT_MAX).await?;
        // If the host is itself a virtual machine, KVM may work but be a hundred times slower.
        let limit = if translates {
            began.elapsed()
        } else {
            BOOT_MAX
        };
        qemu.accelerator = Accelerator::Kvm;
        if !qemu.boots(work_dir, limit).await? {
            if !translates {
                return Err(ToolError::Failed {
                    program: name,
                    said: "it boots nothing here".to_owned(),
                });
            }
            qemu.accelerator = Accelerator::Tcg;
        }
        qemu.version = format!("{} ({})", qemu.version, qemu.accelerator.as_str());
        Ok(qemu)
    }

    /// Returns words for the Linux command line on this machine. Empty: none.
    pub(crate) fn kernel_words(&self) -> &'static str {
        let is_pc = matches!(self.arch.as_str(), "x86_64" | "i386");
        // A translated guest may get no time while Linux tests the timer, and then Linux panics. Under KVM Linux skips
        // the test.
        if is_pc && self.accelerator == Accelerator::Tcg {
            "no_timer_check"
        } else {
            ""
        }
    }

    /// Returns the options for the machine and processor of its guests.
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

    /// Returns the console device, by its name in kernels.
    pub(crate) fn console(&self) -> &'static str {
        match self.arch.as_str() {
            "aarch64" | "arm" => "ttyAMA0",
            _ => "ttyS0",
        }
    }

    /// Returns true if a small test guest boots within `limit`.
    async fn boots(&self, work_dir: &Path, limit: Duration) -> Result<bool, ToolError> {
        let (file, bytes, wanted) = match self.arch.as_str() {
            "x86_64" | "i386" => ("probe.img", pc_disk(), PC_CODE),
            "aarch64" => ("probe.bin", arm_program(), ARM_CODE),
            // Translation works everywhere, and no other accelerator was tried.
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
        Ok(exit_code(command, limit).await? == Some(wanted))
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

/// Returns the version from `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)`.
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

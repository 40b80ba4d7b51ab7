//! `fairlead-testbox image`: builds images of virtual machines, for a site that has none.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand, ValueEnum};

/// Build script of images, and the files that go into an image.
const BUILD: &str = include_str!("build.sh");
const PARTS: [(&str, &str); 3] = [
    ("guest-init", include_str!("guest-init")),
    ("power-button", include_str!("power-button")),
    ("take-address", include_str!("take-address")),
];

/// Makes images of virtual machines.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    Build(Build),
}

/// Builds an image of virtual machines.
#[derive(Debug, Parser)]
struct Build {
    /// busybox: small, with the programs of busybox only. debian: a Debian system, made by debootstrap; needs root.
    kind: Kind,
    /// Folder of images, the --vm-images of the agents.
    #[arg(long, default_value = "images")]
    vm_images: PathBuf,
    /// Name of the image [default: its kind].
    #[arg(long)]
    name: Option<String>,
    /// Kernel [default: Debian's kernel for clouds, which apt-get downloads].
    #[arg(long, requires = "modules")]
    kernel: Option<PathBuf>,
    /// Folder of the modules of that kernel, such as /lib/modules/6.1.0.
    #[arg(long, requires = "kernel")]
    modules: Option<PathBuf>,
    /// Release of Debian.
    #[arg(long, default_value = "stable")]
    suite: String,
    /// More packages of Debian; repeat or separate by commas.
    #[arg(long = "package", value_delimiter = ',')]
    packages: Vec<String>,
    /// Size of the disk of Debian: 4g, 800m.
    #[arg(long, default_value = "2g", value_parser = crate::memory_mb)]
    disk: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Busybox,
    Debian,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Busybox => "busybox",
            Self::Debian => "debian",
        }
    }

    /// Returns the programs that the build script calls, with their packages.
    fn tools(self) -> Vec<(&'static str, &'static str)> {
        let mut tools = vec![("busybox", "busybox-static"), ("cpio", "cpio")];
        if self == Self::Debian {
            tools.extend([("debootstrap", "debootstrap"), ("mkfs.ext4", "e2fsprogs")]);
        }
        tools
    }
}

/// Runs the command. Exit code 0: done. 1: it failed, and the reason is on stderr.
pub(crate) fn run(args: &Args) -> ExitCode {
    let ImageCommand::Build(build) = &args.command;
    match build.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Build {
    fn run(&self) -> anyhow::Result<()> {
        let missing: Vec<_> = self
            .kind
            .tools()
            .into_iter()
            .filter(|(tool, _)| !is_here(tool))
            .collect();
        if !missing.is_empty() {
            let tools: Vec<_> = missing.iter().map(|(tool, _)| *tool).collect();
            let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
            bail!(
                "{} is missing (hint: apt-get install {})",
                tools.join(", "),
                packages.join(" ")
            );
        }
        let name = self.name.as_deref().unwrap_or(self.kind.word());
        if name.contains('/') || name.starts_with('.') || name.is_empty() {
            bail!("'{name}' is no name of an image (hint: the name of a folder)");
        }
        let images = folder(&self.vm_images)?;
        let parts = tempfile::tempdir().context("cannot make a folder for the parts")?;
        for (part, text) in PARTS {
            fs::write(parts.path().join(part), text).context("cannot write the parts")?;
        }
        let path = |path: &Option<PathBuf>| match path {
            None => Ok(PathBuf::new()),
            Some(path) => {
                fs::canonicalize(path).with_context(|| format!("cannot read '{}'", path.display()))
            }
        };
        let status = Command::new("/bin/sh")
            .args(["-c", BUILD])
            .stdin(Stdio::null())
            .env("KIND", self.kind.word())
            .env("TARGET", images.join(name))
            .env("PARTS", parts.path())
            .env("KERNEL", path(&self.kernel)?)
            .env("MODULES", path(&self.modules)?)
            .env("SUITE", &self.suite)
            .env("PACKAGES", self.packages.join(","))
            .env("SIZE_MB", self.disk.to_string())
            .status()
            .context("cannot start /bin/sh")?;
        if !status.success() {
            bail!("the image '{name}' could not be built: {status}; the messages above tell why");
        }
        Ok(())
    }
}

/// Creates the folder, and returns its absolute path.
fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    let made = || -> io::Result<PathBuf> {
        fs::create_dir_all(path)?;
        fs::canonicalize(path)
    };
    made().with_context(|| format!("cannot make the folder '{}'", path.display()))
}

/// Returns true if the shell finds a program.
fn is_here(program: &str) -> bool {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("command -v {program}")]);
    let asked = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

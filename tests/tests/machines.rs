//! Real machines in QEMU boot over the network, by the iPXE of their network card, and run jobs without an agent.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

use fairlead_tests::{Http, Scheduler, Store, clock, jobs, reaper};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit from the start of a machine to the end of its job, seconds. Without KVM it takes ten seconds on an idle
/// machine.
const BOOT_LIMIT_S: u64 = 240;
/// A running machine. It is switched off on drop.
struct Machine {
    qemu: Child,
    folder: TempDir,
}

impl Machine {
    /// Switches it on. It asks for `boot.ipxe`, which sends it to the scheduler at this port.
    fn start(mac: &str, port: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let script = format!(
            "#!ipxe\nchain http://10.0.2.2:{port}/boot.ipxe/mac/${{mac:hexhyp}}?arch=${{buildarch}}&wait=1\n"
        );
        fs::write(folder.path().join("boot.ipxe"), script).expect("a boot file");
        let console = File::create(folder.path().join("console")).expect("a console");
        let net = format!(
            "user,id=n0,tftp={},bootfile=boot.ipxe",
            folder.path().display()
        );
        let qemu = Command::new("qemu-system-x86_64")
            .args([
                "-accel",
                "tcg",
                "-cpu",
                "qemu64",
                "-m",
                "256",
                "-nodefaults",
                "-nographic",
                "-no-reboot",
            ])
            .args(["-serial", "stdio", "-boot", "n", "-netdev", &net])
            .args(["-device", &format!("virtio-net-pci,netdev=n0,mac={mac}")])
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .stdout(console.try_clone().expect("a console"))
            .stderr(console)
            .spawn()
            .expect("qemu-system-x86_64 (Debian: apt-get install qemu-system-x86 ipxe-qemu)");
        Self { qemu, folder }
    }

    fn console(&self) -> String {
        let bytes = fs::read(self.folder.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Machine {
    #[expect(clippy::print_stderr, reason = "shown when the test fails")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the console of the machine:\n{}", self.console());
        }
        // The machine may have switched itself off.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Puts the tests' kernel and initrd into the boot store of a scheduler.
fn fill_boot_store(data: &Path) {
    let folder = data.join("srv/boot/x86_64/tiny/1");
    let made = Command::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../scripts/boot-files"
    ))
    .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/boot-files"))
    .status()
    .expect("scripts/boot-files");
    assert!(
        made.success(),
        "scripts/boot-files failed: see its words above"
    );
    fs::create_dir_all(&folder).expect("a folder");
    for file in ["vmlinuz", "initrd.cgz"] {
        let made = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../target/boot-files")
            .join(file);
        fs::copy(made, folder.join(file)).expect("a file of the boot store");
    }
}

fn job(fields: &Value) -> Value {
    let system = json!({"arch": "x86_64", "os": "tiny", "os_version": "1"});
    jobs::with(jobs::with(jobs::hw("alice"), &system), fields)
}

async fn output(http: &Http, job: &Value) -> String {
    let root = job["result_root"].as_str().expect("a result folder");
    http.get(&format!("{root}/output")).await.text
}

#[tokio::test]
async fn two_machines_boot_into_their_jobs_one_of_them_after_it_was_idle() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    fill_boot_store(&scheduler.data());
    let url = scheduler.url();
    let port = url.rsplit(':').next().expect("a port").to_owned();
    for (name, mac) in [
        ("box-1", "52:54:00:00:00:01"),
        ("box-2", "52:54:00:00:00:02"),
    ] {
        let about = json!({"mac_addr": [mac], "arch": "x86_64"});
        let reply = http
            .post(&format!("/scheduler/v1/hosts/{name}"), &about)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    let idle = Machine::start("52:54:00:00:00:01", &port);
    clock::until(
        "the idle machine hears that there is no job",
        BOOT_LIMIT_S,
        async || idle.console().contains("No job available").then_some(()),
    )
    .await;
    // Firmware of a BIOS reports i386, but the job wants x86_64. So it fails, and reports that.
    let failing =
        job(&json!({"target_machines": ["box-2"], "script": "echo from $(uname -m); exit 3"}));
    let failing = http.submit(&failing).await.remove(0);
    let other = Machine::start("52:54:00:00:00:02", &port);
    let late =
        job(&json!({"target_machines": ["box-1"], "script": "echo hello from the late job"}));
    let late = http.submit(&late).await.remove(0);
    for (machine, id, health, code, said) in [
        (&other, &failing, "fail", 3, "from x86_64\n"),
        (&idle, &late, "success", 0, "hello from the late job\n"),
    ] {
        clock::until("the job ends", BOOT_LIMIT_S, async || {
            (http.field(id, "job_stage").await == "finish").then_some(())
        })
        .await;
        let ended = http.job(id).await;
        assert_eq!(
            ended["job_health"],
            health,
            "{ended}: {}",
            machine.console()
        );
        assert_eq!(ended["exit_code"], code, "{ended}");
        assert_eq!(ended["job_data_readiness"], "complete", "{ended}");
        assert_eq!(output(&http, &ended).await, said);
    }
    let booted = idle.console().matches("iPXE 1").count();
    assert_eq!(booted, 1, "it was not reset: {}", idle.console());
}

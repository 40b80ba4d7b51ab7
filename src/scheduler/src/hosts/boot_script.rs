//! Writes the scripts of iPXE and grub, and the JSON, for machines that boot over the network. Pure text.

use fairlead_api::Grant;
use fairlead_job::Spec;
use serde_json::{Value, json};

use crate::placement::boot_store::BootFiles;
use fairlead_base::errors::{HostError, excerpt};

/// How long an unknown machine waits before it asks again, seconds.
const UNKNOWN_WAIT_S: u32 = 10;
/// How long a machine waits after an answer without a job, or after none, seconds.
const AGAIN_S: u32 = 1;

/// How a box boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootType {
    Ipxe,
    Grub,
    Native,
}

impl BootType {
    pub(crate) fn parse(text: &str) -> Result<Self, HostError> {
        match text {
            "ipxe" => Ok(Self::Ipxe),
            "grub" => Ok(Self::Grub),
            "native" => Ok(Self::Native),
            _ => Err(HostError::BadBootType(excerpt(text))),
        }
    }
}

/// The architecture that firmware means: iPXE says `i386` on every BIOS, and has names of its own for others.
pub(super) fn arch_of(firmware: &str) -> &str {
    match firmware {
        "i386" => "x86_64",
        "arm64" => "aarch64",
        "arm32" => "armv7l",
        "loong64" => "loongarch64",
        other => other,
    }
}

/// A job and how it is booted.
#[derive(Debug)]
pub(super) struct JobBoot<'a> {
    pub(super) grant: &'a Grant,
    /// How the box reaches us, `HOST:PORT`.
    pub(super) sched: &'a str,
    /// The architecture of the box.
    pub(super) arch: &'a str,
    pub(super) files: BootFiles,
    /// Opens the job's secrets to the box's address; empty: they stay here.
    pub(super) secrets_key: String,
}

/// A text that cannot break out of its line in a script.
pub(super) fn line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The texts of a field: of a list all, of a map by architecture the one for `arch`.
fn texts(spec: &Spec, name: &str, arch: &str) -> Vec<String> {
    match spec.get(name) {
        Some(Value::String(text)) if !text.is_empty() => vec![line(text)],
        Some(Value::Number(number)) => vec![number.to_string()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(line).collect(),
        Some(Value::Object(by_arch)) => by_arch
            .get(arch)
            .and_then(Value::as_str)
            .map(line)
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// The name under which iPXE keeps what it fetched.
fn file_name(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path)
}

/// A URL in grub's way to write it.
fn grub_path(url: &str) -> String {
    let rest = url.strip_prefix("http://");
    match rest.and_then(|rest| rest.split_once('/')) {
        Some((server, path)) => format!("(http,{server})/{path}"),
        None => url.to_owned(),
    }
}

impl JobBoot<'_> {
    fn texts(&self, name: &str) -> Vec<String> {
        texts(&self.grant.job, name, self.arch)
    }

    fn stored(&self, path: &str) -> String {
        format!("http://{}/srv/boot/{path}", self.sched)
    }

    /// The root first, then the kernel's modules, what else the job wants, and the job: its download says that the box
    /// boots.
    fn initrds(&self) -> Vec<String> {
        let mut others = self.texts("initrds_uri");
        if others.is_empty() {
            others.extend(self.files.initrd.iter().map(|path| self.stored(path)));
        }
        let mut modules = self.texts("modules_uri");
        if modules.is_empty() {
            modules.extend(self.files.modules.iter().map(|path| self.stored(path)));
        }
        let mut urls: Vec<String> = others.drain(..others.len().min(1)).collect();
        urls.extend(modules);
        urls.append(&mut others);
        let Grant {
            job_id, job_token, ..
        } = self.grant;
        let key = match self.secrets_key.as_str() {
            "" => String::new(),
            key => format!("&secrets_key={key}"),
        };
        urls.push(format!(
            "http://{}/srv/scheduler/pending-jobs/{job_id}/job.cgz?job_token={job_token}{key}",
            self.sched
        ));
        urls
    }

    fn kernel(&self) -> String {
        let named = self.texts("kernel_uri").pop();
        let found = || Some(self.stored(self.files.kernel.as_ref()?));
        named
            .or_else(found)
            .unwrap_or_else(|| self.stored(&format!("{}/vmlinuz", line(self.arch))))
    }

    fn params(&self) -> String {
        let mut params = "user=lkp job=/lkp/scheduled/job.yaml ip=dhcp rootovl ro".to_owned();
        let mut add = |text: &str| {
            params.push(' ');
            params.push_str(text);
        };
        for name in ["boot_params", "kernel_custom_params", "ipxe_kernel_params"] {
            self.texts(name).iter().for_each(|text| add(text));
        }
        add("console=tty0");
        add(if self.arch == "aarch64" {
            "console=ttyAMA0,115200"
        } else {
            "console=ttyS0,115200"
        });
        let disks = self.texts("rootfs_disk");
        if !disks.is_empty() {
            add(&format!("rootfs_disk={}", disks.join(",")));
        }
        if let Some(size) = self.texts("crashkernel").pop() {
            add(&format!("crashkernel={size}"));
        }
        params
    }

    /// The script or JSON that boots the job.
    pub(super) fn text(&self, boot_type: BootType) -> String {
        let (grant, initrds, kernel, params) =
            (self.grant, self.initrds(), self.kernel(), self.params());
        let (id, root) = (&grant.job_id, line(&grant.result_root));
        match boot_type {
            BootType::Ipxe => self.ipxe(&initrds, &kernel, &params),
            BootType::Grub => {
                let files: Vec<String> = initrds.iter().map(|url| grub_path(url)).collect();
                format!(
                    "#!grub\n\nlinux {} {params}\ninitrd {}\necho grub will boot job id={id}\necho result_root={root}\nboot\n",
                    grub_path(&kernel),
                    files.join(" ")
                )
            }
            BootType::Native => json!({
                "job_id": id, "attempt": grant.attempt, "job_token": grant.job_token, "claim_token": grant.claim_token,
                "initrds": initrds, "kernel_uri": kernel, "kernel_params": params, "result_root": root, "job": grant.job,
            })
            .to_string(),
        }
    }

    fn ipxe(&self, initrds: &[String], kernel: &str, params: &str) -> String {
        let (id, root) = (&self.grant.job_id, line(&self.grant.result_root));
        let mut lines = vec!["#!ipxe".to_owned(), String::new()];
        for name in ["nr_nic", "nr_disk", "disk_size"] {
            let texts = self.texts(name).into_iter();
            lines.extend(texts.map(|text| format!("# {name}={text}")));
        }
        let said = [
            format!("echo ipxe will boot job id={id}, ip=${{ip}}, mac=${{mac}}"),
            format!("echo result_root={root}"),
            String::new(),
        ];
        if let Some(own) = self.texts("custom_ipxe").pop() {
            let url = if own.contains("://") {
                own
            } else {
                self.stored(own.trim_start_matches('/'))
            };
            lines.extend(said);
            lines.push(format!("chain --replace --autofree {url}"));
        } else {
            lines.extend(initrds.iter().map(|url| format!("initrd {url}")));
            let names = initrds
                .iter()
                .map(|url| format!(" initrd={}", file_name(url)));
            lines.push(format!(
                "kernel {kernel} {params}{}",
                names.collect::<String>()
            ));
            lines.extend(said);
            lines.push("boot".to_owned());
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// The answer without a job: a script that asks again, for ever, also while nobody answers. iPXE does not run the body
/// of an answer with an error's status, so this one comes with 200.
pub(super) fn idle(boot_type: BootType, sched: &str, token: Option<&str>, host: &str) -> String {
    again(
        boot_type,
        sched,
        token,
        host,
        AGAIN_S,
        "No job available at the moment",
    )
}

/// The same for a machine that nobody registered.
pub(super) fn unknown(boot_type: BootType, sched: &str, token: Option<&str>) -> String {
    let words = "This machine is not registered: an admin sees it with fairlead hosts --unknown";
    again(boot_type, sched, token, "", UNKNOWN_WAIT_S, words)
}

fn again(
    boot_type: BootType,
    sched: &str,
    token: Option<&str>,
    host: &str,
    wait_s: u32,
    words: &str,
) -> String {
    let token = token.map_or_else(String::new, |token| format!("&token={}", line(token)));
    match boot_type {
        BootType::Ipxe => format!(
            "#!ipxe\n\n:again\necho {words}\nsleep {wait_s}\n\
             chain --replace --autofree http://{sched}/boot.ipxe/mac/${{mac:hexhyp}}?arch=${{buildarch}}&hostname=${{hostname}}&ip=${{net0/ip}}{token} ||\n\
             sleep {UNKNOWN_WAIT_S}\ngoto again\n"
        ),
        BootType::Grub => {
            let which = if host.is_empty() {
                "mac/${net_default_mac}".to_owned()
            } else {
                format!("host/{}", line(host))
            };
            format!(
                "#!grub\n\necho {words}\nsleep {wait_s}\nconfigfile (http,{sched})/boot.grub/{which}\n"
            )
        }
        BootType::Native => json!({ "job_id": "0" }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(job: Value) -> Grant {
        let Value::Object(job) = job else {
            unreachable!()
        };
        Grant {
            job_id: "2611210236110700000".into(),
            attempt: 1,
            claim_token: "c".into(),
            job_token: "t".into(),
            tbox_type: "hw".into(),
            memory_mb: 0,
            guest_memory_mb: None,
            cpus: 0,
            timeout_s: 60,
            result_root: "/result/x".into(),
            stop_when_cut_off: false,
            log_delay_ms: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            job,
        }
    }

    fn usual() -> Grant {
        grant(json!({
            "suite": "x", "initrds_uri": ["http://i/a.cgz", "http://i/b.cgz\nreboot"], "kernel_uri": "http://k/vmlinuz-6.1",
            "boot_params": ["quiet"],
        }))
    }

    fn script(grant: &Grant, boot_type: BootType, arch: &str, files: BootFiles) -> String {
        let boot = JobBoot {
            grant,
            sched: "s:3000",
            arch,
            files,
            secrets_key: String::new(),
        };
        boot.text(boot_type)
    }

    #[test]
    fn an_ipxe_script_ends_with_the_job_and_boots_once() {
        let script = script(&usual(), BootType::Ipxe, "x86_64", BootFiles::default());
        assert!(script.starts_with("#!ipxe\n"));
        assert!(script.contains("initrd http://i/a.cgz\n"));
        assert!(script.contains("kernel http://k/vmlinuz-6.1 user=lkp"));
        assert!(script.contains("initrd=a.cgz initrd=b.cgzreboot initrd=job.cgz"));
        assert!(script.contains("console=ttyS0,115200"));
        assert!(script.ends_with("\n\nboot\n"));
        assert_eq!(
            script.matches("\nreboot").count(),
            0,
            "a job must not add lines of its own"
        );
    }

    #[test]
    fn a_grub_script_names_servers_grub_s_way() {
        let script = script(&usual(), BootType::Grub, "x86_64", BootFiles::default());
        assert!(
            script.contains("linux (http,k)/vmlinuz-6.1 user=lkp"),
            "{script}"
        );
        assert!(script.contains(
            "(http,s:3000)/srv/scheduler/pending-jobs/2611210236110700000/job.cgz?job_token=t"
        ));
    }

    #[test]
    fn modules_come_second_and_the_console_follows_the_architecture() {
        let job = grant(json!({
            "initrds_uri": ["http://i/root.cgz", "http://i/more.cgz"], "modules_uri": "http://i/modules.cgz",
            "rootfs_disk": ["/dev/sda", "/dev/sdb"], "crashkernel": {"aarch64": "1G", "x86_64": "512M"},
        }));
        let script = script(&job, BootType::Ipxe, "aarch64", BootFiles::default());
        let order = "initrd=root.cgz initrd=modules.cgz initrd=more.cgz initrd=job.cgz";
        assert!(script.contains(order), "{script}");
        assert!(script.contains("console=ttyAMA0,115200"), "{script}");
        assert!(
            script.contains("rootfs_disk=/dev/sda,/dev/sdb crashkernel=1G"),
            "{script}"
        );
        assert!(
            script.contains("kernel http://s:3000/srv/boot/aarch64/vmlinuz "),
            "{script}"
        );
    }

    #[test]
    fn files_of_the_boot_store_stand_in_for_what_the_job_does_not_name() {
        let files = || BootFiles {
            kernel: Some("x86_64/debian/12/vmlinuz".into()),
            initrd: Some("x86_64/debian/12/initrd.cgz".into()),
            modules: Some("x86_64/debian/12/modules.cgz".into()),
            problem: None,
        };
        let found = script(&grant(json!({})), BootType::Ipxe, "x86_64", files());
        assert!(
            found.contains("kernel http://s:3000/srv/boot/x86_64/debian/12/vmlinuz "),
            "{found}"
        );
        assert!(
            found.contains("initrd=initrd.cgz initrd=modules.cgz initrd=job.cgz"),
            "{found}"
        );
        let named = script(&usual(), BootType::Ipxe, "x86_64", files());
        assert!(
            named.contains("initrd=a.cgz initrd=modules.cgz initrd=b.cgz"),
            "{named}"
        );
    }

    #[test]
    fn an_ipxe_script_of_the_job_s_own_is_chained() {
        let own = script(
            &grant(json!({"custom_ipxe": "install/debian.ipxe"})),
            BootType::Ipxe,
            "x86_64",
            BootFiles::default(),
        );
        assert!(
            own.ends_with(
                "chain --replace --autofree http://s:3000/srv/boot/install/debian.ipxe\n"
            ),
            "{own}"
        );
        assert!(!own.contains("kernel "), "{own}");
    }

    #[test]
    fn without_a_job_a_box_asks_again_whatever_happens() {
        let script = idle(BootType::Ipxe, "s:3000", Some("k\n"), "h");
        assert!(
            script.contains("chain --replace --autofree http://s:3000/boot.ipxe/mac/${mac:hexhyp}")
        );
        assert!(script.contains("&token=k ||\n"), "{script}");
        assert!(script.ends_with("goto again\n"), "{script}");
        assert_eq!(
            idle(BootType::Native, "s:3000", None, "h"),
            r#"{"job_id":"0"}"#
        );
        let unknown = unknown(BootType::Grub, "s:3000", None);
        assert!(
            unknown.contains("boot.grub/mac/${net_default_mac}\n"),
            "{unknown}"
        );
    }

    #[test]
    fn names_of_firmware_become_names_of_linux() {
        let names = ["i386", "x86_64", "arm64", "riscv64"].map(arch_of);
        assert_eq!(names, ["x86_64", "x86_64", "aarch64", "riscv64"]);
    }
}

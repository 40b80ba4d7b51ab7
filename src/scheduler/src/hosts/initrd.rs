//! The job as an initrd, for machines that boot over the network: the files that lkp expects below `/lkp/scheduled`.
//!
//! They have all that a report needs: the job's id, attempt and token, the place of its results, and the addresses of
//! the schedulers. `job.yaml` has them, and `job.env` has them again for shells.

use std::io::Write;

use fairlead_job::Spec;
use fairlead_store::JobState;
use serde_json::{Map, Value, json};

use crate::hosts::job_script::job_sh;
use fairlead_known::replicas::Peer;

/// The port of an address that names none.
const HTTP_PORT: &str = "80";

/// What the archive says besides the job.
#[derive(Debug)]
pub(crate) struct About<'a> {
    pub(crate) state: &'a JobState,
    /// The token of its present attempt.
    pub(crate) token: &'a str,
    /// How the box reached us, `HOST:PORT`.
    pub(crate) here: &'a str,
    /// All addresses under which it can report, the one it used first.
    pub(crate) schedulers: Vec<String>,
}

/// The addresses of all replicas that others can use.
pub(crate) fn schedulers(here: &str, own: &str, peers: &[Peer]) -> Vec<String> {
    let mut all = vec![format!("http://{here}")];
    let others = std::iter::once(own).chain(peers.iter().map(|peer| peer.url.as_str()));
    for url in others {
        let is_any = url.contains("://0.0.0.0") || url.contains("://[::]");
        if !is_any && !url.is_empty() && !all.iter().any(|known| known == url) {
            all.push(url.to_owned());
        }
    }
    all
}

/// `HOST:PORT` in two.
fn host_and_port(address: &str) -> (&str, &str) {
    match address.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, port)
        }
        _ => (address, HTTP_PORT),
    }
}

/// Adds to the job what its reports need. These are ours, whatever the job says.
fn with_place(mut spec: Spec, about: &About<'_>) -> Spec {
    let (host, port) = host_and_port(about.here);
    let state = about.state;
    let id = state.job_id.to_string();
    let mut services = match spec.shift_remove("services") {
        Some(Value::Object(services)) => services,
        _ => Map::new(),
    };
    for (name, value) in [
        ("sched_host", host),
        ("sched_port", port),
        ("result_host", host),
        ("result_port", port),
    ] {
        services.insert(name.to_owned(), json!(value));
    }
    for (name, value) in [
        ("id", json!(id)),
        ("job_id", json!(id)),
        ("attempt", json!(state.attempt)),
        ("job_token", json!(about.token)),
        ("result_root", json!(state.result_root)),
        ("host_machine", json!(state.host)),
        ("services", Value::Object(services)),
        ("schedulers", json!(about.schedulers)),
    ] {
        spec.insert(name.to_owned(), value);
    }
    spec
}

/// The same for a shell that reads it with `.`: one assignment a line.
fn shell_lines(about: &About<'_>) -> String {
    let (host, port) = host_and_port(about.here);
    let state = about.state;
    let id = state.job_id.to_string();
    let lines = [
        ("job_id", id.as_str()),
        ("attempt", &state.attempt.to_string()),
        ("job_token", about.token),
        ("result_root", &state.result_root),
        ("sched_host", host),
        ("sched_port", port),
        ("schedulers", &about.schedulers.join(" ")),
    ]
    .map(|(name, value)| format!("{name}='{}'\n", value.replace('\'', "'\\''")));
    lines.concat()
}

/// `job.yaml`, `job.sh` and `job.env` below `/lkp/scheduled`, as a gzipped cpio archive (newc).
pub(crate) fn archive(spec: Spec, about: &About<'_>) -> std::io::Result<Vec<u8>> {
    let script = job_sh(&spec);
    let yaml = serde_json::to_vec_pretty(&with_place(spec, about))?;
    let mut cpio = Vec::new();
    for folder in ["lkp", "lkp/scheduled"] {
        cpio_entry(&mut cpio, folder, 0o040_755, &[])?;
    }
    cpio_entry(&mut cpio, "lkp/scheduled/job.yaml", 0o100_600, &yaml)?;
    cpio_entry(
        &mut cpio,
        "lkp/scheduled/job.sh",
        0o100_700,
        script.as_bytes(),
    )?;
    let lines = shell_lines(about);
    cpio_entry(
        &mut cpio,
        "lkp/scheduled/job.env",
        0o100_600,
        lines.as_bytes(),
    )?;
    cpio_entry(&mut cpio, "TRAILER!!!", 0, &[])?;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&cpio)?;
    packed.finish()
}

/// One entry of a newc archive: a header of 8-digit hexadecimal numbers, name and data padded to 4.
fn cpio_entry(out: &mut Vec<u8>, name: &str, mode: u32, data: &[u8]) -> std::io::Result<()> {
    let inode = out.len() + 1;
    write!(
        out,
        "070701{inode:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}",
        0, 0, 1, 0
    )?;
    write!(
        out,
        "{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}",
        data.len(),
        0,
        0,
        0,
        0,
        name.len() + 1,
        0
    )?;
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::testing::held;

    fn unpacked(spec: Value) -> String {
        let Value::Object(spec) = spec else {
            unreachable!()
        };
        let state = held();
        let about = About {
            state: &state,
            token: "t0ken",
            here: "s1:3000",
            schedulers: schedulers("s1:3000", "http://0.0.0.0:3000", &[]),
        };
        let packed = archive(spec, &about).unwrap();
        let mut cpio = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice())
            .read_to_end(&mut cpio)
            .unwrap();
        assert_eq!(cpio.len() % 4, 0);
        String::from_utf8_lossy(&cpio).into_owned()
    }

    #[test]
    fn the_initrd_is_a_gzipped_cpio_and_says_how_to_report() {
        let text = unpacked(json!({
            "suite": "x", "job_token": "forged", "services": {"sched_host": "evil", "own": "kept"},
        }));
        assert!(text.starts_with("070701") && text.contains("TRAILER!!!"));
        for said in [
            "lkp/scheduled/job.yaml\0",
            "\"job_token\": \"t0ken\"",
            "\"attempt\": 1",
            "\"result_root\": \"/result/x/1\"",
            "\"sched_host\": \"s1\"",
            "\"sched_port\": \"3000\"",
            "\"own\": \"kept\"",
            "lkp/scheduled/job.env\0",
            "job_token='t0ken'\n",
            "schedulers='http://s1:3000'\n",
        ] {
            assert!(text.contains(said), "{said} in {text}");
        }
        assert!(!text.contains("forged") && !text.contains("evil"), "{text}");
    }

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(host_and_port("s1:3000"), ("s1", "3000"));
        assert_eq!(host_and_port("[::1]:80"), ("[::1]", "80"));
        assert_eq!(host_and_port("s1"), ("s1", "80"));
    }
}

//! Placement of a job: testbox, group, kind, arch, and the host keys under which hosts find it.

use serde_json::Value;

use crate::{
    FieldError, SiteDefaults, Spec, TboxType,
    fields::{
        read::{
            Charset, MACHINES_MAX, NAME_BYTES_MAX, name, names, number, present, refuse, whole,
        },
        table::{CPUS_MAX, names_of},
    },
    units::{self, shown},
};

/// The longest name of an architecture.
const ARCH_BYTES_MAX: usize = 32;

/// All of a job's requirements on the place.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) testbox: String,
    pub(crate) tbox_group: String,
    pub(crate) tbox_type: TboxType,
    pub(crate) arch: String,
    pub(crate) target_machines: Vec<String>,
    pub(crate) host_keys: Vec<String>,
    pub(crate) memory_mb: u32,
    pub(crate) guest_memory_mb: u32,
    pub(crate) cpus: u32,
}

impl Place {
    pub(crate) fn of(spec: &Spec, defaults: &SiteDefaults) -> Result<Self, FieldError> {
        let asked = tbox_type(spec)?;
        let testbox = testbox(spec, asked, defaults)?;
        let tbox_type = TboxType::of_testbox(&testbox);
        if let Some(asked) = asked.filter(|&asked| asked != tbox_type) {
            let problem = format!("'{}' does not match testbox '{testbox}'", asked.as_str());
            return refuse(
                "tbox_type",
                problem,
                "leave tbox_type out: testbox implies it",
            );
        }
        let mut tbox_group = name(spec, "tbox_group", Charset::Machine)?;
        if group_of(&testbox).is_empty() || testbox.ends_with("--") {
            let problem = format!("'{testbox}' is neither a group nor GROUP--MACHINE");
            return refuse("testbox", problem, "for example vm-2p8g, a66 or GROUP--a66");
        }
        if tbox_group.is_empty() {
            group_of(&testbox).clone_into(&mut tbox_group);
        }
        let is_any = testbox == tbox_type.as_str();
        let arch = arch(spec, tbox_type != TboxType::Hw || is_any, defaults)?;
        let machines = names(
            "target_machines",
            present(spec, "target_machines"),
            Charset::Machine,
            NAME_BYTES_MAX,
            MACHINES_MAX,
        )?;
        let host_keys = match tbox_type {
            TboxType::Hw if is_any => any_hw_keys(&arch, &machines),
            TboxType::Hw => named_hw_keys(&testbox, &machines)?,
            TboxType::Vm | TboxType::Dc => guest_keys(&testbox, tbox_type, &arch, &machines)?,
        };
        let mut memory_mb = memory(spec, &testbox, tbox_type, defaults)?;
        let mut guest_memory_mb = 0;
        if tbox_type == TboxType::Vm {
            guest_memory_mb = memory_mb;
            memory_mb = memory_mb.saturating_add(defaults.vm_overhead_mb);
        }
        let cpus = cpus(spec, &testbox, tbox_type)?;
        Ok(Self {
            testbox,
            tbox_group,
            tbox_type,
            arch,
            target_machines: machines,
            host_keys,
            memory_mb,
            guest_memory_mb,
            cpus,
        })
    }
}

fn tbox_type(spec: &Spec) -> Result<Option<TboxType>, FieldError> {
    let Some(value) = present(spec, "tbox_type") else {
        return Ok(None);
    };
    let known = [TboxType::Hw, TboxType::Vm, TboxType::Dc];
    match known
        .into_iter()
        .find(|kind| value.as_str().map(str::trim) == Some(kind.as_str()))
    {
        Some(kind) => Ok(Some(kind)),
        None => refuse(
            "tbox_type",
            format!("{} is not a kind of testbox", shown(value)),
            "one of hw, vm, dc",
        ),
    }
}

/// `testbox`, else `tbox_group`, else `tbox_type`, else the site's.
fn testbox(
    spec: &Spec,
    asked: Option<TboxType>,
    defaults: &SiteDefaults,
) -> Result<String, FieldError> {
    for field in ["testbox", "tbox_group"] {
        let said = name(spec, field, Charset::Machine)?;
        if !said.is_empty() {
            return Ok(said);
        }
    }
    Ok(asked.map_or_else(|| defaults.testbox.clone(), |kind| kind.as_str().to_owned()))
}

/// The group of a testbox or machine: the text before `--` or `.`.
fn group_of(testbox: &str) -> &str {
    let before = testbox.split_once("--").map_or(testbox, |(group, _)| group);
    before.split_once('.').map_or(before, |(group, _)| group)
}

fn arch(spec: &Spec, is_any: bool, defaults: &SiteDefaults) -> Result<String, FieldError> {
    for field in ["arch", "os_arch"] {
        let arch = name(spec, field, Charset::Machine)?;
        if arch.is_empty() {
            continue;
        }
        let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if arch.len() > ARCH_BYTES_MAX || !arch.chars().all(is_known) {
            let problem = format!("'{arch}' is not the name of an architecture");
            return refuse(field, problem, "for example x86_64, aarch64 or riscv64");
        }
        return Ok(arch);
    }
    Ok(if is_any {
        defaults.arch.clone()
    } else {
        String::new()
    })
}

fn any_hw_keys(arch: &str, machines: &[String]) -> Vec<String> {
    if machines.is_empty() {
        return vec![format!("hw.{arch}")];
    }
    sorted(
        machines
            .iter()
            .map(|machine| format!("hw@{machine}"))
            .collect(),
    )
}

/// Keys of a job for one group or machine. Machines restrict it, they never add.
fn named_hw_keys(testbox: &str, machines: &[String]) -> Result<Vec<String>, FieldError> {
    let is_machine = testbox.contains("--");
    if machines.is_empty() || (is_machine && machines.iter().any(|machine| machine == testbox)) {
        return Ok(vec![format!("hw@{testbox}")]);
    }
    if is_machine {
        let problem = format!("testbox '{testbox}' is not among target_machines");
        return refuse(
            "target_machines",
            problem,
            "leave target_machines out, or name the machine there",
        );
    }
    let is_in = |machine: &str| machine == testbox || group_of(machine) == testbox;
    if let Some(other) = machines.iter().find(|machine| !is_in(machine)) {
        let problem = format!("machine '{other}' is not in group '{testbox}'");
        return refuse(
            "target_machines",
            problem,
            "name machines of the testbox's group, GROUP--MACHINE",
        );
    }
    Ok(sorted(
        machines
            .iter()
            .map(|machine| format!("hw@{machine}"))
            .collect(),
    ))
}

/// Keys of a vm or dc job: any host of the arch, or only the hosts named.
fn guest_keys(
    testbox: &str,
    kind: TboxType,
    arch: &str,
    machines: &[String],
) -> Result<Vec<String>, FieldError> {
    let any = format!("{}.{arch}", kind.as_str());
    let Some((_, host)) = testbox.split_once("--") else {
        if machines.is_empty() {
            return Ok(vec![any]);
        }
        return Ok(sorted(
            machines
                .iter()
                .map(|machine| format!("{any}@{machine}"))
                .collect(),
        ));
    };
    if !machines.is_empty() && !machines.iter().any(|machine| machine == host) {
        let problem = format!("host '{host}' of testbox '{testbox}' is not among target_machines");
        return refuse(
            "target_machines",
            problem,
            "leave target_machines out, or name the host there",
        );
    }
    Ok(vec![format!("{any}@{host}")])
}

fn sorted(mut keys: Vec<String>) -> Vec<String> {
    keys.sort();
    keys.dedup();
    keys
}

/// The first of `need_memory`, `memory_minimum` and `memory`; for vm and dc at least what the testbox says.
fn memory(
    spec: &Spec,
    testbox: &str,
    kind: TboxType,
    defaults: &SiteDefaults,
) -> Result<u32, FieldError> {
    let said = names_of("need_memory").find_map(|name| Some((name, present(spec, name)?)));
    let said = match said {
        None => None,
        Some((field, value)) => match units::memory_mb(value) {
            Ok(megabytes) => Some(megabytes),
            Err(error) => return refuse(field, error.to_string(), "a bare number is GB"),
        },
    };
    if kind == TboxType::Hw {
        return Ok(said.unwrap_or(0));
    }
    let named = match named_memory(testbox) {
        None => None,
        Some(text) => match units::memory_mb(&text.into()) {
            Ok(megabytes) => Some(megabytes),
            Err(error) => {
                return refuse("testbox", error.to_string(), "for example vm-2p8g or dc-8g");
            }
        },
    };
    let needed = said.max(named).unwrap_or(defaults.memory_mb);
    if needed == 0 {
        let problem = "0 MB is no memory for a vm or dc".to_owned();
        return refuse(
            "need_memory",
            problem,
            "leave it out for the site's default",
        );
    }
    Ok(needed)
}

/// The first of `need_cpus`, `nr_cpu` and `need_cpu`; for vm and dc at least what the testbox says; else 1.
fn cpus(spec: &Spec, testbox: &str, kind: TboxType) -> Result<u32, FieldError> {
    let least = |field: &str, value: &Value| whole(field, value, 1, CPUS_MAX);
    let said = match number(spec, "need_cpus")? {
        None => number(spec, "nr_cpu")?,
        said => said,
    };
    // A `need_cpu` of lkp-tests may also say "at most 32", as -32: only its program knows how to skip then.
    let of_lkp = present(spec, "need_cpu").and_then(|value| least("need_cpu", value).ok());
    let said = said.or(of_lkp);
    let named = named_size(testbox).and_then(|(cpus, _)| cpus);
    let named = named.filter(|_| kind != TboxType::Hw);
    let named = named
        .map(|text| least("testbox", &text.into()))
        .transpose()?;
    let cpus = said.max(named).unwrap_or(1);
    Ok(u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// The memory in a name such as `vm-2p8g` or `dc-8g`: `8g`.
fn named_memory(testbox: &str) -> Option<&str> {
    named_size(testbox).map(|(_, memory)| memory)
}

/// The CPUs and the memory in a name such as `vm-2p8g` or `dc-8g`: `2` and `8g`.
fn named_size(testbox: &str) -> Option<(Option<&str>, &str)> {
    group_of(testbox).split('-').skip(1).find_map(|part| {
        let (cpus, memory) = match part.split_once('p') {
            Some((cpus, memory)) if is_digits(cpus) => (Some(cpus), memory),
            Some(_) | None => (None, part),
        };
        let is_size = memory.strip_suffix('g').is_some_and(is_digits);
        is_size.then_some((cpus, memory))
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

//! The section `reuse` of a lab file.

use serde_json::Value;

use crate::{
    exit::Failure,
    lab_file::tree::{At, Node},
    reuse_settings::{ReuseChange, suite_reuse},
    table::harmless,
};

const REUSE: [&str; 4] = ["salt", "audit_percent", "performance", "suites"];
/// Maximum number of suites in a list. The scheduler has the same constant.
const SUITES_MAX: usize = 100;
/// Maximum length of a salt or suite name, bytes. The scheduler has the same constant.
const TEXT_BYTES_MAX: usize = 256;

pub(super) fn read(at: At<'_>, node: &Node) -> Result<ReuseChange, Failure> {
    let mut change = ReuseChange::default();
    for (key, value) in at.fields("reuse", node)? {
        match key.as_str() {
            "salt" => change.salt = Some(salt(at, value)?),
            "audit_percent" => {
                let percent = at.number(key, value, 0..=100)?;
                change.audit_percent = u8::try_from(percent).ok();
            }
            "performance" => {
                let names = at.texts(key, value)?;
                for name in &names {
                    check_text(at, key, value, name)?;
                }
                check_count(at, key, value, names.len())?;
                change.performance = Some(names);
            }
            "suites" => {
                let suites = at.fields(key, value)?;
                check_count(at, key, value, suites.len())?;
                let mut read = Vec::new();
                for (suite, within) in suites {
                    check_text(at, key, within, suite)?;
                    let text = at.text(suite, within, "how old a result may be, such as 14d")?;
                    let one = suite_reuse(suite, &text).map_err(|problem| {
                        let message = format!("suites: {}: {problem}", harmless(suite));
                        at.refuse(within.line, message, "write SUITE: 14d, at most 366d")
                    })?;
                    read.push(one);
                }
                change.suites = Some(read);
            }
            other => return Err(at.unknown(other, value, &REUSE)),
        }
    }
    Ok(change)
}

/// Reads the salt. A missing value is the empty salt.
fn salt(at: At<'_>, node: &Node) -> Result<String, Failure> {
    if matches!(node.word(), Some(Value::Null)) {
        return Ok(String::new());
    }
    let text = match node.word().and_then(Value::as_str) {
        Some("") => String::new(),
        _ => at.text("salt", node, "a text")?,
    };
    check_text(at, "salt", node, &text)?;
    Ok(text)
}

fn check_text(at: At<'_>, key: &str, node: &Node, text: &str) -> Result<(), Failure> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "{key}: a text has {} bytes; the limit is {TEXT_BYTES_MAX}",
        text.len()
    );
    Err(at.refuse(node.line, message, "shorten the text"))
}

fn check_count(at: At<'_>, key: &str, node: &Node, count: usize) -> Result<(), Failure> {
    if count <= SUITES_MAX {
        return Ok(());
    }
    let message = format!("{key} has {count} entries; the limit is {SUITES_MAX}");
    Err(at.refuse(
        node.line,
        message,
        "join suites with patterns, such as ltp*",
    ))
}

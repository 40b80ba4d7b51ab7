//! Checks a lab file against the lab as it is, before anything is done.

use std::path::Path;

use super::{plan::Present, read::WantedLab, tree::At};
use crate::exit::Failure;

/// Fails if an account does not exist, or if a complete section leaves out the user's own account.
pub(crate) fn check(
    path: &Path,
    lab: &WantedLab,
    present: &Present,
    own_account: &str,
) -> Result<(), Failure> {
    let at = At(path);
    for entry in &lab.accounts {
        let mut known = present.accounts.iter();
        let is_known = known.any(|account| account.my_account == entry.name);
        if !is_known && !entry.wanted.create {
            return Err(at.refuse(
                entry.line,
                format!("account '{}' does not exist", entry.name),
                "add create: true, and `fairlead apply` creates it with a token; or correct the name",
            ));
        }
    }
    let own = !own_account.is_empty() && !lab.accounts.iter().any(|e| e.name == own_account);
    if let Some(line) = lab.is_complete("accounts").filter(|_| own) {
        return Err(at.refuse(
            line,
            format!("accounts are complete without your own account '{own_account}'"),
            format!("add {own_account} to accounts: nobody deletes the own account"),
        ));
    }
    Ok(())
}

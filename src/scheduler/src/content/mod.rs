//! Inputs and outputs by content: who may put and read them, and what jobs name.

pub(crate) mod care;
pub(crate) mod holder;
pub(crate) mod puts;
mod quotas;
pub(crate) mod reads;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{ctx::Ctx, people::PeopleFlow};
use fairlead_known::content::KnownContent;

/// Inputs and outputs by content.
#[derive(Debug)]
pub(crate) struct ContentFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) known: Arc<KnownContent>,
}

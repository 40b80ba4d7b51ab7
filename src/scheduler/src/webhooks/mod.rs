//! Webhooks: who asked for it is told when a job has ended, has failed, passed again, or begins to fail.
//!
//! A document for each is made before the submit is answered. It stays due until the receiver took the message, so any
//! replica can continue. A compare-and-set says who tries it now. Each try has the same id, so a receiver that gets it
//! twice can tell.

mod decide;
pub(crate) mod memory;
mod message;
mod outbox;
mod people;
mod receivers;
mod send;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{ctx::Ctx, jobs::JobFlow, views::ViewFlow, webhooks::memory::WebhookMemory};

/// Messages to receivers that jobs and accounts name.
#[derive(Debug)]
pub(crate) struct WebhookFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) views: Arc<ViewFlow>,
    pub(crate) known: Arc<WebhookMemory>,
}

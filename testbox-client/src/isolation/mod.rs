//! Isolates jobs from each other and from the agent: their own users, a launcher, and cleanup.
//!
//! If the agent is root, each `vm`/`dc` job can run as its own user ([`users`]). A small launcher, this same program
//! started again ([`launcher`]), drops its rights and becomes the job. Orphans of jobs become the agent's children,
//! which reaps them ([`children`]).

pub(crate) mod children;
pub(crate) mod kill;
pub(crate) mod launcher;
pub(crate) mod users;

pub use launcher::launched;
pub use users::{JobUsers, UserRange};

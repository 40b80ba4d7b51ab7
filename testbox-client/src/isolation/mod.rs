//! Jobs apart from each other and from the agent: users of their own, a launcher, and what they leave.
//!
//! Where the agent is root, each `vm`/`dc` job can run under a user of its own ([`users`]). A small launcher, this
//! very program started anew ([`launcher`]), gives its rights away and becomes the job. Orphans of jobs become the
//! agent's children, which reaps them ([`children`]).

pub(crate) mod children;
pub(crate) mod launcher;
pub(crate) mod users;

pub use launcher::launched;
pub use users::{JobUsers, UserRange};

//! The ledger: queues, their accounts, their charges, and who is next (I4, I5). Knows no hosts or shapes.
//!
//! Ann's jobs take an hour, Bob's take a minute. If the two take turns job by job, Ann gets 60 of 61 minutes. So time
//! is shared, and not the number of jobs. But the time of a job is known only at its end. If jobs were charged at their
//! end, a queue could start 500 jobs before the first of them counts.
//!
//! So each job is charged at its claim with the duration that is expected of it. Once it runs longer, it is charged by
//! the millisecond. At its end the charge becomes the real duration. The charge is the job's share of its host × time ×
//! the rate of the host group. For example, a job with 8 of 32 GB and 2 of 16 CPUs has a quarter of its host. For 60
//! seconds it is charged as 15 seconds of a whole host.
//!
//! The *virtual time* of a queue is its charge divided by its weight. Inside a class, the queue with the least virtual
//! time is next. Inside the queue, the account with the least is next. Two queues, with jobs of 60 seconds on whole
//! hosts:
//!
//! ```text
//! jobs that began   weight 10: 60 s each adds 6   weight 30: 60 s each adds 2   next
//! 0                 0                             0                             either, say weight 10
//! 1                 6                             0                             weight 30, three times
//! 4                 6                             6                             either
//! ```
//!
//! So the second queue gets three times the time of the first one, and it does not matter how long its jobs are.
//!
//! A queue that was empty for a day stands far behind the others. With that virtual time it would get every host for
//! hours. So a queue that returns starts no earlier than the present virtual time of its class, and time without jobs
//! earns nothing. Its debt remains, up to `lag_max_ms` (one hour of a whole host) and its largest recent job.
//!
//! - `charges` and `charge` charge jobs, and `virtual_time` decides who is next.
//! - `notes` keeps the order, so that a decision need not look at every queue.
//! - `limits` and `limited` hold back queues and accounts, and `background` gives low classes a share of dispatches.
//! - `owners` creates queues and accounts at first use, and `idle` forgets those without jobs.
//!
//! Limits: a wrong estimate shifts turns until the job ends. Jobs that other replicas dispatched count once this
//! replica hears of them.

mod background;
mod charge;
mod charges;
mod idle;
mod idle_names;
mod limited;
mod limits;
mod notes;
mod owners;
mod state;
mod virtual_time;

pub(crate) use charge::{Charge, SHARE_MIN, WHOLE};
pub(crate) use state::{Ledger, MemberRank, Queue, QueueRank};

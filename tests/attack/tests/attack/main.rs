//! Attacks on a running scheduler. Each test attacks one door and states what must still hold.

mod answers;
mod connections;
mod cross_site;
mod host_lists;
mod memory;
mod names;
mod neighbours;
mod queues;
mod rights;
mod sealing_key;
mod secrets;
mod shares;
mod testbox_tokens;
mod tokens;
mod traces;
mod twins;
mod uploads;

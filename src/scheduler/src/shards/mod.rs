//! Jobs that run in parts: makes their shards, stops them, and gives the whole its one result.

mod again;
mod look;
mod make;
mod plan;
pub(crate) mod rerun;
mod test_times;
mod write;

#[cfg(test)]
mod tests;

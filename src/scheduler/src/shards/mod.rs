//! Jobs that run in parts: makes their shards, stops them, and gives the whole its one result.

mod look;
mod make;

#[cfg(test)]
mod tests;

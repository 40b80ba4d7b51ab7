//! Writes a day of arrivals for `fairlead replay scaling`. Its word is the seed.

use std::{
    env,
    io::{self, BufWriter, Write},
};

#[path = "../tests/laws/day/mod.rs"]
mod day;

fn main() -> io::Result<()> {
    let seed = env::args().nth(1).and_then(|seed| seed.parse().ok());
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "submit_s,group,suite,run_s")?;
    for arrival in day::day(seed.unwrap_or(1)) {
        let (submit_ms, run_ms) = (arrival.submit_ms, arrival.run_ms);
        writeln!(
            out,
            "{}.{:03},{},{},{}.{:03}",
            submit_ms / 1_000,
            submit_ms % 1_000,
            arrival.group,
            arrival.suite,
            run_ms / 1_000,
            run_ms % 1_000,
        )?;
    }
    out.flush()
}

//! Arrivals of shards: a table with the head `submit_s,group,suite,run_s`, a line for each.

use std::io::{BufRead, BufReader, Read};

/// Maximum number of arrivals in a file.
pub const ARRIVALS_MAX: usize = 5_000_000;
/// Maximum length of a line, bytes.
const LINE_BYTES_MAX: u64 = 4 * 1024;
const HEAD: &str = "submit_s,group,suite,run_s";

/// Arrival of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the submit, ms from the start.
    pub submit_ms: u64,
    /// Group of machines that it needs.
    pub group: String,
    /// Suite of the shard.
    pub suite: String,
    /// Run time, ms.
    pub run_ms: u64,
}

/// Reason why arrivals cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalsError {
    /// The file cannot be read.
    #[error("line {line}: {cause}")]
    Read {
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        cause: std::io::Error,
    },
    /// The first line is not the expected one.
    #[error("line 1 is '{0}'; the head must be '{HEAD}'")]
    Head(String),
    /// A line is not an arrival.
    #[error("line {line}: {problem}: '{text}'")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Problem of the line.
        problem: &'static str,
        /// Its first 60 characters.
        text: String,
    },
    /// There are too many arrivals.
    #[error("it has more than {ARRIVALS_MAX} arrivals")]
    Many,
    /// There are no arrivals.
    #[error("it has no arrival")]
    Empty,
}

/// Reads arrivals, sorted by time.
///
/// # Errors
/// Returns the problem with its line.
pub fn read(input: impl Read) -> Result<Vec<Arrival>, ArrivalsError> {
    let mut input = BufReader::new(input);
    let mut all = Vec::new();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let mut part = (&mut input).take(LINE_BYTES_MAX + 1);
        let read = part.read_until(b'\n', &mut bytes);
        let read = read.map_err(|cause| ArrivalsError::Read { line, cause })?;
        if read == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        let begin = || text.chars().take(60).collect();
        let is_long = bytes.len() as u64 > LINE_BYTES_MAX;
        if line == 1 && !is_long && text == HEAD {
            continue;
        }
        if line == 1 {
            return Err(ArrivalsError::Head(begin()));
        }
        if text.is_empty() {
            continue;
        }
        let read = if is_long {
            Err("the line is too long")
        } else {
            arrival(text)
        };
        all.push(read.map_err(|problem| ArrivalsError::Line {
            line,
            problem,
            text: begin(),
        })?);
        if all.len() > ARRIVALS_MAX {
            return Err(ArrivalsError::Many);
        }
    }
    if all.is_empty() {
        return Err(ArrivalsError::Empty);
    }
    all.sort_by_key(|arrival| arrival.submit_ms);
    Ok(all)
}

fn arrival(text: &str) -> Result<Arrival, &'static str> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let &[submit, group, suite, run] = fields.as_slice() else {
        return Err("it has not four fields");
    };
    if group.is_empty() || suite.is_empty() {
        return Err("a name is missing");
    }
    Ok(Arrival {
        submit_ms: ms(submit).ok_or("submit_s is no time")?,
        group: group.to_owned(),
        suite: suite.to_owned(),
        run_ms: ms(run)
            .filter(|run_ms| *run_ms > 0)
            .ok_or("run_s is no time")?,
    })
}

/// Converts seconds to ms, up to some 30 years.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 10^12"
)]
fn ms(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    let is_time = (0.0..=1e9).contains(&seconds);
    is_time.then(|| (seconds * 1_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrivals_come_by_their_time() {
        let text = format!("{HEAD}\n10.5,linux,unit,40\r\n\n2, mac ,web,0.25\n");
        let all = read(text.as_bytes()).unwrap();
        let [first, second] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!((first.submit_ms, first.run_ms), (2_000, 250));
        assert_eq!((first.group.as_str(), first.suite.as_str()), ("mac", "web"));
        assert_eq!((second.submit_ms, second.run_ms), (10_500, 40_000));
    }

    #[test]
    fn what_is_no_arrival_is_told_with_its_line() {
        for (text, says) in [
            ("a,b\n".to_owned(), "line 1 is 'a,b'"),
            (String::new(), "no arrival"),
            (format!("{HEAD}\n"), "no arrival"),
            (format!("{HEAD}\n1,a,b\n"), "line 2: it has not four"),
            (format!("{HEAD}\n1,a,b,-1\n"), "run_s is no time"),
            (format!("{HEAD}\nNaN,a,b,1\n"), "submit_s is no time"),
            (format!("{HEAD}\n1,,b,1\n"), "a name is missing"),
            (format!("{HEAD}\n{}\n", "1".repeat(9_000)), "too long"),
        ] {
            let told = read(text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(says), "{told}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut text = format!("{HEAD}\n").into_bytes();
            text.extend(bytes);
            let _ = read(text.as_slice());
        }
    }
}

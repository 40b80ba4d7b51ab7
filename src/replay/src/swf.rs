//! The Standard Workload Format: a line of 18 numbers for each job. Source: the Parallel Workloads Archive.

use std::{
    io::{BufRead, BufReader, Read},
    num::ParseFloatError,
};

use flate2::read::MultiGzDecoder;

/// Maximum number of jobs in a trace.
pub const JOBS_MAX: usize = 5_000_000;
/// Maximum length of a line, bytes.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// First bytes of a compressed file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A job of a trace that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceJob {
    /// Number in the trace.
    pub number: u64,
    /// Time of the submit, seconds from the start of the trace.
    pub submit_s: u64,
    /// Run time, seconds, at least 1.
    pub run_s: u64,
    /// Number of processors that it used, at least 1.
    pub units: u32,
    /// Run time that its user requested, seconds. It is at least `run_s`, because systems of the time ended longer
    /// jobs.
    pub requested_s: u64,
    /// User of the job. 0: unknown.
    pub user: u64,
}

/// Reason why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SwfError {
    /// The file cannot be read.
    #[error("line {line}: {cause}")]
    Read {
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        cause: std::io::Error,
    },
    /// A line has too few fields.
    #[error("line {line} has {fields} fields; a job of the Standard Workload Format has 18")]
    Fields {
        /// Number of the line, from 1.
        line: usize,
        /// Number of its fields.
        fields: usize,
    },
    /// A field is not a number.
    #[error("line {line}: field {field} is no number: '{text}'")]
    NoNumber {
        /// Number of the line, from 1.
        line: usize,
        /// Number of the field, from 1.
        field: usize,
        /// First 40 characters of the field.
        text: String,
    },
    /// A line is too long.
    #[error("line {0} has more than {LINE_BYTES_MAX} bytes")]
    LongLine(usize),
    /// There are too many jobs.
    #[error("it has more than {JOBS_MAX} jobs")]
    ManyJobs,
    /// No job of the trace ran.
    #[error("no job of it ran")]
    Empty,
}

/// Reads the jobs that ran, in the order of their submits. `input` may be compressed by gzip.
///
/// # Errors
/// Returns the problem with its line.
pub fn read(input: impl Read) -> Result<Vec<TraceJob>, SwfError> {
    let mut input = BufReader::new(input);
    let begin = input
        .fill_buf()
        .map_err(|cause| SwfError::Read { line: 1, cause })?;
    if begin.starts_with(&GZIP) {
        jobs(BufReader::new(MultiGzDecoder::new(input)))
    } else {
        jobs(input)
    }
}

fn jobs(mut input: impl BufRead) -> Result<Vec<TraceJob>, SwfError> {
    let mut jobs = Vec::new();
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let mut part = (&mut input).take(LINE_BYTES_MAX + 1);
        let read = part.read_until(b'\n', &mut text);
        let bytes = read.map_err(|cause| SwfError::Read { line, cause })?;
        if bytes == 0 {
            break;
        }
        if text.len() as u64 > LINE_BYTES_MAX {
            return Err(SwfError::LongLine(line));
        }
        let said = String::from_utf8_lossy(&text);
        let said = said.trim();
        if said.is_empty() || said.starts_with(';') {
            continue;
        }
        if let Some(job) = job(line, said)? {
            if jobs.len() >= JOBS_MAX {
                return Err(SwfError::ManyJobs);
            }
            jobs.push(job);
        }
    }
    if jobs.is_empty() {
        return Err(SwfError::Empty);
    }
    jobs.sort_by_key(|job| (job.submit_s, job.number));
    Ok(jobs)
}

/// Parses the job of a line. `None`: it never ran.
fn job(line: usize, text: &str) -> Result<Option<TraceJob>, SwfError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let &[
        number,
        submit,
        _,
        run,
        used,
        _,
        _,
        asked,
        requested,
        _,
        _,
        user,
        ..,
    ] = fields.as_slice()
    else {
        let fields = fields.len();
        return Err(SwfError::Fields { line, fields });
    };
    if fields.len() < 18 {
        let fields = fields.len();
        return Err(SwfError::Fields { line, fields });
    }
    let whole = |field: usize, text: &str| {
        whole(text).map_err(|_| SwfError::NoNumber {
            line,
            field,
            text: text.chars().take(40).collect(),
        })
    };
    let (number, submit) = (whole(1, number)?, whole(2, submit)?);
    let (run, used) = (whole(4, run)?, whole(5, used)?);
    let (asked, requested) = (whole(8, asked)?, whole(9, requested)?);
    let user = whole(12, user)?;
    let units = if used > 0 { used } else { asked };
    let ran = run > 0 && units > 0;
    Ok(ran.then(|| TraceJob {
        number,
        submit_s: submit,
        run_s: run,
        units: u32::try_from(units).unwrap_or(u32::MAX),
        requested_s: requested.max(run),
        user,
    }))
}

/// Parses a number of the format. -1, which stands for unknown, gives 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 2^53"
)]
fn whole(text: &str) -> Result<u64, ParseFloatError> {
    let number: f64 = text.parse()?;
    Ok(number.clamp(0.0, 9e15) as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "; MaxProcs: 100\n\n\
        2 30 -1 20.6 4 -1 -1 8 -1 -1 1 7 1 -1 -1 -1 -1 -1\n\
        1 10 5 100 -1 -1 -1 8 600 -1 1 3 1 -1 -1 -1 -1 -1\n\
        3 40 -1 -1 8 -1 -1 8 600 -1 5 3 1 -1 -1 -1 -1 -1\n";

    #[test]
    fn jobs_that_ran_come_in_the_order_of_their_submits() {
        let expected = [
            TraceJob {
                number: 1,
                submit_s: 10,
                run_s: 100,
                units: 8,
                requested_s: 600,
                user: 3,
            },
            TraceJob {
                number: 2,
                submit_s: 30,
                run_s: 20,
                units: 4,
                requested_s: 20,
                user: 7,
            },
        ];
        assert_eq!(read(TRACE.as_bytes()).unwrap(), expected);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(TRACE.as_bytes()).unwrap();
        assert_eq!(read(gzip.finish().unwrap().as_slice()).unwrap(), expected);
    }

    #[test]
    fn what_is_no_trace_is_told_with_its_line() {
        for (text, says) in [
            ("; nothing\n", "no job"),
            ("1 2 3\n", "line 1 has 3 fields"),
            (&TRACE.replace("600", "long"), "line 4: field 9"),
            (&"1".repeat(70_000), "line 1 has more than"),
        ] {
            let told = read(text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(says), "{told}");
        }
        assert!(read([0x1f, 0x8b, 1, 2].as_slice()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(bytes.as_slice());
        }

        #[test]
        fn no_numbers_make_it_panic(numbers in prop::collection::vec(any::<f64>(), 18)) {
            let line: Vec<String> = numbers.iter().map(f64::to_string).collect();
            let _ = read(line.join(" ").as_bytes());
        }
    }
}

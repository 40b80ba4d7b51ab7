//! `fairlead-testbox scan`: names the kernel crash in each console log.

use std::{
    fs::File,
    io::{self, Read, Write},
    process::ExitCode,
};

use fairlead_crash::{Crash, Scanner};
use serde_json::json;

/// Exit code if a file cannot be read, or standard output not be written.
const LOCAL: u8 = 5;

const CHUNK_BYTES: usize = 64 << 10;

/// Name the kernel crash in each console log. A log has one: its first.
///
/// It prints a line for each log: its name, the line of the crash, and family, class and signature of the crash. The signature
/// is a title without addresses, process ids and numbers. So equal crashes have equal signatures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  all logs were read, whether or not they have crashes
  2  wrong command line; nothing was done
  5  a problem of this machine: a log that cannot be read; the others were scanned")]
pub(crate) struct Args {
    /// Console logs; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Print a JSON object for each log: file, crash (true or false), family, class, signature, line.
    #[arg(long)]
    json: bool,
}

/// Scans all files. An unreadable file does not stop the others.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let line = match open(file).and_then(scan) {
            Ok(crash) if args.json => json_line(file, crash.as_ref()),
            Ok(crash) => plain_line(file, crash.as_ref()),
            Err(error) => {
                complain(&unreadable(file, &error));
                code = ExitCode::from(LOCAL);
                continue;
            }
        };
        if let Err(error) = writeln!(out, "{line}") {
            return not_written(&error);
        }
    }
    out.flush()
        .map_or_else(|error| not_written(&error), |()| code)
}

fn open(file: &str) -> io::Result<Box<dyn Read>> {
    Ok(match file {
        "-" => Box::new(io::stdin().lock()),
        file => Box::new(File::open(file)?),
    })
}

fn scan(mut console: Box<dyn Read>) -> io::Result<Option<Crash>> {
    let mut scanner = Scanner::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match console.read(&mut chunk) {
            Ok(0) => return Ok(scanner.finish()),
            Ok(bytes) => scanner.push(chunk.get(..bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // Later lines cannot change the name.
        if let Some(crash) = scanner.found() {
            return Ok(Some(crash.clone()));
        }
    }
}

fn json_line(file: &str, crash: Option<&Crash>) -> String {
    json!({
        "file": file,
        "crash": crash.is_some(),
        "family": crash.map(|crash| crash.family.word()),
        "class": crash.map(|crash| crash.class.word()),
        "signature": crash.map(|crash| &crash.signature),
        "line": crash.map(|crash| crash.line),
    })
    .to_string()
}

fn plain_line(file: &str, crash: Option<&Crash>) -> String {
    crash.map_or_else(
        || format!("{file}: no crash"),
        |crash| {
            let Crash {
                class,
                family,
                signature,
                line,
            } = crash;
            format!("{file}:{line}: {family}: {class}: {signature}")
        },
    )
}

/// Returns the message for an unreadable file, with its code and a hint.
fn unreadable(file: &str, error: &io::Error) -> String {
    let (code, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("not_found", "check the path; - reads standard input"),
        io::ErrorKind::PermissionDenied => (
            "forbidden",
            "scan as a user who may read it, or give it on standard input as -",
        ),
        io::ErrorKind::IsADirectory => ("not_a_file", "name the files in it"),
        _ => ("unreadable", "check the disk and the file"),
    };
    format!("{file}: {error} ({code})\nhint: {hint}")
}

/// Reports that standard output cannot be written, because its reader is gone or its disk is full.
fn not_written(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    complain(&format!("standard output: {error}"));
    ExitCode::from(LOCAL)
}

fn complain(text: &str) {
    // If this fails, too, the error cannot be reported.
    drop(writeln!(io::stderr(), "error: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(console: &'static str) -> Option<Crash> {
        scan(Box::new(console.as_bytes())).unwrap()
    }

    #[test]
    fn a_line_says_what_a_log_has() {
        let found = crash("boot\nkernel BUG at fs/a.c:1!\nRIP: 0010:frob+0x1/0x2\n");
        assert_eq!(
            json_line("a.log", found.as_ref()),
            r#"{"file":"a.log","crash":true,"family":"oops","class":"BUG","signature":"kernel BUG in frob","line":2}"#
        );
        assert_eq!(
            plain_line("a.log", found.as_ref()),
            "a.log:2: oops: BUG: kernel BUG in frob"
        );
        assert_eq!(
            json_line("-", crash("all is well\n").as_ref()),
            r#"{"file":"-","crash":false,"family":null,"class":null,"signature":null,"line":null}"#
        );
        assert_eq!(plain_line("-", None), "-: no crash");
    }
}

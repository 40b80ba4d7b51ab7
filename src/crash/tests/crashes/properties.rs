//! Properties of any console: no panic, and a result that does not depend on chunks and decorations.

use fairlead_crash::Scanner;
use proptest::{collection::vec, prelude::*, sample::select};

use crate::{samples::SAMPLES, scan};

/// Returns a line of some sample, or any bytes.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<&'static str> = SAMPLES.iter().flat_map(|sample| sample.0.lines()).collect();
    prop_oneof![
        3 => select(lines).prop_map(|line| line.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..80),
        1 => "(\\[|\\]|<|\\x1b\\[|BUG: |KASAN: | in | at |\\+0x1/0x2|[0-9.]|é|\\?| from |:){0,12}".prop_map(String::into_bytes),
    ]
}

fn console() -> impl Strategy<Value = Vec<u8>> {
    vec(line(), 0..40).prop_map(|lines| lines.join(&b'\n'))
}

proptest! {
    #[test]
    fn chunks_do_not_change_the_result(console in console(), chunk_bytes in 1usize..50) {
        let mut scanner = Scanner::new();
        for chunk in console.chunks(chunk_bytes) {
            scanner.push(chunk);
        }
        prop_assert_eq!(scanner.finish(), scan(&console));
    }

    #[test]
    fn random_bytes_do_no_harm(console in vec(any::<u8>(), 0..2000)) {
        scan(&console);
    }

    #[test]
    fn decorations_do_not_change_the_result(
        (console, ..) in select(SAMPLES.iter().filter(|sample| sample.2 != "REBOOT").copied().collect::<Vec<_>>()),
        prefix in select(vec!["", "[   77.123456] ", "[   77.123456][   T77] ", "[   77.123456][    C1] ", "<4>[   77.123456] ", "\x1b[0m", "[77.123456@1] <3>"]),
        end in select(vec!["", "\r", " \r\r", "\x1b[m"]),
    ) {
        let decorated: Vec<String> = console.lines().map(|line| format!("{prefix}{line}{end}")).collect();
        prop_assert_eq!(scan(decorated.join("\n").as_bytes()), scan(console.as_bytes()));
    }
}

//! TAP 14, and KTAP as the kernel's KUnit and kselftest print it, also with the time stamps of a console.
//!
//! Points of subtests stand deeper than the point that sums them up. Only the deepest points are cases: a point with
//! subtests is none, unless it failed and none of them did.

use crate::{Case, FILE_CASES_MAX, NAME_BYTES_MAX, Outcome, cut};

/// Maximum nesting depth of subtests. Deeper ones count as the deepest level.
const DEPTH_MAX: usize = 32;

/// Returns true if a text declares itself as TAP or KTAP.
pub(crate) fn is_announced(text: &str) -> bool {
    let mut lines = text.lines().map(|line| without_time(line).trim());
    lines.any(|line| line.starts_with("TAP version ") || line.starts_with("KTAP version "))
}

/// Points of one depth that no point has summed up yet.
#[derive(Default)]
struct Level {
    indent: usize,
    /// Announced name of the subtest.
    name: String,
    cases: Vec<Case>,
    points: u64,
    planned: Option<u64>,
}

/// Returns all cases of a text, in order.
pub(crate) fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut reader = Reader {
        levels: vec![Level::default()],
        inner: None,
        announced: String::new(),
        diagnosis: None,
        cases: 0,
    };
    for line in text.lines() {
        reader.line(without_time(line));
        if reader.cases > FILE_CASES_MAX {
            return Err(format!("has more than {FILE_CASES_MAX} cases"));
        }
    }
    reader.close_to(0);
    let mut last = reader.levels.pop().unwrap_or_default();
    reader.sum_up(None, &mut last);
    last.close();
    Ok(last.cases)
}

struct Reader {
    /// Open levels from the outermost one, never empty.
    levels: Vec<Level>,
    /// A deeper level that has ended, and waits for the point that sums it up.
    inner: Option<Level>,
    /// Name of the next subtest.
    announced: String,
    /// Indent of the diagnostic block that contains the line.
    diagnosis: Option<usize>,
    /// Number of cases read so far.
    cases: usize,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let rest = line.trim_start();
        let indent = line.len() - rest.len();
        let rest = rest.trim_end();
        if let Some(begin) = self.diagnosis {
            if rest == "..." && indent <= begin {
                self.diagnosis = None;
            } else if let Some(case) = self.last_case() {
                case.message.push_str(rest);
                case.message.push('\n');
            }
            return;
        }
        if rest == "---" {
            self.diagnosis = Some(indent);
        } else if let Some(name) = rest.strip_prefix("# Subtest: ") {
            self.announced = cut(name, NAME_BYTES_MAX);
        } else if let Some(planned) = plan(rest) {
            self.enter(indent);
            if let Some(level) = self.levels.last_mut() {
                level.planned = level.planned.or(Some(planned));
            }
        } else if let Some(why) = rest.strip_prefix("Bail out!") {
            self.cases += 1;
            let name = "bail out".to_owned();
            self.add(case_of(name, Outcome::Error, why.trim()));
        } else if let Some(point) = point(rest) {
            self.cases += 1;
            self.enter(indent);
            self.point(point);
        }
    }

    /// Makes the level of this indent the present one.
    fn enter(&mut self, indent: usize) {
        self.close_to(indent);
        let deepest = self.levels.last().map_or(0, |level| level.indent);
        if indent > deepest && self.levels.len() < DEPTH_MAX {
            // A level that was not summed up before stays.
            if let (Some(mut left), Some(level)) = (self.inner.take(), self.levels.last_mut()) {
                left.close();
                level.cases.append(&mut left.cases);
            }
            self.levels.push(Level {
                indent,
                name: std::mem::take(&mut self.announced),
                ..Level::default()
            });
        }
    }

    /// Ends all deeper levels.
    fn close_to(&mut self, indent: usize) {
        while self.levels.len() > 1
            && self
                .levels
                .last()
                .is_some_and(|level| level.indent > indent)
        {
            let Some(mut level) = self.levels.pop() else {
                return;
            };
            self.sum_up(None, &mut level);
            self.inner = Some(level);
        }
    }

    fn point(&mut self, point: Case) {
        let Some(mut level) = self.levels.pop() else {
            return;
        };
        level.points += 1;
        self.sum_up(Some(point), &mut level);
        self.levels.push(level);
    }

    /// Adds a point to its level together with the level that it sums up. Without a point, adds only that level.
    fn sum_up(&mut self, point: Option<Case>, level: &mut Level) {
        let mut inner = self.inner.take().unwrap_or_default();
        inner.close();
        let by = match &point {
            Some(point) => point.name.clone(),
            None => inner.name,
        };
        let is_bad = |case: &Case| matches!(case.outcome, Outcome::Failed | Outcome::Error);
        let is_told = inner.cases.iter().any(is_bad);
        let has_inner = !inner.cases.is_empty();
        level.cases.extend(inner.cases.into_iter().map(|case| {
            let name = match by.as_str() {
                "" => case.name,
                by => cut(&format!("{by}/{}", case.name), NAME_BYTES_MAX),
            };
            Case { name, ..case }
        }));
        if let Some(point) = point
            && (!has_inner || (is_bad(&point) && !is_told))
        {
            level.cases.push(point);
        }
    }

    fn add(&mut self, case: Case) {
        if let Some(level) = self.levels.last_mut() {
            level.cases.push(case);
        }
    }

    fn last_case(&mut self) -> Option<&mut Case> {
        self.levels.last_mut()?.cases.last_mut()
    }
}

impl Level {
    /// Adds planned points that never came, as cases without a result.
    fn close(&mut self) {
        let Some(planned) = self.planned.take() else {
            return;
        };
        let missing = planned.saturating_sub(self.points);
        if missing > 0 {
            let name = format!("{missing} planned without a result");
            self.cases
                .push(case_of(name, Outcome::Error, "the test ended before them"));
        }
    }
}

fn case_of(name: String, outcome: Outcome, message: &str) -> Case {
    Case {
        name,
        outcome,
        seconds: None,
        message: message.to_owned(),
    }
}

/// Parses `1..4`, and also `1..0 # SKIP why`.
fn plan(line: &str) -> Option<u64> {
    let number = line.strip_prefix("1..")?.split(' ').next()?;
    number.parse().ok().filter(|number| *number <= 10_000_000)
}

/// Parses `ok 1 - name # SKIP why` or `not ok 2 name # TIMEOUT 5 s`.
fn point(line: &str) -> Option<Case> {
    let (is_good, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start();
    let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = rest.split_at(number);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, directive) = rest
        .split_once(" # ")
        .or_else(|| Some(("", rest.strip_prefix("# ")?)))
        .unwrap_or((rest, ""));
    let word = directive
        .split([' ', ':'])
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    let outcome = match (word.as_str(), is_good) {
        ("SKIP" | "SKIPPED", _) | ("TODO" | "XFAIL", false) => Outcome::Skipped,
        ("ERROR", _) => Outcome::Error,
        (_, true) => Outcome::Passed,
        (_, false) => Outcome::Failed,
    };
    let name = match name.trim() {
        "" if number.is_empty() => "unnamed".to_owned(),
        "" => format!("test {number}"),
        name => cut(name, NAME_BYTES_MAX),
    };
    Some(case_of(name, outcome, directive))
}

/// Returns a line without the time stamp of a kernel console, `[    1.234567] `.
fn without_time(line: &str) -> &str {
    let Some((stamp, rest)) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    else {
        return line;
    };
    let is_time = stamp
        .trim()
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_time && !stamp.trim().is_empty() {
        rest
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Outcome)> {
        let cases = cases(text).unwrap().into_iter();
        cases.map(|case| (case.name, case.outcome)).collect()
    }

    fn of<const N: usize>(all: [(&str, Outcome); N]) -> Vec<(String, Outcome)> {
        all.map(|(name, outcome)| (name.to_owned(), outcome)).into()
    }

    #[test]
    fn plain_tap_is_read() {
        let text = "TAP version 14\n1..5\nok 1 - adds\nnot ok 2 - subtracts\n  ---\n  message: wrong\n  ...\n\
                    ok 3 # SKIP no network\nnot ok 4 later # TODO\nok\n# a remark\nokay this is none\n";
        let expected = of([
            ("adds", Outcome::Passed),
            ("subtracts", Outcome::Failed),
            ("test 3", Outcome::Skipped),
            ("later", Outcome::Skipped),
            ("unnamed", Outcome::Passed),
        ]);
        assert_eq!(read(text), expected);
        assert!(cases(text).unwrap()[1].message.contains("message: wrong"));
        assert!(is_announced(text) && !is_announced("ok 1 - adds\n"));
    }

    #[test]
    fn subtests_are_cases_and_what_sums_them_up_is_none() {
        let text = "TAP version 14\n# Subtest: io\n    ok 1 - reads\n    not ok 2 - writes\n    1..2\nnot ok 1 - io\n\
                    # Subtest: net\n    ok 1 - connects\nnot ok 2 - net\nok 3 - rest\n1..3\n";
        let expected = of([
            ("io/reads", Outcome::Passed),
            ("io/writes", Outcome::Failed),
            ("net/connects", Outcome::Passed),
            // The point failed, but none of its subtests did.
            ("net", Outcome::Failed),
            ("rest", Outcome::Passed),
        ]);
        assert_eq!(read(text), expected);
    }

    #[test]
    fn ktap_on_a_console_is_read() {
        let text = "[    1.000000] Linux boots\n[    2.000001] KTAP version 1\n[    2.000002] 1..2\n\
                    [    2.000003]     KTAP version 1\n[    2.000004]     # Subtest: list\n[    2.000005]     1..2\n\
                    [    2.000006]     ok 1 list_add\n[    2.000007]     # list_del: EXPECTATION FAILED at lib/list.c:5\n\
                    [    2.000008]     not ok 2 list_del\n[    2.000009] # list: pass:1 fail:1\n\
                    [    2.000010] not ok 1 list\n[    2.000011] ok 2 sort # SKIP not built\n";
        let expected = of([
            ("list/list_add", Outcome::Passed),
            ("list/list_del", Outcome::Failed),
            ("sort", Outcome::Skipped),
        ]);
        assert_eq!(read(text), expected);
    }

    #[test]
    fn what_never_came_has_no_result() {
        let text = "1..3\nok 1 - a\nBail out! the disk is gone\n";
        let expected = of([
            ("a", Outcome::Passed),
            ("bail out", Outcome::Error),
            ("2 planned without a result", Outcome::Error),
        ]);
        assert_eq!(read(text), expected);
        // A console that ended in the middle of a subtest.
        let text = "KTAP version 1\n1..1\n    # Subtest: io\n    1..2\n    ok 1 reads\n";
        let expected = of([
            ("io/reads", Outcome::Passed),
            ("io/1 planned without a result", Outcome::Error),
            ("1 planned without a result", Outcome::Error),
        ]);
        assert_eq!(read(text), expected);
    }
}

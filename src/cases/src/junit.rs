//! JUnit XML.

use junit_parser::{TestCase, TestStatus, TestSuite, TestSuites};

use crate::{Case, FILE_CASES_MAX, NAME_BYTES_MAX, Outcome, cut};

/// Maximum nesting depth of suites.
const DEPTH_MAX: usize = 32;
/// Element that identifies JUnit. Other XML lacks it near its start.
const ELEMENT: &[u8] = b"<testsuite";
/// Number of bytes of a file that are searched for it.
const HEAD_BYTES: usize = 4_096;

/// Returns all cases of a file, in order. XML other than JUnit has none.
pub(crate) fn cases(bytes: &[u8]) -> Result<Vec<Case>, String> {
    let head = bytes.get(..HEAD_BYTES).unwrap_or(bytes);
    if !head.windows(ELEMENT.len()).any(|window| window == ELEMENT) {
        return Ok(Vec::new());
    }
    // The reader parses the whole file at once, and an element is far larger in memory than in the file.
    let begins = |two: &[u8]| two[0] == b'<' && two[1] != b'/';
    if bytes.windows(2).filter(|two| begins(two)).count() > FILE_CASES_MAX {
        return Err(format!("has more than {FILE_CASES_MAX} elements"));
    }
    let suites = junit_parser::from_reader(bytes);
    let TestSuites { suites, .. } = suites.map_err(|error| format!("is no JUnit XML: {error}"))?;
    let mut found = Vec::new();
    for suite in suites {
        collect(suite, 0, &mut found);
    }
    Ok(found)
}

fn collect(suite: TestSuite, depth: usize, found: &mut Vec<Case>) {
    let name = suite.name;
    found.extend(suite.cases.into_iter().map(|one| case(one, &name)));
    if depth < DEPTH_MAX {
        for inner in suite.suites {
            collect(inner, depth + 1, found);
        }
    }
}

fn case(one: TestCase, suite: &str) -> Case {
    let class = one.classname.as_deref().filter(|class| !class.is_empty());
    let group = class.unwrap_or(suite);
    let own = cut(&one.original_name, NAME_BYTES_MAX);
    let name = if group.is_empty() {
        own
    } else {
        // A long suite name would be repeated in each of its cases.
        format!("{}/{own}", cut(group, NAME_BYTES_MAX))
    };
    let said = |message: &str, text: &str| {
        let both = [message.trim(), text.trim()];
        let both = both.into_iter().filter(|part| !part.is_empty());
        both.collect::<Vec<_>>().join("\n")
    };
    let (outcome, message) = match one.status {
        TestStatus::Success => (Outcome::Passed, String::new()),
        TestStatus::Failure(failure) => (Outcome::Failed, said(&failure.message, &failure.text)),
        TestStatus::Error(error) => (Outcome::Error, said(&error.message, &error.text)),
        TestStatus::Skipped(skipped) => (Outcome::Skipped, said(&skipped.message, &skipped.text)),
    };
    Case {
        name,
        outcome,
        seconds: Some(one.time),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(text: &str) -> Vec<(String, Outcome)> {
        let cases = cases(text.as_bytes()).unwrap();
        cases
            .into_iter()
            .map(|case| (case.name, case.outcome))
            .collect()
    }

    #[test]
    fn pytest_s_dialect_is_read() {
        let text = r#"<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="0" failures="1" skipped="1" tests="3" time="0.05" timestamp="2026-11-27T14:00:00.123456+00:00" hostname="h">
<testcase classname="test_a" name="test_good" time="0.001" />
<testcase classname="test_a" name="test_bad[1-2]" time="0.002"><failure message="assert 1 == 2">def test_bad():
&gt;   assert 1 == 2</failure></testcase>
<testcase classname="test_a" name="test_later" time="0.000"><skipped type="pytest.skip" message="later">x</skipped></testcase>
</testsuite></testsuites>"#;
        let expected = [
            ("test_a/test_good", Outcome::Passed),
            ("test_a/test_bad[1-2]", Outcome::Failed),
            ("test_a/test_later", Outcome::Skipped),
        ];
        assert_eq!(
            outcomes(text),
            expected.map(|(name, outcome)| (name.to_owned(), outcome))
        );
        let bad = &cases(text.as_bytes()).unwrap()[1];
        assert!(
            bad.message.starts_with("assert 1 == 2\ndef test_bad"),
            "{}",
            bad.message
        );
        assert_eq!(bad.seconds, Some(0.002));
    }

    #[test]
    fn surefire_s_dialect_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="3.0" name="org.x.AppTest" time="0.1" tests="2" errors="1" skipped="0" failures="0">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="works" classname="org.x.AppTest" time="0.01"/>
  <testcase name="breaks" classname="org.x.AppTest" time="0.02"><error message="boom" type="java.lang.RuntimeException"><![CDATA[java.lang.RuntimeException: boom]]></error><system-out>text</system-out></testcase>
</testsuite>"#;
        let expected = [
            ("org.x.AppTest/works", Outcome::Passed),
            ("org.x.AppTest/breaks", Outcome::Error),
        ];
        assert_eq!(
            outcomes(text),
            expected.map(|(name, outcome)| (name.to_owned(), outcome))
        );
    }

    #[test]
    fn gtest_s_dialect_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" disabled="0" errors="0" time="0.001" timestamp="2026-11-27T14:00:00.123" name="AllTests">
  <testsuite name="Sum" tests="2" failures="1" disabled="0" skipped="0" errors="0" time="0." timestamp="2026-11-27T14:00:00.123">
    <testcase name="Adds" file="a.cc" line="5" status="run" result="completed" time="0." timestamp="2026-11-27T14:00:00.123" classname="Sum" />
    <testcase name="Fails" file="a.cc" line="9" status="run" result="completed" time="0.001" timestamp="2026-11-27T14:00:00.123" classname="Sum">
      <failure message="a.cc:10&#x0A;Expected equality" type=""><![CDATA[a.cc:10]]></failure>
    </testcase>
  </testsuite>
</testsuites>"#;
        let expected = [
            ("Sum/Adds", Outcome::Passed),
            ("Sum/Fails", Outcome::Failed),
        ];
        assert_eq!(
            outcomes(text),
            expected.map(|(name, outcome)| (name.to_owned(), outcome))
        );
    }

    #[test]
    fn other_xml_holds_no_case_and_broken_xml_is_told() {
        assert_eq!(cases(b"<project><a/></project>"), Ok(Vec::new()));
        let error = cases(b"<testsuite name='a'><testcase name='b'").unwrap_err();
        assert!(error.contains("is no JUnit XML"), "{error}");
        let bomb = br#"<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite name="s"><testcase name="&b;"/></testsuite>"#;
        assert!(cases(bomb).map_or(true, |cases| cases.iter().all(|case| case.name.len() < 50)));
    }
}

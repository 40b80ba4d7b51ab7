//! The text of metrics: `OpenMetrics`, and Prometheus' classic format, which is made from it.

use std::fmt::Write as _;

/// The content type of `OpenMetrics`.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of the classic format.
pub const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the classic format of an `OpenMetrics` text. There, a counter's name ends with `_total` in its head as
/// well. Units and the end mark do not exist.
pub(crate) fn classic(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    // The head of one metric: its name, and its help with the line's end.
    let mut help: Option<(&str, &str)> = None;
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let suffix = if kind == "counter" { "_total" } else { "" };
            let kind = if kind == "unknown" { "untyped" } else { kind };
            let said = help.take().map_or("", |(_, help)| help);
            // Writing to a text cannot fail.
            let _ = writeln!(text, "# HELP {name}{suffix} {said}");
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_their_whole_name_in_the_classic_format() {
        let open = "# HELP a_jobs Jobs.\n# TYPE a_jobs counter\na_jobs_total 3\n\
                    # HELP a_wait_seconds Waits.\n# TYPE a_wait_seconds histogram\n# UNIT a_wait_seconds seconds\n\
                    a_wait_seconds_sum 1.0\n# HELP b B.\n# TYPE b unknown\nb 1\n# EOF\n";
        let expected = "# HELP a_jobs_total Jobs.\n# TYPE a_jobs_total counter\na_jobs_total 3\n\
                        # HELP a_wait_seconds Waits.\n# TYPE a_wait_seconds histogram\n\
                        a_wait_seconds_sum 1.0\n# HELP b B.\n# TYPE b untyped\nb 1\n";
        assert_eq!(classic(open), expected);
    }
}

//! The `Range` header: which part of a file a client asks for (RFC 9110, section 14).

use crate::files::read::Part;

/// One part of bytes. Several parts, other units and what cannot be read are all of it, as the RFC allows.
pub(super) fn part_of(range: &str) -> Part {
    read(range).unwrap_or(Part::All)
}

fn read(range: &str) -> Option<Part> {
    let number = |text: &str| -> Option<u64> {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_digits)
    };
    let (first, last) = range.trim().strip_prefix("bytes=")?.split_once('-')?;
    Some(match (first.trim(), last.trim()) {
        ("", many) => Part::Last(number(many)?),
        (first, "") => Part::Bytes(number(first)?, None),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            Part::Bytes(first, Some(last))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_read_and_anything_else_is_all() {
        for (range, part) in [
            ("bytes=0-99", Part::Bytes(0, Some(99))),
            ("bytes=100-", Part::Bytes(100, None)),
            ("bytes=-5", Part::Last(5)),
            (" bytes=1-1", Part::Bytes(1, Some(1))),
        ] {
            assert_eq!(part_of(range), part, "{range}");
        }
        for range in [
            "",
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=0-1,4-5",
            "lines=0-1",
            "bytes=+1-2",
            "bytes=1",
            "bytes=99999999999999999999-",
        ] {
            assert_eq!(part_of(range), Part::All, "{range}");
        }
    }
}

//! Sizes for people.

use fairlead_job::units::counted;

/// Returns a size for people: `12 bytes`, `64 KB`, `64 MB`, `64 GB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..=0xffff => counted(bytes, "byte", "bytes"),
        0x1_0000..=0x3ff_ffff => format!("{} KB", bytes >> 10),
        0x400_0000..=0xf_ffff_ffff => format!("{} MB", bytes >> 20),
        _ => format!("{} GB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_that_people_read() {
        for (bytes, shown) in [
            (1, "1 byte"),
            (65_535, "65535 bytes"),
            (65_536, "64 KB"),
            (64 << 20, "64 MB"),
            (64 << 30, "64 GB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}

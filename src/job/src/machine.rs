//! Words for what a machine is, which its agent, its registration and jobs share.

/// Parts that machines count: disks, network cards, NUMA nodes.
pub const COUNTED: [&str; 3] = ["disks", "nics", "nodes"];
/// The largest number that is told apart; a machine with more has as many for matching.
pub const COUNT_MAX: u32 = 64;

/// The tag of a machine that has at least so many: `nodes:2+`.
#[must_use]
pub fn at_least(what: &str, number: u32) -> String {
    format!("{what}:{number}+")
}

/// A CPU model as a tag says it: `intel-xeon-gold-6248` of `Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz`.
#[must_use]
pub fn cpu_model(said: &str) -> String {
    let model = said.split(" @ ").next().unwrap_or_default();
    let model = model.replace("(R)", "").replace("(TM)", "").to_lowercase();
    let words = model.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let words = words.filter(|word| !word.is_empty() && *word != "cpu");
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_one_word() {
        for (said, word) in [
            (
                "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz",
                "intel-xeon-gold-6248",
            ),
            (
                "Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz",
                "intel-core-i7-4770",
            ),
            (
                "AMD EPYC 7742 64-Core Processor",
                "amd-epyc-7742-64-core-processor",
            ),
            ("Kunpeng-920", "kunpeng-920"),
            (" @ ", ""),
        ] {
            assert_eq!(cpu_model(said), word);
        }
    }
}

//! Submit bodies at random over one connection that stays open: no answer but 200 and 4xx, each with its
//! reason, and the server lives. (The many cases run in process, in the scheduler's own tests.)

use std::fs;

use fairlead_tests::{Scheduler, Store, jobs, settings};
use reqwest::Method;
use serde_json::json;

const CASES: u32 = 500;
const SEED: u64 = 0x5eed_0fa1_41ea_d001;

/// Random generator xorshift64*. It is good enough for mutations, and equal on all machines.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// Returns job files to mutate: the project's own, and the corpus if it exists.
fn seeds() -> Vec<Vec<u8>> {
    let mut folders = vec![settings::project().join("examples")];
    folders.extend(settings::corpus().map(|corpus| corpus.join("jobs")));
    let files = folders
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    let mut paths: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut seeds: Vec<_> = paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .collect();
    seeds.push(jobs::dc("alice").to_string().into_bytes());
    seeds.push(
        json!([jobs::hw("a"), {"suite": "s"}, 5])
            .to_string()
            .into_bytes(),
    );
    seeds
}

fn mutate(random: &mut Random, mut body: Vec<u8>) -> Vec<u8> {
    for _ in 0..=random.below(8) {
        let at = random.below(body.len());
        match random.below(6) {
            0 => body.insert(at.min(body.len()), random.byte()),
            1 if !body.is_empty() => body[at] = random.byte(),
            2 if !body.is_empty() => drop(body.drain(at..(at + random.below(20)).min(body.len()))),
            3 => body.truncate(at),
            4 => {
                let piece = body[at..].iter().take(40).copied().collect::<Vec<_>>();
                let to = random.below(body.len() + 1);
                body.splice(to..to, piece);
            }
            _ => {
                let words = [
                    "{{", "}}", "<<: x\n", "- ", "[", "{", "\"", ": ", "\t", "&a ", "*a", "|",
                    "\u{0}",
                ];
                let word = words[random.below(words.len())];
                body.splice(at..at, word.bytes());
            }
        }
    }
    body
}

#[tokio::test]
async fn random_submits_are_answered() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let seeds = seeds();
    let mut random = Random(SEED);
    for case in 0..CASES {
        let body = if random.below(4) == 0 {
            (0..random.below(300)).map(|_| random.byte()).collect()
        } else {
            let seed = seeds[random.below(seeds.len())].clone();
            mutate(&mut random, seed)
        };
        let kind = ["", "application/json", "application/yaml"][random.below(3)];
        let shown = String::from_utf8_lossy(&body).into_owned();
        let reply = http
            .try_send(Method::POST, "/scheduler/v1/jobs/submit", kind, body)
            .await
            .unwrap_or_else(|error| panic!("case {case} ({kind}): {error}\n{shown}"));
        let fine = reply.status == 200 || (400..500).contains(&reply.status);
        assert!(
            fine,
            "case {case} ({kind}): {} {}\n{shown}",
            reply.status, reply.text
        );
        assert!(
            reply.text.contains("\"message\""),
            "case {case}: {}\n{shown}",
            reply.text
        );
    }
    http.submit(&jobs::dc("alice")).await;
}

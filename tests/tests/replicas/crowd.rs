//! Many hw machines that ask several replicas in turn.

use std::collections::BTreeMap;

use fairlead_tests::{Http, Testbox};
use tokio::task::JoinSet;

/// Time that a machine waits for work at one replica, seconds. It stops when no replica has any.
const WAIT_S: u32 = 3;

/// Runs all jobs. Each machine asks one replica, reports the end at the next, and asks there, until no work is left.
/// Returns the number of grants of each job.
pub(crate) async fn run_all(replicas: &[Http], machines: usize) -> BTreeMap<String, usize> {
    let mut running = JoinSet::new();
    for n in 0..machines {
        let mut turn: Vec<Http> = replicas.to_vec();
        turn.rotate_left(n % replicas.len());
        running.spawn(one_machine(format!("machine-{n}"), turn));
    }
    let mut handed_out = BTreeMap::new();
    for id in running.join_all().await.into_iter().flatten() {
        *handed_out.entry(id).or_default() += 1;
    }
    handed_out
}

async fn one_machine(host: String, replicas: Vec<Http>) -> Vec<String> {
    let mut machine = Testbox::hw(&replicas[0], &host);
    let (mut ran, mut in_vain) = (Vec::new(), 0);
    for http in replicas.iter().cycle().skip(1) {
        let grants = machine.ask(WAIT_S).await;
        assert!(
            grants.len() <= 1,
            "{host} got {} jobs at once",
            grants.len()
        );
        machine.turn_to(http);
        in_vain = if grants.is_empty() { in_vain + 1 } else { 0 };
        if in_vain == replicas.len() {
            break;
        }
        for grant in grants {
            machine.finish(&grant).await;
            ran.push(grant.job_id);
        }
    }
    ran
}

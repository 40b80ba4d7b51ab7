//! A node of a cluster: it waits for the others before it begins, and passes their addresses to its script.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, ToSocketAddrs, UdpSocket},
};

use fairlead_api::{Client, ClientError, Grant, Peer};
use serde_json::Value;

use super::{journal::Journal, retry::until_answered};

/// Address of a job's own machine, if all roles are on it.
const LOOPBACK: &str = "127.0.0.1";
/// Roles whose first node has a variable of that name, as lkp's tests expect.
const NAMED: [&str; 2] = ["server", "client"];

/// Returns true if a grant's job is one of several nodes.
pub(super) fn is_node(grant: &Grant) -> bool {
    let jobs = grant.job.get("cluster_jobs").and_then(Value::as_array);
    jobs.is_some_and(|jobs| jobs.len() > 1)
}

/// Waits until all nodes are ready, and returns them.
pub(super) async fn wait(client: &Client, journal: &Journal) -> Result<Vec<Peer>, ClientError> {
    let (job_id, token) = (&journal.job_id, &journal.job_token);
    loop {
        let asking = until_answered(job_id, "wait for its peers", || {
            client.wait_peer(job_id, journal.attempt, token)
        });
        let answer = asking.await?;
        if answer.open {
            return Ok(answer.peers);
        }
    }
}

/// Returns the variables for a cluster's script, in addition to its parameters: its own role, and the addresses of all
/// roles.
pub(super) fn environment(grant: &Grant, peers: &[Peer]) -> Vec<(String, String)> {
    let text = |name: &str| grant.job.get(name).and_then(Value::as_str);
    if text("cluster").is_none() {
        return Vec::new();
    }
    let own = text("node_roles").unwrap_or_default();
    let alone = [(own, LOOPBACK)];
    let of_peers: Vec<(&str, &str)> = peers
        .iter()
        .map(|peer| (peer.node_roles.as_str(), peer.address.as_str()))
        .collect();
    let nodes = if peers.is_empty() {
        &alone[..]
    } else {
        &of_peers
    };
    let mut by_role: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (roles, address) in nodes {
        for role in roles.split([' ', ',']).filter(|role| !role.is_empty()) {
            by_role.entry(role).or_default().push(address);
        }
    }
    let mut all = vec![("role".to_owned(), own.to_owned())];
    for (role, addresses) in by_role {
        if NAMED.contains(&role) {
            let first = addresses.first().copied().unwrap_or_default();
            all.push((role.to_owned(), first.to_owned()));
        }
        all.push((format!("direct_{role}_ips"), addresses.join(" ")));
    }
    all
}

/// Returns the address of this machine from which it reaches the scheduler. It sends nothing.
pub(super) fn own_address(servers: &[String]) -> Option<String> {
    servers.iter().find_map(|server| {
        let (scheme, rest) = server.split_once("://")?;
        let named = rest.split('/').next()?.rsplit('@').next()?;
        // The port does not matter, because the route is the same.
        let port = if scheme == "https" { 443 } else { 80 };
        let there = named.to_socket_addrs();
        let there = there.or_else(|_| (named.trim_matches(['[', ']']), port).to_socket_addrs());
        there.ok()?.find_map(from_where)
    })
}

fn from_where(there: SocketAddr) -> Option<String> {
    let any = if there.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(there).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::grant;

    fn node(roles: &str, address: &str) -> Peer {
        Peer {
            job_id: "7".to_owned(),
            job_stage: fairlead_job::Stage::WaitPeer.into(),
            node_roles: roles.to_owned(),
            host: "h".to_owned(),
            address: address.to_owned(),
        }
    }

    fn words(grant: &Grant, peers: &[Peer]) -> Vec<String> {
        let all = environment(grant, peers);
        all.iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn a_script_finds_the_addresses_of_all_roles() {
        let job = grant("7", json!({"cluster": "cs-s1-c2", "node_roles": "client"}));
        let peers = [
            node("server", "10.0.0.1"),
            node("client", "10.0.0.2"),
            node("client", "10.0.0.3"),
        ];
        assert_eq!(
            words(&job, &peers),
            [
                "role=client",
                "client=10.0.0.2",
                "direct_client_ips=10.0.0.2 10.0.0.3",
                "server=10.0.0.1",
                "direct_server_ips=10.0.0.1",
            ]
        );
    }

    #[test]
    fn one_machine_with_all_roles_is_reached_by_itself() {
        let job = grant(
            "7",
            json!({"cluster": "cs-localhost", "node_roles": "server client"}),
        );
        let all = words(&job, &[]);
        assert!(all.contains(&"role=server client".to_owned()), "{all:?}");
        assert!(
            all.contains(&"direct_server_ips=127.0.0.1".to_owned()),
            "{all:?}"
        );
        assert!(words(&grant("7", json!({})), &[]).is_empty());
    }

    #[test]
    fn only_jobs_of_several_nodes_wait() {
        let one = |jobs: Value| is_node(&grant("7", json!({"cluster_jobs": jobs})));
        assert!(one(json!(["7", "8"])));
        assert!(!one(json!(["7"])) && !one(json!(null)));
    }

    #[test]
    fn the_own_address_is_the_one_that_faces_the_scheduler() {
        let servers = ["nonsense".to_owned(), "http://127.0.0.1:3000/x".to_owned()];
        assert_eq!(own_address(&servers).as_deref(), Some("127.0.0.1"));
        let usual_port = ["https://127.0.0.1".to_owned()];
        assert_eq!(own_address(&usual_port).as_deref(), Some("127.0.0.1"));
        assert_eq!(own_address(&servers[..1]), None);
    }
}

//! Clusters: a job for several machines becomes one job per node, each with its roles.
//!
//! `cluster_spec` lists the nodes one by one. Without it, the name in `cluster` gives them: `cs-localhost` is one node
//! with all roles, and `cs-s1-c2` is one server and two clients. Any other name is one node for each of `node_roles`.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{present, refuse},
    units::shown,
};

/// Most nodes of a cluster: each node's job names all of them.
pub const NODES_MAX: usize = 32;
/// Longest name of a role, bytes.
const ROLE_BYTES_MAX: usize = 32;
/// Most roles of a node.
const ROLES_MAX: usize = 8;
/// The roles of a job that names none.
const ROLES: &str = "server client";
/// The field that names machines.
const SPEC: &str = "cluster_spec";
/// The letters that count nodes in a cluster's name, and their roles.
const COUNTED: [(char, &str); 2] = [('s', "server"), ('c', "client")];

/// One node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its roles, at least one, in the order of the job.
    pub roles: Vec<String>,
    /// Fields of the job that are other ones on this node.
    pub fields: Spec,
}

impl ClusterNode {
    fn of(role: &str) -> Self {
        Self {
            roles: vec![role.to_owned()],
            fields: Spec::new(),
        }
    }

    /// The job of this node: the whole job, with the node's own roles and fields.
    #[must_use]
    pub fn job(&self, whole: &Spec) -> Spec {
        let mut job = whole.clone();
        if self.fields.contains_key("testbox") {
            // The job's fields of the place hold for nodes without their own.
            for field in ["tbox_group", "tbox_type"] {
                job.shift_remove(field);
            }
        }
        job.extend(self.fields.clone());
        job.insert("node_roles".to_owned(), Value::from(self.roles.join(" ")));
        job
    }
}

/// The nodes of a job: empty if it names no cluster, one if it runs all roles on one machine.
///
/// # Errors
/// The names of roles, their number, or the nodes are not what they may be.
pub fn cluster_nodes(spec: &Spec) -> Result<Vec<ClusterNode>, FieldError> {
    let Some(cluster) = present(spec, "cluster") else {
        return Ok(Vec::new());
    };
    let Value::String(name) = cluster else {
        let problem = format!("{} is not a name", shown(cluster));
        return refuse(
            "cluster",
            problem,
            "write cluster: cs-s1-c1, and name machines in cluster_spec",
        );
    };
    let roles = roles("node_roles", present(spec, "node_roles"))?;
    let nodes = match present(spec, SPEC) {
        Some(said) => named(said)?,
        None if name.split('-').any(|part| part == "localhost") => vec![ClusterNode {
            roles,
            fields: Spec::new(),
        }],
        None => match counted(name) {
            nodes if nodes.is_empty() => roles.iter().map(|role| ClusterNode::of(role)).collect(),
            nodes => nodes,
        },
    };
    if (1..=NODES_MAX).contains(&nodes.len()) {
        return Ok(nodes);
    }
    refuse(
        "cluster",
        format!("{} nodes; 1 to {NODES_MAX} are possible", nodes.len()),
        "cs-s1-c3 is one server and three clients",
    )
}

/// Returns the nodes that a name counts: `cs-s1-c2`. Parts that count no role are a site's own marks.
fn counted(name: &str) -> Vec<ClusterNode> {
    let mut nodes = Vec::new();
    for part in name.split('-') {
        let role = part.chars().next().and_then(|letter| {
            let mut known = COUNTED.into_iter();
            known.find(|(known, _)| *known == letter)
        });
        let count: Option<usize> = part.get(1..).and_then(|digits| digits.parse().ok());
        if let (Some((_, role)), Some(count)) = (role, count) {
            // One too many is told by the caller.
            let room = NODES_MAX.saturating_add(1).saturating_sub(nodes.len());
            nodes.extend((0..count.min(room)).map(|_| ClusterNode::of(role)));
        }
    }
    nodes
}

/// `cluster_spec: {nodes: {MACHINE: {roles: [server]}}}`.
fn named(said: &Value) -> Result<Vec<ClusterNode>, FieldError> {
    match said.get("nodes") {
        Some(Value::Object(nodes)) => nodes.iter().map(one_named).collect(),
        other => no_map(other.unwrap_or(said)),
    }
}

fn one_named((name, said): (&String, &Value)) -> Result<ClusterNode, FieldError> {
    let mut fields = match said {
        Value::Null => Spec::new(),
        Value::Object(said) => said.clone(),
        other => return no_map(other),
    };
    let field = format!("{SPEC}.nodes.{name}.roles");
    let roles = roles(&field, present(&fields, "roles"))?;
    // Of the network only, which is the machine's own affair.
    for own in ["roles", "macs"] {
        fields.shift_remove(own);
    }
    fields
        .entry("testbox")
        .or_insert_with(|| Value::from(name.as_str()));
    Ok(ClusterNode { roles, fields })
}

fn no_map<T>(said: &Value) -> Result<T, FieldError> {
    let problem = format!("{} where a map was expected", shown(said));
    refuse(
        SPEC,
        problem,
        "write {nodes: {MACHINE: {roles: [server]}, OTHER: {roles: [client]}}}",
    )
}

/// Names of roles: a text with blanks or commas between them, or a list.
fn roles(field: &str, said: Option<&Value>) -> Result<Vec<String>, FieldError> {
    let texts: Vec<&str> = match said {
        None => vec![ROLES],
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(other) => {
            let problem = format!("{} where names were expected", shown(other));
            return refuse(field, problem, "write node_roles: server client");
        }
    };
    let words = texts.iter().flat_map(|text| text.split([' ', ',']));
    let mut roles: Vec<String> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        let is_name = word.len() <= ROLE_BYTES_MAX
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            let problem = format!("{} is no name of a role", shown(&Value::from(word)));
            return refuse(
                field,
                problem,
                "letters, digits and _, up to 32: it becomes part of a variable's name",
            );
        }
        if !roles.iter().any(|known| known == word) {
            roles.push(word.to_owned());
        }
    }
    if (1..=ROLES_MAX).contains(&roles.len()) {
        return Ok(roles);
    }
    refuse(
        field,
        format!("{} roles; 1 to {ROLES_MAX} are possible", roles.len()),
        "write node_roles: server client",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: &Value) -> Spec {
        value.as_object().cloned().unwrap_or_default()
    }

    fn roles_of(value: &Value) -> Result<Vec<String>, String> {
        let nodes = cluster_nodes(&spec(value)).map_err(|error| error.to_string())?;
        Ok(nodes.iter().map(|node| node.roles.join("+")).collect())
    }

    #[test]
    fn a_name_says_how_many_nodes_there_are_and_what_they_do() {
        for (job, expected) in [
            (json!({}), vec![]),
            (json!({"cluster": null}), vec![]),
            (json!({"cluster": "cs-localhost"}), vec!["server+client"]),
            (json!({"cluster": "cs-s1-c1"}), vec!["server", "client"]),
            (
                json!({"cluster": "cs-s1-a1006-c2"}),
                vec!["server", "client", "client"],
            ),
            (json!({"cluster": "cs-two"}), vec!["server", "client"]),
            (
                json!({"cluster": "cs-own", "node_roles": "server client1 client2"}),
                vec!["server", "client1", "client2"],
            ),
            (
                json!({"cluster": "cs-localhost", "node_roles": ["a", "b"]}),
                vec!["a+b"],
            ),
        ] {
            let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(roles_of(&job), Ok(expected), "{job}");
        }
    }

    #[test]
    fn named_machines_have_roles_and_fields_of_their_own() {
        let job = spec(&json!({
            "suite": "x", "cluster": "cs-lab", "testbox": "vm", "tbox_type": "vm", "need_memory": "1g",
            "cluster_spec": {"switch": "sw-1", "nodes": {
                "hw--a1": {"roles": ["server"], "macs": ["00:01"]},
                "second": {"roles": "client", "testbox": "hw", "need_memory": "4g"},
            }},
        }));
        let nodes = cluster_nodes(&job).unwrap();
        let jobs: Vec<Spec> = nodes.iter().map(|node| node.job(&job)).collect();
        let said = |at: usize, field: &str| jobs[at].get(field).cloned().unwrap_or_default();
        assert_eq!(
            (said(0, "testbox"), said(0, "need_memory")),
            (json!("hw--a1"), json!("1g"))
        );
        assert_eq!(
            (said(1, "testbox"), said(1, "need_memory")),
            (json!("hw"), json!("4g"))
        );
        assert_eq!(
            (said(0, "node_roles"), said(1, "node_roles")),
            (json!("server"), json!("client"))
        );
        assert_eq!(
            (said(0, "tbox_type"), said(0, "macs")),
            (json!(null), json!(null))
        );
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (job, word) in [
            (json!({"cluster": 7}), "cluster: "),
            (json!({"cluster": "cs-s1-c99"}), "33 nodes"),
            (
                json!({"cluster": "cs-s0-c0", "node_roles": "a/b"}),
                "no name of a role",
            ),
            (json!({"cluster": "x", "node_roles": [1]}), "0 roles"),
            (
                json!({"cluster": "x", "node_roles": {"a": 1}}),
                "node_roles: ",
            ),
            (json!({"cluster": "x", "cluster_spec": "y"}), "a map"),
            (
                json!({"cluster": "x", "cluster_spec": {"nodes": {}}}),
                "0 nodes",
            ),
            (
                json!({"cluster": "x", "cluster_spec": {"nodes": {"a": {"roles": "b-c"}}}}),
                "cluster_spec.nodes.a.roles",
            ),
        ] {
            let why = roles_of(&job).unwrap_err();
            assert!(why.contains(word), "{job}: {why}");
        }
    }
}

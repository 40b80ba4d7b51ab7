//! Repairs the documents of a host that cannot be read, when an admin asks for it.
//!
//! A host is refused while its session or lease document is malformed, and not stored while its registration is. So
//! none is dropped by itself. Documents that can be read, and those of a newer version, are left alone.

use fairlead_api::HostReset;
use fairlead_job::JobId;

use crate::hosts::HostFlow;
use fairlead_base::{errors::Refusal, names::check_name};
use fairlead_known::host_turns::TurnDoc;

impl HostFlow {
    /// Repairs what is malformed of a host's session, lease and registration.
    pub(crate) async fn reset_host(&self, host: &str) -> Result<HostReset, Refusal> {
        check_name("hostname", host)?;
        let mut repaired = Vec::new();
        // Its jobs get a whole lease in which their host can be heard of again. Without the document they would be lost
        // at once, and run twice: no renewal could be written since it is malformed.
        let its = self.jobs.live.of_host(host);
        let jobs: Vec<JobId> = its.iter().map(|live| live.stored.state.job_id).collect();
        let heard = self.lease_doc(jobs.clone(), Vec::new());
        if self.ctx.docs.repair(host, Some(heard)).await? {
            self.renewals.0.remove(host);
            for id in jobs {
                self.jobs.live.renew(id, self.ctx.clock.now());
            }
            repaired.push("lease".to_owned());
        }
        // No request that took its turn before can hand out jobs: the version that it would replace is gone. Jobs that
        // only this document named are found by their leases. A claim is a compare-and-set of the job's own state.
        if self.ctx.docs.repair::<TurnDoc>(host, None).await? {
            self.host_turns.0.remove(host);
            repaired.push("session".to_owned());
        }
        // What this replica knows takes its place; of a host that it does not know, the next request does.
        if self.ctx.docs.repair(host, self.lab.hosts.get(host)).await? {
            repaired.push("registration".to_owned());
        }
        Ok(HostReset {
            hostname: host.to_owned(),
            repaired,
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlead_api::ErrorCode;
    use fairlead_dispatch::Millis;
    use fairlead_job::Stage;
    use fairlead_store::{DocKind, DocWrite, Expect, JobState};
    use serde_json::{Value, json};

    use crate::{
        flows::Flows,
        testing::{flows, flows_beside, held, sight_at, store_job},
    };
    use fairlead_known::work_request::WorkRequest;

    fn ask() -> WorkRequest {
        let request = json!({
            "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64",
            "memory_mb": 1024, "free_memory_mb": 1024,
        });
        WorkRequest::of("h", serde_json::from_value(request).unwrap()).unwrap()
    }

    async fn put(flows: &Flows, kind: DocKind, body: Value) {
        let write = DocWrite {
            id: "h".to_owned(),
            expect: Expect::Any,
            body: Some(body),
        };
        flows
            .ctx
            .store
            .put_docs(kind, vec![write])
            .await
            .remove(0)
            .unwrap();
    }

    async fn body(flows: &Flows, kind: DocKind) -> Option<Value> {
        let doc = flows.ctx.store.get_doc(kind, "h").await.unwrap();
        doc.map(|doc| doc.body)
    }

    #[tokio::test]
    async fn a_malformed_session_is_told_to_its_host_and_goes_when_an_admin_says_so() {
        let (_data, flows) = flows().await;
        assert_eq!(flows.hosts.reset_host("h").await.unwrap().repaired, [""; 0]);
        flows.hosts.take_turn(&ask()).await.unwrap();
        put(&flows, DocKind::Session, json!({"session": 7})).await;
        let b = flows_beside(&flows);
        for flows in [&flows, &b] {
            let refused = flows.hosts.take_turn(&ask()).await.unwrap_err();
            assert_eq!(refused.body().code, ErrorCode::UnreadableDocument);
            assert!(refused.body().hint.contains("fairlead hosts reset h"));
        }
        let stored = body(&flows, DocKind::Session).await;
        assert_eq!(stored, Some(json!({"session": 7})));
        assert_eq!(b.hosts.reset_host("h").await.unwrap().repaired, ["session"]);
        assert!(flows.hosts.take_turn(&ask()).await.unwrap().new_session);
    }

    /// Nobody could write that the host lives while the document was malformed, and each replica would have lost its
    /// job at once.
    #[tokio::test]
    async fn a_malformed_lease_loses_no_job_before_its_host_had_time_to_be_heard() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let running = JobState {
            stage: Stage::Running,
            host: "h".to_owned(),
            ..held()
        };
        let job = store_job(&a, running).await;
        let id = job.state.job_id;
        let named = [(id, job.state.claim_token.clone())];
        a.hosts.renew("h", &named).await.unwrap();
        for flows in [&a, &b] {
            flows
                .jobs
                .live
                .put(job.clone(), sight_at(flows.ctx.clock.now()));
            // Nobody has heard of it since.
            flows.jobs.live.put(job.clone(), sight_at(Millis(1)));
        }
        put(&a, DocKind::Lease, json!({"jobs": "none"})).await;
        let refused = a.hosts.renew("h", &named).await.unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::UnreadableDocument);
        for flows in [&a, &b] {
            flows.hosts.look_after(id).await;
        }
        let repaired = a.hosts.reset_host("h").await.unwrap().repaired;
        assert_eq!(repaired, ["lease"]);
        for flows in [&b, &a] {
            flows.hosts.look_after(id).await;
        }
        assert_eq!(a.jobs.stored_job(id).await.unwrap(), job);
        assert!(a.hosts.renew("h", &named).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_malformed_registration_is_written_anew() {
        let (_data, flows) = flows().await;
        put(&flows, DocKind::Host, json!({"kinds": "dc"})).await;
        assert!(flows.hosts.know_host("h").await.is_err());
        flows
            .hosts
            .lab
            .hosts
            .update("h", |host| host.arch = "x86_64".to_owned())
            .unwrap();
        assert!(flows.hosts.store_host("h").await.is_err());
        assert_eq!(
            flows.hosts.reset_host("h").await.unwrap().repaired,
            ["registration"]
        );
        let stored = body(&flows, DocKind::Host).await.unwrap();
        assert_eq!(stored["arch"], "x86_64");
    }

    #[tokio::test]
    async fn a_document_of_a_newer_version_is_no_malformed_one() {
        let (_data, flows) = flows().await;
        put(&flows, DocKind::Session, json!({"format": 2})).await;
        let refused = flows.hosts.reset_host("h").await.unwrap_err();
        assert_eq!(refused.body().hint, "upgrade this replica");
        let stored = body(&flows, DocKind::Session).await;
        assert_eq!(stored, Some(json!({"format": 2})));
    }
}

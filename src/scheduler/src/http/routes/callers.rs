//! Judges who sent a request, as its row in the table of routes says, before the handler runs.

use bytes::Bytes;
use fairlead_api::{Caller, Route};

use crate::{
    flows::Flows,
    http::{
        request::Request,
        signed::{Signed, read_signed},
    },
};
use fairlead_base::{budget::Identity, errors::Refusal, sealing::is_boot_token};
use fairlead_known::accounts::{Credentials, Who};

/// Who sent a request, and what was read of its body to know that.
#[derive(Default)]
pub(super) struct Called {
    /// The account that asks. `None`: the route asks for none, or the token of a job or of a replica stands for it.
    pub(super) who: Option<Who>,
    /// The body, where it may name its sender.
    signed: Option<Signed>,
    /// The body, where its jobs may name their senders.
    pub(super) jobs: Bytes,
}

impl Called {
    /// The account that asks, of a route that asks for one.
    pub(super) fn account(&mut self) -> Result<Who, Refusal> {
        promised(self.who.take())
    }

    /// The body, of a route where it may name its sender.
    pub(super) fn body(&mut self) -> Result<Signed, Refusal> {
        promised(self.signed.take())
    }
}

/// What the row of a route promises to its handler.
pub(super) fn promised<T>(found: Option<T>) -> Result<T, Refusal> {
    found.ok_or_else(|| {
        tracing::error!("a handler asks for a caller that the row of its route does not identify");
        Refusal::Bug
    })
}

/// Refuses all but the callers of a route.
pub(super) async fn called(
    flows: &Flows,
    request: &mut Request,
    route: Route<'_>,
) -> Result<Called, Refusal> {
    let mut called = Called::default();
    let said = request.credentials(None);
    let identify = |said: &Credentials| flows.people.accounts.identify(said);
    called.who = match route.endpoint().caller {
        // Whoever judges a job's token reads the job.
        Caller::Anybody | Caller::JobToken => None,
        Caller::Account => Some(identify(&said_of(said, route))?),
        Caller::Admin => {
            let who = identify(&said)?;
            who.require_admin()?;
            Some(who)
        }
        Caller::Signer => {
            let (who, signed) = Signed::read(flows, request).await?;
            called.signed = Some(signed);
            Some(who)
        }
        Caller::Submitter => {
            called.jobs =
                read_signed(flows, request, flows.ctx.config.limits.body_bytes_max).await?;
            None
        }
        Caller::Testbox => Some(of_host(identify(&said)?, route)?),
        Caller::Worker => {
            let who = identify(&said)?;
            who.require_worker()?;
            Some(of_host(who, route)?)
        }
        Caller::Booter => {
            if let Route::OldDispatch {
                parameter, value, ..
            } = route
            {
                let is_host = parameter == "host";
                let name = if is_host { "hostname" } else { parameter };
                request.query.set(name, value);
            }
            Some(flows.hosts.who_boots(&request.query, &said)?)
        }
        Caller::JobTokenOrAdmin if request.job_token().is_some() => None,
        Caller::AccountOrJob if names_job(request) => None,
        // The flow asks whether it is an admin, beside the job's account.
        Caller::JobTokenOrAdmin | Caller::AccountOrJob => Some(identify(&said)?),
        Caller::Replica => {
            flows.upkeep.check_peer(said.token.as_deref())?;
            request.identified();
            request.belongs_to(Identity::Reserve);
            None
        }
    };
    Ok(called)
}

/// `my_account` in the query of a list of jobs is a filter, and no claim of who asks.
fn said_of(said: Credentials, route: Route<'_>) -> Credentials {
    let account = said.account.filter(|_| route != Route::Jobs);
    Credentials { account, ..said }
}

/// Refuses whoever does not act for the host in the path.
fn of_host(who: Who, route: Route<'_>) -> Result<Who, Refusal> {
    for host in route.value("hostname") {
        who.require_host(host)?;
    }
    Ok(who)
}

/// Whether a job asks by its token, and not an account.
fn names_job(request: &Request) -> bool {
    request.job_token().is_some() && request.query.get("job_id").is_some()
}

/// Whether a request is for people and what acts for them: a testbox account is good for nothing of that.
pub(super) fn is_for_people(request: &Request, route: Route<'_>) -> bool {
    match route.endpoint().caller {
        Caller::AccountOrJob => request.job_token().is_none(),
        caller => caller.is_account() && route != Route::Whoami,
    }
}

/// Whether a token of another kind is judged before anything else is done: of a job, of a replica, or of a boot.
pub(super) fn is_judged_first(request: &Request, route: Option<Route<'_>>) -> bool {
    match route.map(|route| route.endpoint().caller) {
        Some(Caller::Replica) => true,
        Some(Caller::Booter) => request.query.get("token").is_some_and(is_boot_token),
        _ => request.job_token().is_some(),
    }
}

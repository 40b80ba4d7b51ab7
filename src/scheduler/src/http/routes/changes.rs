//! The handler of changes of waiting jobs.

use std::sync::Arc;

use fairlead_api::{CancelItem, CancelReport, ChangeRequest, ErrorCode};
use futures_util::{StreamExt, stream};
use warp::reply::Response;

use crate::{
    flows::Flows,
    http::{reply::ok, request::job_id, signed::Signed},
    submission::edits::Edit,
};
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Who;

/// Most jobs in one request.
const JOBS_MAX: usize = 10_000;
/// Those that are changed side by side.
const ABREAST: usize = 64;

pub(super) async fn change(
    flows: Arc<Flows>,
    who: Who,
    mut body: Signed,
) -> Result<Response, Refusal> {
    let hint = r#"{"job_ids": ["…"], "hold": true}, or {"job_ids": ["…"], "set": {"priority": 5}}"#;
    let wanted: ChangeRequest = body.take_as(hint)?;
    let many = wanted.job_ids.len();
    if !(1..=JOBS_MAX).contains(&many) {
        let message = format!("job_ids: {many} ids; 1 to {JOBS_MAX} can be changed at once");
        return Err(Refusal::new(ErrorCode::BadField, message, "split the list"));
    }
    let edit = Edit::new(wanted.hold, wanted.set)?;
    let changing = stream::iter(wanted.job_ids).map(|id| change_one(&flows, &who, id, &edit));
    let results = changing.buffered(ABREAST).collect().await;
    Ok(ok(&CancelReport { results }))
}

async fn change_one(flows: &Arc<Flows>, who: &Who, text: String, edit: &Edit) -> CancelItem {
    let outcome = match job_id(&text) {
        Ok(id) => Box::pin(flows.submission.edit_job(who, id, edit)).await,
        Err(refusal) => Err(refusal),
    };
    let (result, message) = match outcome {
        Ok(warning) => ("success", warning),
        Err(refusal) => {
            let body = refusal.body();
            let message = format!("{refusal}; {}", body.hint);
            (body.code.as_str(), message)
        }
    };
    CancelItem {
        job_id: text,
        result: result.to_owned(),
        message,
    }
}

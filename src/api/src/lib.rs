//! The wire interface: types, the endpoint table, error codes, and a typed client.
//!
//! It has no server dependencies: agents, the CLI and scripts need only this crate.

mod accounts;
mod answer;
pub mod client;
pub mod codes;
mod content;
mod dashboard;
pub mod endpoints;
mod explanation;
mod hosts;
mod job_groups;
mod job_view;
mod limits;
#[cfg(test)]
mod openapi;
pub mod parameters;
mod peers;
mod pools;
mod previews;
mod queues;
mod requests;
mod retention;
mod reuse;
mod route_macros;
mod rules;
pub mod timers;
mod usage;
mod webhooks;
pub mod wire;
mod words;

pub use accounts::{AccountChange, AccountView, NotifyChange, NotifyView, TokenView};
pub use answer::{CaseTotals, JobAnswer, ShardAnswer, ShardCounts, TestHistory};
pub use client::{
    AsJob, ByteStream, Client, ClientConfig, ClientError, JobQuery, JobUpdate, LogAppend,
    UploadBody, UploadOutcome,
};
pub use codes::{ErrorBody, ErrorCode};
pub use content::{
    ContentCareRequest, ContentChecked, ContentCollected, ContentKeep, ContentList, ContentMissing,
    ContentPin, ContentUrls, ContentUrlsRequest, ContentView, GrantInput, MissingChunk,
};
pub use dashboard::{
    AuditEvent, AuditList, ChangedTables, DELTA_JOBS_MAX, Delta, HostRow, LabRow, Login,
    PausedView, ReplicaRow, Series, SeriesPoint, Snapshot, StoreRow, Tables,
};
pub use endpoints::{Caller, ENDPOINTS, Endpoint, Route};
pub use explanation::{
    Before, Compared, ConstraintCost, Explanation, HostVerdict, Outlook, RecentWaits, RunCount,
};
pub use hosts::{
    ClosedView, ConflictView, EmptiesView, ExecutorSaid, HostLoad, HostView, LOADED_ABOVE_PERCENT,
    LOADED_REST_S, LOADED_UNTIL_PERCENT, LeavingJob, RegisteredView, ReservedView, UnknownMachine,
};
pub use job_groups::JobGroup;
pub use job_view::{AttemptView, EditView, JobEvent, JobTimes, JobView, RuleApplied};
pub use limits::{Bounds, Limits, LimitsChange};
pub use parameters::{COMMON, COUNTED_BY, Parameters};
pub use peers::{Peer, PeersAnswer};
pub use pools::{
    PoolChange, PoolDecision, PoolMachine, PoolMachineView, PoolView, ScalingSettings,
};
pub use previews::{
    BulkAction, Preview, PreviewFailure, PreviewItem, PreviewRequest, PreviewShare, PreviewState,
};
pub use queues::*;
pub use requests::*;
pub use retention::{RetentionChange, RetentionView};
pub use reuse::{NearestRun, ReuseExplanation, ReuseForgotten, ReuseSettings, SuiteReuse};
pub use rules::{SubmitRule, SubmitRules};
pub use timers::*;
pub use usage::{UsageReport, UsageRow};
pub use webhooks::{WebhookTest, WebhookTested, WebhookView};
pub use wire::*;
pub use words::{HealthWord, StageWord, Word};

/// The interface as an OpenAPI 3.1 document: JSON, compressed by gzip. Tests of this crate make it from the table of
/// endpoints and the types of the wire.
pub const OPENAPI_GZIP: &[u8] = include_bytes!("../openapi.json.gz");
/// The header that carries a job's token; a query may carry it as `job_token`.
pub const JOB_TOKEN_HEADER: &str = "job-token";
/// Header with the id of a request: a client may send one, the answer repeats it or has one of its own, and the
/// replica's log names it.
pub const REQUEST_ID_HEADER: &str = "x-request-id";
/// In every answer of a scheduler: from where it takes the job's token besides the query.
pub const ACCEPTS_HEADER: &str = "fairlead-accepts";

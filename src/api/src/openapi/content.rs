//! Media types and schemas of bodies and answers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{HealthView, JobAnswer, QueueUsers};

/// Makes the schema of a type.
pub(crate) type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// What a body or an answer holds: one or several media types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    /// Each with its schema; without one the type says all.
    pub(crate) types: &'static [(&'static str, Option<MakeSchema>)],
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A type's place in a table.
struct Json<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> Json<T> {
    const TYPES: &'static [(&'static str, Option<MakeSchema>)] =
        &[("application/json", Some(schema_of::<T>))];
}

/// JSON.
pub(crate) const fn json<T: JsonSchema>() -> Content {
    Content {
        types: Json::<T>::TYPES,
    }
}

/// One job, as a job file has it, or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Jobs {
    /// One job.
    One(JobBody),
    /// Several jobs.
    Many(Vec<JobBody>),
}

/// A job: its fields are those of job files, docs/user-reference.md.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct JobBody {
    /// The test suite.
    suite: Option<String>,
    /// Who submits it, where no token says so.
    my_account: Option<String>,
    #[schemars(flatten)]
    fields: serde_json::Map<String, serde_json::Value>,
}

impl JsonSchema for QueueUsers {
    fn schema_name() -> Cow<'static, str> {
        "QueueUsers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let accounts = generator.subschema_for::<Vec<String>>();
        json_schema!({
            "description": "Who may submit into a queue: the account of its name, all, or these accounts and that one.",
            "anyOf": [{ "enum": ["own", "all"] }, accounts],
        })
    }
}

/// Nothing.
pub(crate) const NOTHING: Content = Content { types: &[] };
/// Text for people or for scripts.
pub(crate) const TEXT: Content = Content {
    types: &[("text/plain", None)],
};
/// Any bytes.
pub(crate) const BYTES: Content = Content {
    types: &[("application/octet-stream", None)],
};
/// Jobs, or a job file.
pub(crate) const JOBS: Content = Content {
    types: &[
        ("application/json", Some(schema_of::<Jobs>)),
        ("application/yaml", None),
    ],
};
/// A boot script, or for a box that boots by itself JSON.
pub(crate) const BOOT_SCRIPT: Content = Content {
    types: &[("text/plain", None), ("application/json", None)],
};
/// A file of any type, or the names in a folder.
pub(crate) const FILE_OR_FOLDER: Content = Content {
    types: &[
        ("application/json", Some(schema_of::<Vec<String>>)),
        ("*/*", None),
    ],
};
/// The answer of a job as JSON or as a page.
pub(crate) const PAGE_OR_ANSWER: Content = Content {
    types: &[
        ("application/json", Some(schema_of::<JobAnswer>)),
        ("text/html", None),
    ],
};
/// How a replica is, as text or JSON.
pub(crate) const HEALTH: Content = Content {
    types: &[
        ("text/plain", None),
        ("application/json", Some(schema_of::<HealthView>)),
    ],
};
/// Server-sent events; the data of each is a [`crate::JobEvent`].
pub(crate) const EVENTS: Content = Content {
    types: &[("text/event-stream", Some(schema_of::<crate::JobEvent>))],
};
/// Server-sent events: `snapshot` with a [`crate::Snapshot`], then `delta` with a [`crate::Delta`]. A schema would describe
/// an event with its data as text, not what the text holds.
pub(crate) const LIVE: Content = Content {
    types: &[("text/event-stream", None)],
};
/// A page of the dashboard, or a file of it.
pub(crate) const PAGE_OR_FILE: Content = Content {
    types: &[("text/html", None), ("*/*", None)],
};
/// The description of the interface.
pub(crate) const OPENAPI: Content = Content {
    types: &[("application/json", None)],
};

//! `fairlead log ID [-f]`: a job's output. Following resumes where it broke, at the byte.

use std::time::Duration;

use fairlead_api::client::{Client, ClientError};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
};

/// How long to wait before a broken stream is asked for again.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// How often in a row a stream may break without a byte in between.
const RESUMES_MAX: u32 = 20;

/// Of which job, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// The job's id
    id: String,
    /// Goes on until the job ends
    #[arg(short, long)]
    follow: bool,
    /// Which try; default: the present one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    attempt: Option<u16>,
    /// From this byte on
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    offset: u64,
}

pub(crate) async fn run(args: &LogArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let mut log = LogFollow {
        offset: args.offset,
        broken: 0,
    };
    loop {
        match log.copy(args, &client, context).await {
            Ok(()) => return Ok(exit::OK),
            Err(error) if args.follow && log.may_resume(&error) => {
                tracing::debug!(%error, offset = log.offset, "log stream broke, resuming");
                clock::pause(RESUME_PAUSE).await;
            }
            Err(error) => return Err(Failure::from(error).into()),
        }
    }
}

/// How far a log was read.
struct LogFollow {
    offset: u64,
    broken: u32,
}

impl LogFollow {
    async fn copy(
        &mut self,
        args: &LogArgs,
        client: &Client,
        context: &Context,
    ) -> Result<(), ClientError> {
        let mut stream = client
            .log(&args.id, args.attempt, self.offset, args.follow)
            .await?;
        while let Some(bytes) = stream.chunk().await? {
            self.offset += bytes.len() as u64;
            self.broken = 0;
            context.output.bytes(&bytes);
            if context.output.closed() {
                break;
            }
        }
        Ok(())
    }

    /// Whether to ask again. Not at once for ever: a stream that breaks again and again without a byte
    /// is not going to get better.
    fn may_resume(&mut self, error: &ClientError) -> bool {
        self.broken += 1;
        error.may_pass() && self.broken <= RESUMES_MAX
    }
}

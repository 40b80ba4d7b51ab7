//! `fairlead webhooks`, `webhooks redeliver ID`, `webhooks test URL`.

use fairlead_api::{WebhookTest, WebhookView};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless, or_dash},
};

/// The actions on webhooks.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WebhooksArgs {
    #[command(subcommand)]
    what: Option<WebhookAction>,
}

#[derive(Debug, clap::Subcommand)]
enum WebhookAction {
    /// List webhooks: those that wait, are tried, were sent, were skipped, or are dead
    List,
    /// Send a webhook again, under the same id
    Redeliver {
        /// Id of the webhook
        id: String,
    },
    /// Send a test message to a receiver now
    Test {
        /// Address of the receiver
        url: String,
        /// Key of the signature: whsec_… or other text
        #[arg(long, value_name = "KEY", required_unless_present = "kind")]
        secret: Option<String>,
        /// Words of the message: `fairlead`, or `text` for a chat, which needs no key [default: fairlead]
        #[arg(long)]
        kind: Option<String>,
    },
}

pub(crate) async fn run(args: &WebhooksArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    match args.what.as_ref().unwrap_or(&WebhookAction::List) {
        WebhookAction::List => {
            let list = client.webhooks().await.map_err(Failure::from)?;
            let (paper, now_ms) = (context.output.paper(), clock::now_ms());
            context.print(&list, |list| table(list, now_ms, paper))?;
        }
        WebhookAction::Redeliver { id } => {
            client.redeliver_webhook(id).await.map_err(Failure::from)?;
        }
        WebhookAction::Test { url, secret, kind } => {
            let test = WebhookTest {
                url: url.clone(),
                secret: secret.clone(),
                kind: kind.clone(),
            };
            let tested = client.test_webhook(&test).await.map_err(Failure::from)?;
            if !tested.taken {
                let message = format!("the receiver did not take it: {}", tested.problem);
                let hint = "the operator allows receivers with: fairlead serve --webhooks-to";
                return Err(Failure::new(exit::REFUSED, message, hint).into());
            }
            context.print(&tested, |_| "the receiver took it".to_owned())?;
        }
    }
    Ok(exit::OK)
}

fn table(list: &[WebhookView], now_ms: u64, paper: Paper) -> String {
    let mut grid = Grid::new(&[
        "webhook", "account", "standing", ">tries", ">age", "event", "problem",
    ]);
    for webhook in list {
        grid.row([
            webhook.webhook_id.clone(),
            or_dash(&webhook.my_account),
            webhook.standing.clone(),
            webhook.tries.to_string(),
            clock::length(now_ms.saturating_sub(webhook.since_ms)),
            event(webhook),
            or_dash(&harmless(&webhook.problem)),
        ]);
    }
    grid.render(paper)
}

/// Returns the reported event, or all possible events while it is open.
fn event(webhook: &WebhookView) -> String {
    if webhook.on.is_empty() || webhook.standing != "waiting" || webhook.event == "failing" {
        return webhook.event.clone();
    }
    webhook.on.join(",")
}

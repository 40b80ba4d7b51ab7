//! `fairlead account`: adds and lists accounts, over the network as an admin, or in the store itself, and says who is told
//! of their jobs.

use fairlead_api::{AccountChange, AccountView, NotifyChange, NotifyView};
use fairlead_scheduler::add_account;

use crate::{
    amounts, clock,
    context::Context,
    exit::{self, Failure},
    limits::{self, LimitArgs},
    store_args::StoreArgs,
    table::{Grid, Paper, or_dash},
};

/// The actions on accounts.
#[derive(Debug, clap::Args)]
pub(crate) struct AccountArgs {
    #[command(subcommand)]
    what: AccountAction,
}

#[derive(Debug, clap::Subcommand)]
enum AccountAction {
    /// Add or change an account, and print a new token, which is shown only once
    Add(Box<AddArgs>),
    /// List accounts, without tokens
    List,
    /// Show an account and when its tokens were made, used last and end, without the tokens
    Show {
        /// Name of the account
        name: String,
    },
    /// Show or set who is told of the jobs of an account that have no `notify` of their own
    Notify(NotifyArgs),
    /// Delete an account; its token becomes invalid, and its jobs go on
    Delete {
        /// Name of the account
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct NotifyArgs {
    /// Address of the receiver, or `none` [default: show the present one]
    url: Option<String>,
    /// Events, separated by commas: `ended`, `failed`, `passed_again`, `failing` [default: ended]
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', requires = "url")]
    on: Vec<String>,
    /// Words of the message: `text` for a chat, or `fairlead` for a program [default: text]
    #[arg(long, requires = "url")]
    kind: Option<String>,
    /// Key of the signature, for a program
    #[arg(long, value_name = "KEY", requires = "url")]
    secret: Option<String>,
    /// Account instead of your own
    #[arg(long, value_name = "ACCOUNT")]
    of: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// May do everything
    Admin,
    /// Submits jobs; reads and stops its own jobs
    User,
    /// Asks for work
    Testbox,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Testbox => "testbox",
        }
    }
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Name of the account
    name: String,
    /// Role [default: user, or no change]
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// Hosts of a testbox account: names or patterns with * and ?, separated by commas
    /// [default: every host, with a warning]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Groups that these hosts may be in: names or patterns, separated by commas
    /// [default: every group that is not another's host]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    groups: Vec<String>,
    /// Allow the queue vip
    #[arg(long)]
    vip: bool,
    /// Let jobs of all accounts take the results of its jobs, and read them: yes or no
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    share_results: Option<bool>,
    /// Make a new token. The present one stays valid for a while (--overlap), and older ones end at once
    #[arg(long)]
    new_token: bool,
    /// How long the token before the newest stays valid from now on, at most 30d; 0: it ends now
    /// [default with --new-token: 1d]
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    overlap: Option<u64>,
    /// How long the new token is valid, from 1m on [default: it does not end]
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    expires: Option<u64>,
    #[command(flatten)]
    limits: LimitArgs,
    /// With a store option, write directly to the store: for the first admin, before the scheduler
    /// starts
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) async fn run(args: &AccountArgs, context: &Context) -> anyhow::Result<u8> {
    match &args.what {
        AccountAction::Add(add) if add.store.is_given() => {
            let config = add.store.config(&context.env)?;
            let change = AccountChange {
                role: Some(add.role.unwrap_or(Role::User).as_str().to_owned()),
                vip: Some(add.vip),
                ..add.change()
            };
            let made = add_account(&config, &add.name, &change).await;
            let account = made.map_err(|error| Failure::local(error.to_string(), ""))?;
            warn(std::slice::from_ref(&account), context);
            context.print(&account, added)?;
        }
        AccountAction::Add(add) => {
            let change = add.change();
            let account = context
                .client()?
                .set_account(&add.name, &change)
                .await
                .map_err(Failure::from)?;
            warn(std::slice::from_ref(&account), context);
            context.print(&account, added)?;
            let ignored = [
                (change.hosts, &account.hosts, "--hosts"),
                (change.groups, &account.groups, "--groups"),
            ];
            for (wanted, set, option) in ignored {
                if wanted.is_some_and(|wanted| wanted != *set) {
                    let problem = format!("account {}: the scheduler ignored {option}", add.name);
                    let hint = "upgrade the scheduler first, then set it";
                    return Err(Failure::local(problem, hint).into());
                }
            }
        }
        AccountAction::Delete { name } => {
            let client = context.client()?;
            client.delete_account(name).await.map_err(Failure::from)?;
            let deleted = serde_json::json!({ "deleted": name });
            context.print(&deleted, |_| format!("account {name}: deleted"))?;
        }
        AccountAction::Show { name } => show(name, context).await?,
        AccountAction::Notify(args) => notify(args, context).await?,
        AccountAction::List => {
            let accounts = context.client()?.accounts().await.map_err(Failure::from)?;
            warn(&accounts, context);
            context.print(&accounts, |accounts| {
                table(accounts, context.output.paper())
            })?;
        }
    }
    Ok(exit::OK)
}

/// Shows an account with its tokens.
async fn show(name: &str, context: &Context) -> anyhow::Result<()> {
    let accounts = context.client()?.accounts().await.map_err(Failure::from)?;
    let mut accounts = accounts.into_iter();
    let account = accounts.find(|account| account.my_account == name);
    let account = account.ok_or_else(|| {
        let hint = "list them: fairlead account list";
        Failure::local(format!("there is no account '{name}'"), hint)
    })?;
    warn(std::slice::from_ref(&account), context);
    context.print(&account, |account| {
        format!(
            "{}\n{}",
            first_line(account),
            tokens(account, context.output.paper())
        )
    })?;
    Ok(())
}

/// Shows, sets or removes the receiver of messages about an account's jobs.
async fn notify(args: &NotifyArgs, context: &Context) -> anyhow::Result<()> {
    let client = context.client()?;
    let account = context.account_of(args.of.as_ref(), &client).await?;
    let account = account.ok_or_else(|| {
        let hint = "name it: --of ACCOUNT";
        Failure::local("no account is known".to_owned(), hint)
    })?;
    let view = match &args.url {
        None => client.notify(&account).await.map_err(Failure::from)?,
        Some(url) if url == "none" => {
            let forgotten = client.forget_notify(&account).await;
            forgotten.map_err(Failure::from)?;
            let none = serde_json::json!({ "account": account, "notify": null });
            context.print(&none, |_| format!("account {account}: nobody is told"))?;
            return Ok(());
        }
        Some(url) => {
            let change = NotifyChange {
                url: url.clone(),
                on: args.on.clone(),
                kind: args.kind.clone(),
                secret: args.secret.clone(),
            };
            let set = client.set_notify(&account, &change).await;
            set.map_err(Failure::from)?
        }
    };
    context.print(&view, |view| {
        let NotifyView { url, on, kind } = view;
        format!(
            "account {account}: {url} is told of {} ({kind})",
            on.join(", ")
        )
    })?;
    Ok(())
}

impl AddArgs {
    fn change(&self) -> AccountChange {
        AccountChange {
            role: self.role.map(|role| role.as_str().to_owned()),
            hosts: (!self.hosts.is_empty()).then(|| self.hosts.clone()),
            groups: (!self.groups.is_empty()).then(|| self.groups.clone()),
            vip: self.vip.then_some(true),
            share_results: self.share_results,
            new_token: self.new_token,
            overlap_s: self.overlap.map(|ms| ms / 1_000),
            expires_s: self.expires.map(|ms| ms / 1_000),
            limits: self.limits.change(),
        }
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

/// Prints warnings about these accounts that an admin should act on.
fn warn(accounts: &[AccountView], context: &Context) {
    for account in accounts.iter().filter(|account| !account.hint.is_empty()) {
        context.output.remark(&format!("warning: {}", account.hint));
    }
}

/// Returns a one-line description of an account.
fn first_line(account: &AccountView) -> String {
    let vip = if account.vip {
        ", may use queue vip"
    } else {
        ""
    };
    let shares = if account.share_results {
        ", shares results"
    } else {
        ""
    };
    let names = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(", {what} {}", names.join(",")),
    };
    let (hosts, groups) = (
        names("hosts", &account.hosts),
        names("groups", &account.groups),
    );
    format!(
        "account {}: {}{hosts}{groups}{vip}{shares}",
        account.my_account, account.role
    )
}

/// Returns the account, and its token alone on the last line, for `tail -n 1`.
fn added(account: &AccountView) -> String {
    let first = first_line(account);
    let older = account.tokens.get(1).map_or_else(String::new, |older| {
        let until = match older.ends_ms {
            0 => "it is replaced again".to_owned(),
            ms => clock::shown(ms),
        };
        format!("\ntoken {} stays valid until {until}", older.id)
    });
    match &account.my_token {
        Some(token) => format!("{first}{older}\ntoken, shown only now:\n{token}"),
        None => format!(
            "{first}{older}\nno new token was made; --new-token makes one where tokens are required"
        ),
    }
}

/// Returns the tokens of an account, newest first.
fn tokens(account: &AccountView, paper: Paper) -> String {
    let mut grid = Grid::new(&["token", "made", "last used", "ends"]);
    for token in &account.tokens {
        grid.row([
            token.id.clone(),
            clock::shown(token.made_ms),
            clock::shown(token.last_used_ms),
            clock::shown(token.ends_ms),
        ]);
    }
    grid.render(paper)
}

fn table(accounts: &[AccountView], paper: Paper) -> String {
    let mut grid = Grid::new(&[
        "account",
        "role",
        "hosts",
        "vip",
        "tokens",
        "last used",
        "limits",
    ]);
    for account in accounts {
        let vip = if account.vip { "yes" } else { "no" };
        let last_used_ms = account.tokens.iter().map(|token| token.last_used_ms).max();
        grid.row([
            account.my_account.clone(),
            account.role.clone(),
            or_dash(&account.hosts.join(",")),
            vip.to_owned(),
            account.tokens.len().to_string(),
            clock::shown(last_used_ms.unwrap_or(0)),
            or_dash(&limits::beside(&account.limits, |what| {
                account.results_used_mb.filter(|_| what == "results_mb")
            })),
        ]);
    }
    grid.render(paper)
}

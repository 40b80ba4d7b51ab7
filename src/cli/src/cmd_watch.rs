//! `fairlead watch`: a live table of jobs. It only looks: whoever leaves it stops nothing.

use std::{
    future::pending,
    io::{self, IsTerminal},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use fairlead_api::client::Client;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    selecting::Selector,
    signals::Signals,
    watching::{Lines, Look, Page, Screen, Watched, said},
};

/// Interval between updates. An update with many requests is followed by a longer pause.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Number of requests in an update without a longer pause.
const LOOK_REQUESTS: u32 = 6;
/// Maximum pause, in intervals.
const PAUSES_MAX: u32 = 20;
/// Time limit of one update, after which the scheduler counts as unreachable.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// Time for which the return of the scheduler is shown.
const BACK_SHOWN: Duration = Duration::from_secs(10);
/// Time for which named jobs may be missing, because searches lag behind writes.
const MISSING_MAX: Duration = Duration::from_secs(5);
/// Number of consecutive updates that must find all jobs ended. A job may change between two requests of an update.
const LOOKS_OVER: u32 = 2;
/// Keys that leave the table.
const LEAVE_KEYS: &[u8] = b"qQ";

/// Which jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The table shows how many jobs there are of each kind, which run and where, and which failed last. Without
selectors it shows all jobs. An id may also be that of a submit. q or Ctrl-C leaves the table; nothing is
stopped. Jobs of a submit, and jobs that are named by id, are watched until all have ended.

Without a terminal, each change is one line; with --json, one object a line.")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    selector: Selector,
}

pub(crate) async fn run(args: &WatchArgs, context: &Context) -> anyhow::Result<u8> {
    let mut config = context.settings()?.client_config();
    // An unreachable scheduler is reported, and asked again by the next update.
    (config.retry_for, config.request_timeout) = (Duration::ZERO, LOOK_LIMIT);
    let client = Client::new(config).map_err(Failure::from)?;
    let watched = Watched::of(&args.selector, context, &client).await?;
    let is_live = context.output.is_terminal() && io::stdin().is_terminal();
    let is_live = is_live && !context.json && context.env.get("TERM") != Some("dumb");
    let mut watch = Watch {
        context,
        client,
        watched,
        name: format!("fairlead watch {}", args.selector.said())
            .trim_end()
            .to_owned(),
        began: clock::monotonic(),
        last: None,
        link: Link::Fresh,
        over: 0,
    };
    let mut signals = Signals::catch()?;
    let left = if is_live {
        watch.live(&mut signals).await?
    } else {
        watch.plain(&mut signals).await?
    };
    watch.end(left);
    Ok(match left {
        Left::Over | Left::Key => exit::OK,
        Left::Signal => exit::INTERRUPTED,
    })
}

/// Reason why the table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// All named jobs have ended.
    Over,
    /// The user pressed a key.
    Key,
    /// Ctrl-C or another signal came.
    Signal,
}

/// State of the connection to the scheduler.
#[derive(Debug, Clone)]
enum Link {
    /// No failures so far.
    Fresh,
    /// Start and reason of the present outage.
    Away(Instant, String),
    /// Return of the scheduler, and the duration of the outage.
    Back(Instant, Duration),
}

struct Watch<'a> {
    context: &'a Context,
    client: Client,
    watched: Watched<'a>,
    /// Command line that watches the same jobs.
    name: String,
    began: Instant,
    last: Option<Look>,
    link: Link,
    /// Number of consecutive updates that found all jobs ended.
    over: u32,
}

impl Watch<'_> {
    /// Shows the table until the user leaves it or all jobs have ended.
    async fn live(&mut self, signals: &mut Signals) -> Result<Left, Failure> {
        let (input, output) = (io::stdin(), io::stdout());
        let screen = Screen::new(input.as_fd(), output.as_fd()).map_err(|error| broken(&error))?;
        let stop = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        let listen = |kind| signal(kind).map_err(|error| broken(&error));
        let mut events = Events {
            screen,
            resized: listen(SignalKind::window_change())?,
            stopped: listen(stop)?,
        };
        loop {
            events.draw(self)?;
            let step = async {
                self.look().await?;
                Ok::<bool, Failure>(self.is_over())
            };
            let is_over = match events.during(step, signals).await {
                Event::Done(is_over) => is_over?,
                Event::Left(left) => return Ok(left),
                Event::Redraw => continue,
            };
            events.draw(self)?;
            if is_over {
                return Ok(Left::Over);
            }
            let pause = self.pause();
            if let Event::Left(left) = events.during(clock::pause(pause), signals).await {
                return Ok(left);
            }
        }
    }

    /// Prints a line for each change.
    async fn plain(&mut self, signals: &mut Signals) -> Result<Left, Failure> {
        let mut lines = Lines::default();
        let output = &self.context.output;
        loop {
            let was_away = matches!(self.link, Link::Away(..));
            tokio::select! {
                () = signals.next() => return Ok(Left::Signal),
                looked = self.look() => looked?,
            }
            match &self.link {
                Link::Away(_, why) if !was_away => {
                    output.remark(&format!("{why}; trying again"));
                }
                Link::Back(_, away) if was_away => output.remark(&back_again(*away)),
                _ => {}
            }
            if let Some(look) = &self.last {
                let news = lines.news(look);
                for value in news.values.iter().filter(|_| self.context.json) {
                    let written = output.json_line(value);
                    written.map_err(|error| Failure::local(error.to_string(), ""))?;
                }
                for line in news.lines.iter().filter(|_| !self.context.json) {
                    output.line(line);
                }
            }
            if self.is_over() {
                return Ok(Left::Over);
            }
            if output.closed() {
                return Ok(Left::Key);
            }
            tokio::select! {
                () = signals.next() => return Ok(Left::Signal),
                () = clock::pause(self.pause()) => {}
            }
        }
    }

    /// Updates once. An unreachable scheduler is awaited for a while.
    async fn look(&mut self) -> Result<(), Failure> {
        let looked = tokio::time::timeout(LOOK_LIMIT, self.watched.look(&self.client)).await;
        let now = clock::monotonic();
        let why = match looked {
            Ok(Ok(look)) => {
                if let Link::Away(since, _) = self.link {
                    self.link = Link::Back(now, now.duration_since(since));
                }
                self.over = if look.is_over() { self.over + 1 } else { 0 };
                self.last = Some(look);
                return self.check_missing(now);
            }
            // A scheduler that was never reachable is not awaited.
            Ok(Err(failure)) if failure.may_pass && self.last.is_some() => failure.message,
            Ok(Err(failure)) => return Err(failure),
            Err(_) => format!("no answer within {}s", LOOK_LIMIT.as_secs()),
        };
        self.over = 0;
        self.link = match &self.link {
            Link::Away(since, _) => Link::Away(*since, why),
            _ => Link::Away(now, why),
        };
        Ok(())
    }

    /// Fails for names that no job has.
    fn check_missing(&self, now: Instant) -> Result<(), Failure> {
        let is_empty = self.last.as_ref().is_some_and(|look| look.counts.jobs == 0);
        let waited = now.duration_since(self.began);
        if is_empty && self.watched.is_closed() && waited >= MISSING_MAX {
            return Err(Failure::usage(
                format!("`{}` names no job", self.name),
                "see what there is: fairlead jobs",
            ));
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.watched.is_closed() && self.over >= LOOKS_OVER
    }

    fn pause(&self) -> Duration {
        let requests = self.last.as_ref().map_or(0, |look| look.requests);
        LOOK_EVERY * requests.div_ceil(LOOK_REQUESTS).clamp(1, PAUSES_MAX)
    }

    /// Returns the text of the last line.
    fn remark(&self) -> String {
        let now = clock::monotonic();
        match &self.link {
            Link::Away(since, why) => {
                let away = now.duration_since(*since).as_secs();
                format!("away for {away}s, trying again: {why}")
            }
            Link::Back(since, away) if now.duration_since(*since) < BACK_SHOWN => back_again(*away),
            _ => "q leaves; the jobs go on".to_owned(),
        }
    }

    /// Prints the text that stays on the terminal.
    fn end(&self, left: Left) {
        let output = &self.context.output;
        if let Some(look) = &self.last
            && output.is_terminal()
            && !self.context.json
        {
            output.line(&said(&look.counts));
        }
        if left == Left::Over {
            output.remark(&format!(
                "all have ended; how: {}",
                self.name.replacen("watch", "wait", 1)
            ));
        } else {
            output.remark(&format!(
                "stopped watching; the jobs go on; watch them again: {}",
                self.name
            ));
        }
    }
}

fn back_again(away: Duration) -> String {
    format!("connected again after {}s", away.as_secs())
}

fn broken(error: &io::Error) -> Failure {
    Failure::local(
        format!("cannot use the terminal: {error}"),
        "without a terminal, each change is one line: fairlead watch | cat",
    )
}

/// Event during a step.
enum Event<T> {
    /// The step is done.
    Done(T),
    /// The user leaves.
    Left(Left),
    /// The page must be drawn again.
    Redraw,
}

/// Keys and signals of a live table.
struct Events {
    screen: Screen,
    resized: Signal,
    stopped: Signal,
}

impl Events {
    /// Draws the page, if this command owns the terminal.
    fn draw(&self, watch: &Watch<'_>) -> Result<(), Failure> {
        if !self.screen.enter().map_err(|error| broken(&error))? {
            return Ok(());
        }
        let remark = watch.remark();
        let page = Page {
            title: &watch.name,
            size: self.screen.size(),
            now_ms: clock::now_ms(),
            remark: &remark,
        };
        let nothing = Look::default();
        let look = watch.last.as_ref().unwrap_or(&nothing);
        watch.context.output.page(&page.lines(look));
        Ok(())
    }

    /// Waits for the end of `step`, for a key that leaves the table, or for a signal.
    async fn during<T>(
        &mut self,
        step: impl Future<Output = T>,
        signals: &mut Signals,
    ) -> Event<T> {
        let Self {
            screen,
            resized,
            stopped,
        } = self;
        tokio::select! {
            biased;
            () = signals.next() => Event::Left(Left::Signal),
            Some(()) = stopped.recv() => {
                Screen::stop();
                Event::Redraw
            }
            () = leaving(screen) => Event::Left(Left::Key),
            Some(()) = resized.recv() => Event::Redraw,
            done = step => Event::Done(done),
        }
    }
}

/// Waits for a key that leaves the table.
async fn leaving(screen: &Screen) {
    loop {
        match screen.key().await {
            Ok(key) if LEAVE_KEYS.contains(&key) => return,
            Ok(_) => {}
            // A closed terminal sends SIGHUP, which ends the wait.
            Err(_) => return pending().await,
        }
    }
}

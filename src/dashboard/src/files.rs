//! Which files of `assets` are embedded.

/// Files of the pages: paths below `assets`, and bytes.
pub(crate) const FILES: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("../assets/index.html")),
    ("icon.svg", include_bytes!("../assets/icon.svg")),
    ("style.css", include_bytes!("../assets/style.css")),
    ("app.js", include_bytes!("../assets/app.js")),
    ("api.js", include_bytes!("../assets/api.js")),
    (
        "components/action.js",
        include_bytes!("../assets/components/action.js"),
    ),
    (
        "components/changes.js",
        include_bytes!("../assets/components/changes.js"),
    ),
    (
        "components/costs.js",
        include_bytes!("../assets/components/costs.js"),
    ),
    (
        "components/hostmap.js",
        include_bytes!("../assets/components/hostmap.js"),
    ),
    (
        "components/joblist.js",
        include_bytes!("../assets/components/joblist.js"),
    ),
    (
        "components/keys.js",
        include_bytes!("../assets/components/keys.js"),
    ),
    (
        "components/log.js",
        include_bytes!("../assets/components/log.js"),
    ),
    (
        "components/news.js",
        include_bytes!("../assets/components/news.js"),
    ),
    (
        "components/parts.js",
        include_bytes!("../assets/components/parts.js"),
    ),
    (
        "components/plot.js",
        include_bytes!("../assets/components/plot.js"),
    ),
    (
        "components/series.js",
        include_bytes!("../assets/components/series.js"),
    ),
    (
        "components/shell.js",
        include_bytes!("../assets/components/shell.js"),
    ),
    (
        "components/submits.js",
        include_bytes!("../assets/components/submits.js"),
    ),
    (
        "components/virtual.js",
        include_bytes!("../assets/components/virtual.js"),
    ),
    ("filters.js", include_bytes!("../assets/filters.js")),
    ("format.js", include_bytes!("../assets/format.js")),
    ("leader.js", include_bytes!("../assets/leader.js")),
    ("live.js", include_bytes!("../assets/live.js")),
    (
        "pages/account.js",
        include_bytes!("../assets/pages/account.js"),
    ),
    ("pages/audit.js", include_bytes!("../assets/pages/audit.js")),
    ("pages/check.js", include_bytes!("../assets/pages/check.js")),
    (
        "pages/health.js",
        include_bytes!("../assets/pages/health.js"),
    ),
    ("pages/host.js", include_bytes!("../assets/pages/host.js")),
    ("pages/hosts.js", include_bytes!("../assets/pages/hosts.js")),
    ("pages/job.js", include_bytes!("../assets/pages/job.js")),
    ("pages/jobs.js", include_bytes!("../assets/pages/jobs.js")),
    ("pages/login.js", include_bytes!("../assets/pages/login.js")),
    (
        "pages/overview.js",
        include_bytes!("../assets/pages/overview.js"),
    ),
    ("pages/pools.js", include_bytes!("../assets/pages/pools.js")),
    ("pages/queue.js", include_bytes!("../assets/pages/queue.js")),
    (
        "pages/queues.js",
        include_bytes!("../assets/pages/queues.js"),
    ),
    (
        "pages/submit.js",
        include_bytes!("../assets/pages/submit.js"),
    ),
    (
        "pages/timers.js",
        include_bytes!("../assets/pages/timers.js"),
    ),
    ("pages/use.js", include_bytes!("../assets/pages/use.js")),
    ("route.js", include_bytes!("../assets/route.js")),
    ("ui.js", include_bytes!("../assets/ui.js")),
    (
        "vendor/htm.LICENSE.txt",
        include_bytes!("../assets/vendor/htm.LICENSE.txt"),
    ),
    ("vendor/htm.js", include_bytes!("../assets/vendor/htm.js")),
    (
        "vendor/preact-hooks.js",
        include_bytes!("../assets/vendor/preact-hooks.js"),
    ),
    (
        "vendor/preact.LICENSE.txt",
        include_bytes!("../assets/vendor/preact.LICENSE.txt"),
    ),
    (
        "vendor/preact.js",
        include_bytes!("../assets/vendor/preact.js"),
    ),
    (
        "vendor/signals-core.LICENSE.txt",
        include_bytes!("../assets/vendor/signals-core.LICENSE.txt"),
    ),
    (
        "vendor/signals-core.js",
        include_bytes!("../assets/vendor/signals-core.js"),
    ),
    (
        "vendor/signals.LICENSE.txt",
        include_bytes!("../assets/vendor/signals.LICENSE.txt"),
    ),
    (
        "vendor/signals.js",
        include_bytes!("../assets/vendor/signals.js"),
    ),
    (
        "vendor/uplot.LICENSE.txt",
        include_bytes!("../assets/vendor/uplot.LICENSE.txt"),
    ),
    (
        "vendor/uplot.css",
        include_bytes!("../assets/vendor/uplot.css"),
    ),
    (
        "vendor/uplot.js",
        include_bytes!("../assets/vendor/uplot.js"),
    ),
];

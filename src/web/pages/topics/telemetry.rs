//! Rules about what was heard, and alerts about senders.

use super::Topic;

pub(super) const TELEMETRY_GAP: Topic = Topic {
    slug: "telemetry_gap",
    name: "Telemetry gap",
    rule: "Each run of a source numbers its outcomes without holes. Some numbers did not come in \
           time. What happened in them is not known, so blocks and evictions near them can't be \
           judged.",
    origins: &[
        "A crash before the last outcomes were sent.",
        "A sender whose buffer overflowed while the collector was away.",
        "A network that lost a push that is never tried again.",
    ],
    steps: &[
        "Check the source: does it still run, can it reach the collector, did it drop outcomes?",
        "Let it send what it kept. The finding closes by itself when the hole is filled.",
        "If they are lost, compare the wallet with the game's own records for that time.",
    ],
    never: &[
        "A wrong booking: it says that part of the evidence is missing.",
        "A source that sends late: a hole that fills within its grace is none.",
    ],
};

pub(super) const IDENTITY_CONFLICT: Topic = Topic {
    slug: "identity_conflict",
    name: "Identity conflict",
    rule: "A source, its run and a number name one outcome. Here the same name came with \
           different content. The first content counts. Most often two processes report under \
           one source name.",
    origins: &[
        "Two processes under one name: then there are many within a minute, and it is critical.",
        "A restarted process that counts from 1 again under its old boot.",
        "A sender that builds its outcomes anew when it tries again.",
    ],
    steps: &[
        "Find the processes that report as this source; give each a name of its own.",
        "Check that a restarted process takes a new boot and counts from 1.",
    ],
    never: &[
        "A push that was sent twice: the same content is a repeat, and counted as such.",
        "That the second content was booked or not: it is kept as evidence, and not judged.",
    ],
};

pub(super) const REJECTED_EVIDENCE: Topic = Topic {
    slug: "rejected_evidence",
    name: "Rejected evidence",
    rule: "Outcomes came that could not be taken, so the audit does not know them. They are kept \
           in the log with the reason.",
    origins: &[
        "A release of the sender with a field that is wrong.",
        "An amount or time outside its bounds.",
    ],
    steps: &[
        "Read the reason, and mend the sender.",
        "Send the mended outcomes again under the same numbers: they are taken then.",
    ],
    never: &["A fault of the guard: it is the report that is wrong, not yet the decision."],
};

pub(super) const SOURCE_SILENT: Topic = Topic {
    slug: "source_silent",
    name: "Source silent",
    rule: "A source that sends heartbeats was not heard for a minute. What it decides meanwhile \
           is not audited, and blocks elsewhere in its ledger can't be verified. If it is the \
           last of its service, nothing of that service is audited.",
    origins: &[
        "The process died, or was scaled away without a goodbye.",
        "It can't reach the collector.",
    ],
    steps: &[
        "Look at Sources: which one, since when, how far its numbers came.",
        "If it runs, let it reach the collector: what it kept comes then, and is judged.",
        "If it was taken away, let the service say goodbye (state `closing`) when it stops.",
    ],
    never: &[
        "That the guard is down: only its reports are not heard.",
        "A loss of what the source kept: a backlog is taken and judged when it comes.",
    ],
};

pub(super) const REJECTED_OUTCOMES: Topic = Topic {
    slug: "rejected_outcomes",
    name: "Outcomes rejected all the time",
    rule: "In each of the last six slices of 10 seconds outcomes of this service were rejected. \
           A sender is broken in earnest, and what it says is not audited.",
    origins: &[
        "A release of the sender that the collector does not understand.",
        "A clock that is days off.",
    ],
    steps: &[
        "Look at the rejected evidence of the service: code, field and text are there.",
        "Mend the sender, and let it send again under the same numbers.",
    ],
    never: &["Overload: then the collector answers 429, and nothing is rejected."],
};

pub(super) const COLLECTOR_UNHEALTHY: Topic = Topic {
    slug: "collector_unhealthy",
    name: "Collector unhealthy",
    rule: "What Prometheus says of this collector (the rules in grafana/prometheus): it does not \
           answer, its audit is behind, its commits are slow, its disk is nearly full, or what it \
           has to tell does not arrive. It can't say so itself.",
    origins: &[
        "Down: the process ended, or Prometheus can't reach it.",
        "Audit behind, commits slow: more outcomes than the machine can take, or a slow disk.",
        "Disk: more is kept than `retention.disk_cap` allows.",
        "Notifications fail: the receiver of `webhook.url` is away or refuses them.",
        "No sources known: nobody has reported yet, or the database can't be read.",
    ],
    steps: &[
        "Open /-/ready: it says whether outcomes are taken and audited, and if not, why not.",
        "Read the end of the collector's log.",
        "If it is down, start it. Guards keep outcomes for a while and send them again; what they \
         could not keep is told as a telemetry gap.",
        "If the disk is full, raise the cap or keep less (`retention.raw`).",
    ],
    never: &[
        "That settlements are booked wrong: guards work without the collector, but nobody audits.",
        "A loss of what was answered: that is on disk.",
    ],
};

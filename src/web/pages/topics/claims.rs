//! Rules about claims and names: what was refused, how often, and under which id.

use super::Topic;

pub(super) const AMBIGUOUS_EQUAL: Topic = Topic {
    slug: "ambiguous_equal",
    name: "Ambiguous equal settlements",
    rule: "A settlement was refused, and its ref differs from the ref of every acceptance of the \
           same signature. Either two honest equal settlements, one of which is now missing, or \
           one settlement that came under a new ref. Only a person can tell.",
    origins: &[
        "Two bets of the same amount in the same round, and a signature without what tells them \
         apart.",
        "A producer that makes a new ref for each attempt.",
    ],
    steps: &[
        "Look both refs up where they were made: were two settlements intended?",
        "If two, book the refused one by hand and put what tells them apart into the signature.",
        "If one, let the producer keep its ref over retries.",
        "Close this finding with what you found.",
    ],
    never: &[
        "A proven loss: no amount is claimed.",
        "A block without a ref, or with the ref of an acceptance: those are plain replays.",
    ],
};

pub(super) const ID_COLLISION: Topic = Topic {
    slug: "id_collision",
    name: "Message id collision",
    rule: "One message id came with deliveries that have no settlement in common, directly or \
           through others. Two different messages carry one id: whoever drops repeats by message \
           id loses one of them.",
    origins: &[
        "Two generators with the same worker number.",
        "A clock that was set back, so that a generator gave out ids again.",
        "An id that lost its last digits on the way through a floating-point number.",
    ],
    steps: &[
        "Find the generator of these ids: worker numbers, clock, sequence.",
        "Look for deliveries that were dropped by message id: they may be missing.",
        "Pass 64-bit ids as strings.",
    ],
    never: &[
        "One message that settles a whole table, also when it is redelivered elsewhere in part: \
         its deliveries share settlements.",
        "A repeat of one delivery: it has the same settlement.",
    ],
};

pub(super) const STUCK_CLAIM: Topic = Topic {
    slug: "stuck_claim",
    name: "Stuck claim",
    rule: "A settlement was refused three times or more and never accepted. Its sender keeps \
           trying; something that was never booked keeps its place in the guard.",
    origins: &[
        "A claim was taken by a delivery that died before it was booked.",
        "The guard's order mark has gone past it.",
    ],
    steps: &[
        "Look at how long it has been tried: first and newest refusal.",
        "Release the claim; the next attempt then books it, and the finding closes.",
        "Give claims an end: a lease that runs out.",
    ],
    never: &[
        "A replay of something booked: that is a retry storm, and harmless.",
        "An amount of its own: what is missing is told by the false block.",
    ],
};

pub(super) const RETRY_STORM: Topic = Topic {
    slug: "retry_storm",
    name: "Retry storm",
    rule: "A settlement that was accepted came again three times or more and was refused each \
           time, as it should be. Harmless for money; it costs load, and every replay is one \
           more chance for a leak.",
    origins: &[
        "The acceptance was not acknowledged in time, so the queue delivers again.",
        "A consumer that fails after booking and before acknowledging.",
    ],
    steps: &[
        "Find out who sends it again, and why it is not told that it was accepted.",
        "Nothing is to be booked.",
    ],
    never: &["A double or missing booking: the guard did what it is there for."],
};

pub(super) const REPLICA_DISAGREEMENT: Topic = Topic {
    slug: "replica_disagreement",
    name: "Replicas disagree",
    rule: "One source refused what another source accepted. With one shared memory that is a \
           replay that went to another instance; with separate memories it shows that deliveries \
           of one player reach several guards.",
    origins: &[
        "A balancer that does not keep a player on one instance.",
        "Two memories where one was meant.",
    ],
    steps: &[
        "Check whether the sources share their memory (guard_mode).",
        "If they don't, expect duplicate leaks of cause split: keep players on one instance.",
    ],
    never: &["A wrong booking by itself: one acceptance and one refusal book once."],
};

pub(super) const OUTCOME_FLIP: Topic = Topic {
    slug: "outcome_flip",
    name: "Refused first, accepted later",
    rule: "A settlement was refused and accepted later. In the end it is booked once; in between \
           it was missing.",
    origins: &[
        "A claim that ran out or was released between the attempts.",
        "A guard that refused because its store did not answer.",
    ],
    steps: &["Look at why the first attempt was refused. Nothing is to be booked."],
    never: &["A wrong booking: it is booked once."],
};

pub(super) const SIGNATURE_REUSED: Topic = Topic {
    slug: "signature_reused",
    name: "Signature used again",
    rule: "Two acceptances of one signature lie further apart than signatures of this ledger are \
           unique for (`reuse_after`). They are taken as two settlements, not as one accepted \
           twice.",
    origins: &[
        "Rooms and rounds that start again, without a session that tells them apart.",
        "A replay of a message that is months old.",
    ],
    steps: &[
        "If rooms or rounds are used again, send `session` with the signature.",
        "If an old message came back, look the later booking up in the wallet.",
    ],
    never: &["A proven double booking: that far apart, nobody can tell from the signature."],
};

//! Rules about clocks, versions of a room's state, and the states of a delivery.

use super::Topic;

pub(super) const CLOCK_ROLLBACK: Topic = Topic {
    slug: "clock_rollback",
    name: "Clock set back",
    rule: "A source's time fell while its numbers rose. Order within the source is known by its \
           numbers; but ids made of time can come twice, and its order to other sources is in \
           doubt meanwhile.",
    origins: &[
        "A clock that was stepped instead of slewed.",
        "A virtual machine that was paused or moved.",
        "Milliseconds: the stamp was taken before the lock, the number inside. That is harmless.",
    ],
    steps: &[
        "If it fell by a second or more, look at the time service of that host.",
        "Check generators of ids on that host for ids given out twice.",
    ],
    never: &["A wrong booking, nor a difference between two hosts: that is clock skew."],
};

pub(super) const CLOCK_SKEW: Topic = Topic {
    slug: "clock_skew",
    name: "Clock skew",
    rule: "The clock of a source differs from the collector's by more than a minute, steadily. \
           Its times are corrected by the measured difference; pages show them as they were told.",
    origins: &["A host without time service.", "A time zone taken for UTC."],
    steps: &["Set the clock of that host by a time service."],
    never: &["Slow delivery: the least difference over ten minutes counts, not a late push."],
};

pub(super) const VERSION_REGRESSION: Topic = Topic {
    slug: "version_regression",
    name: "State went back",
    rule: "The state of a room carries a version that rises. An accepted settlement came with a \
           lower version than one before it: it was decided by an old copy of the state.",
    origins: &[
        "A failover to a replica that lagged behind.",
        "A restore from a backup.",
        "Two instances that both believe to own the room.",
    ],
    steps: &[
        "Find out which instance decided, and from where it read the room's state.",
        "Look at the settlements after the regression: they may be decided anew.",
    ],
    never: &[
        "Versions of different rooms: each room counts by itself.",
        "A late settlement: only acceptances in turn are compared.",
    ],
};

pub(super) const TORN_STATE: Topic = Topic {
    slug: "torn_state",
    name: "Torn state",
    rule: "One version of a room's state was reported with two different hashes. Two writers \
           made two different states and gave them one number.",
    origins: &["Two instances that both believe to own the room.", "A write that was half done."],
    steps: &[
        "Find both writers by the witnesses, and take the room from one of them.",
        "Compare the two states: settlements of one of them may be missing.",
    ],
    never: &["Two versions: a hash changes with each version, that is expected."],
};

pub(super) const COUNTER_WRAP: Topic = Topic {
    slug: "counter_wrap",
    name: "Counter went round",
    rule: "A version fell from the greatest number of its size, such as 65,535 or 4,294,967,295, \
           to a small one: the counter is too small and began anew.",
    origins: &["A version kept in too few bits."],
    steps: &["Keep the version in 64 bits. Guards that compare versions refuse what is new now."],
    never: &["A stale copy of the state: it would have fallen from any number."],
};

pub(super) const ILLEGAL_TRANSITION: Topic = Topic {
    slug: "illegal_transition",
    name: "Illegal transition",
    rule: "A delivery goes forward: received, checking, then accepted or refused. Here a service \
           reported a move that is none of these: back, in place, or from one end to the other.",
    origins: &[
        "A delivery that was decided twice.",
        "A retry that goes on under the trace of the attempt before.",
    ],
    steps: &[
        "Look the trace up: which code made the second decision?",
        "Give each attempt a trace id of its own.",
    ],
    never: &[
        "An order of arrival: each move is judged by what it says itself.",
        "A double booking: that is told by the outcomes.",
    ],
};

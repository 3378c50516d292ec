//! Rules by which money is or may be booked wrong.

use super::Topic;

pub(super) const DUPLICATE_LEAK: Topic = Topic {
    slug: "duplicate_leak",
    name: "Duplicate leak",
    rule: "One settlement may be accepted once in its ledger. Reversals undo one acceptance \
           before them, and an acceptance whose effect failed does not count. Here more \
           acceptances stand than may stand: the guard let a replay through.",
    origins: &[
        "evicted: the window had let go of the settlement before its replay came.",
        "restart: the guard lost its memory in between.",
        "race: two deliveries within one second, both looked before either remembered.",
        "split: two guards with separate memories each accepted it once.",
        "guard_off: nobody looked at all.",
    ],
    steps: &[
        "Look at both witnesses in the service's own log, by time, boot and number.",
        "Check in the wallet that the amount was really moved more than once.",
        "Correct the surplus booking (the later acceptance) in the wallet.",
        "Close this finding with what you did. A new occurrence opens a new one.",
    ],
    never: &[
        "Two settlements that only look alike: room, round, net, final, session and player all \
         agree, byte for byte. Equal ones on purpose carry different refs.",
        "The same report sent twice: a repeated push is recognised by its number and never counts.",
        "An acceptance that was reversed, or whose effect failed: those do not stand.",
    ],
};

pub(super) const FALSE_BLOCK: Topic = Topic {
    slug: "false_block",
    name: "False block",
    rule: "A settlement may be refused only if it was accepted before. This one was refused, and \
           no acceptance of it exists among all that the guards of its ledger reported. It is \
           not booked.",
    origins: &[
        "The guard's key is too coarse: two different settlements look the same to it.",
        "A counter or order mark shared by several players or rooms, so that honest late \
         settlements look old.",
        "A claim was taken for a delivery that then died, and is never released.",
        "The guard's store did not answer and it refused to be on the safe side.",
    ],
    steps: &[
        "Check in the wallet that the settlement is missing.",
        "Book it by hand, or deliver it again under a ref of its own.",
        "Find out what the guard took it for: read its window at that time.",
        "Close this finding with what you did. A later acceptance closes it by itself.",
    ],
    never: &[
        "A block of something that was booked while nobody listened: that is an unverifiable \
         block, and no amount is claimed.",
        "A rightly blocked replay: an acceptance, or an eviction, which is the trace of one, \
         rules this finding out.",
    ],
};

pub(super) const UNVERIFIABLE_BLOCK: Topic = Topic {
    slug: "unverifiable_block",
    name: "Unverifiable block",
    rule: "A settlement was refused as seen before, but no acceptance of it was heard, and some \
           guard of the ledger was not heard all the time. Either it was booked while nobody \
           listened, or it is missing. No amount is claimed.",
    origins: &[
        "Outcomes were lost: a hole in the numbers, or a crash before the last ones were sent.",
        "The collector was installed while guards were warm: what they remember was booked \
         before anybody listened.",
        "A source is silent, and what it sends later may still hold the acceptance.",
    ],
    steps: &[
        "Look at Sources: which one is silent, or has missing numbers?",
        "Let it send what it kept. The verdict then follows by itself.",
        "If that is lost, look the settlement up in the wallet and close this finding.",
    ],
    never: &[
        "That money is missing: it says that nobody can tell.",
        "That the guard is wrong: most of these blocks are right.",
    ],
};

pub(super) const INDETERMINATE_OUTCOME: Topic = Topic {
    slug: "indeterminate_outcome",
    name: "Indeterminate outcome",
    rule: "The guard could not tell what became of this settlement, or accepted it without \
           knowing whether the money moved. It may be booked once, twice or never.",
    origins: &[
        "The call to the wallet timed out and nobody asked again.",
        "The guard held the delivery back for its turn, and the turn never came.",
        "It was accepted a second time after an attempt of unknown fate: possibly twice.",
    ],
    steps: &[
        "Look the settlement up in the wallet.",
        "Book it if it is missing; correct it if it is there twice.",
        "Let the service report its fate (an event with `effect` alone): the finding follows.",
        "Else close this finding with what you found.",
    ],
    never: &[
        "A loss by itself: nothing is known yet, in either direction.",
        "A delivery that was only held back and then accepted: that closes it.",
    ],
};

pub(super) const ACCEPT_WITHOUT_EFFECT: Topic = Topic {
    slug: "accept_without_effect",
    name: "Accepted without effect",
    rule: "The guard accepted this settlement, but its effect failed, and no other acceptance of \
           it stands. The guard believes it is booked; the money did not move.",
    origins: &[
        "The guard remembers before the wallet books, and the booking then failed.",
        "The transaction was rolled back after the guard had marked the delivery as seen.",
        "The delivery was acknowledged in spite of the error, so nobody tries again.",
    ],
    steps: &[
        "Check in the wallet that the amount did not move.",
        "Release the guard's claim and deliver the settlement again, or book it by hand.",
        "Let the guard remember only what was booked, or release the claim when it fails.",
        "Close this finding with what you did. A later acceptance that stands closes it.",
    ],
    never: &[
        "An attempt that failed and was tried again with success: then an acceptance stands.",
        "A double booking: too little moved, not too much.",
    ],
};

pub(super) const BLOCK_AFTER_FAILED_EFFECT: Topic = Topic {
    slug: "block_after_failed_effect",
    name: "Blocked after a failed effect",
    rule: "This settlement was refused as seen before, but every acceptance of it failed: what \
           the guard remembers was never booked, and the retry that would have booked it was \
           turned away.",
    origins: &[
        "The claim is kept when the effect fails.",
        "A response of an error was stored and is replayed to the retry.",
    ],
    steps: &[
        "Check in the wallet that the settlement is missing.",
        "Release the claim and deliver it again, or book it by hand.",
        "Make a failed effect give its place in the window back.",
    ],
    never: &[
        "A rightly blocked replay: there one acceptance stands.",
        "A second amount: what is missing is counted once for this settlement.",
    ],
};

pub(super) const CROSS_ROOM_BOOKING: Topic = Topic {
    slug: "cross_room_booking",
    name: "Cross-room booking",
    rule: "The settlement says one room, the booking went to another: `booked_room` differs from \
           the room of the signature. Somebody else's money moved.",
    origins: &[
        "The player changed rooms while the delivery was on its way, and the service took the \
         room from the session instead of from the message.",
        "A late settlement was applied to the room the player is in now.",
        "A cache or connection was handed over between rooms.",
    ],
    steps: &[
        "Stop the service from booking by the player's present room.",
        "Look both rooms up in the wallet: one has too much, the other too little.",
        "Move the amount, and close this finding with what you did.",
    ],
    never: &[
        "A late settlement booked to its own room: that is late, and right.",
        "A guess from times or amounts: both rooms were told by the service itself.",
    ],
};

pub(super) const MISSED_DUPLICATE: Topic = Topic {
    slug: "missed_duplicate",
    name: "Missed duplicate",
    rule: "A ref names one intended booking and survives retries. Here one ref with one amount \
           was accepted under several signatures, reversals aside: the retry looked new to the \
           guard.",
    origins: &[
        "A retry was rebuilt with another round, room or session, so that its signature changed.",
        "A settlement was split, merged or renumbered on its way.",
        "Something that changes with each attempt is part of the key.",
    ],
    steps: &[
        "Look both acceptances up by their ref: was one intended, or two?",
        "If one, correct the later booking in the wallet.",
        "Make the parts of the signature the same for every retry of a delivery.",
    ],
    never: &[
        "Two bookings under two refs: those are two on purpose.",
        "A booking with its reversal and a new booking: reversals are set aside.",
    ],
};

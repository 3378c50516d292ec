-- What the judge keeps: facts, findings and progress, which move in one transaction.

CREATE TABLE progress (
    collector INTEGER NOT NULL PRIMARY KEY,
    n INTEGER NOT NULL
);

-- A player is 64 bits of a keyed hash of (ledger, player), a signature 64 bits of its own. Bodies
-- of facts: see `store::packed`.
CREATE TABLE players (
    player INTEGER NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
);

CREATE TABLE signatures (
    player INTEGER NOT NULL,
    signature INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (player, signature)
) WITHOUT ROWID;

CREATE TABLE refs (
    player INTEGER NOT NULL,
    ref INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (player, ref)
) WITHOUT ROWID;

-- A room is 64 bits of a keyed hash of (session, room).
CREATE TABLE rooms (
    player INTEGER NOT NULL,
    room INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (player, room)
) WITHOUT ROWID;

-- (ledger, message) are the two halves of one keyed hash of (ledger, message id).
CREATE TABLE messages (
    ledger INTEGER NOT NULL,
    message INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (ledger, message)
) WITHOUT ROWID;

-- Which records are about a player, for the player's page.
CREATE TABLE deliveries (
    player INTEGER NOT NULL,
    occurred_us INTEGER NOT NULL,
    collector INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (player, occurred_us, collector, n)
) WITHOUT ROWID;

-- What the newest steps of the judge changed, until it is moved to the tables above: facts as
-- they are then (see `store::pending`), and rows of `deliveries`.
CREATE TABLE fact_journal (
    step INTEGER NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
);

CREATE TABLE delivery_journal (
    step INTEGER NOT NULL,
    player INTEGER NOT NULL,
    occurred_us INTEGER NOT NULL,
    collector INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (step, player, occurred_us, collector, n)
) WITHOUT ROWID;

-- Small state that the judge holds in memory: sources, ledgers, services, pending suspicions.
CREATE TABLE audit_state (
    part TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (part, name)
) WITHOUT ROWID;

-- What the window advisor measured, by minute of occurrence: how far back replays were, and how
-- late acceptances came. The body is JSON (`audit::Measured`).
CREATE TABLE audit_rollups (
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    minute INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (service, env, minute)
) WITHOUT ROWID;

CREATE TABLE findings (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    state TEXT NOT NULL,
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    ledger TEXT,
    player TEXT,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    -- The whole finding as JSON (`audit::Finding`).
    body BLOB NOT NULL,
    -- When the judge first wrote the row, and when it last gained a confirmed occurrence
    -- (NULL: never).
    opened_us INTEGER NOT NULL,
    gained_us INTEGER,
    -- Rises with each write of any row: what has changed since is what lies above.
    change INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX findings_by_time ON findings (last_us, id);
CREATE INDEX findings_open ON findings (severity, last_us, id) WHERE state <> 'closed';
CREATE INDEX findings_by_change ON findings (change);
CREATE INDEX findings_by_gain ON findings (kind, service, env, gained_us)
    WHERE state = 'confirmed';
CREATE INDEX findings_by_player ON findings (ledger, player) WHERE player IS NOT NULL;

-- Sums over the confirmed and open rows, moved with them; amounts are decimal text.
CREATE TABLE finding_sums (
    kind TEXT NOT NULL,
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    ledger TEXT NOT NULL,
    confirmed_ever INTEGER NOT NULL,
    open_confirmed INTEGER NOT NULL,
    open_suspected INTEGER NOT NULL,
    overpaid TEXT NOT NULL,
    overcharged TEXT NOT NULL,
    underpaid TEXT NOT NULL,
    undercharged TEXT NOT NULL,
    exposure TEXT NOT NULL,
    PRIMARY KEY (kind, service, env, ledger)
) WITHOUT ROWID;

-- What the judge keeps: facts, findings and progress, which move in one transaction.

CREATE TABLE progress (
    collector BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);

-- A player is 64 bits of a keyed hash of (ledger, player), a signature 64 bits of its own. Bodies
-- of facts: see `store::packed`.
CREATE TABLE players (
    player BIGINT NOT NULL PRIMARY KEY,
    body BYTEA NOT NULL
);

CREATE TABLE signatures (
    player BIGINT NOT NULL,
    signature BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (player, signature)
);

CREATE TABLE refs (
    player BIGINT NOT NULL,
    ref BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (player, ref)
);

-- A room is 64 bits of a keyed hash of (session, room).
CREATE TABLE rooms (
    player BIGINT NOT NULL,
    room BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (player, room)
);

-- (ledger, message) are the two halves of one keyed hash of (ledger, message id).
CREATE TABLE messages (
    ledger BIGINT NOT NULL,
    message BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (ledger, message)
);

-- Which records are about a player, for the player's page.
CREATE TABLE deliveries (
    player BIGINT NOT NULL,
    occurred_us BIGINT NOT NULL,
    collector BIGINT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (player, occurred_us, collector, n)
);

-- What the newest steps of the judge changed, until it is moved to the tables above: facts as
-- they are then (see `store::pending`), and rows of `deliveries`.
CREATE TABLE fact_journal (
    step BIGINT NOT NULL PRIMARY KEY,
    body BYTEA NOT NULL
);

CREATE TABLE delivery_journal (
    step BIGINT NOT NULL,
    player BIGINT NOT NULL,
    occurred_us BIGINT NOT NULL,
    collector BIGINT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (step, player, occurred_us, collector, n)
);

-- Small state that the judge holds in memory: sources, ledgers, services, pending suspicions.
CREATE TABLE audit_state (
    part TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (part, name)
);

-- What the window advisor measured, by minute of occurrence: how far back replays were, and how
-- late acceptances came. The body is JSON (`audit::Measured`).
CREATE TABLE audit_rollups (
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    minute BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (service, env, minute)
);

CREATE TABLE findings (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    severity TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    ledger TEXT COLLATE "C",
    player TEXT COLLATE "C",
    first_us BIGINT NOT NULL,
    last_us BIGINT NOT NULL,
    -- The whole finding as JSON (`audit::Finding`).
    body TEXT NOT NULL,
    -- When the judge first wrote the row, and when it last gained a confirmed occurrence
    -- (NULL: never).
    opened_us BIGINT NOT NULL,
    gained_us BIGINT,
    -- Rises with each write of any row: what has changed since is what lies above.
    change BIGINT NOT NULL
);

CREATE INDEX findings_by_time ON findings (last_us, id);
CREATE INDEX findings_open ON findings (severity, last_us, id) WHERE state <> 'closed';
CREATE INDEX findings_by_change ON findings (change);
CREATE INDEX findings_by_gain ON findings (kind, service, env, gained_us)
    WHERE state = 'confirmed';
CREATE INDEX findings_by_player ON findings (ledger, player) WHERE player IS NOT NULL;

-- Sums over the confirmed and open rows, moved with them; amounts are decimal text.
CREATE TABLE finding_sums (
    kind TEXT COLLATE "C" NOT NULL,
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    ledger TEXT COLLATE "C" NOT NULL,
    confirmed_ever BIGINT NOT NULL,
    open_confirmed BIGINT NOT NULL,
    open_suspected BIGINT NOT NULL,
    overpaid TEXT NOT NULL,
    overcharged TEXT NOT NULL,
    underpaid TEXT NOT NULL,
    undercharged TEXT NOT NULL,
    exposure TEXT NOT NULL,
    PRIMARY KEY (kind, service, env, ledger)
);

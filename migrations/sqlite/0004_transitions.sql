-- Moves of deliveries between states: whose numbers came, and how many by minute.

-- One row for each run of a source that sends transitions; boot is '' for those that it does not
-- number. Ids are negative, so that `hashes` holds both these and `boots`. Sets as in `boots`.
CREATE TABLE transition_runs (
    id INTEGER NOT NULL PRIMARY KEY,
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    source TEXT NOT NULL,
    boot TEXT NOT NULL,
    last_received_us INTEGER NOT NULL,
    received TEXT NOT NULL,
    lost TEXT NOT NULL,
    UNIQUE (service, env, source, boot)
);

-- By minute of occurrence.
CREATE TABLE transitions (
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    minute INTEGER NOT NULL,
    state_from TEXT NOT NULL,
    state_to TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (service, env, minute, state_from, state_to)
) WITHOUT ROWID;

-- For the pages, which ask for a span of time of one service over all envs.
CREATE INDEX transitions_by_minute ON transitions (service, minute);

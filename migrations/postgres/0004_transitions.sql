-- Moves of deliveries between states: whose numbers came, and how many by minute.

-- One row for each run of a source that sends transitions; boot is '' for those that it does not
-- number. Ids are negative, so that `hashes` holds both these and `boots`. Sets as in `boots`.
CREATE TABLE transition_runs (
    id BIGINT NOT NULL PRIMARY KEY,
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    boot TEXT COLLATE "C" NOT NULL,
    last_received_us BIGINT NOT NULL,
    received TEXT NOT NULL,
    lost TEXT NOT NULL,
    UNIQUE (service, env, source, boot)
);

-- By minute of occurrence.
CREATE TABLE transitions (
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    minute BIGINT NOT NULL,
    state_from TEXT COLLATE "C" NOT NULL,
    state_to TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (service, env, minute, state_from, state_to)
);

-- For the pages, which ask for a span of time of one service over all envs.
CREATE INDEX transitions_by_minute ON transitions (service, minute);

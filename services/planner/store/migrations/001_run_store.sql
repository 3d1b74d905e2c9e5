-- The run store, first version (design.md 4, protocol.md 1, 4, 5, 6). Every rule that a table can keep is a constraint here.
-- The states in the CHECK constraints are those of services/planner/core/states.def; a test compares them.
-- Errors of our own: KL001 leadership lost, KL002 someone else moved the row.

CREATE TABLE kiln.meta (
  one bool PRIMARY KEY DEFAULT true CHECK (one),
  installation uuid NOT NULL DEFAULT gen_random_uuid(),
  config_epoch bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now());
INSERT INTO kiln.meta DEFAULT VALUES;

-- Who may write. boot NULL: nobody. The beat has a table of its own, so that renewing never waits for the FOR SHARE of the guard.
CREATE TABLE kiln.leader (
  one bool PRIMARY KEY DEFAULT true CHECK (one),
  boot uuid,
  term bigint NOT NULL,
  instance text NOT NULL,
  taken_at timestamptz NOT NULL DEFAULT now());
INSERT INTO kiln.leader (boot, term, instance) VALUES (NULL, 0, '');
CREATE TABLE kiln.leader_beat (
  one bool PRIMARY KEY DEFAULT true CHECK (one),
  term bigint NOT NULL,
  beat bigint NOT NULL,
  renewed_at timestamptz NOT NULL DEFAULT now());
INSERT INTO kiln.leader_beat (term, beat) VALUES (0, 0);

-- First statement of every write transaction. It raises, because a guard that returns no row does not stop a pipeline.
CREATE FUNCTION kiln.guard(me uuid, my_term bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM kiln.leader WHERE boot = me AND term = my_term FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this planner is not the leader of term %', my_term USING ERRCODE = 'KL001';
  END IF;
END $$;
CREATE FUNCTION kiln.renew(my_term bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE kiln.leader_beat SET beat = beat + 1, renewed_at = clock_timestamp() WHERE term = my_term;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this planner is not the leader of term % any more', my_term USING ERRCODE = 'KL001';
  END IF;
END $$;
-- The next term, or NULL when the leader has renewed since it was looked at. The update of kiln.leader waits for guarded transactions.
CREATE FUNCTION kiln.take_over(me uuid, my_instance text, seen_term bigint, seen_beat bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  UPDATE kiln.leader_beat SET term = seen_term + 1, beat = 0, renewed_at = clock_timestamp() WHERE term = seen_term AND beat = seen_beat;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  UPDATE kiln.leader SET boot = me, term = seen_term + 1, instance = my_instance, taken_at = clock_timestamp() WHERE term = seen_term;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'kiln.leader and kiln.leader_beat disagree about term %', seen_term;
  END IF;
  RETURN seen_term + 1;
END $$;
CREATE FUNCTION kiln.give_up(me uuid, my_term bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE kiln.leader SET boot = NULL, instance = '' WHERE boot = me AND term = my_term
$$;
-- A move must find exactly the row it names.
CREATE FUNCTION kiln.one(n bigint, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF n <> 1 THEN
    RAISE EXCEPTION '%', what USING ERRCODE = 'KL002';
  END IF;
END $$;
-- Unix microseconds, the clock of rows.h.
CREATE FUNCTION kiln.ts(us bigint) RETURNS timestamptz LANGUAGE sql STABLE STRICT AS $$
  SELECT timestamptz 'epoch' + us * interval '1 microsecond'
$$;
CREATE FUNCTION kiln.us(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (extract(epoch FROM t) * 1000000)::bigint
$$;

CREATE TABLE kiln.environment (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  readme text,
  frozen bool NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz);
CREATE UNIQUE INDEX environment_name ON kiln.environment (name) WHERE deleted_at IS NULL;
CREATE TABLE kiln.connection (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  environment bigint NOT NULL REFERENCES kiln.environment,
  name text NOT NULL,
  type text NOT NULL,
  public json NOT NULL,
  sealed bytea NOT NULL,
  nonce bytea NOT NULL CHECK (length(nonce) = 12),
  digest text NOT NULL,
  epoch bigint NOT NULL,
  UNIQUE (environment, name));

CREATE TABLE kiln.file (
  sha256 bytea PRIMARY KEY CHECK (length(sha256) = 32),
  bytes bigint NOT NULL,
  content bytea, -- NULL: lies in package_store
  CHECK (content IS NULL OR length(content) = bytes));
CREATE TABLE kiln.package_version (
  id bytea PRIMARY KEY CHECK (length(id) = 32),
  manifest json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE kiln.version_file (
  version bytea NOT NULL REFERENCES kiln.package_version ON DELETE CASCADE,
  path text NOT NULL,
  file bytea NOT NULL REFERENCES kiln.file,
  is_data bool NOT NULL,
  PRIMARY KEY (version, path));
CREATE INDEX version_file_file ON kiln.version_file (file);
CREATE TABLE kiln.unit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  environment bigint NOT NULL REFERENCES kiln.environment,
  kind text NOT NULL CHECK (kind IN ('package', 'dataset')),
  name text NOT NULL,
  location text,
  description text,
  load bigint,
  epoch bigint NOT NULL DEFAULT 0,
  reload_emptied bool NOT NULL DEFAULT false,
  load_error text,
  stale_error text,
  stale_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  CHECK ((stale_error IS NULL) = (stale_at IS NULL)));
CREATE UNIQUE INDEX unit_name ON kiln.unit (environment, kind, name) WHERE deleted_at IS NULL;
CREATE TABLE kiln.load (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  unit bigint NOT NULL REFERENCES kiln.unit,
  version bytea NOT NULL REFERENCES kiln.package_version,
  compiler_version text NOT NULL,
  schema_hash bytea NOT NULL CHECK (length(schema_hash) = 32),
  package json,
  plan json,
  warnings json NOT NULL DEFAULT '[]',
  advisories json NOT NULL DEFAULT '[]',
  default_connection text,
  loaded bytea, -- what the compiler reported, packed
  created_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE kiln.unit ADD FOREIGN KEY (load) REFERENCES kiln.load;
CREATE INDEX load_version ON kiln.load (version);
CREATE TABLE kiln.load_schema (
  load bigint NOT NULL REFERENCES kiln.load ON DELETE CASCADE,
  ordinal int NOT NULL,
  connection text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('table', 'sql')),
  key text NOT NULL,
  columns jsonb,
  error text,
  PRIMARY KEY (load, ordinal),
  CHECK ((columns IS NULL) <> (error IS NULL)));
-- SQL text may exceed a key of a btree.
CREATE UNIQUE INDEX load_schema_key ON kiln.load_schema (load, connection, kind, md5(key));

-- A place holds one result at a time; a target is a build at one place. Their ids, and those of jobs, are given by the coordinator.
CREATE TABLE kiln.place (
  id bigint PRIMARY KEY,
  warehouse text NOT NULL,
  class text NOT NULL CHECK (class IN ('in_place', 'by_binding')),
  schema_name text NOT NULL,
  table_name text NOT NULL,
  physical text NOT NULL,
  UNIQUE (warehouse, physical));
CREATE TABLE kiln.target (
  id bigint PRIMARY KEY,
  place bigint NOT NULL REFERENCES kiln.place,
  build_id text NOT NULL,
  entity_id text NOT NULL,
  connection text NOT NULL,
  target_key text NOT NULL,
  UNIQUE (place, entity_id));

CREATE TABLE kiln.run (
  id text PRIMARY KEY CHECK (id ~ '^[0-9]{13}-[0-9a-z]{9}$'),
  unit bigint NOT NULL REFERENCES kiln.unit,
  state text NOT NULL,
  stop_requested bool NOT NULL DEFAULT false,
  trigger text NOT NULL,
  force_refresh bool NOT NULL DEFAULT false,
  reseed bool NOT NULL DEFAULT false,
  take_over bool NOT NULL DEFAULT false,
  source_names text[],
  run_context json,
  load bigint REFERENCES kiln.load,
  epoch bigint,
  plan jsonb,
  manifest json,
  metadata json NOT NULL DEFAULT '{}',
  error text,
  request_id uuid UNIQUE,
  event bigint,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  completed_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT run_state CHECK (state IN ('requested', 'planning', 'building', 'binding', 'ready', 'failed', 'cancelled')),
  CHECK ((completed_at IS NOT NULL) = (state IN ('ready', 'failed', 'cancelled'))),
  CHECK (state NOT IN ('building', 'binding', 'ready') OR load IS NOT NULL),
  CHECK (state <> 'failed' OR error IS NOT NULL));
CREATE UNIQUE INDEX run_one_active ON kiln.run (unit) WHERE state IN ('requested', 'planning', 'building', 'binding');
CREATE INDEX run_by_unit ON kiln.run (unit, id DESC);

CREATE TABLE kiln.job (
  id bigint PRIMARY KEY,
  run text REFERENCES kiln.run ON DELETE CASCADE,
  kind text NOT NULL CHECK (kind IN ('build', 'resolve', 'drop', 'probe', 'describe', 'sweep')),
  place bigint REFERENCES kiln.place,
  target bigint REFERENCES kiln.target,
  unit bigint REFERENCES kiln.unit,
  source_id text,
  state text NOT NULL,
  stop_requested bool NOT NULL DEFAULT false,
  granted_ever bool NOT NULL DEFAULT false,
  attempts int NOT NULL DEFAULT 0,
  retry_at timestamptz,
  spec jsonb,
  error_code int,
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT job_state CHECK (state IN ('waiting', 'ready', 'leased', 'publishing', 'resolving', 'done', 'carried', 'skipped', 'failed', 'cancelled')),
  CHECK ((kind = 'build') = (run IS NOT NULL)),
  CHECK (kind NOT IN ('build', 'resolve', 'drop') OR place IS NOT NULL),
  CHECK (state NOT IN ('publishing', 'resolving') OR kind = 'build'),
  CHECK (NOT (granted_ever AND state = 'leased' AND attempts = 0)));
-- The place, not the target: two build ids may want one name.
CREATE UNIQUE INDEX job_one_live ON kiln.job (place) WHERE state IN ('leased', 'publishing', 'resolving') AND kind IN ('build', 'drop');
CREATE UNIQUE INDEX job_once_per_run ON kiln.job (run, target) WHERE kind = 'build';
CREATE INDEX job_open ON kiln.job (id) WHERE state NOT IN ('done', 'carried', 'skipped', 'failed', 'cancelled');
CREATE TABLE kiln.job_parent (
  job bigint NOT NULL REFERENCES kiln.job ON DELETE CASCADE,
  parent bigint NOT NULL REFERENCES kiln.job ON DELETE CASCADE,
  PRIMARY KEY (job, parent),
  CHECK (parent < job));
CREATE INDEX job_parent_parent ON kiln.job_parent (parent);
CREATE TABLE kiln.attempt (
  token bigint PRIMARY KEY,
  job bigint NOT NULL REFERENCES kiln.job ON DELETE CASCADE,
  number int NOT NULL,
  purpose text NOT NULL CHECK (purpose IN ('work', 'resolve')),
  state text NOT NULL,
  generation text UNIQUE CHECK (length(generation) = 26),
  builder text NOT NULL,
  boot uuid NOT NULL,
  pull_request uuid NOT NULL,
  pull_index int NOT NULL,
  lease_until timestamptz NOT NULL,
  progress jsonb,
  error_code int,
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  UNIQUE (job, number),
  UNIQUE (pull_request, pull_index),
  CONSTRAINT attempt_state CHECK (state IN ('leased', 'granted', 'succeeded', 'failed', 'lost', 'cancelled')));
CREATE UNIQUE INDEX attempt_one_live ON kiln.attempt (job) WHERE state IN ('leased', 'granted');
CREATE INDEX attempt_by_job ON kiln.attempt (job, token);

CREATE TABLE kiln.generation (
  id text PRIMARY KEY CHECK (length(id) = 26),
  target bigint NOT NULL REFERENCES kiln.target,
  token bigint NOT NULL UNIQUE,
  state text NOT NULL,
  run text, -- a run may be deleted while its results stay
  load bigint REFERENCES kiln.load,
  physical text NOT NULL,
  row_count bigint NOT NULL,
  bytes bigint NOT NULL DEFAULT 0,
  columns jsonb NOT NULL,
  data_as_of timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  retired_at timestamptz,
  CONSTRAINT generation_state CHECK (state IN ('recorded', 'bound', 'retired', 'dropping', 'dropped', 'overwritten', 'lost')));
CREATE UNIQUE INDEX generation_one_in_force ON kiln.generation (target) WHERE state = 'bound';
CREATE INDEX generation_by_target ON kiln.generation (target, token DESC);
CREATE TABLE kiln.manifest_entry (
  run text NOT NULL REFERENCES kiln.run ON DELETE CASCADE,
  entity_id text NOT NULL,
  generation text REFERENCES kiln.generation,
  place bigint NOT NULL REFERENCES kiln.place,
  source_id text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('built', 'carried', 'failed')),
  entry json NOT NULL,
  PRIMARY KEY (run, entity_id),
  CHECK ((generation IS NULL) = (outcome = 'failed')));
CREATE INDEX manifest_entry_generation ON kiln.manifest_entry (generation);
CREATE TABLE kiln.binding_set (
  unit bigint NOT NULL REFERENCES kiln.unit,
  epoch bigint NOT NULL,
  load bigint REFERENCES kiln.load,
  run text,
  cause text NOT NULL,
  packed bytea NOT NULL CHECK (length(packed) <= 8388608), -- as gateways get it
  bindings jsonb NOT NULL,                                 -- as the coordinator reads it back
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (unit, epoch));
CREATE UNIQUE INDEX binding_set_epoch ON kiln.binding_set (epoch);
CREATE TABLE kiln.binding_set_generation (
  unit bigint NOT NULL,
  epoch bigint NOT NULL,
  generation text NOT NULL REFERENCES kiln.generation,
  PRIMARY KEY (unit, epoch, generation),
  FOREIGN KEY (unit, epoch) REFERENCES kiln.binding_set ON DELETE CASCADE);

CREATE TABLE kiln.instance (
  instance text PRIMARY KEY,
  role text NOT NULL,
  boot uuid NOT NULL,
  version text NOT NULL,
  heard_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE kiln.event (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  public_id text NOT NULL UNIQUE,
  kind text NOT NULL,
  delivery_id text,
  environment text NOT NULL,
  name text NOT NULL,
  body json NOT NULL,
  archive bytea,
  state text NOT NULL CHECK (state IN ('received', 'loading', 'loaded', 'waiting', 'running', 'done', 'failed')),
  run text,
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX event_delivery ON kiln.event (delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX event_open ON kiln.event (id) WHERE state NOT IN ('done', 'failed');
-- Replies to calls with an Idempotency-Key.
CREATE TABLE kiln.answered (
  request_id uuid PRIMARY KEY,
  kind int NOT NULL,
  reply bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now());

-- Numbers only grow.
CREATE FUNCTION kiln.epoch_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.epoch < OLD.epoch THEN
    RAISE EXCEPTION 'epoch of unit % would go back from % to %', OLD.id, OLD.epoch, NEW.epoch;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER unit_epoch_grows BEFORE UPDATE OF epoch ON kiln.unit FOR EACH ROW EXECUTE FUNCTION kiln.epoch_grows();
CREATE FUNCTION kiln.token_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM kiln.attempt WHERE job = NEW.job AND token >= NEW.token) THEN
    RAISE EXCEPTION 'token % is not the greatest of job %', NEW.token, NEW.job;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER attempt_token_grows BEFORE INSERT ON kiln.attempt FOR EACH ROW EXECUTE FUNCTION kiln.token_grows();

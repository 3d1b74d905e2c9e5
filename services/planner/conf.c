/* The planner's options. */
#include "services/planner/planner_parts.h"

#define AT(member) offsetof(struct planner_settings, member)
static const struct conf_item items[] = {
    {"log.level", CONF_ENUM, AT(log_level), "info", 0, 0, "error|warn|info|debug", "KILN_LOG_LEVEL", "--log-level", 0, "least level that is logged"},
    {"log.format", CONF_ENUM, AT(log_format), "auto", 0, 0, "auto|text|json", "KILN_LOG_FORMAT", "--log-format", 0, "form of log lines"},
    {"planner.instance", CONF_STR, AT(instance), "planner-1", 0, 0, NULL, "KILN_INSTANCE", "--instance", 0, "name of this process in rows and messages"},
    {"store.url", CONF_STR, AT(store_url), NULL, 0, 0, NULL, "KILN_STORE_URL", "--store", CONF_REQUIRED | CONF_SECRET, "run store: a libpq connection string"},
    {"bus.call", CONF_STR, AT(call_listen), "tcp://127.0.0.1:4011", 0, 0, NULL, "KILN_BUS_CALL", "--bus-call", 0, "bus address for calls (ipc:///path or tcp://host:port)"},
    {"bus.event", CONF_STR, AT(event_listen), "tcp://127.0.0.1:4012", 0, 0, NULL, "KILN_BUS_EVENT", "--bus-event", 0, "bus address for hints"},
    {"planner.webhook_listen", CONF_STR, AT(webhook_listen), "127.0.0.1:4010", 0, 0, NULL, "KILN_WEBHOOK_LISTEN", "--webhook-listen", 0, "HTTP address for publish webhooks; empty: off"},
    {"planner.webhook_secret", CONF_STR, AT(webhook_secret), "", 0, 0, NULL, "KILN_WEBHOOK_SECRET", NULL, CONF_SECRET, "secret of publish webhooks (whsec_.. or GitHub's)"},
    {"planner.config", CONF_STR, AT(config), "", 0, 0, NULL, "PUBLISHER_CONFIG_PATH", "--publisher-config", 0, "publisher.config.json that seeds environments"},
    {"planner.package_store", CONF_STR, AT(package_store), "package_store", 0, 0, NULL, "KILN_PACKAGE_STORE", "--package-store", 0, "directory for the data files of packages"},
    {"planner.init", CONF_BOOL, AT(init), "false", 0, 0, NULL, "INITIALIZE_STORAGE", "--init", 0, "empty this installation's rows before anything is loaded"},
    {"planner.watch_env", CONF_STR, AT(watch_env), "", 0, 0, NULL, "PUBLISHER_WATCH", "--watch-env", 0, "environment read in place at each load; real watching is not built yet"},
    {"planner.node", CONF_STR, AT(node), "node", 0, 0, NULL, "KILN_NODE", "--node", 0, "Node.js >= 20 for the compiler child"},
    {"planner.compiler", CONF_STR, AT(compiler_bundle), "kiln-compiler.js", 0, 0, NULL, "KILN_COMPILER", "--compiler", 0, "the compiler bundle"},
    {"planner.compiler_children", CONF_INT, AT(compiler_children), "1", 1, 16, NULL, "KILN_COMPILER_CHILDREN", "--compiler-children", 0, "compiler children"},
    {"planner.compile_timeout", CONF_MS, AT(compile_timeout_ms), "30s", 1000, 600000, NULL, "PACKAGE_LOAD_JOB_TIMEOUT_MS", NULL, 0, "longest compile of one package"},
    {"planner.secret_key", CONF_STR, AT(secret_key), "", 0, 0, NULL, "KILN_SECRET_KEY", NULL, CONF_SECRET, "32 bytes as hex: seals stored credentials"},
    {"bus.key", CONF_STR, AT(bus_key), "", 0, 0, NULL, "KILN_BUS_KEY", NULL, CONF_SECRET, "shared key that signs bus frames"},
    {"planner.trusted_network", CONF_BOOL, AT(trusted_network), "false", 0, 0, NULL, "KILN_TRUSTED_NETWORK", "--trusted-network", 0, "allow listening off loopback without TLS and a key"},
    {"planner.collision_enforce", CONF_BOOL, AT(collision_enforce), "false", 0, 0, NULL, "PERSIST_COLLISION_ENFORCE", NULL, 0, "refuse to publish sources that share a table name"},
    {"planner.storage_mode", CONF_ENUM, AT(storage_mode), "off", 0, 0, "off|write-only|on", "PERSIST_STORAGE_MODE", NULL, 0, "storage= tier (not built yet: off in effect)"},
    {"planner.warehouse_sessions", CONF_INT, AT(warehouse_sessions), "2", 1, 64, NULL, NULL, NULL, 0, "sessions per connection for catalog questions and probes"},
    {"planner.lease", CONF_MS, AT(lease_ms), "10s", 500, 600000, NULL, "KILN_LEASE", NULL, 0, "how long a builder holds a job without a sign of life"},
    {"planner.sweep_every", CONF_MS, AT(sweep_every_ms), "1h", 1000, 86400000, NULL, "KILN_SWEEP_EVERY", NULL, 0, "how often leftover staging tables are looked for"},
};
const struct conf_spec planner_conf = {"kiln-planner", "Turns publish events into build plans, runs and jobs.", items, ARRAY_LEN(items), false};

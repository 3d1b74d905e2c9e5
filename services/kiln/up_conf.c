/* Options of kiln up: Publisher's flags and variables (spec/malloy-persistence.md 1.5), and ours.
 */
#include "common/conf/conf.h"
#include "services/kiln/up.h"

#define AT(member) offsetof(struct up_settings, member)
static const struct conf_item items[] = {
    {"up.server_root", CONF_STR, AT(server_root), ".", 0, 0, NULL, "SERVER_ROOT", "--server_root",
     0, "everything is kept in the directory kiln below it"},
    {"up.config", CONF_STR, AT(config), "", 0, 0, NULL, "PUBLISHER_CONFIG_PATH", "--config", 0,
     "publisher.config.json; default: the one in the server root, if there is one"},
    {"up.port", CONF_INT, AT(port), "4000", 1, 65535, NULL, "PUBLISHER_PORT", "--port", 0,
     "HTTP port of the gateway"},
    {"up.host", CONF_STR, AT(host), "127.0.0.1", 0, 0, NULL, "PUBLISHER_HOST", "--host", 0,
     "address the gateway listens on; off loopback only with --trusted-network"},
    {"up.mcp_port", CONF_STR, AT(mcp_port), "", 0, 0, NULL, "MCP_PORT", "--mcp_port", 0,
     "accepted for Publisher's sake, and ignored"},
    {"up.init", CONF_BOOL, AT(init), "false", 0, 0, NULL, "INITIALIZE_STORAGE", "--init", 0,
     "forget what is stored and read the configuration again; warehouse tables stay"},
    {"up.watch_env", CONF_STR, AT(watch_env), "", 0, 0, NULL, "PUBLISHER_WATCH", "--watch-env", 0,
     "environment read in place at each load; real watching is not built yet"},
    {"up.builders", CONF_INT, AT(builders), "1", 1, 32, NULL, "KILN_BUILDERS", "--builders", 0,
     "builder processes"},
    {"up.webhook_port", CONF_INT, AT(webhook_port), "-1", -1, 65535, NULL, "KILN_WEBHOOK_PORT",
     "--webhook-port", 0, "port for publish webhooks on 127.0.0.1; -1: --port + 10; 0: off"},
    {"store.url", CONF_STR, AT(store), "", 0, 0, NULL, "KILN_STORE_URL", "--store", CONF_SECRET,
     "run store, a libpq connection string; default: a private PostgreSQL"},
    {"redis.url", CONF_STR, AT(redis), "", 0, 0, NULL, "KILN_REDIS", "--redis", CONF_SECRET,
     "Redis, host:port or unix:/path; default: a private one"},
    {"up.pg_user", CONF_STR, AT(pg_user), "postgres", 0, 0, NULL, "KILN_PG_USER", "--pg-user", 0,
     "whom the private PostgreSQL runs as when kiln up runs as root"},
    {"up.trusted_network", CONF_BOOL, AT(trusted_network), "false", 0, 0, NULL,
     "KILN_TRUSTED_NETWORK", "--trusted-network", 0,
     "allow --host off loopback, without TLS and a key"},
    {"up.bin_dir", CONF_STR, AT(bin_dir), "", 0, 0, NULL, "KILN_BIN_DIR", "--bin-dir", 0,
     "where the services' programs are; default: beside this one"},
    {"up.node", CONF_STR, AT(node), "", 0, 0, NULL, "KILN_NODE", "--node", 0,
     "Node.js >= 20; default: beside this program, else on PATH"},
    {"up.compiler", CONF_STR, AT(compiler), "", 0, 0, NULL, "KILN_COMPILER", "--compiler", 0,
     "the compiler bundle; default: beside the services' programs"},
    {"log.level", CONF_ENUM, AT(log_level), "info", 0, 0, "error|warn|info|debug", "KILN_LOG_LEVEL",
     "--log-level", 0, "least level that is logged"},
    {"log.format", CONF_ENUM, AT(log_format), "auto", 0, 0, "auto|text|json", "KILN_LOG_FORMAT",
     "--log-format", 0, "form of log lines"},
};
const struct conf_spec up_conf = {
    .program = "kiln up",
    .summary = "Runs planner, builders, gateway, PostgreSQL and Redis on this machine, in the "
               "foreground; prints PUBLISHER_READY when everything serves.",
    .items = items,
    .n = ARRAY_LEN(items),
    .others = "bus.call|bus.event|bus.key",
};

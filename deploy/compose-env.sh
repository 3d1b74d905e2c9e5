#!/usr/bin/env bash
# Prints the secrets that docker-compose.yml wants, new each time: deploy/compose-env.sh > .env
# Keep the file: without KILN_SECRET_KEY stored credentials cannot be opened again.
set -euo pipefail
umask 077
hex() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
echo "KILN_SECRET_KEY=$(hex)"
echo "KILN_BUS_KEY=$(hex)"
echo "KILN_WEBHOOK_SECRET=whsec_$(head -c 24 /dev/urandom | base64)"
echo "KILN_PG_PASSWORD=$(hex)"

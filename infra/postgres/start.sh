#!/bin/bash
# Starts PostgreSQL with the arguments of its image; with HOMETOWN_TLS=on, connections from outside
# of this container must use TLS.
set -eu
if [ "${HOMETOWN_TLS:-}" = on ]; then
    here="$(cd "$(dirname "$0")" && pwd)"
    certificate="$(bash "$here/install_certificate.sh")"
    set -- "$@" -c ssl=on -c ssl_cert_file="$certificate" -c ssl_key_file="$certificate" \
        -c hba_file="$here/pg_hba.conf"
fi
exec docker-entrypoint.sh "$@"

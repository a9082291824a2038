#!/bin/bash
# Copies the certificate of the server, and prints where to. The server demands a key that no other user can read; the
# secrets can be read by every user of this container. It reads the copy when it starts, and at SIGHUP.
set -eu
certificate="${TMPDIR:-/tmp}/certificate.pem"
install -m 600 "${SECRETS_DIR:-/run/secrets}/certificate.pem" "$certificate"
echo "$certificate"

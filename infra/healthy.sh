#!/bin/bash
# Succeeds if this container's process is ready. A process with a certificate serves https; it is verified as by any client.
port="${HTTP_PORT:-8000}" secrets="${SECRETS_DIR:-/run/secrets}"
request='GET /health/ready HTTP/1.0\r\n\r\n'
if [ -e "$secrets/certificate.pem" ]; then
    read -r _ status _ < <(printf "$request" | openssl s_client -quiet -verify_return_error -verify_ip 127.0.0.1 \
        -CAfile "$secrets/authority.pem" -connect "127.0.0.1:$port" 2>/dev/null)
else
    exec 3<>"/dev/tcp/127.0.0.1/$port" && printf "$request" >&3 && read -r _ status _ <&3
fi
[ "$status" = 200 ]

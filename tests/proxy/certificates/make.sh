#!/bin/sh
# Makes the certificates of the tests with OpenSSL. Each file has a key and its certificate; they are valid for a century.
set -e
cd "$(dirname "$0")"
new() {  # new NAME SUBJECT_ALTERNATIVE_NAME
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -subj "/CN=$1" -out "$1.csr"
    printf 'subjectAltName=%s\n' "$2" > "$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -days 36500 -extfile "$1.ext" -out "$1.crt"
    cat "$1.key" "$1.crt" > "$1.pem"
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -subj "/CN=shareq tests" -days 36500 -out ca.pem
new broker IP:127.0.0.1
new elsewhere DNS:elsewhere.example
new client DNS:client.example
rm -f -- *.key *.csr *.ext *.crt *.srl

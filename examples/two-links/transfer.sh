#!/usr/bin/env bash
# Sends a file over two links at the same time, on this machine alone and without root. Two relays between sender and server
# simulate the links. The first argument is the command, `anabranch` by default, and the second the folder for the output.
set -euo pipefail

anabranch=${1:-anabranch}
out=${2:-out/two-links}
port=19899
mkdir -p "$out/inbox"
rm -f "$out/inbox/film.bin"
head -c 8000000 /dev/urandom > "$out/film.bin"

background=()
# Ctrl-C and errors end the server and the relays as well.
trap 'kill -INT "${background[@]}" 2> /dev/null || true; wait' EXIT

# The server accepts only this key, and only from this machine. Client and server use the same key, because both run as this user.
export ANABRANCH_HOME="$PWD/$out/keys"
case $out in /*) ANABRANCH_HOME="$out/keys" ;; esac
rm -rf "$ANABRANCH_HOME"
key=$("$anabranch" keys show | head -n 1)
"$anabranch" keys add "$key" demo
"$anabranch" serve --dir "$out/inbox" --quiet --from 127.0.0.0/8 --listen 127.0.1.1:$port --listen 127.0.1.2:$port &
background+=($!)
# The first link is fast. The second is slow, has a longer delay, and loses packets.
"$anabranch" relay --json \
    --listen 127.0.2.1:$port --to 127.0.1.1:$port --link 'rate=20Mbit,delay=5ms,queue=50p' \
    --listen 127.0.2.2:$port --to 127.0.1.2:$port --link 'rate=8Mbit,delay=40ms,loss=0.1%,queue=100p' \
    > "$out/relays.jsonl" &
background+=($!)

"$anabranch" send "$out/film.bin" "127.0.2.1:$port" \
    --path 127.0.3.1 --to "127.0.2.1:$port" \
    --path 127.0.3.2 --to "127.0.2.2:$port"

cmp "$out/film.bin" "$out/inbox/film.bin"
echo "The file arrived unchanged: $out/inbox/film.bin"

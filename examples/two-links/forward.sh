#!/usr/bin/env bash
# Downloads a file with curl through `anabranch forward`, over the first link alone and then over two links, on this machine alone
# and without root. Two relays simulate the links.
#
#     forward.sh [LINK1 LINK2 [ANABRANCH [FOLDER]]]
#
# Links have the form of `anabranch relay --link`, and ANABRANCH is the command.
set -euo pipefail

links=("${1:-rate=50Mbit,delay=10ms,queue=100p}" "${2:-rate=50Mbit,delay=10ms,queue=100p}")
anabranch=${3:-anabranch}
out=${4:-out/two-links}
port=19899 web=18080 local=18081
mkdir -p "$out/web"
[ -s "$out/web/film.bin" ] || head -c 60000000 /dev/urandom > "$out/web/film.bin"

background=()
# Ctrl-C and errors end the web server, the gateway and the relays as well.
# Bash lets background processes ignore SIGINT, so SIGTERM ends them.
trap 'kill "${background[@]}" 2> /dev/null || true; wait' EXIT

# Gateway and forwarder use the same key, because both run as this user.
export ANABRANCH_HOME="$PWD/$out/keys"
case $out in /*) ANABRANCH_HOME="$out/keys" ;; esac
rm -rf "$ANABRANCH_HOME"
"$anabranch" keys add --allow forward "$("$anabranch" keys show | head -n 1)" demo
python3 -m http.server $web --bind 127.0.0.1 --directory "$out/web" > "$out/web.log" 2>&1 &
background+=($!)
"$anabranch" gateway --quiet --allow 127.0.0.1:$web --listen 127.0.1.1:$port --listen 127.0.1.2:$port &
background+=($!)
"$anabranch" relay --json \
    --listen 127.0.2.1:$port --to 127.0.1.1:$port --link "${links[0]}" \
    --listen 127.0.2.2:$port --to 127.0.1.2:$port --link "${links[1]}" > "$out/relays.jsonl" &
background+=($!)

# Downloads the file over these paths, and prints the rate.
download() {
    "$anabranch" forward --quiet -L $local:127.0.0.1:$web 127.0.2.1:$port "${@:2}" &
    local forward=$!
    background+=("$forward")
    # Forwarder and web server may not have started yet.
    curl --silent --retry 30 --retry-all-errors --retry-delay 1 --output "$out/got.bin" \
        --write-out "$1: %{speed_download} bytes/s\n" "http://127.0.0.1:$local/film.bin"
    cmp "$out/web/film.bin" "$out/got.bin"
    kill -INT "$forward"
    wait "$forward" || true
}

download "first link " --path 127.0.3.1 --to 127.0.2.1:$port
download "both links " --path 127.0.3.1 --to 127.0.2.1:$port --path 127.0.3.2 --to 127.0.2.2:$port

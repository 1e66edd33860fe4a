#!/bin/sh
# Runs Vale, the linter of prose, with the style of this project (.vale.ini).
#
#     tools/vale.sh build      builds Vale from the Go module proxy, unless it is stored already
#     tools/vale.sh PATH...    checks files and folders
#
# The program is stored in $XDG_CACHE_HOME or ~/.cache, so that every clone uses one build.
set -eu
version=v3.7.1
folder="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/anabranch/vale-$version"
vale="$folder/vale"

case "${1:-}" in
'')
    echo 'usage: tools/vale.sh build | PATH...' >&2
    exit 2
    ;;
build)
    [ ! -x "$vale" ] || exit 0
    if ! command -v go > /dev/null; then
        echo 'Go is missing, which builds Vale, the linter of prose. Install Go 1.21 or later as https://go.dev/doc/install' >&2
        echo 'describes, then run this again.' >&2
        exit 1
    fi
    echo "Building Vale $version in $folder, which takes some minutes"
    mkdir -p "$folder"
    GOBIN="$folder" GOFLAGS=-mod=mod go install "github.com/errata-ai/vale/v3/cmd/vale@$version"
    ;;
*)
    if [ ! -x "$vale" ]; then
        echo "Vale is missing in $folder. Run \`make setup\`, which builds it with Go 1.21 or later." >&2
        exit 1
    fi
    exec "$vale" --output line "$@"
    ;;
esac

#!/bin/sh
# Installs the system packages that are missing, and prints them first. It needs root and a system with apt; elsewhere it
# prints the names.
#
#     tools/setup.sh demo|test|all
#
# demo   compiler and the packages with which Python makes an environment; every target needs these
# test   these, and the programs without which some tests of `make test` and `make python` are skipped
# all    these, and other stacks and simulators that `.ci/run` compares with
#
# ANABRANCH_SETUP=no installs nothing; steps that need a missing program are skipped.
set -eu
# Debian has some of these programs in folders that only root searches.
PATH="$PATH:/usr/sbin:/sbin"

case "${1:-}" in
demo | test | all) wanted=$1 ;;
*)
    echo 'usage: tools/setup.sh demo|test|all' >&2
    exit 2
    ;;
esac

# Each line has the smallest set that contains the package, its name in Debian, and a command that succeeds if it is installed.
packages() {
    cat << 'LIST'
demo gcc command -v cc
demo libc6-dev command -v cc
demo python3-venv python3 -c 'import ensurepip, venv'
test tshark test -n "${ANABRANCH_SKIP_TSHARK:-}" || command -v tshark
test chromium command -v chromium || command -v chromium-browser || command -v google-chrome
test ethtool command -v ethtool
test iproute2 command -v ip && command -v tc
test nftables command -v nft
all ccache command -v ccache
all dropbear-bin command -v dropbear
all iperf3 command -v iperf3
all libfaketime find /usr/lib /usr/lib64 -name libfaketimeMT.so.1 | grep .
all libusrsctp-dev test -e /usr/include/usrsctp.h
all libusrsctp-examples test -x /usr/lib/usrsctp/tsctp
all ns2 command -v ns
LIST
}

# Prints the missing packages of a set.
missing() {
    packages | while read -r set package probe; do
        if [ "$set" = "$1" ] && ! sh -c "$probe" > /dev/null 2>&1 < /dev/null; then
            echo "$package"
        fi
    done
}

needed=$(missing demo | xargs)
useful=
if [ "$wanted" != demo ]; then useful=$(missing test | xargs); fi
if [ "$wanted" = all ]; then useful=$(echo "$useful" "$(missing all)" | xargs); fi
all=$(echo "$needed" "$useful" | xargs)

if ! command -v "${CARGO:-cargo}" > /dev/null; then
    echo 'Rust is missing. Install it as https://rustup.rs describes, then run this again.' >&2
    exit 1
fi
if [ -z "$all" ]; then exit 0; fi
if [ "${ANABRANCH_SETUP:-}" = no ]; then
    echo "Missing, and not installed because of ANABRANCH_SETUP=no: $all"
    exit 0
fi
install="apt-get install -y --no-install-recommends $all"
if ! command -v apt-get > /dev/null; then
    echo "Missing: $all (names of Debian). Install them with the package manager of this system."
    [ -z "$needed" ]
    exit
fi
if [ "$(id -u)" != 0 ]; then
    echo "Missing: $all. Installing them needs root. Type:" >&2
    echo "    sudo apt-get update && sudo $install" >&2
    [ -n "$needed" ] || echo 'or set ANABRANCH_SETUP=no to skip the steps that need them.' >&2
    exit 1
fi
echo "Installing: $all"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # One word a package.
if apt-get update -q < /dev/null && $install < /dev/null; then exit 0; fi
echo "apt could not install all of: $all" >&2
# Steps that need the missing packages report it themselves.
[ -z "$(missing demo)" ]

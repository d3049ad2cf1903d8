# weir: build, test, install. `make help` lists the targets.
#
# Objects live in build/<config>/, one directory per set of flags, so that sanitizer and release objects never mix; programs are
# linked into build/bin/ (build/<config>/bin for other configurations). Tables of hooks, tools and model families are generated from the
# files that exist: adding one means adding one file.

PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= gcc
V       ?= 0#     1: print whole commands
SAN     ?=#      address, undefined, thread: set by the check-* targets
OMP     ?= 1
WERROR  ?= 0
HOOKS_OFF ?= 0#  1: compile the forward pass without its hook machinery (for `make bench` only)

comma := ,
CONFIG := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),release)
ifeq ($(HOOKS_OFF),1)
CONFIG := nohooks
endif
ifeq ($(OMP),0)
CONFIG := $(CONFIG)-serial
endif
BUILD ?= build/$(CONFIG)
BIN   := $(if $(filter build/release,$(BUILD)),build/bin,$(BUILD)/bin)
GEN   := $(BUILD)/gen

# One short line for each command, or the command itself with V=1.
say = $(if $(filter 1,$(V)),,@printf '%-5s%s\n' $(1) $(2);)

# --- flags
WARN := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wundef -Wformat=2
ifeq ($(WERROR),1)
WARN += -Werror
endif
OPT    ?= -O2 -g
CSTD   := -std=c11 -D_GNU_SOURCE
CFLAGS_ALL = $(CSTD) $(OPT) $(WARN) -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math -MMD -MP $(CFLAGS)
LDFLAGS_ALL = $(LDFLAGS)
ifneq ($(SAN),)
CFLAGS_ALL += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS_ALL += -fsanitize=$(SAN)
endif
ifeq ($(HOOKS_OFF),1)
CFLAGS_ALL += -DWEIR_BENCH_NO_HOOKS
endif
OMPFLAG := $(if $(filter 1,$(OMP)),-fopenmp,)

HDF5_CFLAGS := $(shell pkg-config --cflags hdf5 2>/dev/null)
HDF5_LIBS   := $(shell pkg-config --libs hdf5 2>/dev/null)
ifeq ($(HDF5_LIBS)$(filter deps deps-check clean help format,$(MAKECMDGOALS)),)
$(error HDF5 was not found (pkg-config hdf5): run `make deps` first)
endif
ifeq ($(shell pkg-config --exists libdeflate 2>/dev/null && echo 1),1)
CFLAGS_ALL += -DWEIR_HAVE_LIBDEFLATE
LIBS_DEFLATE := -ldeflate
endif
LIBS = $(HDF5_LIBS) -llapacke -llapack -lz $(LIBS_DEFLATE) -lm -ldl -lpthread $(OMPFLAG)

# --- sources. ROOMS narrows the library while one part is being built.
ROOMS  ?= base linalg io count tokenizer kernels model run hooks grad lens record edit survey search
LIBSRC := $(foreach r,$(ROOMS),$(sort $(wildcard lib/$(r)/*.c)))
HOOKSRC := $(if $(filter hooks,$(ROOMS)),$(sort $(wildcard hooks/*.c)))
TOOLSRC := $(sort $(wildcard tools/*.c)) $(sort $(wildcard tools/*/*.c))
# The tool notebook-export, its parts, and the figures of each kind of notebook.
TOOLSRC += $(sort $(wildcard notebooks_export/*.c) $(wildcard notebooks_export/*/*.c) $(wildcard notebooks_export/*/*/*.c))
TOOLS   := $(filter-out weir,$(sort $(basename $(notdir $(wildcard tools/*.c notebooks_export/*.c)))))
# Kinds of notebook: a template and the figures of that name; those named here first.
NBKINDS := $(filter $(basename $(notdir $(wildcard notebooks_export/figures/*.c))),\
               $(basename $(notdir $(sort $(wildcard notebooks_export/templates/*.ipynb)))))
NBKINDS := $(filter $(NBKINDS),activations neurons lens lens-corpus attention edit) \
               $(filter-out activations neurons lens lens-corpus attention edit,$(NBKINDS))
# Tools that are also links by bare name (a name that would hide a system program is not).
BARE    := $(filter trace neuron-top logit-lens rome generate notebook-export,$(TOOLS))
# Commands of rome: those of tools/rome/NAME.c that exist, in the order of the work.
ROMES   := $(foreach c,stats edit list show verify merge diff eval,$(if $(wildcard tools/rome/$(c).c),$(c)))
ARCHES  := $(patsubst arch_%,%,$(basename $(notdir $(sort $(wildcard lib/model/arch_*.c)))))

LIBOBJ  := $(LIBSRC:%.c=$(BUILD)/%.o) $(HOOKSRC:%.c=$(BUILD)/%.o)
LIBOBJ  += $(if $(HOOKSRC),$(GEN)/hook_table.o) $(if $(filter model,$(ROOMS)),$(GEN)/arch_table.o)
TOOLOBJ := $(TOOLSRC:%.c=$(BUILD)/%.o) $(GEN)/tool_table.o $(GEN)/rome_table.o $(GEN)/nb_kind_table.o $(GEN)/nb_template_table.o $(GEN)/bare_table.o
LIBA := $(BUILD)/libweir.a
SOVER := 0
VERSION := $(shell sed -n 's/^.define WEIR_VERSION "\(.*\)"/\1/p' lib/include/weir/base.h)
LIBSO := $(BUILD)/libweir.so.$(SOVER)

.PHONY: all help deps deps-check check check-pages check-slow check-asan check-ubsan check-san check-tsan fuzz bench conformance install uninstall clean format lib tests
.SECONDARY:
all: $(BIN)/weir $(LIBSO) links

help:
	@sed -n 's/^## //p' Makefile

## make              build build/bin/weir and its links, build/release/libweir.a and .so
## make deps         install what the build needs (Debian's packages, with apt-get)
## make deps-check   and what the tests need: Python, browser, Jupyter, clang
## make check        all tests of programs and library
## make check-pages  what users look at: pages in a browser, notebooks in Jupyter, the README's commands, packages
## make check-slow   more of what takes long: 200 runs of a kind are killed and resumed, every allocation fails once
## make check-san    the C tests under the sanitizers of addresses and of undefined behaviour (check-asan, check-ubsan: under one of them)
## make check-tsan   those that can have threads, under the thread sanitizer
## make fuzz         FUZZ=json SECONDS=600: one of the fuzzers of tests/fuzz, with clang's libFuzzer
## make bench        measure; prints a table, writes build/bench.json
## make conformance  compare with Hugging Face and TransformerLens (needs the network once, for a private environment)
## make seeds-page   tests/seeds/README.md from claims.tsv
## make install      PREFIX (/usr/local), DESTDIR
## make dist         build/weir-VERSION.tar.gz: the source
## make bindist      build/weir-VERSION-linux-MACHINE.tar.gz: the program with all that it needs; runs where it is unpacked

DEPS := build-essential pkg-config libhdf5-dev zlib1g-dev libdeflate-dev liblapacke-dev
DEPS_CHECK := hdf5-tools libcmocka-dev python3 python3-venv python3-numpy python3-h5py python3-xarray python3-h5netcdf python3-pandas \
        python3-pytest python3-nbformat python3-nbclient python3-ipykernel python3-matplotlib jupyter-nbconvert clang libomp-dev chromium \
        chromium-driver python3-selenium zsh mandoc man-db bash-completion
apt = $(if $(filter 0,$(shell id -u)),,sudo) sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(1)'
deps:
	$(call apt,$(DEPS))
deps-check:
	$(call apt,$(DEPS) $(DEPS_CHECK))

# --- the library
lib: $(LIBA) $(LIBSO)
$(BUILD)/lib/%.o: INC = -Ilib/include -Ilib
$(BUILD)/lib/base/parallel.o: EXTRA = $(OMPFLAG)
$(BUILD)/lib/record/%.o: EXTRA = $(HDF5_CFLAGS)
$(BUILD)/lib/record/deflate_%.o $(BUILD)/lib/record/round%.o: OPT = -O3 -g
$(BUILD)/lib/record/%_avx2.o: EXTRA = -mavx2 -mfma -mf16c
$(BUILD)/lib/record/%_avx512.o: EXTRA = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512
$(BUILD)/lib/linalg/outer.o $(BUILD)/lib/lens/measure_%.o $(BUILD)/lib/lens/parts%.o $(BUILD)/lib/lens/compose%.o $(BUILD)/lib/lens/memories.o: OPT = -O3 -g
$(BUILD)/lib/lens/%_avx2.o: EXTRA = -mavx2 -mfma -mf16c
$(BUILD)/lib/lens/%_avx512.o: EXTRA = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512
$(BUILD)/lib/search/moments_%.o $(BUILD)/lib/search/scan_%.o: OPT = -O3 -g
$(BUILD)/lib/search/%_avx2.o: EXTRA = -mavx2 -mfma -mf16c
$(BUILD)/lib/search/%_avx512.o: EXTRA = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512
$(BUILD)/lib/kernels/%.o: OPT = -O3 -g
$(BUILD)/lib/kernels/%_avx2.o: EXTRA = -mavx2 -mfma -mf16c
$(BUILD)/lib/kernels/%_avx512.o: EXTRA = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512
# All sanitizers of `make fuzz` at once take clang minutes over these unrolled products.
ifneq ($(findstring fuzzer,$(SAN)),)
$(BUILD)/lib/kernels/gemm_avx%.o: EXTRA += -fno-sanitize=undefined
endif
# Where an installation keeps its data is compiled in (a static library cannot ask where it lies).
$(BUILD)/lib/model/brook.o: $(BUILD)/prefix
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@
.PHONY: FORCE
FORCE:
$(BUILD)/lib/model/brook.o: EXTRA = -DWEIR_DATADIR='"$(PREFIX)/share/weir"'
# Pages of tools, tools/NAME/page.html with what it includes, as C strings weir_NAME_page in NAME_page.h.
PAGES := $(patsubst tools/%/page.html,%,$(wildcard tools/*/page.html))
define page_rule
$$(GEN)/$(1)_page.h: $$(wildcard tools/$(1)/page* tools/page/*.css tools/page/*.html tools/page/*.js) tools/cli/embed.sh
	@mkdir -p $$(@D)
	@sh tools/cli/embed.sh weir_$(1)_page tools/$(1)/page.html > $$@
$$(BUILD)/tools/$(1)/html.o: $$(GEN)/$(1)_page.h
$$(BUILD)/tools/$(1)/html.o: EXTRA = -I$$(GEN)
endef
$(foreach p,$(PAGES),$(eval $(call page_rule,$(p))))
$(GEN)/notebook_page.h: $(wildcard notebooks_export/export/page* tools/page/*.css tools/page/*.html tools/page/*.js) tools/cli/embed.sh
	@mkdir -p $(@D)
	@sh tools/cli/embed.sh weir_notebook_page notebooks_export/export/page.html > $@
$(BUILD)/notebooks_export/export/page.o: $(GEN)/notebook_page.h
$(BUILD)/notebooks_export/export/page.o: EXTRA = -I$(GEN)
# hooks/ and tools/ see the public headers only: reaching into the library does not build.
$(BUILD)/hooks/%.o: INC = -Ilib/include
$(BUILD)/tools/%.o: INC = -Ilib/include -Itools
$(BUILD)/notebooks_export/%.o: INC = -Ilib/include -Itools -Inotebooks_export
# Completion: the engines of tools/cli/complete.SHELL as C strings.
$(GEN)/complete_%.h: tools/cli/complete.% tools/cli/embed.sh
	@mkdir -p $(@D)
	@sh tools/cli/embed.sh weir_$*_lines $< > $@
$(BUILD)/tools/cli/complete_bash.o: $(GEN)/complete_bash.h
$(BUILD)/tools/cli/complete_zsh.o: $(GEN)/complete_zsh.h
$(BUILD)/tools/cli/complete_bash.o $(BUILD)/tools/cli/complete_zsh.o: EXTRA = -I$(GEN)
$(GEN)/hook_table.o $(GEN)/tool_table.o $(GEN)/rome_table.o $(GEN)/bare_table.o: INC = -Ilib/include -Itools
$(GEN)/nb_kind_table.o $(GEN)/nb_template_table.o: INC = -Ilib/include -Itools -Inotebooks_export
$(GEN)/arch_table.o: INC = -Ilib/include -Ilib

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS_ALL) $(INC) $(EXTRA) -c $< -o $@
$(GEN)/%.o: $(GEN)/%.c
	$(call say,CC,$@)$(CC) $(CFLAGS_ALL) $(INC) -c $< -o $@

# Tables of what exists. A file NAME.c exports weir_hook_NAME, weir_tool_NAME or weir_arch_NAME (hyphens as underscores).
$(GEN)/hook_table.c: $(HOOKSRC) Makefile
	@mkdir -p $(@D)
	@lib/hooks/table.sh hook 'weir/hook.h' weir_hook_class $(basename $(notdir $(HOOKSRC))) > $@
$(GEN)/tool_table.c: $(wildcard tools/*.c notebooks_export/*.c) Makefile
	@mkdir -p $(@D)
	@lib/hooks/table.sh tool 'cli/tool.h' weir_tool $(TOOLS) > $@
$(GEN)/bare_table.c: $(wildcard tools/*.c notebooks_export/*.c) Makefile
	@mkdir -p $(@D)
	@printf '%s\n' '/* Generated by the Makefile: tools that are links by bare name. */' '#include "cli/manual.h"' \
	    'const char *const weir_bare_names[] = {$(BARE:%="%",) 0};' > $@
$(GEN)/rome_table.c: $(wildcard tools/rome/*.c) Makefile
	@mkdir -p $(@D)
	@lib/hooks/table.sh rome 'cli/tool.h' weir_tool $(ROMES) > $@
$(GEN)/nb_kind_table.c: $(wildcard notebooks_export/figures/*.c notebooks_export/templates/*.ipynb) Makefile
	@mkdir -p $(@D)
	@lib/hooks/table.sh nb_kind 'export/kind.h' weir_nb_kind $(NBKINDS) > $@
# Each kind's template as lines, in the same order.
$(GEN)/nb_template_table.c: $(NBKINDS:%=notebooks_export/templates/%.ipynb) notebooks_export/export/templates.sh tools/cli/embed.sh Makefile
	@mkdir -p $(@D)
	@sh notebooks_export/export/templates.sh $(NBKINDS) > $@
$(GEN)/arch_table.c: $(wildcard lib/model/arch_*.c) Makefile
	@mkdir -p $(@D)
	@lib/hooks/table.sh arch 'model/arch.h' weir_arch $(ARCHES) > $@

$(LIBA): $(LIBOBJ)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^
$(LIBSO): $(LIBOBJ)
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,libweir.so.$(SOVER) -Wl,-z,defs $(LDFLAGS_ALL) $^ -o $@ $(LIBS)

# --- the program and its links
# Hooks in shared objects call the library in the program: it has all of it, and exports the public functions.
EXPORT := -Wl,--export-dynamic-symbol='weir_*'
$(BIN)/weir: $(TOOLOBJ) $(LIBA)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(LDFLAGS_ALL) $(EXPORT) $(TOOLOBJ) -Wl,--whole-archive $(LIBA) -Wl,--no-whole-archive -o $@ $(LIBS)
.PHONY: links
links: $(BIN)/weir
	@for t in $(BARE); do ln -sf weir $(BIN)/$$t; done

# --- tests: each .c of tests/unit and tests/kernels is a cmocka program of its own
TESTSRC := $(sort $(wildcard tests/unit/*.c) $(wildcard tests/kernels/*.c))
TESTBIN := $(TESTSRC:%.c=$(BUILD)/%)
OOMBIN  := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/oom/*.c)))
FUZZBIN := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/*.c)))
APIBIN  := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/api/*.c)))
BENCHBIN := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/*.c)))
$(BUILD)/tests/%.o: INC = -Ilib/include -Ilib -Itests
$(BUILD)/tests/unit/test_record_%.o: EXTRA = $(HDF5_CFLAGS)
$(BUILD)/tests/api/%.o: INC = -Ilib/include
$(BUILD)/tests/bench/bench_record.o $(BUILD)/tests/oom/oom_record.o $(FUZZBIN:=.o): EXTRA = $(HDF5_CFLAGS)
$(BUILD)/tests/unit/test_hooks_load: LDFLAGS_ALL += $(EXPORT)
# Charts are no part of the library.
$(BUILD)/tests/unit/test_chart.o: EXTRA = -Itools
$(BUILD)/tests/unit/test_chart: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/page/chart*.c) tools/page/svg.c tools/cli/printable.c)
OOMWRAP := $(foreach f,malloc calloc realloc posix_memalign free strndup,-Wl,--wrap=$(f))
$(TESTBIN) $(OOMBIN): TESTLIBS = -lcmocka
$(BUILD)/tests/unit/test_chart: TESTLIBS = $(LIBA) -lcmocka
$(OOMBIN): LDFLAGS_ALL += $(OOMWRAP)
$(TESTBIN) $(OOMBIN) $(FUZZBIN) $(APIBIN) $(BENCHBIN): %: %.o $(LIBA)
	$(call say,LINK,$@)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(LIBS) $(TESTLIBS)
tests: $(TESTBIN) $(OOMBIN) $(FUZZBIN) $(APIBIN)
.PHONY: tests-threads
tests-threads: $(TESTBIN) $(APIBIN)

check: all tests
	tests/run --build $(BUILD) --bin $(BIN)

check-pages: all tests
	tests/run --build $(BUILD) --bin $(BIN) --pages

check-slow: export WEIR_KILLS = 200
check-slow: export WEIR_SLOW = 1
check-slow: export WEIR_TIMEOUT = 7200
check-slow: all tests
	tests/run --build $(BUILD) --bin $(BIN) test_kill test_order test_record_resume test_run_batch test_neurons_exercise test_rome_smollm2 oom_
	tests/run --build $(BUILD) --bin $(BIN) --pages test_readme test_packages

# Results are compared with ratios in one run; nothing here gates a commit.
bench: all $(BENCHBIN) bench-nohooks
	tests/bench/run --build $(BUILD) --bin $(BIN)
.PHONY: bench-nohooks
bench-nohooks:
	$(MAKE) HOOKS_OFF=1 build/nohooks/tests/bench/bench_run

conformance: all
	WEIR_BIN=$(CURDIR)/$(BIN) tests/conformance/run.sh

check-asan: CHECKED = address
check-ubsan: CHECKED = undefined
check-san: CHECKED = address,undefined
check-asan check-ubsan check-san: SANDIR = build/san-$(subst $(comma),-,$(CHECKED))
check-asan check-ubsan check-san:
	$(MAKE) SAN=$(CHECKED) OPT='-O1 -g' tests $(SANDIR)/bin/weir
	tests/run --build $(SANDIR) --bin $(SANDIR)/bin --c-only
# gcc's libgomp looks like races to the thread sanitizer; clang's OpenMP does not, but for its own inside.
check-tsan: export TSAN_OPTIONS = ignore_noninstrumented_modules=1:die_after_fork=0
check-tsan:
	$(MAKE) SAN=thread CC=clang OPT='-O1 -g' tests-threads build/san-thread/bin/weir
	tests/run --build build/san-thread --bin build/san-thread/bin --c-only --threads

# One fuzzer of tests/fuzz for SECONDS. What it finds new lies in build/fuzz/new/NAME, failing inputs in build/fuzz/found-NAME-*.
# Without OpenMP: one thread, so that an input always takes the same path.
FUZZ    ?= json
SECONDS ?= 600
fuzz: DICT = $(wildcard tests/fuzz/dict/fuzz_$(FUZZ))
fuzz:
	$(MAKE) BUILD=build/fuzz CC=clang OMP=0 SAN=fuzzer-no-link,address,undefined OPT='-O1 -g' \
	    CFLAGS=-DWEIR_LIBFUZZER LDFLAGS=-fsanitize=fuzzer build/fuzz/tests/fuzz/fuzz_$(FUZZ)
	@mkdir -p build/fuzz/new/$(FUZZ)
	build/fuzz/tests/fuzz/fuzz_$(FUZZ) -max_total_time=$(SECONDS) -timeout=20 -max_len=16384 -rss_limit_mb=4096 -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/found-$(FUZZ)- $(DICT:%=-dict=%) $(FUZZFLAGS) build/fuzz/new/$(FUZZ) tests/fuzz/corpus/fuzz_$(FUZZ)

# The claims that the commands show, as a page.
.PHONY: seeds-page
seeds-page:
	python3 tests/seeds/seeds.py page > tests/seeds/README.md.new && mv tests/seeds/README.md.new tests/seeds/README.md

# --- installation
# Pages of the manual and completion are printed by the program itself. A tool with a link by bare name is found by that name in
# both; no page of another program is hidden by that, as no program is.
SHARE = $(DESTDIR)$(PREFIX)/share
MAN1  = $(SHARE)/man/man1
COMPLETIONS = $(SHARE)/bash-completion/completions
.PHONY: install-manual
install-manual: all
	install -d $(MAN1) $(COMPLETIONS) $(SHARE)/zsh/site-functions
	$(BIN)/weir help --man > $(MAN1)/weir.1
	set -e; for t in $(TOOLS); do $(BIN)/weir help --man $$t > $(MAN1)/weir-$$t.1; done
	set -e; for c in $(ROMES); do $(BIN)/weir help --man rome $$c > $(MAN1)/weir-rome-$$c.1; done
	for t in $(BARE); do ln -sf weir-$$t.1 $(MAN1)/$$t.1; ln -sf weir $(COMPLETIONS)/$$t; done
	for c in $(ROMES); do ln -sf weir-rome-$$c.1 $(MAN1)/rome-$$c.1; done
	$(BIN)/weir completion bash > $(COMPLETIONS)/weir
	$(BIN)/weir completion zsh > $(SHARE)/zsh/site-functions/_weir
	chmod 644 $(MAN1)/weir.1 $(MAN1)/weir-*.1 $(COMPLETIONS)/weir $(SHARE)/zsh/site-functions/_weir
install: all install-manual
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/weir \
	    $(DESTDIR)$(PREFIX)/share/weir/brook/moments
	install -m 755 $(BIN)/weir $(DESTDIR)$(PREFIX)/bin/weir
	for t in $(BARE); do ln -sf weir $(DESTDIR)$(PREFIX)/bin/$$t; done
	install -m 644 lib/include/weir/*.h $(DESTDIR)$(PREFIX)/include/weir/
	install -m 644 $(LIBA) $(DESTDIR)$(PREFIX)/lib/libweir.a
	install -m 755 $(LIBSO) $(DESTDIR)$(PREFIX)/lib/libweir.so.$(SOVER)
	ln -sf libweir.so.$(SOVER) $(DESTDIR)$(PREFIX)/lib/libweir.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIBS)|' lib/weir.pc.in \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/weir.pc
	install -m 644 $(filter-out lib/brook/recipe lib/brook/moments,$(wildcard lib/brook/*)) $(DESTDIR)$(PREFIX)/share/weir/brook/
	install -m 644 lib/brook/moments/* $(DESTDIR)$(PREFIX)/share/weir/brook/moments/
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/weir $(BARE:%=$(DESTDIR)$(PREFIX)/bin/%) $(DESTDIR)$(PREFIX)/lib/libweir.* \
	    $(DESTDIR)$(PREFIX)/lib/pkgconfig/weir.pc
	rm -f $(MAN1)/weir.1 $(TOOLS:%=$(MAN1)/weir-%.1) $(ROMES:%=$(MAN1)/weir-rome-%.1) $(ROMES:%=$(MAN1)/rome-%.1) $(BARE:%=$(MAN1)/%.1) \
	    $(COMPLETIONS)/weir $(BARE:%=$(COMPLETIONS)/%) $(SHARE)/zsh/site-functions/_weir
	rm -rf $(DESTDIR)$(PREFIX)/include/weir $(DESTDIR)$(PREFIX)/share/weir

# --- packages, in build/
# The source: what is committed. The program: a tree that runs where it is unpacked, on any Linux with a glibc that is not older than
# this machine's; HDF5 and the compressors are linked in, LAPACK comes along in lib/weir (lib/bindist.sh).
DIST := weir-$(VERSION)
BINDIST = $(DIST)-linux-$(shell uname -m)
.PHONY: dist bindist
dist:
	@git rev-parse HEAD > /dev/null 2>&1 || { echo 'make dist packs what is committed: it needs a clone' >&2; exit 1; }
	@git diff --quiet HEAD -- || echo 'dist: changes that are not committed are left out' >&2
	@mkdir -p build
	git archive --format=tar --prefix=$(DIST)/ HEAD | gzip -n > build/$(DIST).tar.gz
LIBS_BUNDLE = $(shell for a in sz aec z deflate; do f=$$($(CC) -print-file-name=lib$$a.a); [ -f $$f ] && echo $$f; done)
HDF5_STATIC = $(patsubst -L%,%/libhdf5.a,$(filter -L%,$(HDF5_LIBS)))
$(BUILD)/dist/weir: $(TOOLOBJ) $(LIBA)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(LDFLAGS_ALL) $(EXPORT) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/weir' $(TOOLOBJ) -Wl,--whole-archive $(LIBA) \
	    -Wl,--no-whole-archive -o $@ $(HDF5_STATIC) -llapacke -llapack $(LIBS_BUNDLE) -lm -ldl -lpthread -static-libgcc -l:libgomp.a
bindist: $(BUILD)/dist/weir all
	rm -rf $(BUILD)/dist/stage && $(MAKE) install DESTDIR=$(abspath $(BUILD))/dist/stage
	mv $(BUILD)/dist/stage$(PREFIX) $(BUILD)/dist/stage/$(BINDIST)
	lib/bindist.sh $(BUILD)/dist/stage/$(BINDIST) $(BUILD)/dist/weir $(LIBA) $(HDF5_STATIC) $(LIBS_BUNDLE)
	install -m 644 LICENSE README.md $(BUILD)/dist/stage/$(BINDIST)/share/doc/weir/
	@mkdir -p build
	tar --sort=name --owner=0 --group=0 --numeric-owner -C $(BUILD)/dist/stage -c $(BINDIST) | gzip -n > build/$(BINDIST).tar.gz
	@ls -l build/$(BINDIST).tar.gz

format:
	clang-format -i $(LIBSRC) $(HOOKSRC) $(TOOLSRC) $(TESTSRC)

clean:
	rm -rf build

-include $(LIBOBJ:.o=.d) $(TOOLOBJ:.o=.d) $(TESTBIN:=.d) $(OOMBIN:=.d) $(FUZZBIN:=.d) $(APIBIN:=.d) $(BENCHBIN:=.d)

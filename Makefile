# make app   set up and open the app        make test       set up, lint, and run the tests that are quick
# make check format, lint and types         make test-slow  shapes checked, and the other tests
# make test-fast  the library's quick tests alone: no page, no browser, no process
# make checkpoints  train the shipped models again, into build/
# make load  one server with up to 50 visitors: times, memory, none lost, none mixed; on a quiet machine, eleven minutes
# make links ten thousand varied links on one server (LINKS=10000): what its memory comes to; half an hour
# make storm a thousand kills of trainers, servers and warm workers at random moments (KILLS=1000); half an hour
# make fuzz  100,000 odd links, uploads, capsules, archives and messages, each used or refused; five minutes
# make bench speed, as ratios to peers on the same work; on a quiet machine, about an hour (OPTIONS=--smoke tries each)
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PORT ?= 8501
# A worker that runs dry takes from the tail of another one, so most files, with what they set up, stay in one process.
# More than the two cores: a test in the browser waits for half of its time, one that trains in a process more.
PYTEST := $(BIN)/python -m pytest --dist worksteal -n
# The tests of the parts whose shapes matter most run again with types and shapes checked at each call.
LIBRARY := $(addprefix tests/,access analysis capsules checkpoints data decoding experiments figures inspection interventions model text training views)
SHAPED := $(addprefix tests/,model decoding interventions inspection text) $(addprefix tests/training/test_,training_step.py loss.py metrics.py evaluation.py)
# All of benchmarks/ but distillation.py and file_recipes.py, which need a file.
BENCHMARKS := training time_to_accuracy decoding gpu start_latency playground_latency watching page_latency attention_payload positions_latency steps_latency estimate

# Without compiled files every process that a test starts compiles the app anew, and every worker all tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: app test test-fast test-slow check load links storm fuzz bench checkpoints browser clean

app: .venv/app-ready
	$(BIN)/python -m streamlit run serve.py --server.port $(PORT)

test: .venv/test-ready browser
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(PYTEST) 3 -m "not slow"

test-fast: .venv/test-ready
	$(PYTEST) 2 -m "not slow and not processes" $(LIBRARY)

test-slow: .venv/test-ready browser
	$(PYTEST) 2 -m "not slow" --check-shapes $(SHAPED)
	$(PYTEST) 4 -m slow

check: .venv/test-ready
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m pyright

load: .venv/test-ready
	$(BIN)/python tests/load/drive.py

links: .venv/test-ready
	$(BIN)/python tests/load/links.py --links $${LINKS:-10000}

storm: .venv/test-ready
	KILLS=$${KILLS:-1000} nice -n 10 $(PYTEST) 0 -s tests/runs/test_kill.py

fuzz: .venv/test-ready
	FUZZ_CASES=$${FUZZ_CASES:-100000} $(PYTEST) 0 -s --timeout 3600 tests/fuzz

bench: .venv/test-ready browser
	set -e; for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py $(OPTIONS); done

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Attention Lab needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/app-ready: requirements.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/test-ready: requirements.txt requirements-dev.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@ .venv/app-ready

browser:
	@sh tests/browser/install_chromium.sh

# Trains the shipped models with the commands in their cards, into build/runs/NAME-2 (a run never takes a shipped name);
# about ten minutes on two quiet cores.
checkpoints: .venv/app-ready
	rm -rf build/runs
	$(TRAIN) reverse --name reverse
	$(TRAIN) reverse --name reverse-learned --model.positions learned --train.max-steps 800
	$(TRAIN) pronouns-en-fr --name pronouns-en-fr --train.max-steps 1500
	$(TRAIN) pronouns-en-fr --name pronouns-en-fr-learned --model.positions learned --train.max-steps 2000 $(ADAM)
	$(TRAIN) reverse --name reverse-rnn $(RNN) --train.max-steps 1000
	$(TRAIN) reverse --name reverse-rnn-attention $(RNN) --model.attention additive --train.max-steps 500
	$(TRAIN) reverse --name reverse-conv $(CONV)
	$(TRAIN) pronouns-en-fr --name pronouns-en-fr-rnn $(RNN) --train.max-steps 1500
	$(TRAIN) pronouns-en-fr --name pronouns-en-fr-rnn-attention $(RNN) --model.attention additive --train.max-steps 1000
	$(TRAIN) reverse $(ONE) --name reverse-without-mask --model.no-causal-mask
	$(TRAIN) reverse $(ONE) --name reverse-without-positions --model.positions none
	$(TRAIN) reverse $(ONE) --name reverse-without-scaling --model.no-scale-scores
	$(TRAIN) reverse $(ONE) --name reverse-without-residual --model.no-residual
	$(TRAIN) reverse $(ONE) --name reverse-without-norm --model.norm none
	$(TRAIN) reverse $(ONE) --name reverse-with-one-head --model.n-heads 1
	$(TRAIN) reverse $(STEEP) --name reverse-adamw --train.learning-rate 0.01 --train.warmup-steps 100
	$(TRAIN) reverse $(STEEP) --name reverse-without-warmup --train.learning-rate 0.01 --train.warmup-steps 0
	$(TRAIN) reverse $(STEEP) --name reverse-diverged --train.learning-rate 1 --train.warmup-steps 100
	$(TRAIN) emoji-en-ko $(ONE) --name emoji-en-ko
	$(TRAIN) emoji-en-fr --name emoji-en-fr

# Of the twin with learned positions: better at the end than with its recipe, 1.000 against 0.997.
ADAM := --train.optimizer adamw --train.learning-rate 2e-3 --train.warmup-steps 100 --train.momentum 0.95 --train.beta1 0.9 --train.beta2 0.98 --train.batch-tokens 2048 --train.evaluate-every 100
ONE := --train.threads 1
# A learning rate at which the warm-up decides (see the lesson on learning and the gallery of failures).
STEEP := $(ONE) --train.optimizer adamw --train.beta1 0.9 --train.beta2 0.98 --train.max-steps 800
RNN := --model.family rnn $(ONE)
CONV := --model.family conv $(ONE)
TRAIN := ATTENTION_LAB_RUNS=build/runs GOMP_SPINCOUNT=1000 $(BIN)/python -m transformer train --train.precision float32 --corpus.name

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis

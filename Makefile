# The verbs of Hometown. Continuous integration calls these and nothing else.

-include .env
export

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
LOCAL_STACK := $(VENV_PYTHON) -m local_stack
# How the stack runs: as `processes` of this machine, in `containers`, or as a `cluster`
# of them.
in ?= processes
STACK := $(VENV_PYTHON) -m $(patsubst processes,local_stack,$(in:cluster=containers))
ifeq ($(in),cluster)
export COMPOSE_FILE := docker-compose.cluster.yml
endif
PARTS := shared users-svc orders-svc analytics-spark analytics-faust infra contracts benchmarks \
	verification test_support e2e-tests scripts
DEMO_JAEGER_WAIT_SECONDS ?= 60
TEST_WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help setup fetch up compare down status logs token clean footprint demo load \
	rebuild-check rebuild replay reprocess rescale reconcile export audit check-cells \
	stress saga fuzz differential crashes bench bench-analytics \
	contracts contracts-check contracts-release \
	test check fmt lint types imports unit integration e2e e2e-compose e2e-cluster

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## install uv and all packages into this checkout
	@$(PYTHON) scripts/setup.py

fetch: setup ## download and build all that is ever needed, and make starts of Spark quicker
	@$(LOCAL_STACK) fetch --browser --jaeger

up: setup ## start everything, and wait until it is ready
	@$(STACK) up

compare: setup ## count the hours as Kafka Streams does, too, on port 8004
	@$(STACK) up --with analytics-faust

down: setup ## stop everything
	@$(STACK) down

status: setup ## what runs, where, and why not
	@$(STACK) status

logs: setup ## the last log lines; of one process with name=users-api
	@$(STACK) logs $(name)

# Nothing but the token goes to standard output, not even that something was installed.
token: ## a token for calls: as=clerk, as=analyst, or as=user user=ID
	@$(PYTHON) scripts/setup.py >&2
	@$(STACK) token '$(as)' $(if $(user),--subject '$(user)')

clean: setup ## stop everything and remove its data
	@$(STACK) clean

footprint: setup ## resident memory per process and in all
	@$(STACK) footprint

demo: setup ## start everything, load the sample, show the answer
	@HOMETOWN_JAEGER_WAIT_SECONDS=$(DEMO_JAEGER_WAIT_SECONDS) $(STACK) up
	@$(VENV_PYTHON) -m scripts.demo

load: setup ## realistic load with all totals checked: rate=50 seconds=60 users=200 items=40 seed=1
	@$(VENV_PYTHON) -m verification.load $(foreach option,seed rate seconds users items late gap, \
		$(if $($(option)),--$(option) $($(option)))) $(args)

rebuild-check: setup ## compare the read models with what the events make them
	@failed=0; for service in users orders; do \
		$(STACK) run $$service rebuild --check || failed=1; done; exit $$failed

rebuild: setup ## make the read models of a service anew from its events: name=users
	@$(STACK) run $(or $(name),$(error name=users, or name=orders)) rebuild

replay: setup ## publish a service's events anew, after its topics were lost: name=users
	@$(STACK) run --without $(or $(name),$(error name=users, or name=orders))-relay $(name) replay

reprocess: setup ## make all cells anew beside the live ones, and compare; args=--switch, --roll-back, --drop
	@$(STACK) run analytics reprocess $(args)

export: setup ## write final hours to Parquet files, those that changed; args="--to FOLDER"
	@$(STACK) run analytics export $(args)

reconcile: setup ## are the final hours what the event stores say? args="--hours 24"
	@$(STACK) run analytics reconcile $(args)

rescale: setup ## split the state of the job into other shuffle partitions: partitions=4
	@$(STACK) run --without analytics-job analytics rescale $(or $(partitions),$(error partitions=4))

audit: setup ## does all reserved credit match the orders, to the cent?
	@$(VENV_PYTHON) -m verification.audit

check-cells: setup ## do the hours match a plain query over all records of the topics?
	@$(VENV_PYTHON) -m verification.differential.check_cells

saga: setup ## 20,000 random interleavings of the credit saga; args="--interleavings 500"
	@$(VENV_PYTHON) -m verification.saga $(args)

differential: setup ## random histories through Spark, compared with a plain query; args="--seeds 3"
	@$(VENV_PYTHON) -m verification.differential $(args)

crashes: setup ## kill -9 around the commits of Spark: are the cells right? args="--seeds 3"
	@$(VENV_PYTHON) -m verification.crashes $(args)

stress: setup ## try to make the relay lose or reorder events; args="--seeds 3"
	@$(VENV_PYTHON) -m verification.stress $(args)

fuzz: setup ## call the APIs as their documents allow, and as they do not, 10 000 times; args="--seed 2"
	@$(VENV_PYTHON) -m verification.fuzz $(args)

bench: setup ## measure delivery next to its limits and peers, 50 minutes; args="--quick"
	@$(VENV_PYTHON) -m benchmarks delivery $(args)

bench-analytics: setup ## measure analytics next to Kafka Streams, 30 minutes; args="--quick"
	@$(VENV_PYTHON) -m benchmarks analytics $(args)

fmt: setup ## format the code, and repair what lint can repair
	@$(VENV_PYTHON) -m ruff format .
	@$(VENV_PYTHON) -m ruff check --fix .

lint: setup ## format and lint, without changing anything
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m ruff check .

types: setup ## mypy, strict
	@for part in $(PARTS); do $(VENV_PYTHON) -m mypy $$part || exit 1; done

imports: setup ## which room may import which
	@.venv/bin/lint-imports

contracts: setup ## write the schemas and the AsyncAPI document of what the code says
	@$(VENV_PYTHON) -m contracts write

contracts-check: setup ## does the code keep what was promised, and do the files say it?
	@$(VENV_PYTHON) -m contracts check

contracts-release: setup ## promise what the code says from now on
	@$(VENV_PYTHON) -m contracts release

unit: setup ## tests that need no server
	@$(VENV_PYTHON) -m pytest $(wildcard */tests/unit)

integration: setup ## tests on a real PostgreSQL and a real Kafka of their own
	@$(VENV_PYTHON) -m pytest $(wildcard */tests/integration)

e2e: setup ## tests on a whole stack of their own
	@$(VENV_PYTHON) -m pytest $(wildcard e2e-tests/test_*.py)

e2e-compose: setup ## the same tests on a stack in containers, and those of containers alone
	@HOMETOWN_TEST_IN=containers $(VENV_PYTHON) -m pytest $(wildcard e2e-tests/test_*.py) \
		e2e-tests/in_containers

e2e-cluster: setup ## brokers and Spark's machines die in a cluster of containers
	@HOMETOWN_TEST_IN=cluster $(VENV_PYTHON) -m pytest e2e-tests/in_cluster e2e-tests/test_hours.py

check: lint types imports contracts-check unit ## all that takes less than a minute

test: lint types imports contracts-check ## everything
	@$(VENV_PYTHON) -m pytest -n $(TEST_WORKERS) --no-loadscope-reorder


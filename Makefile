# The verbs of Hometown. Continuous integration calls these and nothing else.

-include .env
export
# Those of a verb are not for the verbs that it calls: tests call many.
unexport args

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
LOCAL_STACK := $(VENV_PYTHON) -m local_stack
# How the stack runs: as `processes` of this machine, in `containers`, or as a `cluster`
# of them.
in ?= processes
STACK := $(VENV_PYTHON) -m $(patsubst processes,local_stack,$(in:cluster=containers))
ifeq ($(in),processes)
unexport HOMETOWN_IN
else
export HOMETOWN_IN := $(in)
endif
# Folders with a package of their own, and the packages at the top.
PARTS := $(patsubst %/pyproject.toml,%,$(wildcard */pyproject.toml)) \
	$(patsubst %/__init__.py,%,$(wildcard */__init__.py)) e2e-tests
DEMO_JAEGER_WAIT_SECONDS ?= 60
TEST_WORKERS ?= 4
TESTS = $(VENV_PYTHON) -m pytest -n $(TEST_WORKERS) --no-loadscope-reorder
CHECK_WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help doctor setup fetch up dev compare canary observe down status logs lag trace token rotate clean footprint demo load lesson lessons \
	rebuild-check rebuild rewind replace kill stop replay topics republish backup restore reprocess rescale reconcile export \
	audit check-cells plan kafka stress saga fuzz differential crashes drill bench bench-analytics \
	generate new-service recipe contracts contracts-check contracts-release release docs docs-serve \
	without test test-long check fmt lint types scan imports unit integration e2e alerts e2e-compose e2e-cluster

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Nothing is installed for it.
doctor: ## what this machine lacks for the project, and what repairs it; also before anything is installed
	@$(PYTHON) -m scripts.doctor

setup: ## install uv and all packages into this checkout
	@$(PYTHON) scripts/setup.py

fetch: setup ## download and build everything that is ever needed; Spark starts faster afterwards
	@$(LOCAL_STACK) fetch --browser --jaeger

up: setup ## start everything and wait until it is ready
	@$(STACK) up

dev: setup ## start everything, and restart the processes to which a saved file belongs, until Ctrl-C
	@$(LOCAL_STACK) dev

compare: setup ## also count the hours as Kafka Streams does, on port 8004; args=--reset: forget them first
	@$(STACK) $(if $(findstring --reset,$(args)),run analytics-faust reset,up --with analytics-faust)

canary: setup ## also place an order each minute, and measure how long it takes
	@$(STACK) up --with canary

observe: setup ## also run Prometheus with the alerts; in=containers: and Grafana with the dashboards
	@$(STACK) up --with prometheus

down: setup ## stop everything
	@$(STACK) down

status: setup ## what runs, on which address, and reasons of failures
	@$(STACK) status

logs: setup ## recent log lines; of one process with name=users-api
	@$(STACK) logs $(name)

# Standard output is the token only; messages of the installation go to standard error.
token: ## a bearer token: as=clerk, as=analyst, or as=user user=ID
	@$(PYTHON) scripts/setup.py >&2
	@$(STACK) token '$(as)' $(if $(user),--subject '$(user)')

rotate: setup ## replace the key that signs tokens, or certificates: what=issuer [hours=12], what=certificates
	@$(STACK) rotate $(or $(what),$(error what=issuer or what=certificates)) $(if $(hours),--hours $(hours))

clean: setup ## stop everything and remove its data
	@$(STACK) clean

footprint: setup ## resident memory per process and in total
	@$(STACK) footprint

demo: setup ## start everything, load the sample, show the answer
	@HOMETOWN_JAEGER_WAIT_SECONDS=$(DEMO_JAEGER_WAIT_SECONDS) $(STACK) up
	@$(VENV_PYTHON) -m scripts.demo

trace: setup ## place an order, wait until it is counted, print its trace; or print one: id=TRACE_ID
	@$(VENV_PYTHON) -m scripts.trace $(if $(id),--id '$(id)')

lag: setup ## how far each consumer is behind, and what waits in the outboxes
	@$(STACK) lag

kafka: setup ## run a command of Kafka's own; without a name, list them: tool=consumer-groups args="--list"
	@$(STACK) kafka $(tool) $(args)

load: setup ## realistic load with verified totals: rate=50 seconds=60 users=200 items=40 seed=1 burst=5
	@$(VENV_PYTHON) -m verification.load $(foreach option,seed rate seconds users items late burst gap, \
		$(if $($(option)),--$(option) $($(option)))) $(args)

lesson: setup ## lessons in streams: the list, or one: name=windows on=spark grace=0
	@$(VENV_PYTHON) -m lessons $(MAKEOVERRIDES)

lessons: setup ## run all lessons, and compare each answer with what must come out
	@$(VENV_PYTHON) -m lessons --all

rebuild-check: setup ## compare the read models with the events
	@failed=0; for service in $$($(VENV_PYTHON) -m shared.runtime.declarations); do \
		$(STACK) run $$service rebuild --check || failed=1; done; exit $$failed

rebuild: setup ## rebuild the read models of a service from its events: name=users
	@$(STACK) run $(or $(name),$(error name=SERVICE is missing, such as name=users)) rebuild

# The worker does not run while it is rewound; a look at what would happen does not stop it.
rewind: setup ## let a worker read records again: name=orders to=earliest|latest|TIME; args=--apply does it
	@$(STACK) run $(if $(findstring --apply,$(args)),--without $(name)-worker) \
		$(or $(name),$(error name=SERVICE is missing, such as name=orders)) rewind \
		--to $(or $(to),$(error to=earliest, to=latest or to=2016-11-11T04:03Z)) $(args)

replace: setup ## replace a running process: name=users-api; no request fails, but those to an API in=containers
	@$(STACK) replace $(or $(name),$(error name=PROCESS is missing, such as name=users-api))

kill: setup ## end a process as kill -9 does, and wait until it is back: name=users-relay
	@$(STACK) kill $(or $(name),$(error name=PROCESS is missing, such as name=users-relay))

stop: setup ## stop a process for a while, and start it again: name=kafka seconds=10
	@$(STACK) stop $(or $(name),$(error name=PROCESS is missing, such as name=kafka)) \
		--seconds $(or $(seconds),$(error seconds=10 is missing))

replay: setup ## publish a service's events again after its topics were lost: name=users
	@$(STACK) run --without $(or $(name),$(error name=SERVICE is missing, such as name=users))-relay $(name) replay

topics: setup ## create the topics that are missing; args=--check prints what differs from the declarations
	@$(STACK) topics $(args)

republish: setup ## after lost topics: publish all events again, and count the hours again
	@$(STACK) republish

backup: setup ## write the event stores and the secrets to a new folder: to=FOLDER
	@$(LOCAL_STACK) backup $(or $(to),$(error to=FOLDER is missing))

restore: setup ## start a new stack with the data of a backup: from=FOLDER
	@$(LOCAL_STACK) restore $(or $(from),$(error from=FOLDER is missing))

reprocess: setup ## recompute all cells and compare with the live ones; args=--switch, --roll-back, --drop
	@$(STACK) run analytics reprocess $(args)

export: setup ## write changed final hours to Parquet files; args=--records: all records; args="--to FOLDER"
	@$(STACK) run analytics export $(args)

reconcile: setup ## compare final hours with the event stores; args="--hours 24"
	@$(STACK) run analytics reconcile $(args)

rescale: setup ## repartition the state of the job: partitions=4
	@$(STACK) run --without analytics-job analytics rescale $(or $(partitions),$(error partitions=4))

audit: setup ## verify that all reserved credit belongs to orders, to the cent
	@$(VENV_PYTHON) -m verification.audit

check-cells: setup ## compare the hours with a plain query over all records of the topics
	@$(VENV_PYTHON) -m verification.differential.check_cells

saga: setup ## 20,000 random interleavings of the credit saga; args="--interleavings 500"
	@$(VENV_PYTHON) -m verification.saga $(args)

differential: setup ## random histories through Spark, compared with a plain query; args="--seeds 3"
	@$(VENV_PYTHON) -m verification.differential $(args)

crashes: setup ## kill -9 around the commits of Spark, then verify the cells; args="--seeds 3"
	@$(VENV_PYTHON) -m verification.crashes $(args)

drill: setup ## faults, replacements, backup and restore under load, one table; args=--quick
	@$(VENV_PYTHON) -m verification.drill $(args)

stress: setup ## try to make the relay lose or reorder events; args="--seeds 3"
	@$(VENV_PYTHON) -m verification.stress $(args)

fuzz: setup ## 10,000 valid and invalid API calls, derived from the OpenAPI documents; args="--seed 2"
	@$(VENV_PYTHON) -m verification.fuzz $(args)

bench: setup ## what the whole carries, next to its parts, limits and peers, 90 minutes; args="--quick"
	@$(VENV_PYTHON) -m benchmarks delivery $(args)

bench-analytics: setup ## orders to cells, compared with Kafka Streams, 30 minutes; args="--quick"
	@$(VENV_PYTHON) -m benchmarks analytics $(args)

plan: setup ## brokers, disks, workers and cores for a load: rate=100000 peak=500000 size=780 days=7
	@$(VENV_PYTHON) -m benchmarks.capacity $(foreach option,rate peak size days replicas readers \
		segment clusters quota cores disk network,$(if $($(option)),--$(option) '$($(option))')) $(args)

fmt: setup ## format the code, and apply the fixes of lint
	@$(VENV_PYTHON) -m ruff format .
	@$(VENV_PYTHON) -m ruff check --fix .

lint: setup ## check format and lint without changing anything
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m ruff check .

types: setup ## mypy, strict
	@for part in $(PARTS); do $(VENV_PYTHON) -m mypy $$part || exit 1; done

scan: lint ## look for known vulnerabilities of the locked packages; asks api.osv.dev
	@.tools/bin/uv audit --frozen

imports: setup ## check the direction of imports
	@$(VENV_PYTHON) -m scripts.check_imports

generate: setup ## write all files that follow from others, such as those from */service.toml
	@$(VENV_PYTHON) -m containers.generate
	@$(VENV_PYTHON) -m benchmarks.capacity --page
	@$(VENV_PYTHON) -m scripts.dashboards
	@$(VENV_PYTHON) -m scripts.request_files
	@$(VENV_PYTHON) -m scripts.devcontainer

new-service: setup ## create a service in its own folder: name=payments singular=payment
	@$(VENV_PYTHON) -m scripts.new_service $(or $(name),$(error name=payments)) \
		$(if $(singular),--singular '$(singular)')

recipe: setup ## put a recipe of CONTRIBUTING.md into a copy: name=command; args=--write: write its patch again
	@$(VENV_PYTHON) -m scripts.recipes $(or $(name),$(error name=command)) $(args)

without: setup ## leave parts out, with every line that mentions them; without a part, list them: part=a,b
	@$(VENV_PYTHON) -m scripts.parts $(part) $(args)

contracts: setup ## generate the schemas and the AsyncAPI document from the code
	@$(VENV_PYTHON) -m contracts write

contracts-check: setup ## check compatibility with the last release, and that generated files are current
	@$(VENV_PYTHON) -m contracts check

contracts-release: setup ## make the current contracts the promise of a release
	@$(VENV_PYTHON) -m contracts release

release: setup ## a step of publishing a tag, as the workflow calls it: step=check tag=v0.1.0
	@$(VENV_PYTHON) -m scripts.release $(or $(step),$(error step=check is missing)) --tag '$(tag)' \
		$(foreach option,registry source,$(if $($(option)),--$(option) '$($(option))'))

docs: setup ## build the documentation as a site that works offline; args="--source-address https://..."
	@$(VENV_PYTHON) -m scripts.documentation $(args)

docs-serve: setup ## serve it on 127.0.0.1, and show changes of documents at once; args="--port 8090"
	@$(VENV_PYTHON) -m scripts.documentation --serve $(args)

unit: setup ## tests without servers
	@$(VENV_PYTHON) -m pytest -n $(CHECK_WORKERS) $(wildcard */tests/unit)

integration: setup ## tests on a PostgreSQL and a Kafka that they start
	@$(VENV_PYTHON) -m pytest $(wildcard */tests/integration)

e2e: setup ## tests on a whole stack that they start
	@$(VENV_PYTHON) -m pytest $(wildcard e2e-tests/test_*.py */tests/e2e)

alerts: setup ## all faults that alerts are for, on a stack of their own, and ten quiet minutes; 20 minutes
	@HOMETOWN_ALERTS=all $(VENV_PYTHON) -m pytest e2e-tests/test_alerts.py

e2e-compose: setup ## the same tests on a stack in containers, and those of containers only; args="-m 'not long'"
	@HOMETOWN_TEST_IN=containers $(VENV_PYTHON) -m pytest $(wildcard e2e-tests/test_*.py) \
		e2e-tests/in_containers $(args)

e2e-cluster: setup ## brokers and Spark's machines die in a cluster of containers
	@HOMETOWN_TEST_IN=cluster $(VENV_PYTHON) -m pytest e2e-tests/in_cluster e2e-tests/test_hours.py

check: lint types imports contracts-check unit ## everything that takes less than a minute

test: lint types imports contracts-check ## everything but the long tests
	@$(TESTS) -m 'not long'

test-long: setup ## the tests that take longest, which repeat, combine or falsify what others verify
	@$(TESTS) -m long


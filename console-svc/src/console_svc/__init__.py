"""The console of a developer: the first page of a stack, in development only.

Comes in: `/metrics` of every process (`metrics`, `watch`), the supervisor of the local stack
(`stack`), journeys and traces of orders (`orders`).
Goes out: one page with the road of events, processes, parked streams and recent actions (`page`);
load, and faults on request (`control`).
Guarantees: it does not start outside of development; only a form of its own page acts (`guard`);
one load and one fault at a time, each with a bound; without visitors it measures nothing (`watch`).
Read `road.py` first, then `watch.py` and `page.py`. What is drawn is a pure function of what was
observed.
"""

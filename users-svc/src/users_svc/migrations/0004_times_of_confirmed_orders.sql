-- When each confirmed order is dated, so that its user is deleted after it.
--
-- The time of the orders that are here already is unknown, but an order is dated at most five minutes
-- ahead of the clock that accepted it. The default also serves a worker of the version before, which
-- writes no time.

ALTER TABLE confirmed_orders
    ADD COLUMN ordered_at timestamptz NOT NULL DEFAULT now() + interval '5 minutes';

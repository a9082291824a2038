-- Orders that reserve credit and are not pending any more.

CREATE TABLE confirmed_orders (
    user_id uuid NOT NULL,
    order_id uuid NOT NULL,
    PRIMARY KEY (user_id, order_id)
);

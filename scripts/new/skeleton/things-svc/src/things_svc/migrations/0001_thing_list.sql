-- Read model: all things with their names.

CREATE TABLE thing_list (
    thing_id uuid PRIMARY KEY,
    name text NOT NULL,
    version integer NOT NULL
);

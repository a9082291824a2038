-- Read model: users by the place where they live, with their credit.

CREATE TABLE user_profiles (
    user_id uuid PRIMARY KEY,
    address text NOT NULL,
    gender text NOT NULL,
    credit_limit numeric(12, 2) NOT NULL,
    reserved_credit numeric(14, 2) NOT NULL,
    deleted boolean NOT NULL,
    effective_at timestamptz NOT NULL,
    version integer NOT NULL
) WITH (fillfactor = 80); -- each order of a user writes here
CREATE INDEX user_profiles_by_address ON user_profiles (address, user_id) WHERE NOT deleted;

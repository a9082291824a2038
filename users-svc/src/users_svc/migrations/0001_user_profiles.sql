-- Read model: users by the place where they live.

CREATE TABLE user_profiles (
    user_id uuid PRIMARY KEY,
    address text NOT NULL,
    gender text NOT NULL,
    effective_at timestamptz NOT NULL,
    version integer NOT NULL
);
CREATE INDEX user_profiles_by_address ON user_profiles (address, user_id);

-- The key to each user's personal data. Whoever records that a user was deleted destroys it in the
-- same transaction: there is no moment, and no crash, between the two.

CREATE TABLE personal_data_keys (
    user_id uuid PRIMARY KEY,
    wrapped_key bytea NOT NULL,
    made_at timestamptz NOT NULL
);

CREATE FUNCTION destroy_personal_data_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM personal_data_keys WHERE user_id = NEW.stream_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER user_deleted AFTER INSERT ON events
FOR EACH ROW WHEN (NEW.type = 'user-deleted')
EXECUTE FUNCTION destroy_personal_data_key();

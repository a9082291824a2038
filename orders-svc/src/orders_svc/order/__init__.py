"""Orders: placed, then confirmed or rejected by the credit of their user, perhaps cancelled."""

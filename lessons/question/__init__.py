"""The question of the shop, in plain programs."""

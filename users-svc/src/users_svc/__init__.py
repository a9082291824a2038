"""Users: their addresses, and the credit that their orders reserve."""

"""Users: where they live, and the credit that their orders reserve."""

"""`make doctor`: what this machine lacks for the project, and the command that repairs it."""

"""What a stack in containers needs besides the services: secrets, databases, tokens."""
